"""Puts a corpus together: draws, splits, checks, and renders the files as bytes.

The files are made in memory so that they can be compared with what is on disk.
"""

from . import adjectives, bilingual, checks, nouns, splits, verbs, words
from .registry import load

MONO_LINES = 40000
BILINGUAL_LINES = 8000          # beside 80,000 of one language
RESERVED = ("natural-test.tsv", "unseen.tsv")       # written by hand


def read(path):
    return path.read_bytes() if path.is_file() else None


def lemmas():
    """Distinct French headwords of the lexicon."""
    found = {n.lemma for n in nouns.NOUNS} | set(verbs.LEMMAS) | {a.lemma for a in adjectives.ADJECTIVES}
    return sorted(found | words.lemmas())


def reserved_sentences(directories):
    """Both sides of the test pairs that were written by hand, so that no generated text repeats them."""
    found = set()
    for path in (directory / name for directory in directories for name in RESERVED):
        data = read(path)
        for line in (data or b"").decode("utf-8").splitlines():
            found.update(splits.key(text) for text in line.split("\t"))
    return frozenset(found)


def corpus(seed, natural_directories):
    """({file name: bytes}, summary)."""
    natural = reserved_sentences(natural_directories)
    parts = splits.split(splits.draw(seed, splits.PER_PATTERN, natural), seed)
    held = {splits.key(text) for name in ("valid", "test") for s in parts[name]
            for text in (s.fr, s.en)} | natural
    files = {}
    for name in ("train", "valid", "test"):
        files[name + ".tsv"] = "".join("%s\t%s\n" % (s.fr, s.en) for s in parts[name])
    for offset, language in ((101, "fr"), (202, "en")):
        lines = splits.monolingual(language, MONO_LINES, seed * 1000 + offset * 7919, held)
        files["mono.%s.txt" % language] = "".join(line + "\n" for line in lines)
    lines = bilingual.bilingual(BILINGUAL_LINES, seed * 1000 + 303 * 7919, held)
    files["bilingual.txt"] = "".join(line + "\n" for line in lines)
    checks.run(parts, files, held)
    total = sum(len(part) for part in parts.values())
    unseen = sum(1 for s in parts["test"] if splits.side(s) == "test")
    summary = ("%d lemmas, %d patterns, %d pairs (train %d, valid %d, test %d; %d of test hold a combination "
               "unseen in train)" % (len(lemmas()), len(load()), total, len(parts["train"]),
                                     len(parts["valid"]),
                                     len(parts["test"]), unseen))
    return {name: text.encode("utf-8") for name, text in files.items()}, summary
