"""Patterns of pronouns: direct, indirect, y, en, doubled, stressed, and with the imperative.

« lui » is him or her, so a named person always comes first; le/la is a thing or a person by the verb.
"""

from . import english, french, nouns, verbs, words
from .adjectives import TRAITS
from .grammar import (UNWANTED, Phrase, clause, comparison, conj_present, noun_phrase, object_pronoun,
                      pronoun_for, suits, with_pronoun)
from .patterns_actions import DOABLE, LASTING, UNPLANNED, at_times, future_times, past_times
from .registry import pattern

THINGS = tuple(v for v in DOABLE if v.fr not in ("manger", "boire", "oublier", "écouter", "chercher",
                                                 "comprendre", "visiter"))


@pattern
def thing_pronoun(g):
    """« Cette clé, je la chercherai demain » : the thing named first; English keeps its usual order."""
    s, v = g.pronoun(), g.pick([v for v in THINGS if v.fr not in ("prendre", "écrire")])
    choices = [n for n in v.objects if n.cls not in ("food", "drink", "event", "show", "ride")]
    if not choices:
        return None
    noun = g.pick(choices)
    g.combine("vo", v.fr, noun.lemma)
    plural = noun.cls in ("pair", "fruit") or noun.cls in ("text", "tool") and g.chance(0.25)
    thing = noun_phrase(noun, "dem", "p" if plural else "s")
    fr_pron, _ = object_pronoun(thing.gender, thing.number)
    tenses = g.pick((("pc", "past"), ("fut", "will")))
    clitic_pair = clause(s, v.fr, v.en, tenses, ("", thing.en), clitics=fr_pron, agree_with=thing)
    if tenses[0] == "fut" and v.fr in UNPLANNED:
        return None
    times = past_times(v, thing) if tenses[0] == "pc" else future_times(v, thing)
    fr, en = at_times(g, times, clitic_pair, 0)
    return thing.fr + ", " + fr, en, "."


