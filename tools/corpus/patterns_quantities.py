"""Patterns of quantities: measured amounts, beaucoup de, trop de, and counted things.

A French quantity takes « de » whatever follows; English chooses much or many by the noun.
"""

from . import nouns, words
from .grammar import Phrase, clause, noun_phrase
from .patterns_actions import at_times
from .registry import pattern

MEASURES = (("tasse", ("thé", "café", "lait")),
            ("verre", ("eau", "vin", "lait", "bière", "limonade")),
            ("bouteille", ("eau", "vin", "lait", "huile", "bière")),
            ("kilo", ("farine", "sucre", "riz", "viande", "fromage")),
            ("litre", ("lait", "huile", "eau")),
            ("morceau", ("pain", "fromage", "chocolat", "viande")),
            ("tranche", ("pain", "jambon")))


@pattern(topic=True)
def measured(g):
    s = g.subject()
    measure, contents = g.pick(MEASURES)
    what = nouns.noun(g.pick(contents))
    unit = nouns.noun(measure)
    n = g.pick((1, 1, 1, 2, 3, 4))
    g.combine("of", measure, what.lemma)
    if n == 1:
        holder = noun_phrase(unit, "indef")
    else:
        holder = Phrase(words.french_number(n) + " " + unit.plural, words.english_number(n) + " " +
                        unit.en_plural)
    verb = g.pick((("acheter", "buy"), ("demander", "ask for"), ("vouloir", "want"), ("apporter", "bring")) +
                  ((("boire", "drink"),) if what.cls == "drink" and measure != "litre" else ()) +
                  ((("manger", "eat"),) if measure in ("morceau", "tranche") else ()))
    if verb[0] == "acheter" and measure in ("verre", "tasse"):
        return None
    g.combine("vo", verb[0], what.lemma)
    tenses = ("pres", "pres") if verb[0] == "vouloir" else ("pc", "past") if verb[0] == "demander" else g.pick((("pc", "past"), ("fut", "will")))
    pair = clause(s, verb[0], verb[1], tenses, (holder.fr + " de " + what.lemma,
                                                holder.en + " of " + what.en))
    times = words.PAST_TIMES[:2] if tenses[0] == "pc" else words.FUTURE_TIMES[:1]
    return (at_times(g, times, pair, 0) if tenses[0] != "pres" and g.chance(0.2) else pair) + (".",)


QUANTITIES = (("beaucoup de", "a lot of", "a lot of"), ("trop de", "too much", "too many"),
              ("assez de", "enough", "enough"),
              ("peu de", "little", "few"), ("un peu de", "a little", None))


@pattern(topic=True)
def quantity(g):
    s = g.subject()
    fr, mass_en, count_en = g.pick(QUANTITIES)
    noun = g.pick(nouns.of("food", "drink", "fruit", "resource"))
    if noun.lemma in ("aide", "repos", "chance", "courage", "travail") and fr == "trop de":
        return None
    count = noun.cls == "fruit"
    if count and count_en is None:
        return None
    verb = ("avoir", "have") if noun.cls == "resource" else g.pick((("manger", "eat"), ("acheter", "buy"),
                                                                    ("avoir", "have"))
                                                                  if noun.cls != "drink"
                                                                   else (("boire", "drink"),
                                                                         ("acheter", "buy")))
    if noun.lemma in ("aide", "repos"):
        return None
    g.combine("vo", verb[0], noun.lemma)
    tenses = ("pres", "pres") if verb[0] == "avoir" else ("pc", "past")
    return clause(s, verb[0], verb[1], tenses, (fr + " " + (noun.plural if count else noun.lemma),
                                               (count_en if count else mass_en) + " " +
                                                (noun.en_plural if count else noun.en))) + (".",)
