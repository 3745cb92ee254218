"""Patterns of daily life with verbs of their own: entering and leaving, seasons, answers, school.

Each verb here comes with the few complements it is really used with.
"""

from . import english, french, nouns, verbs, words
from .grammar import Phrase, clause, noun_phrase, suits
from .patterns_actions import DOABLE, SOON, at_times, without_some
from .patterns_compare import NOT_GRADED, better
from .patterns_states import agreed
from .patterns_time import may_be_pupil
from .registry import pattern

# french verb, english verb, complements (french, english)
DAILY = (
    ("entrer", "enter", (("dans la maison", "the house"), ("dans la chambre", "the bedroom"),
                         ("dans le magasin", "the store"))),
    ("monter", "get on", (("dans le train", "the train"), ("dans le bus", "the bus"),
                          ("dans l'avion", "the plane"))),
    ("descendre", "get off", (("du train", "the train"), ("du bus", "the bus"), ("de l'avion", "the plane"))),
    ("quitter", "leave", (("la maison", "the house"), ("la ville", "the city"), ("le bureau", "the office"))),
    ("recevoir", "receive", (("une lettre", "a letter"), ("un message", "a message"),
                             ("un cadeau", "a gift"))),
    ("gagner", "win", (("le match", "the game"),)),
    ("réussir", "pass", (("l'examen", "the exam"),)),
    ("entendre", "hear", (("la pluie", "the rain"), ("le vent", "the wind"), ("les oiseaux", "the birds"))),
    ("raconter", "tell", (("une histoire", "a story"), ("une longue histoire", "a long story"))),
    ("mentir", "lie", (("", ""), ("au policier", "to the policeman"), ("à Marie", "to Marie"))),
    ("se tromper", "make a mistake", (("", ""),)),
    ("s'ennuyer", "get bored", (("", ""), ("à l'école", "at school"), ("à la réunion", "at the meeting"))),
    ("obéir", "obey", (("au professeur", "the teacher"), ("au policier", "the policeman"),
                       ("au médecin", "the doctor"))),
)


@pattern(topic=True)
def daily_past(g):
    s = g.subject()
    fr, en, complements = g.pick(DAILY)
    rest = g.pick(complements)
    if s.fr in rest[0] or rest[0].endswith(s.lemma or "-"):
        return None
    pair = clause(s, fr, en, ("pc", "past"), rest, "pas" if rest[0][:2] in ("la", "le", "du", "da", "")
                  and g.chance(0.25) else "")
    slight = fr in ("entendre", "entrer", "monter", "descendre", "s'ennuyer", "obéir")
    times = words.PAST_TIMES[:2] if slight else words.PAST_TIMES[:4]
    return (at_times(g, times, pair) if g.chance(0.5) else pair) + (".",)


@pattern(topic=True)
def daily_future(g):
    s = g.subject()
    fr, en, complements = g.pick([d for d in DAILY[:9]
                                  if d[0] not in ("entrer", "monter", "descendre", "entendre")])
    times = words.FUTURE_TIMES[:1] if fr in ("gagner", "réussir", "recevoir") else SOON
    return at_times(g, times, clause(s, fr, en, ("fut", "will"), g.pick(complements)), 0.15) + (".",)


@pattern(topic=True)
def stop_doing(g):
    s, v = g.subject(), g.pick(verbs.among(verbs.INTRANSITIVES,
                                           "travailler étudier chanter danser courir fumer parler pleurer "
                                           "rire"))
    if g.chance(0.5):
        neg = "pas" if g.chance(0.3) else ""
        return clause(s, "arrêter", "stop", g.pick((("pc", "past"), ("fut", "will"))),
                      ("de " + v.fr, english.ing(v.en)), neg) + (".",)
    return clause(s, "continuer", "continue", g.pick((("pc", "past"), ("fut", "will"), ("pres", "pres"))),
                  ("à " + v.fr, "to " + v.en)) + (".",)


SEASONS = (("en hiver", "in winter"), ("au printemps", "in spring"), ("en été", "in summer"),
           ("en automne", "in the fall"))


@pattern(topic=True)
def in_season(g):
    s = g.subject()
    cold, mild, any_season = SEASONS[::3], SEASONS[1:], SEASONS
    fr, en, rest, seasons = g.pick((
        ("rester", "stay", ("à la maison", "at home"), cold),
        ("se promener", "take walks", ("dans la forêt", "in the forest"), mild),
        ("nager", "swim", ("dans le lac", "in the lake"), SEASONS[2:3]),
        ("voyager", "travel", ("en train", "by train"), any_season),
        ("travailler", "work", ("dans le jardin", "in the garden"), mild),
        ("aller", "go", ("à la plage", "to the beach"), SEASONS[2:3]),
        ("courir", "run", ("dans le parc", "in the park"), any_season),
        ("boire", "drink", ("du thé", "tea"), cold),
        ("porter", "wear", ("un manteau", "a coat"), cold)))
    g.combine("vo", fr, rest[0].split()[-1])
    return at_times(g, seasons, clause(s, fr, en, ("pres", "pres"), rest), 0.5) + (".",)


