"""Noun phrases and clauses built in both languages at once, and the sampler that patterns draw from.

A Phrase or a clause is always a French side with its English side, so that a pattern cannot let them drift.
"""

import random
from typing import NamedTuple

from . import adjectives, english, french, nouns, words
from .french_verbs import WITH_ETRE

# Children neither drive, sell nor drink wine, so they are subjects only where a pattern allows it.
YOUNG = ("bébé", "enfant", "garçon", "fille", "élève")
FEMININE_CLOTHES = ("robe", "jupe")
SMALL = ("haricot", "fraise", "cerise", "oignon")      # one never buys or eats just one
PASSING = ("client", "touriste")      # met in a shop or a street; nobody knows their days and habits
ALCOHOL = ("vin", "bière")
# What nobody asks for, and praise that would sound odd in a chore or before the first taste.
UNWANTED = ("sale", "propre", "vide", "lourd", "lent")
IDLE_PRAISE = "confortable élégant pratique moderne calme cher utile délicieux bon sucré beau joli".split()
CHORES = ("nettoyer laver réparer peindre ouvrir fermer goûter couper allumer éteindre utiliser nourrir "
          "cacher signer chercher prendre jeter").split()
WANTING = "vouloir acheter choisir louer apporter préférer adorer".split()
MASS = ("food", "drink", "spice", "resource")


class Phrase(NamedTuple):
    fr: str
    en: str
    gender: str = "m"
    number: str = "s"
    person: int = 2
    lemma: str = ""


class Sentence(NamedTuple):
    fr: str
    en: str
    combos: tuple
    pattern: str


def finish(text, mark, space):
    text = text[0].upper() + text[1:]
    return text + (space if mark in "?!" else "") + mark


def noun_phrase(noun, det, number="s", adjective=None, person=0, her=False):
    """A noun with determiner and at most one adjective, in both languages."""
    if noun.cls == "pair" or noun.lemma in SMALL and det != "":
        number = "p"
    fr = noun.plural if number == "p" else noun.lemma
    en = noun.en_plural if number == "p" else noun.en
    before = False
    if adjective:
        form = french.agree(adjective.lemma, noun.gender, number, adjective.fem, fr if adjective.before
                            else "")
        before = adjective.before
        fr = form + " " + fr if before else fr + " " + form
        en = adjective.en + " " + en
    # « des » becomes « de » in front of an adjective: de belles fleurs.
    fr_det = "de" if det == "indef" and number == "p" and before else det
    fr = french.determine(fr_det, noun.gender, number, fr, person)
    return Phrase(fr, english_determiner(det, en, number, noun.cls, person, her), noun.gender, number,
                  5 if number == "p" else 2, noun.lemma)


def english_determiner(det, core, number, cls, person, her):
    if det == "def":
        return "the " + core
    if det == "indef":
        if number == "s":
            return english.article(core)
        return core if cls == "pair" else "some " + core
    if det == "part":
        return "some " + core
    if det == "dem":
        return ("these " if number == "p" else "this ") + core
    if det == "poss":
        return ("her" if her and person == 2 else words.EN_POSSESSIVE[person]) + " " + core
    if det == "de":
        return "any " + core if number == "p" or cls in MASS else english.article(core)
    return core


def french_clause(subject, verb, tense, rest="", neg="", clitics="", adverb="", inversion=False,
                  agree_with=None):
    """A French clause, not yet elided. tense adds pc (passé composé) and pqp to the simple tenses."""
    person = subject.person
    own = french.REFLEXIVE[person] if french.is_reflexive(verb) else ""
    past = ""
    if tense in ("pc", "pqp"):
        with_etre = bool(own) or verb in WITH_ETRE
        finite = french.conjugate("être" if with_etre else "avoir", "pres" if tense == "pc" else "impf",
                                  person)
        past = french.participle(verb)
        # With être the participle follows the subject, with avoir a direct object placed before it.
        controller = subject if with_etre else agree_with
        if controller:
            past = french.agree_participle(past, controller.gender, controller.number)
    else:
        finite = french.conjugate(verb, tense, person)
    head = subject.fr
    if inversion:
        is_pronoun = subject.fr in ("tu", "il", "elle", "nous", "vous", "ils", "elles")
        pronoun = subject.fr if is_pronoun else ("elle" if subject.gender == "f" else "il")
        pronoun += "s" if not is_pronoun and subject.number == "p" else ""
        link = "-t-" if person == 2 and finite[-1] in "ae" else "-"
        head = "" if is_pronoun else subject.fr
        finite += link + pronoun
    late = neg == "personne"
    parts = [head, "ne" if neg else "", own, clitics, finite, "" if late else neg, adverb, past,
             neg if late else "", rest]
    return " ".join(part for part in parts if part)


def english_present(verb):
    return "prog" if verb.kind == "event" else "pres"


TENSES = {"pc": "past", "impf": "used", "fut": "will", "cond": "would"}


