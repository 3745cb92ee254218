"""The list of sentence patterns and the decorator that fills it.

A pattern is a function of a Sampler that returns (french, english, final mark); None means « draw again ».
"""

import re

from .french import elide
from .grammar import Sentence, finish

PATTERNS = []
# Nobody calls one person tu and vous in a breath; two possessives drawn apart would.
FAMILIAR = re.compile(r"\b(tu|te|toi|ton|ta|tes|tien|tienne)\b|\bt'")
FORMAL = re.compile(r"\b(vous|votre|vos|vôtre)\b")


class Pattern:
    def __init__(self, function, topic):
        self.function = function
        self.name = function.__name__
        self.topic = topic          # its subject can be fixed, so it can be part of a paragraph

    def draw(self, sampler):
        """One finished sentence, or None."""
        sampler.combos = []
        result = self.function(sampler)
        if result is None:
            return None
        fr, en, mark = result
        if FORMAL.search(fr) and FAMILIAR.search(fr):
            return None
        return Sentence(finish(elide(fr), mark, " "), finish(en, mark, ""), tuple(sampler.combos), self.name)


def pattern(function=None, topic=False):
    if function is None:
        return lambda inner: pattern(inner, topic)
    PATTERNS.append(Pattern(function, topic))
    return function


def load():
    """Import every pattern module once, in a fixed order, and return the patterns."""
    from . import (patterns_actions, patterns_states, patterns_questions, patterns_pronouns,  # noqa: F401
                   patterns_idioms, patterns_quantities, patterns_time, patterns_compare,
                   patterns_relative, patterns_complex, patterns_modals, patterns_daily,
                   patterns_long, patterns_animals)
    return PATTERNS