@pattern
def baby(g):
    who = g.pick((noun_phrase(nouns.noun("bébé"), g.pick(("def", "poss")), "s", None, g.pick((1, 3, 4))),
                  noun_phrase(
        nouns.noun("bébé"), "dem"), noun_phrase(nouns.noun("bébé"), "def", "p")))
    fr, en = g.pick((("dormir", "sleep"), ("pleurer", "cry"), ("rire", "laugh"), ("sourire", "smile"),
                     ("boire du lait", "drink milk")))
    verb, _, tail = fr.partition(" ")
    head, _, en_tail = en.partition(" ")
    if tail:
        g.combine("vo", verb, tail.split()[-1])
    tenses, time = g.pick(((("pres", "prog"), g.pick(words.NOW_TIMES)),
                           (("pc", "past"), ("hier soir", "last night")),
                           (("pres", "pres"), g.pick(words.HABIT_TIMES[:3])), (("pres", "prog"), ("", ""))))
    return clause(who, verb, head, tenses, (" ".join(w for w in (tail, time[0]) if w),
                                           " ".join(w for w in (en_tail, time[1]) if w))) + (".",)


SUBJECTS = (("les mathématiques", "mathematics"), ("la musique", "music"), ("la géographie", "geography"),
            ("la physique", "physics"),
            ("la chimie", "chemistry"))


@pattern(topic=True)
def school_subject(g):
    s, subject = g.subject(), g.pick(SUBJECTS)
    fr, en, tenses = g.pick((("étudier", "study", ("pc", "past")), ("enseigner", "teach", ("pres", "pres")),
                             ("apprendre", "learn", ("fut", "will")), ("aimer", "like", ("pres", "pres")),
                             ("détester", "hate", ("pres", "pres")),
                             ("préférer", "prefer", ("pres", "pres"))))
    where = g.pick((("", ""),) + ((("à l'école", "at school"),) if may_be_pupil(s) else ()) +
                   (("à l'université", "at the university"),))
    if s.lemma == "professeur" or fr in ("aimer", "détester", "préférer"):
        where = ("", "")
    return clause(s, fr, en, tenses, ((subject[0] + " " + where[0]).strip(),
                                      (subject[1] + " " + where[1]).strip())) + (".",)


MINE = ((0, "mien", "mine"), (1, "tien", "yours"), (3, "nôtre", "ours"), (4, "vôtre", "yours"))


@pattern
def than_mine(g):
    """« Ta voiture est plus grande que la mienne. »"""
    noun = g.pick(nouns.of("clothes", "car", "bike", "furniture", "tool", "device", "room", "animal"))
    a = g.adjective_for(noun)
    if not a or a.lemma in NOT_GRADED:
        return None
    s = g.pick((noun_phrase(noun, "dem"), noun_phrase(noun, "poss", "s", None, g.pick((0, 1, 3, 4)))))
    person, own, en_own = g.pick(MINE)
    feminine = {"mien": "mienne", "tien": "tienne"}.get(own, own)
    pronoun = "la " + feminine if noun.gender == "f" else "le " + own
    if s.en.split()[0] in (words.EN_POSSESSIVE[person], words.EN_POSSESSIVE[(person + 3) % 6]):
        return None
    fr, en = g.pick(((better(a, s), english.compare(a.en)[0] + " than "),
                     ("aussi " + agreed(a, s), "as " + a.en + " as ")))
    return clause(s, "être", "be", ("pres", "pres"), (fr + " que " + pronoun, en + en_own)) + (".",)


@pattern
def answer(g):
    """Yes with the affirmative, no with the negative."""
    s = g.pronoun()
    v = g.pick([v for v in DOABLE if v.fr not in ("porter", "chercher")])
    yes = g.chance(0.5)
    o = g.object_of(v, s, neg=not yes, with_adjective=0.15)
    pair = clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en), "" if yes else "pas")
    return ("oui, " if yes else "non, ") + pair[0], ("yes, " if yes else "no, ") + pair[1], "."


