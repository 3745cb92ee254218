"""Patterns of questions: est-ce que, inversion, intonation, and every question word.

« tu » and « vous » both give you; the three ways of asking give the same English.
"""

from . import french, nouns, verbs
from .grammar import Phrase, clause, conj_present, noun_phrase, suits
from .patterns_actions import (DOABLE, EVENTS, HABITUAL, LASTING, UNPLANNED, at_times, future_times,
                               habit_object)
from .registry import pattern

ASKED = ("je", "nous")      # one rarely asks what one has done oneself


@pattern
def ask_present(g):
    s, v = g.subject() if g.chance(0.5) else g.pronoun(ASKED), g.pick(LASTING)
    if s.fr == "je":
        return None
    o = g.object_of(v, s, with_adjective=0.15)
    return clause(s, v.fr, v.en, conj_present(v), (o.fr, o.en), question="est-ce que") + ("?",)


@pattern
def ask_past(g):
    s, v = g.pronoun(ASKED), g.pick(DOABLE)
    o = g.object_of(v, s, with_adjective=0.15)
    return clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en), question="est-ce que") + ("?",)


@pattern
def ask_inverted(g):
    s = g.pronoun(ASKED) if g.chance(0.7) else g.name()
    v = g.pick(LASTING)
    o = g.object_of(v, s, with_adjective=0.15)
    return clause(s, v.fr, v.en, conj_present(v), (o.fr, o.en), question="inversion") + ("?",)


@pattern
def ask_inverted_past(g):
    s = g.pronoun(ASKED) if g.chance(0.7) else g.name()
    v = g.pick(DOABLE)
    o = g.object_of(v, s, with_adjective=0.1)
    return clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en), question="inversion") + ("?",)


@pattern
def ask_tone(g):
    s, v = g.pronoun(("je", "nous")), g.pick(HABITUAL)
    fr, en = habit_object(g, v, s)
    return clause(s, v.fr, v.en, ("pres", "pres"), (fr, en), adverb=("souvent", "often"),
                  question="tone") + ("?",)


@pattern
def ask_future(g):
    s, v = g.pronoun(("je",)), g.pick([v for v in DOABLE if v.fr not in UNPLANNED])
    o = g.object_of(v, s, with_adjective=0.1)
    pair = clause(s, v.fr, v.en, ("fut", "will"), (o.fr, o.en), question=g.pick(("est-ce que", "inversion")))
    return at_times(g, future_times(v, o), pair, 0) + ("?",)


@pattern
def ask_negative(g):
    s, v = g.pronoun(ASKED), g.pick(verbs.INTRANSITIVES + verbs.REFLEXIVES)
    past = v.fr not in ("fumer",)
    return clause(s, v.fr, v.en, ("pc", "past") if past else ("pres", "pres"), neg="pas",
                  question=g.pick(("est-ce que", "tone"))) + ("?",)


@pattern
def ask_where(g):
    s = g.pronoun(ASKED) if g.chance(0.4) else g.subject(third=True)
    fr, en, tenses = g.pick((("habiter", "live", ("pres", "pres")), ("travailler", "work", ("pres", "pres")),
                             ("aller", "go", ("pres", "prog")), ("aller", "go", ("pc", "past")),
                             ("dormir", "sleep", ("pc", "past")), ("être", "be", ("pres", "pres")),
                             ("être", "be", ("impf", "past")), ("étudier", "study", ("pres", "pres")),
                             ("manger", "eat", ("fut", "will"))))
    if fr == "être":
        if s.fr == "je":
            return None
        pair = clause(s, fr, en, tenses, question="inversion" if len(s.fr.split()) == 1 and s.lemma == ""
                      else "tone")
        if s.lemma or " " in s.fr:
            verb = french.conjugate(fr, tenses[0], s.person)
            return "où %s %s" % (verb, s.fr), "where " + pair[1], "?"
        return "où " + pair[0], "where " + pair[1], "?"
    how = g.pick(("est-ce que", "inversion"))
    pair = clause(s, fr, en, tenses, question=how)
    return "où " + pair[0], "where " + pair[1], "?"


@pattern
def ask_when(g):
    s = g.pronoun(ASKED) if g.chance(0.4) else g.subject(third=True)
    v = g.pick([v for v in verbs.MOTIONS if v.fr not in ("tomber", "rester", "venir")])
    word = g.pick((("quand", "when"), ("à quelle heure", "at what time"), ("avec qui", None)))
    tenses = g.pick((("pc", "past"), ("fut", "will")))
    if word[1] is None:
        if v.fr not in ("sortir", "partir"):
            return None
        pair = clause(s, v.fr, v.en, tenses, ("", "with"), question=g.pick(("est-ce que", "inversion")))
        return "avec qui " + pair[0], "who " + pair[1], "?"
    pair = clause(s, v.fr, v.en, tenses, question=g.pick(("est-ce que", "inversion")))
    return word[0] + " " + pair[0], word[1] + " " + pair[1], "?"


@pattern
def ask_why(g):
    s = g.pronoun(ASKED) if g.chance(0.6) else g.name()
    how = g.pick(("est-ce que", "inversion"))
    if g.chance(0.5):
        v = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir pleurer rire sourire"))
        pair = clause(s, v.fr, v.en, ("pres", "prog"), question=how)
    else:
        v = g.pick(DOABLE)
        o = g.object_of(v, s, with_adjective=0, dets=("def", "dem", "poss"))
        pair = clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en), question=how)
    return "pourquoi " + pair[0], "why " + pair[1], "?"


