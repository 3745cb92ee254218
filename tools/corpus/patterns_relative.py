"""Patterns of relative clauses: qui, que with its participle agreement, où and dont.

Every relative « that » is spoken out in English, so the two sides keep the same shape.
"""

from . import english, french, nouns, verbs, words
from .grammar import Phrase, clause, noun_phrase
from .patterns_actions import DOABLE, LASTING
from .patterns_compare import NOT_GRADED
from .patterns_states import agreed
from .registry import pattern

@pattern
def who_does(g):
    who = noun_phrase(g.pick([n for n in nouns.of("role") if n.lemma not in ("bébé", "client")]), "def")
    v = g.pick(verbs.among(verbs.INTRANSITIVES, "chanter danser nager courir marcher pleurer rire sourire"))
    inner = "qui " + french.conjugate(v.fr, "pres", 2), "who is " + english.ing(v.en)
    main = g.pick((("être", "be", ("mon ami" if who.gender == "m" else "mon amie", "my friend")),
                   ("habiter", "live", ("ici", "here")),
                   ("s'appeler", "be called", None)))
    if main[2] is None:
        name = g.pick(words.FEMALE if who.gender == "f" else words.MALE)
        return ("%s %s s'appelle %s" % (who.fr, inner[0], name), "the name of %s %s is %s" %
                (who.en, inner[1], name), ".")
    fr = french.elide(who.fr) + " " + inner[0] + " " + french.conjugate(main[0], "pres", 2) + " " + main[2][0]
    verb = "is" if main[1] == "be" else "lives"
    return fr, "%s %s %s %s" % (who.en, inner[1], verb, main[2][1]), "."


@pattern
def know_who(g):
    s, role = g.subject(), g.role("indef")
    # What one can see somebody do in passing.
    v = g.pick(verbs.among(LASTING, "manger boire lire écrire porter conduire réparer nettoyer dessiner "
                                    "apporter"))
    him = Phrase("qui", "who", role.gender)
    o = g.object_of(v, him, with_adjective=0, dets=[d for d in v.dets if d in ("indef", "part")] or ["def"])
    first = clause(s, "voir", "see", ("pc", "past"), (role.fr, role.en))
    inner = clause(him, v.fr, v.en, ("impf", "pastprog"), (o.fr, o.en))
    return first[0] + " " + inner[0], first[1] + " " + inner[1], "."


