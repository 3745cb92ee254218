"""Patterns of long sentences, three or four clauses each, put together from what the other modules teach.

Later clauses take up the first subject as a pronoun, so agreement has to be carried across the sentence.
"""

from . import adjectives, verbs, words
from .grammar import Phrase, clause, pronoun_for
from .patterns_actions import DOABLE, LASTING
from .patterns_complex import purchase
from .patterns_states import agreed
from .patterns_time import goal
from .registry import pattern

# What people eat, drink, read and clean before they leave the house.
MORNING = ("café thé lait eau pain croissant œuf crêpe pomme banane orange poire journal magazine livre "
           "lettre cuisine chambre salon").split() + ["salle de bains"]
CARRIED = "clé montre sac valise parapluie passeport portefeuille bague manteau chapeau écharpe".split()
MISHAPS = [v._replace(objects=tuple(n for n in v.objects if n.lemma in CARRIED))
           for v in verbs.among(DOABLE, "perdre oublier")]
SHOPPING = [v._replace(objects=tuple(n for n in v.objects if n.cls in ("clothes", "pair", "text", "gift")))
            for v in verbs.among(DOABLE, "acheter choisir")]
QUIET = verbs.among(LASTING, "lire regarder manger boire réparer nettoyer laver")


def past_action(g, subject, pool, dets=None):
    v = g.pick(pool)
    o = g.object_of(v, subject, dets, with_adjective=0.3)
    return clause(subject, v.fr, v.en, ("pc", "past"), (o.fr, o.en))


def someone(g):
    return g.pick((g.name(), g.relative()))


@pattern
def bad_day(g):
    """« Hier, Marie est allée en ville et elle a acheté des pommes, mais elle a perdu son sac. »"""
    s = g.subject()
    again = pronoun_for(s)
    time = g.pick(words.PAST_TIMES[:1] + words.PAST_TIMES[7:])
    where = g.pick((("en ville", "into town"),) + tuple(("à " + c[0], "to " + c[1]) for c in words.CITIES))
    went = clause(s, "aller", "go", ("pc", "past"), where)
    did = past_action(g, again, SHOPPING, ("indef", "part"))
    lost = past_action(g, again, MISHAPS, ("poss",))
    return ("%s, %s et %s, mais %s" % (time[0], went[0], did[0], lost[0]),
            "%s, %s and %s, but %s" % (time[1], went[1], did[1], lost[1]), ".")


@pattern
def coming_home(g):
    """« Quand mon père est rentré, Marie lisait un livre et Paul dormait dans le salon. »"""
    s, t, u = someone(g), g.name(), g.name()
    if t.fr == u.fr or s.fr in (t.fr, u.fr):
        return None
    back = clause(s, "rentrer", "go home", ("pc", "past"))
    v = g.pick(QUIET)
    o = g.object_of(v, t, [d for d in v.dets if d != "dem"], with_adjective=0.3)
    if "gratuit" in o.fr:
        return None        # at home nobody pays
    first = clause(t, v.fr, v.en, ("impf", "pastprog"), (o.fr, o.en))
    w = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter cuisiner"))
    where = ("", "") if w.fr == "cuisiner" else g.pick(
        (("dans le salon", "in the living room"), ("dans la chambre", "in the bedroom")))
    second = clause(u, w.fr, w.en, ("impf", "pastprog"), where)
    return ("quand %s, %s et %s" % (back[0], first[0], second[0]),
            "when %s came home, %s and %s" % (s.en, first[1], second[1]), ".")


