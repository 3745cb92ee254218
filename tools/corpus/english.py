"""English morphology: verb forms, plurals, a/an, comparison, and finite clauses.

A clause is built from a verb group (finite word plus the rest) so that negation and inversion are one rule.
"""

import functools
import re

IRREGULAR = {
    line.split()[0]: tuple(line.split()[1:]) for line in """
be was been
have had had
do did done
go went gone
come came come
become became become
eat ate eaten
drink drank drunk
read read read
write wrote written
buy bought bought
sell sold sold
wear wore worn
put put put
take took taken
see saw seen
hear heard heard
find found found
lose lost lost
forget forgot forgotten
leave left left
break broke broken
hide hid hidden
give gave given
lend lent lent
send sent sent
bring brought brought
say said said
tell told told
speak spoke spoken
know knew known
meet met met
understand understood understood
teach taught taught
sing sang sung
swim swam swum
run ran run
sleep slept slept
fall fell fallen
get got gotten
drive drove driven
cut cut cut
choose chose chosen
begin began begun
pay paid paid
cost cost cost
win won won
think thought thought
wake woke woken
make made made
keep kept kept
throw threw thrown
draw drew drawn
feel felt felt
hold held held
build built built
catch caught caught
ride rode ridden
feed fed fed
lie lied lied
spend spent spent
steal stole stolen
light lit lit
""".strip().splitlines()}

DOUBLING = frozenset("stop plan swim run put cut get win hug shop jog forget begin".split())
VOWELS = "aeiou"


def _split(verb):
    head, _, tail = verb.partition(" ")
    return head, (" " + tail if tail else "")


def third(verb):
    """Third person singular present."""
    head, tail = _split(verb)
    if head in ("be", "have", "do", "go"):
        return {"be": "is", "have": "has", "do": "does", "go": "goes"}[head] + tail
    if re.search(r"(s|x|z|ch|sh)$", head):
        return head + "es" + tail
    if head.endswith("y") and head[-2] not in VOWELS:
        return head[:-1] + "ies" + tail
    return head + "s" + tail


def _regular_past(head):
    if head.endswith("e"):
        return head + "d"
    if head.endswith("y") and head[-2] not in VOWELS:
        return head[:-1] + "ied"
    if head in DOUBLING:
        return head + head[-1] + "ed"
    return head + "ed"


def past(verb, plural=False):
    head, tail = _split(verb)
    if head == "be":
        return ("were" if plural else "was") + tail
    return (IRREGULAR[head][0] if head in IRREGULAR else _regular_past(head)) + tail


def participle(verb):
    head, tail = _split(verb)
    return (IRREGULAR[head][1] if head in IRREGULAR else _regular_past(head)) + tail


def ing(verb):
    head, tail = _split(verb)
    if head == "lie":
        return "lying" + tail
    if head in DOUBLING:
        return head + head[-1] + "ing" + tail
    if head.endswith("e") and not head.endswith("ee") and head != "be":
        head = head[:-1]
    return head + "ing" + tail


def plural(noun):
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in VOWELS:
        return noun[:-1] + "ies"
    if noun.endswith("fe"):
        return noun[:-2] + "ves"
    return noun + "s"


@functools.lru_cache(maxsize=None)
def article(text):
    """a or an, by sound rather than by letter."""
    word = text.split(" ")[0].lower()
    if re.match(r"(hour|honest)", word):
        return "an " + text
    if re.match(r"(uni|use|euro|one|eu)", word):
        return "a " + text
    return ("an " if word[0] in VOWELS else "a ") + text


COMPARISON = {"good": ("better", "best"), "bad": ("worse", "worst"), "quiet": ("quieter", "quietest"),
              "simple": ("simpler", "simplest"), "narrow": ("narrower", "narrowest"),
              "well": ("better", "best"), "shy": ("shyer", "shyest")}
LONG = frozenset("tired bored useful fragile modern patient polite famous jealous proud square closed "
                 "broken lost ripe spoiled salty".split())


def compare(adjective):
    """Comparative and superlative, without « the »."""
    if adjective in COMPARISON:
        return COMPARISON[adjective]
    syllables = len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", adjective)))
    short = syllables <= 1 or (syllables == 2 and adjective.endswith("y"))
    if not short or adjective in LONG:
        return "more " + adjective, "most " + adjective
    if adjective.endswith("e"):
        stem = adjective[:-1]
    elif adjective.endswith("y"):
        stem = adjective[:-1] + "i"
    elif re.search(r"[^aeiou][aeiou][bdgnt]$", adjective):
        stem = adjective + adjective[-1]
    else:
        stem = adjective
    return stem + "er", stem + "est"


def less(adjective):
    """(words before the other term, whether the verb is negated): isn't as big as, is less curious than."""
    if compare(adjective)[0].startswith("more "):
        return "less " + adjective + " than", False
    return "as " + adjective + " as", True


# --- finite clauses --------------------------------------------------------------------------------

BE = ("am", "are", "is", "are", "are", "are")
HAVE = ("have", "have", "has", "have", "have", "have")
AUXILIARIES = frozenset("am are is was were will would can could must should".split())
CONTRACTED = {"am": "am not", "will": "won't", "can": "can't"}
PRONOUNS = frozenset("I you he she it we they that there".split())


@functools.lru_cache(maxsize=None)
def verb_group(verb, tense, person):
    """(finite word, remaining words, finite word is an auxiliary). person: 0 (I) to 5 (they)."""
    be = BE[person]
    was = "was" if person in (0, 2) else "were"
    if tense == "pres":
        if verb.split()[0] == "be":
            return be, verb[3:], True
        return (third(verb) if person == 2 else verb), "", False
    if tense == "past":
        if verb.split()[0] == "be":
            return was, verb[3:], True
        return past(verb), "", False
    if tense == "used":
        return "used", "to " + verb, False
    table = {"prog": (be, ing(verb)), "pastprog": (was, ing(verb)), "going": (be, "going to " + verb),
             "perf": (HAVE[person], participle(verb)), "perfprog": (HAVE[person], "been " + ing(verb)),
             "pluperf": ("had", participle(verb))}
    if tense in table:
        return table[tense] + (True,)
    if tense in AUXILIARIES:
        return tense, verb, True
    raise ValueError("unknown tense " + tense)


def negate(auxiliary):
    return CONTRACTED.get(auxiliary) or auxiliary + "n't"


def clause(subject, person, verb, tense, rest="", neg=False, adverb="", question=False):
    """A finite clause. adverb goes in the middle (often, never, already); question inverts."""
    finite, tail, auxiliary = verb_group(verb, tense, person)
    if (neg or question) and not auxiliary:
        support = {"past": "did", "used": "did"}.get(tense) or ("does" if person == 2 else "do")
        tail = "use " + tail if tense == "used" else verb
        finite, auxiliary = support, True
    if question:
        # « am I not » keeps its parts; every other negative question contracts (isn't she).
        finite = negate(finite) if neg and finite != "am" else finite
        words = [finite, subject, adverb, tail, rest]
    elif neg:
        words = [subject, negate(finite), adverb, tail, rest]
    elif auxiliary:
        words = [subject, finite, adverb, tail, rest]
    else:
        words = [subject, adverb, finite, tail, rest]
    text = " ".join(w for w in words if w)
    if not question and subject in PRONOUNS:
        text = re.sub(r"^(I) am\b", r"\1'm", text)
        text = re.sub(r"^(he|she|it|that|there) is\b", r"\1's", text)
        text = re.sub(r"^(you|we|they) are\b", r"\1're", text)
    return text
