"""The list of sentence patterns and the decorator that fills it.

A pattern is a function of a Sampler that returns (french, english, final mark); None means « draw again ».
"""

from .french import elide
from .grammar import Sentence, finish

PATTERNS = []


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
                   patterns_long)
    return PATTERNS