@pattern(topic=True)
def several(g):
    s, v = g.subject(), g.pick(verbs.among(DOABLE, "acheter lire trouver perdre casser apporter choisir "
                                                   "visiter"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink", "pair") and suits(n, s)
                   and n.lemma != "passeport"])
    g.combine("vo", v.fr, noun.lemma)
    if g.chance(0.5) and v.fr not in ("perdre", "casser"):
        other = french.determine("une autre" if noun.gender == "f" else "un autre", noun.gender, "s",
                                 noun.lemma)
        return clause(s, v.fr, v.en, g.pick((("pc", "past"), ("fut", "will"))),
                      (other, "another " + noun.en)) + (".",)
    return clause(s, v.fr, v.en, ("pc", "past"), ("plusieurs " + noun.plural,
                                                  "several " + noun.en_plural)) + (".",)


@pattern
def after_event(g):
    s, noun = g.subject(), g.pick([n for n in nouns.of("event", "show")
                                   if n.lemma not in ("anniversaire", "chanson", "voyage")])
    thing = noun_phrase(noun, "def")
    fr, en, rest = g.pick((("rentrer", "go home", ("", "")), ("se reposer", "rest", ("", "")),
                           ("sortir", "go out", ("", "")),
                           ("aller", "go", ("au restaurant", "to the restaurant")),
                           ("manger", "eat", ("une pizza", "a pizza")),
                           ("se promener", "take a walk", ("", ""))))
    word = g.pick((("après", "after"), ("avant", "before")))
    g.combine("vo", fr, noun.lemma)
    pair = clause(s, fr, en, g.pick((("pc", "past"), ("fut", "will"))), rest)
    return "%s %s %s" % (pair[0], word[0], thing.fr), "%s %s %s" % (pair[1], word[1], thing.en), "."


@pattern
def died(g):
    elder = nouns.noun(g.pick("grand-père grand-mère oncle tante voisin voisine".split()))
    s = g.pick((g.name(), noun_phrase(elder, "poss", "s", None, g.pick((0, 1, 3, 4)))))
    n = g.number(2, 30)
    if g.chance(0.5):
        return clause(s, "mourir", "die", ("pc", "past"), ("il y a %s ans" % words.french_number(n),
                                                          "%s years ago" % words.english_number(n))) + (".",)
    age = g.number(70, 99)
    return clause(s, "mourir", "die", ("pc", "past"), ("à %s ans" % words.french_number(age),
                                                      "at the age of %s" %
                                                       words.english_number(age))) + (".",)


HOLDING = nouns.of("tool", "gift", "text")


@pattern(topic=True)
def holds(g):
    s, noun = g.subject(young=True), g.pick([n for n in HOLDING if n.lemma not in ("jeu", "valise")])
    thing = g.phrase(noun, "indef", "s", 0.4, without=("pratique", "utile", "cher", "propre"))
    g.combine("vo", "tenir", noun.lemma)
    tenses = g.pick((("pres", "prog"), ("impf", "pastprog")))
    hand = g.pick((("", ""), (" à la main", " in %s hand")))
    owner = "her" if s.gender == "f" and s.person == 2 else words.EN_POSSESSIVE[s.person]
    if hand[0] and s.number == "p":
        hand = ("", "")
    return clause(s, "tenir", "hold", tenses,
                  (thing.fr + hand[0], thing.en + (hand[1] % owner if hand[0] else ""))) + (".",)


@pattern
def lives(g):
    s = g.subject(third=g.chance(0.5))
    thing = g.phrase(g.pick([n for n in nouns.of("building", "outdoors") if n.lemma in
                             "maison appartement ferme château village ville île".split()]), "indef", "s",
                     0.9)
    preposition = "on " if thing.lemma in ("île", "ferme") else "in "
    fr_preposition = "sur " if thing.lemma == "île" else "dans "
    return clause(s, "vivre", "live", g.pick((("pres", "pres"), ("fut", "will"), ("pc", "past"))),
                  (fr_preposition + thing.fr, preposition + without_some(thing.en))) + (".",)


@pattern
def answer_who(g):
    """« C'est moi qui… » puts the stressed pronoun first and keeps its person in the verb."""
    word, en, person = g.pick((("moi", "me", 0), ("toi", "you", 1), ("lui", "him", 2), ("elle", "her", 2),
                               ("nous", "us", 3),
                               ("vous", "you", 4)))
    v = g.pick([v for v in DOABLE if v.fr not in ("porter", "chercher")])
    who = Phrase("qui", "who", "m", "s", person)
    o = g.object_of(v, who, dets=("def", "dem"), with_adjective=0.1)
    fr = clause(who, v.fr, v.en, ("pc", "past"), (o.fr, ""))[0]
    return "c'est %s %s" % (word, fr), "it was %s who %s %s" % (en, english.past(v.en), o.en), "."