@pattern
def that_i_bought(g):
    """« La robe que j'ai achetée est rouge » : agreement with que."""
    s = g.subject()
    v = g.pick(verbs.among(DOABLE, "acheter lire vendre choisir trouver regarder réparer louer visiter "
                                   "écrire laver apporter"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink")])
    g.combine("vo", v.fr, noun.lemma)
    a = g.adjective_for(noun)
    if not a or a.lemma in ("nouveau", "gratuit") or v.fr == "laver" and a.lemma == "sale":
        return None
    number = "p" if noun.cls == "pair" or noun.cls in ("text", "fruit", "tool") and g.chance(0.25) else "s"
    thing = noun_phrase(noun, "def", number)
    inner = clause(s, v.fr, v.en, ("pc", "past"), agree_with=thing)
    extra = g.pick((("", ""), (" hier", " yesterday"), (" la semaine dernière", " last week")))
    main = clause(Phrase("", "", thing.gender, thing.number, thing.person), "être", "be", ("pres", "pres"),
                  (agreed(a, thing), a.en))
    return ("%s que %s%s %s" % (thing.fr, inner[0], extra[0], main[0].strip()),
            "%s that %s%s %s" % (thing.en, inner[1], extra[1], main[1].strip()), ".")


@pattern
def here_is(g):
    """« Voilà le livre que tu cherchais »."""
    s = g.pronoun()
    v = g.pick(verbs.among(DOABLE, "acheter chercher choisir trouver vendre réparer écrire apporter"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink", "room", "building", "animal")])
    g.combine("vo", v.fr, noun.lemma)
    thing = g.phrase(noun, "def", "p" if noun.cls == "pair" or g.chance(0.2) else "s", 0.3)
    tenses = ("impf", "pastprog") if v.fr == "chercher" else ("pc", "past")
    inner = clause(s, v.fr, v.en, tenses, agree_with=thing)
    lead = g.pick((("voici", "here is", "here are"), ("c'est", "it's", None)))
    if lead[2] is None and thing.number == "p":
        lead = ("ce sont", "they're", "they're")
    return "%s %s que %s" % (lead[0], thing.fr, inner[0]), "%s %s that %s" % (lead[2] if thing.number == "p"
                                                                              else lead[1], thing.en,
                                                                           inner[1]), "."


@pattern
def where_clause(g):
    s = g.subject()
    noun = g.pick([n for n in nouns.of("building", "outdoors") if n.lemma in
                   "maison appartement école hôpital banque restaurant bibliothèque hôtel usine ferme "
                   "village ville île rue magasin "
                   "université musée".split()])
    live = noun.lemma in "maison appartement village ville île rue ferme hôtel".split()
    # One is born in a house or a city, sleeps in a hotel, and lives in a street.
    possible = {"hôtel": (2,), "rue": (0,), "appartement": (0, 2)}.get(noun.lemma, (0, 1, 2))
    at_home = (("habiter", "live", ("pres", "pres")), ("naître", "be born", ("pc", "past")),
               ("dormir", "sleep", ("pc", "past")))
    fr, en, tenses = g.pick([at_home[i] for i in possible] if live else
                            (("travailler", "work", ("pres", "pres")),
                             ("travailler", "work", ("impf", "used"))))
    g.combine("where", noun.lemma, fr)
    a = g.adjective_for(noun, ("vide", "nouveau"))
    if not a:
        return None
    place = noun_phrase(noun, "def")
    inner = clause(s, fr, en, tenses)
    main = clause(Phrase("", "", place.gender), "être", "be", ("pres", "pres"),
                  ("très " + agreed(a, place), "very " + a.en)) \
        if a.lemma not in NOT_GRADED else clause(Phrase("", "", place.gender), "être", "be",
                                                 ("pres", "pres"), (agreed(a, place), a.en))
    return "%s où %s %s" % (place.fr, inner[0], main[0].strip()), "%s where %s %s" % (place.en, inner[1],
                                                                                      main[1].strip()), "."


@pattern
def whose_clause(g):
    """dont: « le livre dont j'ai besoin », « l'homme dont je t'ai parlé »."""
    s = g.pronoun()
    kind = g.number(0, 2)
    if kind == 0:
        noun = g.pick(nouns.of("tool", "text", "clothes", "device"))
        thing = noun_phrase(noun, "def", "p" if noun.cls == "tool" and g.chance(0.3) else "s")
        inner = clause(s, "avoir", "need", ("pres", "pres"), ("besoin", ""))
        lead = g.pick((("voici", "here is", "here are"), ("où est", "where is", None)))
        if lead[0] == "où est":
            be = ("où sont", "where are") if thing.number == "p" else lead[:2]
            return "%s %s dont %s" % (be[0], thing.fr, inner[0]), "%s %s that %s" % (be[1], thing.en,
                                                                                     inner[1]), "?"
        return "voici %s dont %s" % (thing.fr, inner[0]), "%s %s that %s" % (lead[2] if thing.number == "p"
                                                                             else lead[1], thing.en,
                                                                          inner[1]), "."
    if kind == 1:
        noun = g.pick(nouns.of("text", "show", "building"))
        thing = noun_phrase(noun, "def")
        talk = g.subject()
        inner = clause(talk, "parler", "talk about", g.pick((("pc", "past"), ("impf", "pastprog"))))
        return "c'est %s dont %s" % (thing.fr, inner[0]), "it's %s that %s" % (thing.en, inner[1]), "."
    noun = g.pick(nouns.FRIGHTENING)
    thing = noun_phrase(noun, "def")
    inner = clause(s, "avoir", "be", ("pres", "pres"), ("peur", "afraid of"))
    return "c'est %s dont %s" % (thing.fr, inner[0]), "it's %s that %s" % (thing.en, inner[1]), "."