class Sampler:
    """Seeded choices. Records the word combinations a sentence contains, which the splits are made by."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.combos = []
        self.topic = None      # when set, the person every sentence of a paragraph is about

    def chance(self, probability):
        return self._random.random() < probability

    def pick(self, items):
        # random() alone is guaranteed to give the same numbers in every Python version.
        return items[int(self._random.random() * len(items))]

    def number(self, low, high):
        return low + int(self._random.random() * (high - low + 1))

    # --- people ---

    def pronoun(self, without=()):
        return Phrase(*self.pick([p for p in words.PRONOUNS if p[0] not in without]))

    def name(self):
        if self.chance(0.5):
            name = self.pick(words.FEMALE)
            return Phrase(name, name, "f", "s", 2, name)
        name = self.pick(words.MALE)
        return Phrase(name, name, "m", "s", 2, name)

    def relative(self, person=None, plural=False):
        """A relative or friend with a possessive; person: whose."""
        several = "frère sœur oncle tante cousin cousine ami amie collègue voisin voisine".split()
        noun = self.pick([n for n in nouns.of("kin") if not plural or n.lemma in several])
        owner = self.pick((0, 0, 1, 3, 4)) if person is None else person
        if noun.lemma == "mari" and owner == 3:
            owner = 0
        return noun_phrase(noun, "poss", "p" if plural else "s", None, owner)

    def role(self, det="def", plural=False, young=False):
        barred = ("bébé",) + PASSING + (() if young else YOUNG)
        choices = [n for n in nouns.of("role") if n.lemma not in barred]
        return noun_phrase(self.pick(choices), det, "p" if plural else "s")

    def subject(self, third=False, young=False):
        """Someone who acts. third: only he, she, names and nouns; young: children do this too."""
        if self.topic:
            subject, self.topic = self.topic, pronoun_for(self.topic)
            return subject
        draw = self._random.random()
        if draw < 0.48:
            return self.pronoun(("je", "tu", "nous", "vous") if third else ())
        if draw < 0.68:
            return self.name()
        if draw < 0.84:
            return self.relative(plural=self.chance(0.12))
        if draw < 0.95:
            return self.role("def", self.chance(0.3), young)
        first, second = self.name(), self.name()
        if first.fr == second.fr:
            return first
        both_f = first.gender == second.gender == "f"
        return Phrase(first.fr + " et " + second.fr, first.en + " and " + second.en, "f" if both_f else "m",
                      "p", 5)

    def clock(self, low, high):
        """A time of day between two hours: huit heures et demie, half past eight."""
        return words.time_of_day(self.number(low, high),
                                 self.pick((0, 0, 0, 5, 10, 15, 20, 25, 30, 30, 45, 50)))

    # --- things ---

    def combine(self, *pair):
        self.combos.append(":".join(pair))

    def adjective_for(self, noun, without=()):
        choices = [a for a in adjectives.suiting(noun) if a.lemma not in without]
        if not choices:
            return None
        adjective = self.pick(choices)
        self.combine("na", noun.lemma, adjective.lemma)
        return adjective

    def phrase(self, noun, det, number="s", with_adjective=0.3, owner=None, without=()):
        """A noun phrase about a thing. owner: the subject a possessive refers to."""
        adjective = self.adjective_for(noun, without) if self.chance(with_adjective) else None
        person = owner.person if owner else 0
        her = bool(owner) and owner.gender == "f"
        return noun_phrase(noun, det, number, adjective, person, her)

    def object_of(self, verb, subject, dets=None, neg=False, with_adjective=0.3, plural=False):
        """A sensible direct object of a transitive verb. plural: what is read, watched or eaten is plural."""
        choices = verb.objects
        if subject.gender == "m" and subject.person in (2, 5):        # for the others every noun suits
            choices = [n for n in choices if n.lemma not in FEMININE_CLOTHES]
        if subject.lemma in YOUNG + ("fils",):
            choices = [n for n in choices if n.lemma not in ALCOHOL]
        if verb.fr == "manger":
            choices = [n for n in choices if n.lemma != "oignon"]       # not by itself
        noun = self.pick(choices)
        self.combine("vo", verb.fr, noun.lemma)
        mass = noun.cls in MASS
        # A possessive only where the verb likes one: nobody watches « his program ».
        allowed = [d for d in (dets or verb.dets) if d != ("indef" if mass else "part")
                   and (d != "poss" or "poss" in verb.dets)]
        det = self.pick(allowed or ["def"])
        number = "s"
        if noun.cls in ("fruit", "dish") and det == "poss":
            det = "def"
        if noun.lemma in ("bus", "taxi") and det == "poss":
            det = "def"
        if verb.fr == "porter" and det == "indef" and noun.cls == "clothes" and subject.number == "p" \
                and not plural and not neg:
            det = "poss"              # they wear their hats, not one hat
        if verb.fr in ("finir", "commencer") and subject.number == "p" and det == "poss" \
                and noun.lemma in ("roman", "livre"):
            det = "def"               # not written by all of them
        if noun.lemma == "jouet" and det == "poss":
            det = "dem"               # most subjects are too old for toys of their own
        if noun.cls == "fruit" and verb.fr in ("acheter", "apporter", "laver"):
            number = "p"
        if det == "poss" and subject.number == "p" and is_personal(noun):
            number = "p"              # each of them has one: they put on their hats
        if not mass and noun.cls in ("fruit", "tool", "text", "gift") and det != "poss" and self.chance(0.25):
            number = "p"
        if verb.fr == "commencer":
            number = "s"              # one thing at a time
        if plural and (noun.cls in ("text", "writing", "show", "fruit")
                       or noun.cls == "clothes" and subject.number == "p"):
            number = "p"
        if neg and det in ("indef", "part"):
            det = "de"
        if det == "de":
            with_adjective = 0
        if verb.fr in ("écrire", "finir", "commencer", "préparer"):
            with_adjective = 0        # one does not write an old letter
        # Nobody washes what is clean already.
        without = ["propre"] if verb.fr in ("laver", "nettoyer", "casser") else []
        # A verdict is not a way to tell things apart.
        without += ("bon", "mauvais", "délicieux", "utile") if det == "def" else ()
        without += ("nouveau",) if verb.fr == "réparer" else ("vieux",) if verb.fr == "acheter" else ()
        without += ("beau",) if det == "def" and noun.cls == "show" else ()
        without += UNWANTED if verb.fr in WANTING else IDLE_PRAISE if verb.fr in CHORES else ()
        return self.phrase(noun, det, number, with_adjective, subject, without)


def is_personal(noun):
    """Whether everybody has their own, so that several people have several."""
    return noun.cls == "clothes" or noun.lemma in ("passeport", "portefeuille")


def suits(noun, subject):
    """Whether the subject may own or wear it: skirts and dresses are left to women and to I, you, we."""
    return noun.lemma not in FEMININE_CLOTHES or subject.gender == "f" or subject.person not in (2, 5)


def pronoun_for(person):
    """he, she or they for someone already named."""
    if person.person == 5:
        return Phrase("elles" if person.gender == "f" else "ils", "they", person.gender, "p", 5)
    if person.person == 2:
        return Phrase("elle" if person.gender == "f" else "il", "she" if person.gender == "f" else "he",
                      person.gender)
    return person


def it_for(thing):
    """it or they for a thing already named, with the French gender kept."""
    if thing.number == "p":
        return Phrase("elles" if thing.gender == "f" else "ils", "they", thing.gender, "p", 5)
    return Phrase("elle" if thing.gender == "f" else "il", "it", thing.gender)


def object_pronoun(gender, number, person=False):
    """Direct object pronoun: (le, it) for things, (le, him) for people."""
    if number == "p":
        return "les", "them"
    if gender == "f":
        return "la", "her" if person else "it"
    return "le", "him" if person else "it"


PARTICLES = ("on", "off", "away", "up", "back")


def with_pronoun(verb, pronoun):
    """Split an English verb so that a pronoun object stands before its particle: turn it on."""
    head, _, tail = verb.rpartition(" ")
    if head and tail in PARTICLES:
        return head, pronoun + " " + tail
    return verb, pronoun


NEGATION = {"": (False, "", ""), "pas": (True, "", ""), "jamais": (False, "never", ""),
            "plus": (True, "", "anymore"),
            "rien": (True, "", "anything"), "personne": (True, "", "anyone"), "pas encore": (True, "", "yet")}


def clause(subject, fr, en, tenses, rest=("", ""), neg="", clitics="", adverb=("", ""), question="",
           agree_with=None):
    """One clause in both languages, as a (french, english) pair without capitals or full stop.

    fr, en: verb lemmas; tenses: (french, english); question: "", "est-ce que", "inversion" or "tone".
    """
    negative, never, tail = NEGATION[neg]
    if neg in ("rien", "personne"):
        en_rest = (tail + " " + rest[1]).strip()
    else:
        en_rest = (rest[1] + " " + tail).strip()
    french_text = french_clause(subject, fr, tenses[0], rest[0], neg, clitics, adverb[0],
                                question == "inversion", agree_with)
    if question == "est-ce que":
        french_text = "est-ce que " + french_text
    english_text = english.clause(subject.en, subject.person, en, tenses[1], en_rest, negative,
                                  " ".join(w for w in (adverb[1], never) if w), bool(question))
    return french_text, english_text


def comparison(subject, fr, en, negated, other):
    """« fr que other »; negated: « moins grand » is isn't as big, since English avoids less big."""
    french_text = french_clause(subject, "être", "pres", fr + " que " + other[0])
    return french_text, english.clause(subject.en, subject.person, "be", "pres", en + " " + other[1], negated)


def conj_present(verb):
    """Tense pair of a bare present."""
    return "pres", english_present(verb)
