"""Drawing sentences and dividing them into train, valid and test, plus the monolingual text.

Some word combinations are reserved: a checksum of « verb + object » or « noun + adjective » decides which
ones only test, or only valid, may use. The rule needs no list, so it holds for words added later.
"""

import re
import zlib

from .grammar import Sampler
from .registry import load

PER_PATTERN = 225           # sentences wanted from one pattern
HELD_OUT = 1000             # size of valid and of test
UNSEEN = 520                # of those, sentences with a reserved combination
RESERVED_PERCENT = 5
TRAIN_LIMIT = 33000         # keeps the repository small
COMMON = 12                 # a held-out word occurs at least so often in the pool that train is made from
PLAIN_PER_PATTERN = 6       # other held-out sentences, spread evenly over the patterns


def bucket(combo):
    """test, valid or train: who may use a combination. Only verb-object and noun-adjective pairs count."""
    if not combo.startswith(("vo:", "na:")):
        return "train"
    value = zlib.crc32(combo.encode("utf-8")) % 100
    if value < RESERVED_PERCENT:
        return "test"
    return "valid" if value < 2 * RESERVED_PERCENT else "train"


def side(sentence):
    """The split that a sentence belongs to by its combinations; None when two claim it."""
    owners = {bucket(combo) for combo in sentence.combos} - {"train"}
    if len(owners) > 1:
        return None
    return owners.pop() if owners else "train"


def key(text):
    """What counts as the same sentence: case and final punctuation aside."""
    return text.lower().rstrip(" .?!")


def sentences(line):
    """The keys of all sentences in a line of text, quoted ones and those in brackets too."""
    parts = re.split(r"[«»\"()—]| : |: |(?<=[.?!]) ", line)
    return {key(part.strip()) for part in parts} - {""}


def tokens(text):
    return re.findall(r"[\w'-]+|[^\w\s]", text.lower())


def words_of(sentence):
    """Words of both sides, told apart by language."""
    return ["fr " + t for t in tokens(sentence.fr)] + ["en " + t for t in tokens(sentence.en)]


class Inconsistent(Exception):
    """One French sentence was given two English translations."""


def draw(seed, per_pattern, forbidden=frozenset()):
    """Distinct sentences of every pattern, in pattern order."""
    translations, found = {}, []
    for index, pattern in enumerate(load()):
        sampler = Sampler(seed * 1000 + index)
        count = 0
        for _ in range(per_pattern * 12):
            if count == per_pattern:
                break
            sentence = pattern.draw(sampler)
            if sentence is None or key(sentence.fr) in forbidden or key(sentence.en) in forbidden:
                continue
            # The mark counts here: « Tu as faim ? » is a question only by its tone.
            known = translations.setdefault(sentence.fr.lower(), sentence)
            if known is not sentence:
                if key(known.en) != key(sentence.en):
                    raise Inconsistent("%s: %s (%s) / %s (%s)" % (sentence.fr, known.en, known.pattern,
                                                                  sentence.en,
                                                                  sentence.pattern))
                continue
            found.append(sentence)
            count += 1
    return found


def shuffled(items, seed):
    sampler = Sampler(seed)
    items = list(items)
    for i in range(len(items) - 1, 0, -1):
        j = sampler.number(0, i)
        items[i], items[j] = items[j], items[i]
    return items


def split(sentences, seed):
    """{"train": ..., "valid": ..., "test": ...}, sharing no source and no target sentence."""
    groups = {"train": [], "valid": [], "test": []}
    for sentence in shuffled(sentences, seed):
        owner = side(sentence)
        if owner:
            groups[owner].append(sentence)
    frequency = {}
    for sentence in groups["train"]:
        for word in words_of(sentence):
            frequency[word] = frequency.get(word, 0) + 1
    held = {"valid": [], "test": []}
    sources, targets = set(), set()

    def take(name, candidates, limit, quota):
        used = {}
        for sentence in candidates:
            if len(held[name]) >= limit:
                return
            free = key(sentence.en) not in targets and key(sentence.fr) not in sources
            if free and used.get(sentence.pattern, 0) < quota and all(
                    frequency.get(word, 0) >= COMMON for word in words_of(sentence)):
                held[name].append(sentence)
                sources.add(key(sentence.fr))
                targets.add(key(sentence.en))
                used[sentence.pattern] = used.get(sentence.pattern, 0) + 1

    for name in ("test", "valid"):
        take(name, groups[name], UNSEEN, 9)
        take(name, groups["train"], HELD_OUT, PLAIN_PER_PATTERN)
    train = [s for s in groups["train"] if key(s.fr) not in sources
             and key(s.en) not in targets][:TRAIN_LIMIT]
    return {"train": train, "valid": shuffled(held["valid"], seed + 1),
            "test": shuffled(held["test"], seed + 2)}


class Text:
    """Draws sentences and paragraphs for the pretraining text. They hold no reserved combination and no
    forbidden sentence."""

    def __init__(self, seed, forbidden):
        self.sampler = Sampler(seed)
        self._forbidden = forbidden
        self._patterns = load()
        self._topical = [p for p in self._patterns if p.topic]

    def sentence(self, patterns=None):
        """One sentence, or None."""
        drawn = self.sampler.pick(patterns or self._patterns).draw(self.sampler)
        if drawn is None or side(drawn) != "train":
            return None
        free = key(drawn.fr) not in self._forbidden and key(drawn.en) not in self._forbidden
        return drawn if free else None

    def paragraph(self):
        """Two to four sentences about one person, or None."""
        self.sampler.topic = self.sampler.name()
        parts = [self.sentence(self._topical) for _ in range(self.sampler.number(2, 4))]
        self.sampler.topic = None
        return None if None in parts else parts


def distinct(lines, draw):
    """This many different results of draw(), which may return None."""
    found = {}
    while len(found) < lines:
        line = draw()
        if line:
            found[line] = None
    return list(found)


def monolingual(language, lines, seed, forbidden):
    """Lines of one language: single sentences, and paragraphs that stay with one person."""
    text = Text(seed, forbidden)

    def draw():
        drawn = text.paragraph() if text.sampler.chance(0.15) else [text.sentence()]
        if not drawn or None in drawn:
            return None
        parts = [getattr(s, language) for s in drawn]
        return " ".join(parts) if len(set(parts)) == len(parts) else None

    return distinct(lines, draw)