@pattern
def ask_what(g):
    s = g.pronoun(ASKED) if g.chance(0.6) else g.subject(third=True)
    v = g.pick(verbs.among(EVENTS, "manger boire lire écrire regarder chercher préparer dessiner") +
               verbs.among(DOABLE, "acheter apporter trouver perdre oublier"))
    tenses = ("pres", "prog") if v in EVENTS and v.fr != "apporter" and g.chance(0.5) else ("pc", "past")
    extra = g.pick((("", ""), ("hier", "yesterday"),
                    ("ce matin", "this morning"))) if tenses[0] == "pc" else ("", "")
    en = "make" if v.fr == "préparer" else v.en
    fr_text, _ = clause(s, v.fr, en, tenses, extra)
    _, en_text = clause(s, v.fr, en, tenses, extra, question="tone")
    return "qu'est-ce que " + fr_text, "what " + en_text, "?"


@pattern
def ask_who(g):
    if g.chance(0.5):
        v = g.pick(DOABLE)
        nobody = Phrase("qui", "who")
        o = g.object_of(v, nobody, with_adjective=0.1, dets=("def", "dem"))
        return clause(nobody, v.fr, v.en, ("pc", "past"), (o.fr, o.en)) + ("?",)
    s, v = g.pronoun(ASKED), g.pick([v for v in verbs.PERSON_VERBS if v.fr != "comprendre"])
    tenses = ("pres", "pres" if v.kind == "state" else "prog") if v.fr not in ("rencontrer", "reconnaître",
                                                                               "croire") \
        else ("pc", "past")
    fr, _ = clause(s, v.fr, v.en, tenses)
    _, en = clause(s, v.fr, v.en, tenses, question="tone")
    return "qui est-ce que " + fr, "who " + en, "?"


@pattern
def ask_how_many(g):
    s, v = g.pronoun(ASKED), g.pick(verbs.among(DOABLE, "acheter manger lire trouver perdre casser apporter"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink", "pair", "room", "building")
                   and suits(n, s)])
    g.combine("vo", v.fr, noun.lemma)
    count = "combien de " + noun.plural
    # The counted object comes first, so the participle agrees with it.
    thing = Phrase(noun.plural, noun.en_plural, noun.gender, "p")
    how = g.pick(("est-ce que", "inversion"))
    pair = clause(s, v.fr, v.en, ("pc", "past"), question=how, agree_with=thing)
    return count + " " + pair[0], "how many " + noun.en_plural + " " + pair[1], "?"


@pattern
def ask_how_many_have(g):
    s = g.pronoun(ASKED) if g.chance(0.6) else g.name()
    noun = g.pick(nouns.of("kin")[2:8] + nouns.of("animal", "tool", "text", "clothes"))
    if not suits(noun, s):
        return None
    how = g.pick(("est-ce que", "inversion"))
    pair = clause(s, "avoir", "have", ("pres", "pres"), question=how)
    return "combien de %s %s" % (noun.plural, pair[0]), "how many %s %s" % (noun.en_plural, pair[1]), "?"


@pattern
def ask_which(g):
    s, v = g.pronoun(ASKED), g.pick(verbs.among(DOABLE, "lire regarder acheter choisir porter prendre "
                                                        "écouter visiter louer réparer"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink") and suits(n, s)])
    g.combine("vo", v.fr, noun.lemma)
    number = "p" if noun.cls == "pair" or g.chance(0.25) else "s"
    which = french.agree("quel", noun.gender, number, "quelle")
    thing = Phrase("", "", noun.gender, number)
    tenses = g.pick((("pc", "past"), ("fut", "will")))
    pair = clause(s, v.fr, v.en, tenses, question=g.pick(("est-ce que", "inversion")), agree_with=thing)
    form = (noun.plural, noun.en_plural) if number == "p" else (noun.lemma, noun.en)
    return "%s %s %s" % (which, form[0], pair[0]), "which %s %s" % (form[1], pair[1]), "?"


@pattern
def ask_color(g):
    noun = g.pick(nouns.of("clothes", "car", "bike", "furniture", "pair", "gift"))
    if noun.lemma in ("photo", "jeu", "cadeau", "miroir"):
        return None
    owner = g.pick((g.name(), g.relative(), None))
    number = "p" if noun.cls == "pair" else "s"
    fr_be, en_be = ("sont", "are") if number == "p" else ("est", "is")
    if owner is None:
        thing = noun_phrase(noun, "poss", number, None, g.pick((0, 1, 3, 4)))
        return "de quelle couleur %s %s" % (fr_be, thing.fr), "what color %s %s" % (en_be, thing.en), "?"
    if not suits(noun, owner):
        return None
    thing = noun_phrase(noun, "def", number)
    fr = thing.fr + " " + french.contract("de", owner.fr)
    return "de quelle couleur %s %s" % (fr_be, fr), "what color %s %s's %s" % (en_be, owner.en,
                                                                               thing.en[4:]), "?"


@pattern
def ask_where_thing(g):
    noun = g.pick(nouns.of("tool", "clothes", "pair", "text", "building", "device"))
    plural = noun.cls in ("tool", "clothes") and g.chance(0.3)
    det = "def" if noun.cls == "building" else g.pick(("poss", "def"))
    thing = noun_phrase(noun, det, "p" if plural else "s", None, g.pick((0, 1, 3, 4)))
    be, en = ("sont", "are") if thing.number == "p" else ("est", "is")
    if noun.cls == "building" and noun.lemma not in ("maison", "appartement") and g.chance(0.5):
        return "excusez-moi, où %s %s" % (be, thing.fr), "excuse me, where %s %s" % (en, thing.en), "?"
    return "où %s %s" % (be, thing.fr), "where %s %s" % (en, thing.en), "?"
