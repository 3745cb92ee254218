"""Sanity checks over the finished text: spelling rules never to be broken, and the promises of the splits.

They run on every build and raise, so that a slip in the grammar cannot reach the files.
"""

import re

from .splits import HELD_OUT, key, sentences, words_of

VOWEL = "[aeiouyàâéèêîôûœ]"


def _compiled(*rules):
    """Rules are written for lower case: lowering a line once is faster than ignoring case in each rule."""
    return tuple((re.compile(expression), name) for expression, name in rules)


FRENCH = _compiled(
    (r"(?<!-)\b(le|la|de|je|ne|que|me|te|se|ce) (?!(onze|huit|oui|yaourts?|y[aeiou])\b)" + VOWEL,
     "missing elision"),
    (r"\b(le|la|de|je|ne|que|me|te|se|ce) h(?!(aricot|amster|uit|éros|aut|ibou|ockey|onte))",
     "missing elision before h"),
    (r"\b[ldjnmtsc]'(?!(y|en|à)\b)[bcdfgjklmnpqrstvwxz]", "elision before a consonant"),
    (r"\b(l|d|j|n|qu)'(haricot|hamster|onze|huit|honte)", "elision before aspirated h"),
    (r"\b(de le|de les|à le|à les|si ils?)\b(?! [a-zé]+(er|ir|re|oir)\b)", "missing contraction"),
    (r"\b(ma|ta|sa|(un|le|ce|mon|ton|son|notre|votre|leur) (beau|nouveau|vieux)) " + VOWEL,
     "form before a vowel"),
    (r"\bce (homme|hôtel|hôpital|" + VOWEL + ")", "ce before a vowel"),
    (r"  | ,|\t|\s$|^\s| \.", "spacing"),
    (r"[^ ][?!]", "no space before ? or !"),
    (r" -|- |none|''", "leftover"),
)
ENGLISH = _compiled(
    (r"\ba (?!(uni|use|one|euro))[aeiou]", "a before a vowel"),
    (r"\ban (?!hour|honest)[^aeiou ]", "an before a consonant"),
    (r"  | ,|\s$|^\s| \.| [?!]", "spacing"),
    (r"\b(\w+) \1\b", "doubled word"),
    (r"\bthe (a|an|my|your|his|her|our|their|this|some|the)\b|\b(a|an) (the|some|my)\b", "two determiners"),
    (r"none|''|\bi (is|are|has)\b", "leftover"),
)


class Broken(Exception):
    pass


def find(rules, text):
    """The name of the first broken rule, or None."""
    text = text.lower()
    for expression, name in rules:
        if expression.search(text):
            return name
    return None


def run(parts, files, held):
    """held: keys of the sentences that no text but valid.tsv and test.tsv may contain."""
    for part in parts.values():
        for s in part:
            for rules, text in ((FRENCH, s.fr), (ENGLISH, s.en)):
                problem = find(rules, text)
                if problem:
                    raise Broken("%s: %s [%s]" % (problem, text, s.pattern))
    for name, rules in (("mono.fr.txt", FRENCH), ("mono.en.txt", ENGLISH)):
        for line in files[name].splitlines():
            problem = find(rules, line)
            if problem:
                raise Broken("%s: %s" % (problem, line))
    for name in ("mono.fr.txt", "mono.en.txt", "bilingual.txt"):
        for line in files[name].splitlines():
            if not held.isdisjoint(sentences(line)):
                raise Broken("%s holds a test sentence: %s" % (name, line))
    for name in ("valid", "test"):
        if len(parts[name]) != HELD_OUT:
            raise Broken("%s has %d pairs" % (name, len(parts[name])))
    for a, b in (("train", "valid"), ("train", "test"), ("valid", "test")):
        for text in ("fr", "en"):
            shared = {key(getattr(s, text)) for s in parts[a]} & {key(getattr(s, text)) for s in parts[b]}
            if shared:
                raise Broken("%s and %s share %s" % (a, b, sorted(shared)[0]))
    known = {word for s in parts["train"] for word in words_of(s)}
    for name in ("valid", "test"):
        for s in parts[name]:
            unknown = [word for word in words_of(s) if word not in known]
            if unknown:
                raise Broken("%s has a word that train has not: %s" % (name, unknown[0]))
    counts = {}
    for s in parts["train"]:
        counts[s.pattern] = counts.get(s.pattern, 0) + 1
    if max(counts.values()) > 0.04 * len(parts["train"]):
        raise Broken("a pattern has more than 4 % of train")