@pattern
def thing_pronoun_past(g):
    """Agreement with a preceding object: « Il aime sa chemise et il l'a achetée hier. »"""
    s, v = g.subject(), g.pick(verbs.among(DOABLE, "acheter choisir louer"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink", "fruit", "dish")])
    g.combine("vo", v.fr, noun.lemma)
    thing = noun_phrase(noun, "dem", "p" if noun.cls == "pair" or v.fr != "louer" and g.chance(0.2) else "s")
    fr_pron, en_pron = object_pronoun(thing.gender, thing.number)
    first = clause(s, "aimer", "like", ("pres", "pres"), (thing.fr, thing.en))
    verb_en, rest = with_pronoun(v.en, en_pron)
    second = clause(pronoun_for(s), v.fr, verb_en, ("pc", "past"), ("", rest), clitics=fr_pron,
                    agree_with=thing)
    fr, en = at_times(g, words.PAST_TIMES, second, 0) if g.chance(0.6) else second
    return first[0] + " et " + fr, first[1] + " and " + en, "."


@pattern
def thing_pronoun_simple(g):
    s, v = g.subject(), g.pick(verbs.among(LASTING + DOABLE,
                                           "lire écrire acheter vendre porter mettre conduire regarder "
                                           "garder apporter utiliser ouvrir fermer nettoyer laver réparer "
                                           "casser cacher corriger allumer éteindre jeter signer louer "
                                           "traduire finir expliquer couper"))
    gender, number = g.pick((("m", "s"), ("f", "s"), ("m", "p"), ("f", "p")))
    fr_pron, en_pron = object_pronoun(gender, number)
    verb_en, rest = with_pronoun(v.en, en_pron)
    # With avoir the participle shows the gender that « l' » and « les » hide.
    thing = Phrase("", "", gender, number)
    tenses, neg = g.pick(((("pc", "past"), ""), (("pc", "past"), "pas"), (("fut", "will"), ""),
                          (("fut", "will"), "pas")))
    return clause(s, v.fr, verb_en, tenses, ("", rest), neg, fr_pron, agree_with=thing) + (".",)


@pattern
def person_pronoun(g):
    s, v = g.subject(), g.pick(verbs.PERSON_VERBS)
    who = g.pick((("m", "s"), ("f", "s"), ("m", "p"), ("f", "p")))
    tense_choices = [(conj_present(v), "", ""), (("pres", "pres"), "pas", "bien")
                     if v.fr in ("connaître", "comprendre") else
                     (conj_present(v), "", "")]
    if v.kind == "event":
        tense_choices += [(("fut", "will"), "", ""), (("fut", "will"), "pas", "")]
    tenses, neg, adverb = g.pick(tense_choices)
    fr_pron, en_pron = object_pronoun(who[0], who[1], True)
    if who[1] == "s" and french.starts_with_vowel(french.conjugate(v.fr, tenses[0], s.person)):
        return None        # « l' » hides whether it is him or her
    return clause(s, v.fr, v.en, tenses, ("", (en_pron + " well") if adverb else en_pron), neg, fr_pron,
                  adverb=(adverb, "")) + (".",)


@pattern
def person_pronoun_past(g):
    """« Marie était là, mais je ne l'ai pas vue. »"""
    s, who = g.pronoun(("il", "elle", "ils", "elles")), g.pick((g.name(), g.relative(0), g.role()))
    v = g.pick(verbs.among(verbs.PERSON_VERBS, "aider remercier écouter reconnaître saluer voir"))
    if v.fr == "reconnaître" and not who.fr[0].isupper():
        return None        # one knows one's family
    fr_pron, en_pron = object_pronoun(who.gender, who.number, True)
    intro = g.pick((("être", "be", ("là", "there")), ("venir", "come", ("hier", "yesterday"))))
    tenses = ("impf", "past") if intro[0] == "être" else ("pc", "past")
    first = clause(who, intro[0], intro[1], tenses, intro[2])
    neg = g.chance(0.5)
    second = clause(s, v.fr, v.en, ("pc", "past"), ("", en_pron), "pas" if neg else "", fr_pron,
                    agree_with=who)
    fr_link, en_link = (", mais ", ", but ") if neg else (" et ", " and ")
    return first[0] + fr_link + second[0], first[1] + en_link + second[1], "."


ME = ((0, "me", "me"), (1, "te", "you"), (3, "nous", "us"), (4, "vous", "you"))


def me_for(g, subject):
    """A first or second person object that differs from the subject."""
    group = {0: (0, 3), 3: (0, 3), 1: (1, 4), 4: (1, 4)}.get(subject.person, ())
    return g.pick([m for m in ME if m[0] not in group])


@pattern
def me_pronoun(g):
    s, v = g.subject(), g.pick(verbs.PERSON_VERBS)
    person, fr_pron, en_pron = me_for(g, s)
    thing = Phrase("", "", g.pick(("m", "f")), "p" if person > 2 else "s")
    options = [(conj_present(v), "")]
    options += [(("pres", "pres"), "pas")] if v.kind == "state" else [(("pc", "past"), ""),
                                                                      (("pc", "past"), "pas"),
                                                                      (("fut", "will"), "")]
    tenses, neg = g.pick(options)
    return clause(s, v.fr, v.en, tenses, ("", en_pron), neg, fr_pron, agree_with=thing) + (".",)


@pattern
def me_indirect(g):
    s, v = g.subject(), g.pick([v for v in verbs.SAYINGS if v.fr != "obéir"])
    _, fr_pron, en_pron = me_for(g, s)
    tenses, neg = g.pick(((("pres", "pres"), "jamais"), (("pc", "past"), ""), (("pc", "past"), "pas"),
                          (("fut", "will"), "")))
    pair = clause(s, v.fr, v.en, tenses, ("", en_pron), neg, fr_pron)
    times = {"pc": words.PAST_TIMES, "fut": words.FUTURE_TIMES}.get(tenses[0])
    return (at_times(g, times, pair, 0.1) if times and g.chance(0.6) else pair) + (".",)


# What one gives back after use; a bottle or a ring is not lent.
LENT = ("clé montre stylo crayon sac valise parapluie couteau ballon outil livre roman dictionnaire magazine "
        "voiture camion vélo moto").split() + [n.lemma for n in nouns.of("clothes")]
GIFTS = {"donner": ("tool", "text", "gift", "fruit"), "offrir": ("gift", "clothes"),
         "prêter": ("tool", "text", "car", "bike", "clothes"),
         "envoyer": ("gift",), "montrer": ("gift", "text", "clothes"), "apporter": ("drink", "gift", "text"),
         "rendre": ("tool", "text")}
NOT_GIVEN = ("jeu", "journal", "uniforme", "passeport", "portefeuille")


def gift(g, verb, subject, dets=("indef",)):
    noun = g.pick([n for n in nouns.of(*GIFTS[verb.fr]) if n.lemma not in NOT_GIVEN
                   and (verb.fr != "prêter" or n.lemma in LENT)])
    g.combine("vo", verb.fr, noun.lemma)
    if verb.fr == "rendre":
        dets = ("def",)
    if verb.fr == "offrir":
        dets = ("indef",)
    det = "part" if noun.cls == "drink" else "indef" if noun.cls == "fruit" else g.pick(dets)
    if det == "part" and "indef" not in dets:
        det = "def"
    number = "p" if noun.cls == "fruit" or noun.cls == "gift" and g.chance(0.3) else "s"
    return g.phrase(noun, det, number, 0.25, subject, UNWANTED + ("vieux", "ennuyeux", "mauvais"))


@pattern(topic=True)
def give_to(g):
    s, v = g.subject(), g.pick(verbs.GIVINGS)
    who = g.pick((g.name(), g.relative(s.person if s.person != 2 and s.person != 5 else 0), g.role()))
    thing = gift(g, v, s, ("indef", "def", "poss"))
    if who.fr == s.fr or not suits(nouns.noun(thing.lemma), who):
        return None
    tenses = g.pick((("pc", "past"), ("fut", "will"), ("pc", "past")))
    en = "give" if v.fr == "offrir" else v.en
    return clause(s, v.fr, en, tenses, (thing.fr + " " + french.contract("à", who.fr),
                                        thing.en + " to " + who.en)) + (".",)


@pattern
def give_him(g):
    """A named person, then lui or leur."""
    who = g.pick((g.name(), g.relative(0), g.relative(0, True)))
    s, v = Phrase("je", "I", person=0) if g.chance(0.6) else Phrase("nous", "we", number="p", person=3), \
        g.pick([v for v in verbs.GIVINGS if v.fr != "rendre"])
    thing = gift(g, v, s)
    noun = nouns.noun(thing.lemma)
    if who.number == "p" and noun.cls not in ("gift", "drink") or not suits(noun, who):
        return None        # two people do not share a tie
    if who.lemma == "mari":
        return None        # he lives here
    en_pron = object_pronoun(who.gender, who.number, True)[1]
    fr_pron = "leur" if who.number == "p" else "lui"
    en = "give" if v.fr == "offrir" else v.en
    tenses = g.pick((("fut", "will"), ("pc", "past")))
    second = clause(s, v.fr, en, tenses, (thing.fr, en_pron + " " + thing.en), clitics=fr_pron)
    if tenses[0] == "fut":
        first = clause(who, "venir", "come", ("pres", "prog"), ("demain", "tomorrow"))
    elif v.fr == "envoyer":
        first = clause(who, "être", "be", ("impf", "past"), ("loin", "far away"))
    else:
        first = clause(who, "être", "be", ("impf", "past"),
                       g.pick((("là", "there"), ("chez nous", "at our place"))))
    if tenses[0] == "fut" and v.fr == "envoyer":
        return None        # one does not send things to a visitor
    return first[0] + " et " + second[0], first[1] + " and " + second[1], "."


@pattern
def call_him(g):
    who, s = g.pick((g.name(), g.relative(0))), g.pronoun(("il", "elle", "ils", "elles"))
    v = g.pick([v for v in verbs.SAYINGS if v.fr != "obéir"])
    en_pron = object_pronoun(who.gender, who.number, True)[1]
    intro = ("avoir", "have", ("une question", "a question")) if v.fr == "répondre" else \
        g.pick((("être", "be", ("triste", "sad")), ("être", "be", ("malade", "sick")),
                ("être", "be", ("seul" if who.gender == "m" else "seule", "alone")),
                ("avoir", "have", ("un problème", "a problem"))))
    first = clause(who, intro[0], intro[1], ("pres", "pres"), intro[2])
    tenses = g.pick((("fut", "will"), ("cond", "should"), ("pres", "must")))
    if tenses[0] == "fut":
        second = clause(s, v.fr, v.en, tenses, ("", en_pron), clitics="lui")
    else:
        fr, _ = clause(s, "devoir", "must", (tenses[0], "pres"), ("lui " + v.fr, ""))
        second = fr, english.clause(s.en, s.person, v.en, tenses[1], en_pron)
    return first[0] + ", alors " + second[0], first[1] + ", so " + second[1], "."


@pattern
def double_pronoun(g):
    """« Il me le donne » : me le, te la, nous les, with the thing named first."""
    s = g.subject()
    v = g.pick([v for v in verbs.GIVINGS if v.fr not in ("envoyer", "rendre")])
    _, fr_me, en_me = me_for(g, s)
    noun = g.pick([n for n in nouns.of(*GIFTS[v.fr]) if n.cls not in ("drink", "fruit")
                   and n.lemma not in NOT_GIVEN and (v.fr != "prêter" or n.lemma in LENT)])
    g.combine("vo", v.fr, noun.lemma)
    thing = noun_phrase(noun, "dem", "p" if g.chance(0.25) else "s")
    fr_it, _ = object_pronoun(thing.gender, thing.number)
    en = "give" if v.fr == "offrir" else v.en
    tenses = g.pick((("pc", "past"), ("fut", "will")))
    second = clause(s, v.fr, en, tenses, ("", en_me + " " + thing.en), clitics=fr_me + " " + fr_it,
                    agree_with=thing)
    return thing.fr + ", " + second[0], second[1], "."


@pattern
def there_y(g):
    """« Tu connais Lyon ? Oui, j'y vais souvent. »"""
    s = g.subject()
    city = g.pick(words.CITIES)
    first = clause(s, "aimer", "love", ("pres", "pres"), city)
    again = pronoun_for(s)
    fr, en, tenses, rest = g.pick((("aller", "go", ("pres", "pres"), ("souvent", "often")),
                                   ("habiter", "live", ("pc", "past"), ("deux ans", "for two years")),
                                   ("aller", "go", ("fut", "will"), ("cet été", "this summer")),
                                   ("retourner", "go back", ("fut", "will"),
                                    ("l'année prochaine", "next year")),
                                   ("travailler", "work", ("pc", "past"), ("longtemps", "for a long time")),
                                   ("aller", "go", ("pc", "past"), ("en mai", "in May"))))
    rest_en = "there " + rest[1]
    second = clause(again, fr, en, tenses, (rest[0], rest_en), clitics="y")
    return first[0] + " et " + second[0], first[1] + " and " + second[1], "."


@pattern
def some_en(g):
    """« Il n'y a plus de pain, il faut en acheter. »"""
    noun = g.pick(nouns.of("food", "drink", "spice", "fruit"))
    count = noun.cls == "fruit"
    thing = noun_phrase(noun, "de", "p" if count else "s")
    s = g.pick((g.pronoun(("il", "elle", "ils", "elles")), g.name(), g.relative(0)))
    g.combine("vo", "en acheter", noun.lemma)
    first = g.pick((("il n'y a plus " + thing.fr, ("there are no more " if count else "there's no more ") +
                     thing.en[4:]),
                    ("nous n'avons plus " + thing.fr, "we don't have any more " + thing.en[4:])))
    tense = g.pick(("fut", "pc"))
    if tense == "fut":
        second = clause(s, "acheter", "buy", ("fut", "will"), ("demain", "some tomorrow"), clitics="en")
        return first[0] + ", alors " + second[0], first[1] + ", so " + second[1], "."
    second = clause(s, "acheter", "buy", ("pc", "past"), ("hier", "any yesterday"), neg="pas", clitics="en")
    return first[0] + " parce que " + second[0], first[1] + " because " + second[1], "."


@pattern
def have_of_them(g):
    s, n = g.subject(), g.number(2, 9)
    noun = g.pick(nouns.of("animal", "clothes"))
    if not suits(noun, s) or noun.lemma in ("souris", "uniforme") or noun.cls == "clothes" and n < 5:
        return None
    g.combine("vo", "aimer", noun.lemma)
    fr_thing, en_thing = noun_phrase(noun, "def", "p").fr, noun.en_plural
    first = clause(s, "aimer", "like", ("pres", "pres"), (fr_thing, en_thing))
    second = clause(pronoun_for(s), "avoir", "have", ("pres", "pres"),
                    (words.french_number(n, noun.gender), words.english_number(n)), clitics="en")
    return first[0] + " et " + second[0], first[1] + " and " + second[1], "."


STRESSED = (("moi", "me", 0), ("toi", "you", 1), ("nous", "us", 3), ("vous", "you", 4), ("eux", "them", 5),
            ("elle", "her", 2),
            ("lui", "him", 2))


@pattern(topic=True)
def stressed(g):
    s = g.subject(young=True)
    fr_who, en_who, person = g.pick(STRESSED)
    if person == s.person or {person, s.person} in ({0, 3}, {1, 4}) or (person == 5 and s.person == 5):
        return None
    v = g.pick(verbs.among(verbs.INTRANSITIVES, "travailler chanter danser jouer voyager parler courir"))
    prep = g.pick((("avec", "with"), ("pour", "for"), ("sans", "without"))) if v.fr in ("travailler",
                                                                                        "chanter", "danser") \
        else ("avec", "with")
    tenses = g.pick((("pc", "past"), ("fut", "will"), ("pres", "prog")))
    pair = clause(s, v.fr, v.en, tenses, (prep[0] + " " + fr_who, prep[1] + " " + en_who))
    times = {"pc": words.PAST_TIMES, "fut": words.FUTURE_TIMES}.get(tenses[0], words.NOW_TIMES)
    return (at_times(g, times, pair, 0) if g.chance(0.5) else pair) + (".",)


@pattern
def taller_than_me(g):
    s = g.subject(third=True)
    fr_who, en_who, person = g.pick(STRESSED)
    if person in (2, 5):
        return None
    a = g.pick(TRAITS)
    form = french.agree(a.lemma, s.gender, s.number, a.fem)
    return comparison(s, *g.pick((("plus " + form, english.compare(a.en)[0] + " than", False),
                                  ("moins " + form,) + english.less(a.en),
                                  ("aussi " + form, "as " + a.en + " as", False))),
                      (fr_who, en_who)) + (".",)