@pattern
def think_because(g):
    """« Je pense que Luc restera à la maison demain parce qu'il est malade et qu'il a de la fièvre. »"""
    s, t = g.pronoun(("il", "elle", "ils", "elles")), someone(g)
    him = pronoun_for(t)
    lead = clause(s, *g.pick((("penser", "think"), ("croire", "believe"), ("savoir", "know"))),
                  ("pres", "pres"))
    fr, en, rest, neg = g.pick((("rester", "stay", ("à la maison", "at home"), ""),
                                ("venir", "come", ("", ""), "pas"),
                                ("sortir", "go out", ("", ""), "pas"),
                                ("travailler", "work", ("", ""), "pas")))
    time = g.pick(words.FUTURE_TIMES[:1] + words.FUTURE_TIMES[8:10])
    main = clause(t, fr, en, ("fut", "will"), ((rest[0] + " " + time[0]).strip(),
                                               (rest[1] + " " + time[1]).strip()), neg)
    a = adjectives.adjective(g.pick(("fatigué", "malade") + (() if fr == "travailler" else ("occupé",))))
    degree = g.pick((("très", "very"), ("vraiment", "really"), ("trop", "too")))
    state = clause(him, "être", "be", ("pres", "pres"), (degree[0] + " " + agreed(a, t),
                                                         degree[1] + " " + a.en))
    if a.lemma == "occupé":
        burden = g.pick((("beaucoup de travail", "a lot of work", "have"), ("un examen", "an exam", "have"),
                         ("une réunion", "a meeting", "have"),
                         ("un rendez-vous", "an appointment", "have")))
    else:
        burden = g.pick((("besoin de repos", "rest", "need"), ("mal à la tête", "a headache", "have"),
                         ("de la fièvre", "a fever", "have")))
    second = clause(him, "avoir", burden[2], ("pres", "pres"), burden[:2])
    return ("%s que %s parce que %s et que %s" % (lead[0], main[0], state[0], second[0]),
            "%s that %s because %s and %s" % (lead[1], main[1], state[1], second[1]), ".")


@pattern
def busy_morning(g):
    """« Ce matin, je me suis levé à sept heures, j'ai bu du café et je suis allé à la gare en bus. »"""
    s = g.subject()
    again = pronoun_for(s)
    time = g.clock(5, 9)
    rose = clause(s, "se lever", "get up", ("pc", "past"), ("à " + time[0], "at " + time[1]))
    did = past_action(g, again, [v._replace(objects=tuple(n for n in v.objects if n.lemma in MORNING))
                                 for v in verbs.among(DOABLE, "boire manger lire nettoyer")])
    noun, fr, en = goal(g, "gare banque marché supermarché boulangerie bibliothèque pharmacie université "
                           "poste mairie piscine parc église".split())
    g.combine("vo", "aller", noun.lemma)
    how = g.pick((("à pied", "on foot"), ("en bus", "by bus"), ("en voiture", "by car"),
                  ("à vélo", "by bike")))
    went = clause(again, "aller", "go", ("pc", "past"), (fr + " " + how[0], "to " + en + " " + how[1]))
    return ("ce matin, %s, %s et %s" % (rose[0], did[0], went[0]),
            "this morning, %s, %s and %s" % (rose[1], did[1], went[1]), ".")


def outing(g, subject):
    """What free time would make possible."""
    v = g.pick(verbs.among(DOABLE, "visiter lire regarder"))
    o = g.object_of(v, subject, with_adjective=0.3)
    if "mauvais" in o.fr or "ennuyeu" in o.fr:
        return None, None
    return clause(subject, v.fr, v.en, ("cond", "would"), (o.fr, o.en))


@pattern
def if_time(g):
    """« Si j'avais plus de temps, j'irais au musée avec mes amis et je louerais un bateau. »"""
    s = g.subject()
    again = pronoun_for(s)
    verb, fr_rest, en_rest = g.pick((("avoir", "plus de temps", "more time"),
                                     ("avoir", "plus d'argent", "more money"),
                                     ("être", "en vacances", "on vacation")))
    condition = clause(s, verb, "have", ("impf", "past"), (fr_rest, ""))[0]
    places = ("théâtre", "cinéma", "musée", "restaurant")
    noun, fr, en = goal(g, places if "argent" in fr_rest else places + ("plage", "piscine", "stade", "parc"))
    g.combine("vo", "aller", noun.lemma)
    friend = g.pick((g.name(), Phrase("toi", "you") if s.person not in (1, 4) else g.name(), g.relative(0)))
    if friend.fr in s.fr or s.fr in friend.fr or s.lemma and friend.lemma == s.lemma:
        return None
    go = clause(again, "aller", "go", ("cond", "would"), ("%s avec %s" % (fr, friend.fr),
                                                          "to %s with %s" % (en, friend.en)))
    also = purchase(g, again, ("cond", "would")) if "argent" in fr_rest else outing(g, again)
    if not also[0] or noun.lemma in also[0]:
        return None
    en_verb = "were" if verb == "être" else "had"
    return ("si %s, %s et %s" % (condition, go[0], also[0]),
            "if %s %s %s, %s and %s" % (s.en, en_verb, en_rest, go[1], also[1]), ".")
