"""Patterns of what animals do, and where: the cat is sleeping on the chair.

Other patterns have animals as things that are owned, seen or fed; here they act.
"""

from . import nouns, verbs
from .grammar import clause
from .registry import pattern

PETS = "chien chat lapin hamster tortue"
FREE = "chien chat cheval oiseau vache lapin cochon canard poule"
FOOD = (("manger", "eat", "lapin cheval cochon vache", "pomme carotte"),
        ("manger", "eat", "chien chat", "viande poisson poulet"),
        ("manger", "eat", "souris oiseau canard", "pain fromage"),
        ("boire", "drink", FREE, "eau"), ("boire", "drink", "chat", "lait"))
INDOORS = (("sur", "on", "chaise lit canapé tapis fauteuil table armoire"),
           ("sous", "under", "chaise lit canapé table fauteuil armoire"),
           ("devant", "in front of", "porte fenêtre armoire lit canapé"),
           ("derrière", "behind", "porte canapé armoire fauteuil"),
           ("dans", "in", "cuisine chambre salon garage cave"))
OUTDOORS = (("dans", "in", "jardin parc forêt rue"), ("près de", "near", "rivière lac maison ferme"))
TENSES = (("pres", "prog"), ("pres", "prog"), ("pc", "past"), ("fut", "will"))


def animal(g, lemmas):
    noun = nouns.noun(g.pick(lemmas.split()))
    det = g.pick(("def", "def", "dem", "poss"))
    owner = g.pronoun(("il", "elle")) if det == "poss" else None     # « son » would be his and her
    return g.phrase(noun, det, "p" if g.chance(0.2) else "s", 0.2, owner)


def somewhere(g, verb, places):
    """A place with its preposition, in both languages."""
    fr, en, lemmas = g.pick(places)
    place = nouns.noun(g.pick(lemmas.split()))
    g.combine("vo", verb.fr, place.lemma)
    where = g.phrase(place, "def", with_adjective=0)
    # « de le » contracts in « près de ».
    return (fr + " " + where.fr).replace(" de le ", " du "), en + " " + where.en


@pattern
def pet_indoors(g):
    s = animal(g, PETS)
    v = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir jouer"))
    return clause(s, v.fr, v.en, g.pick(TENSES), somewhere(g, v, INDOORS)) + (".",)


@pattern
def animal_outdoors(g):
    s = animal(g, FREE)
    v = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir courir jouer marcher"))
    return clause(s, v.fr, v.en, g.pick(TENSES), somewhere(g, v, OUTDOORS)) + (".",)


@pattern
def animal_eats(g):
    fr, en, eaters, food = g.pick(FOOD)
    s, noun = animal(g, eaters), nouns.noun(g.pick(food.split()))
    g.combine("vo", fr, noun.lemma)
    some = "indef" if noun.cls == "fruit" else "part"
    what = g.phrase(noun, "def" if g.chance(0.5) else some, with_adjective=0)
    return clause(s, fr, en, g.pick(TENSES), (what.fr, what.en)) + (".",)
