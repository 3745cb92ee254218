"""Patterns of comparison: comparative, superlative, equality, and quantities compared.

« bon » has its own comparative, and a superlative keeps the adjective's place before or after the noun.
"""

from . import adjectives, english, french, nouns
from .grammar import Phrase, clause, comparison, noun_phrase, suits
from .patterns_states import agreed
from .registry import pattern

COMPARABLE = nouns.of("clothes", "pair", "car", "bike", "furniture", "building", "text", "show", "idea",
                      "fruit")
NOT_GRADED = [c.lemma for c in adjectives.COLORS] + ("violet rose français anglais italien espagnol rond "
                                                     "carré "
                                                     "gratuit vide nouveau gros délicieux").split()
# Only things of one of these groups, or of none, are compared with each other.
ALIKE = (("château", "église"), ("tomate", "carotte", "oignon", "haricot"),
         ("stade", "aéroport", "gare", "usine"),
         ("maison", "appartement", "ferme"), ("cinéma", "théâtre", "musée", "bibliothèque"),
         ("marché", "supermarché", "boulangerie", "pharmacie", "magasin"))


def better(adjective, who):
    """French comparative, with the irregular « meilleur »."""
    if adjective.lemma == "bon":
        return french.agree("meilleur", who.gender, who.number, "meilleure")
    return "plus " + agreed(adjective, who)


@pattern
def compare_people(g):
    s, other, a = g.subject(third=True, young=True), g.pick((g.name(), g.relative(),
                                                             g.role())), g.pick(adjectives.TRAITS)
    if other.fr in s.fr or s.fr in other.fr or s.lemma and s.lemma == other.lemma:
        return None
    degree = g.pick((("plus " + agreed(a, s), english.compare(a.en)[0] + " than", False),
                     ("moins " + agreed(a, s),) + english.less(a.en),
                     ("aussi " + agreed(a, s), "as " + a.en + " as", False)))
    return comparison(s, *degree, (other.fr, other.en)) + (".",)


@pattern
def compare_things(g):
    first = g.pick(COMPARABLE)
    second = g.pick(nouns.of(first.cls))
    a = g.adjective_for(first)
    if first == second or not a or a.lemma in NOT_GRADED or a not in adjectives.suiting(second):
        return None
    if any((first.lemma in group) != (second.lemma in group) for group in ALIKE):
        return None
    g.combine("na", second.lemma, a.lemma)
    s, other = noun_phrase(first, g.pick(("def", "dem"))), noun_phrase(second, g.pick(("def", "dem")))
    degree = g.pick(((better(a, s), english.compare(a.en)[0] + " than", False),
                     ("moins " + agreed(a, s),) + english.less(a.en),
                     ("aussi " + agreed(a, s), "as " + a.en + " as", False)))
    if degree[0].startswith("moins") and a.lemma in ("bon", "mauvais", "petit"):
        return None
    return comparison(s, *degree, (other.fr, other.en)) + (".",)


@pattern
def my_is_bigger(g):
    noun = g.pick(nouns.of("clothes", "car", "bike", "furniture", "room", "animal", "tool", "device"))
    a = g.adjective_for(noun)
    if not a or a.lemma in NOT_GRADED:
        return None
    owner = g.pick((0, 1, 3, 4))
    s = noun_phrase(noun, "poss", "s", None, owner)
    who = g.pick((g.name(), g.relative(0)))
    # « celle de Marie » stands for the repeated noun.
    that = ("celle " if noun.gender == "f" else "celui ") + french.contract("de", who.fr)
    fr, en = g.pick(((better(a, s), english.compare(a.en)[0] + " than "),
                     ("aussi " + agreed(a, s), "as " + a.en + " as ")))
    return clause(s, "être", "be", ("pres", "pres"), (fr + " que " + that, en + who.en + "'s")) + (".",)


SCOPES = (("de la ville", "in the city"), ("du monde", "in the world"), ("du pays", "in the country"),
          ("de la région", "in the region"))


@pattern
def superlative(g):
    noun = g.pick(nouns.of("building", "outdoors", "show"))
    a = g.adjective_for(noun)
    if not a or a.lemma in NOT_GRADED + ["mauvais", "petit", "triste", "vide", "long", "court"]:
        return None
    if noun.lemma in ("maison", "appartement", "garage") and a.lemma in ("célèbre",):
        return None
    scope = g.pick((("de l'année", "of the year"),) if noun.cls == "show" else SCOPES)
    core = noun_phrase(noun, "", "s").fr
    article = "la" if noun.gender == "f" else "le"
    who = Phrase("", "", noun.gender)
    if a.before:
        form = "meilleur" if a.lemma == "bon" else "plus " + french.agree(a.lemma, noun.gender, "s", a.fem,
                                                                          core)
        if a.lemma == "bon" and noun.gender == "f":
            form = "meilleure"
        # « plus » keeps the adjective from its noun's vowel only in speech; spelling still takes bel, vieil.
        fr = "%s %s %s" % (article, form, core)
    else:
        fr = "%s %s %s plus %s" % (article, core, article, agreed(a, who))
    fr = french.elide(fr)
    en = "the %s %s" % (english.compare(a.en)[1], noun.en)
    lead = g.pick((("c'est", "it's"), ("c'était", "it was"), ("ce n'est pas", "it isn't")))
    return "%s %s %s" % (lead[0], fr, scope[0]), "%s %s %s" % (lead[1], en, scope[1]), "."


RELATIVES = "père mère frère sœur oncle tante cousin cousine grand-père grand-mère fils mari".split()


@pattern
def superlative_person(g):
    s, a = g.subject(third=True), g.pick(adjectives.TRAITS)
    if s.lemma in ("homme", "femme") or s.number == "p" or a.lemma == "jeune" and s.lemma.startswith("grand"):
        return None
    article = "la plus" if s.gender == "f" else "le plus"
    group = g.pick((("de la classe", "in the class"), ("de la famille", "in the family"),
                    ("de l'équipe", "on the team"),
                    ("du groupe", "in the group")))
    grown = s.lemma and s.lemma != s.fr
    if grown and (group[1] == "in the class" or group[1] == "in the family" and s.lemma not in RELATIVES):
        return None
    return clause(s, "être", "be", g.pick((("pres", "pres"), ("impf", "past"))),
                  ("%s %s %s" % (article, agreed(a, s), group[0]),
                   "the %s %s" % (english.compare(a.en)[1], group[1]))) + (".",)


@pattern
def more_of(g):
    s, other = g.subject(third=True), g.pick((g.name(), g.relative(0), Phrase("moi", "me"),
                                              Phrase("toi", "you")))
    noun = g.pick(nouns.of("text", "clothes", "animal", "tool") + nouns.of("resource")[:2])
    if other.fr in s.fr or s.fr in other.fr or noun.lemma in ("message", "passeport") or not suits(noun, s):
        return None
    mass = noun.cls == "resource"
    fr_noun, en_noun = (noun.lemma, noun.en) if mass else (noun.plural, noun.en_plural)
    g.combine("vo", "avoir", noun.lemma)
    fr, en = g.pick((("plus de", "more %s than"), ("moins de", ("less" if mass else "fewer") + " %s than"),
                     ("autant de", ("as much" if mass else "as many") + " %s as")))
    return clause(s, "avoir", "have", ("pres", "pres"), ("%s %s que %s" % (fr, fr_noun, other.fr),
                                                        "%s %s" % (en % en_noun, other.en))) + (".",)
