"""Incidental bilingual text, as a language model meets it: glosses, quoted sentences, stories told twice.

Real collections of text hold a little of it, and models learn from it to translate (Briakou et al., 2023).
"""

from . import adjectives, nouns, verbs
from .splits import Text, bucket, distinct

# What a text says around a word or a few words in both languages.
GLOSSES = ("« {fr} » veut dire \"{en}\".", "« {fr} » se dit \"{en}\" en anglais.", "{fr} : {en}", "{fr} ({en})",
           "\"{en}\" is « {fr} » in French.", "{en} ({fr})")
# The same around a whole sentence.
QUOTES = ("« {fr} » En anglais : \"{en}\"", "{name} a dit : « {fr} » Cela veut dire : \"{en}\"", "{fr} ({en})",
          "{name} said: « {fr} » In English: \"{en}\"", "\"{en}\" In French: « {fr} »", "{en} ({fr})")
STORIES = ("{fr} — {en}", "{fr} En anglais : {en}", "{en} In French: {fr}")
PERCENT = {"gloss": 30, "quote": 55}        # of the lines; the others are stories


def gloss(text):
    """A word of the lexicon, or a noun with its article and perhaps an adjective."""
    sampler = text.sampler
    sampler.combos = []
    draw = sampler.number(0, 5)
    if draw == 0:
        verb = sampler.pick(verbs.TRANSITIVES + verbs.INTRANSITIVES + verbs.REFLEXIVES + verbs.PERSON_VERBS
                            + verbs.MOTIONS + verbs.GIVINGS)
        return verb.fr, "to " + verb.en
    if draw == 1:
        adjective = sampler.pick(adjectives.ADJECTIVES)
        return adjective.lemma, adjective.en
    noun = sampler.pick(nouns.NOUNS)
    phrase = sampler.phrase(noun, sampler.pick(("def", "def", "dem")), sampler.pick("ssp"), 0.4)
    if any(bucket(combo) != "train" for combo in sampler.combos):
        return None
    return phrase.fr, phrase.en


def line(text):
    """One line, or None."""
    sampler = text.sampler
    draw = sampler.number(1, 100)
    if draw <= PERCENT["gloss"]:
        pair, frames = gloss(text), GLOSSES
    elif draw <= PERCENT["gloss"] + PERCENT["quote"]:
        sentence, frames = text.sentence(), QUOTES
        pair = sentence and (sentence.fr, sentence.en)
    else:
        story, frames = text.paragraph(), STORIES
        pair = story and tuple(" ".join(getattr(s, side) for s in story) for side in ("fr", "en"))
    if not pair:
        return None
    return sampler.pick(frames).format(fr=pair[0], en=pair[1], name=sampler.name().fr)


def bilingual(lines, seed, forbidden):
    text = Text(seed, forbidden)
    return distinct(lines, lambda: line(text))
