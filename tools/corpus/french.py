"""French morphology: elision, conjugation, agreement, plurals and determiners.

Everything is a pure function of strings; the words themselves live in the lexicon modules.
"""

import functools
import re

from .french_verbs import IRREGULAR

PERSONS = ("je", "tu", "il", "nous", "vous", "ils")
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")

# Words that block elision although they start with h, or with a vowel letter.
ASPIRATED = frozenset(
    "haricot haricots hamster hamsters haut haute hauts hautes héros hibou hiboux hockey "
    "huit huitième hors hasard honte hanche hauteur onze onzième oui yaourt yaourts yoga".split())

ELIDING = {"je": "j'", "me": "m'", "te": "t'", "se": "s'", "le": "l'", "la": "l'", "ne": "n'",
           "de": "d'", "que": "qu'", "jusque": "jusqu'", "lorsque": "lorsqu'", "puisque": "puisqu'"}

MAY_ELIDE = frozenset(ELIDING) | {"ce", "si"}

VOWELS = "aeiouyàâäéèêëîïôöùûüœæ"


@functools.lru_cache(maxsize=None)
def starts_with_vowel(text):
    """True when a preceding le, de, je... must be elided before this text."""
    if not text or text[0].lower() not in VOWELS + "h":
        return False        # most words stop here, without the cost of the split
    return re.split(r"[ ,.!?'-]", text.lower(), maxsplit=1)[0] not in ASPIRATED


def elide(text):
    """Apply elision over a whole sentence given as words separated by single spaces."""
    words = text.split(" ")
    out = []
    glue = ""
    for word, following in zip(words, words[1:] + [""]):
        lower = word.lower()
        if lower not in MAY_ELIDE:        # nearly every word, so it is decided first
            out.append(glue + word)
            glue = ""
            continue
        short = None
        if lower in ELIDING and starts_with_vowel(following):
            short = ELIDING[lower]
        elif lower == "ce" and re.match(r"(est|était|étaient)\b", following):
            short = "c'"
        elif lower == "si" and following in ("il", "ils"):
            short = "s'"
        if short is None:
            out.append(glue + word)
            glue = ""
        else:
            glue += short[0].upper() + short[1:] if word[0].isupper() else short
    return " ".join(out)


def contract(preposition, phrase):
    """Put « à » or « de » before a noun phrase: au, aux, du, des. Not for object pronouns."""
    table = {"à": ("au ", "aux "), "de": ("du ", "des ")}
    if preposition in table:
        singular, plural = table[preposition]
        if phrase.startswith("le "):
            return singular + phrase[3:]
        if phrase.startswith("les "):
            return plural + phrase[4:]
        # « de » swallows a following partitive or plural article: besoin de + du pain = besoin de pain.
        if preposition == "de":
            for article in ("du ", "des ", "de la ", "de l'"):
                if phrase.startswith(article):
                    return elide("de " + phrase[len(article):])
    return elide(preposition + " " + phrase)


# --- verbs -----------------------------------------------------------------------------------------

IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
SUBJUNCTIVE = ("e", "es", "e", "ions", "iez", "ent")


def bare(verb):
    """Infinitive without its reflexive pronoun."""
    return re.sub(r"^(se |s')", "", verb)


def is_reflexive(verb):
    return verb.startswith(("se ", "s'"))


def _strong_stem(verb):
    """Stem of a regular -er verb before a silent ending (j'achète, j'appelle, je paie)."""
    stem = verb[:-2]
    if re.search(r"(appel|jet)$", stem):
        return stem + stem[-1]
    if stem.endswith("y"):
        return stem[:-1] + "i"
    return re.sub(r"[eé]([bcdfglmnprstv]|tr|gr)$", r"è\1", stem)


def _soft_stem(verb):
    """Stem of a regular -er verb before a or o (mangeons, commençait)."""
    stem = verb[:-2]
    if stem.endswith("g"):
        return stem + "e"
    if stem.endswith("c"):
        return stem[:-1] + "ç"
    return stem


def present(verb):
    """The six present forms."""
    if verb in IRREGULAR:
        return IRREGULAR[verb][0]
    stem = verb[:-2]
    if verb.endswith("er"):
        strong = _strong_stem(verb)
        return (strong + "e", strong + "es", strong + "e", _soft_stem(verb) + "ons", stem + "ez",
                strong + "ent")
    if verb.endswith("ir"):
        return tuple(stem + e for e in ("is", "is", "it", "issons", "issez", "issent"))
    if verb.endswith("re"):
        return tuple(stem + e for e in ("s", "s", "", "ons", "ez", "ent"))
    raise ValueError("cannot conjugate " + verb)


@functools.lru_cache(maxsize=None)
def participle(verb):
    """Past participle, masculine singular."""
    verb = bare(verb)
    if verb in IRREGULAR:
        return IRREGULAR[verb][1]
    ending = {"er": "é", "ir": "i", "re": "u"}[verb[-2:]]
    return verb[:-2] + ending


def _future_stem(verb):
    if verb in IRREGULAR and IRREGULAR[verb][2]:
        return IRREGULAR[verb][2]
    if verb.endswith("er"):
        # é stays in the future (préférerai), while e becomes è and y becomes i.
        if re.search(r"é[a-z]+er$", verb) and not re.search(r"é.*[ey][a-z]?er$", verb):
            return verb
        return _strong_stem(verb) + "er"
    return verb[:-1] if verb.endswith("re") else verb


def _imperfect_stem(verb):
    return "ét" if verb == "être" else present(verb)[3][:-3]


@functools.lru_cache(maxsize=None)
def conjugate(verb, tense, person):
    """One simple form. tense: pres, impf, fut, cond, subj, imp; person: 0 (je) to 5 (ils)."""
    verb = bare(verb)
    if tense == "pres":
        return present(verb)[person]
    if tense == "impf":
        stem = _imperfect_stem(verb)
        ending = IMPERFECT[person]
        if ending.startswith("i"):
            # The spelling change that protects g and c before a is not needed before i.
            stem = re.sub(r"ge$", "g", stem) if verb.endswith("ger") else re.sub(r"ç$", "c", stem)
        return stem + ending
    if tense == "fut":
        return _future_stem(verb) + FUTURE[person]
    if tense == "cond":
        return _future_stem(verb) + IMPERFECT[person]
    if tense == "subj":
        if verb in IRREGULAR and IRREGULAR[verb][3]:
            return IRREGULAR[verb][3][person]
        if person in (3, 4):
            return conjugate(verb, "impf", person)
        return re.sub(r"ent$", "", present(verb)[5]) + SUBJUNCTIVE[person]
    if tense == "imp":
        if verb in ("être", "avoir", "savoir"):
            return {"être": ("", "sois", "", "soyons", "soyez"), "avoir": ("", "aie", "", "ayons", "ayez"),
                    "savoir": ("", "sache", "", "sachons", "sachez")}[verb][person]
        form = present(verb)[person]
        if person == 1 and (form.endswith("es") or verb == "aller"):
            form = form[:-1]
        return form
    raise ValueError("unknown tense " + tense)


def gerund(verb):
    """Present participle, as after « en »."""
    verb = bare(verb)
    special = {"être": "étant", "avoir": "ayant", "savoir": "sachant"}
    return special.get(verb) or present(verb)[3][:-3] + "ant"


def infinitive(verb, person=2, clitics=""):
    """Infinitive with its own pronouns in front: « me lever », « le voir »."""
    own = REFLEXIVE[person] + " " if is_reflexive(verb) else ""
    before = (clitics + " " if clitics else "") + own
    return before + bare(verb)


# --- agreement -------------------------------------------------------------------------------------

BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}


def feminine(adjective):
    """Regular feminine of an adjective; the irregular ones are given in the lexicon."""
    for ending, replacement in (("eux", "euse"), ("er", "ère"), ("if", "ive"), ("el", "elle"),
                                ("en", "enne"), ("on", "onne"), ("eur", "euse")):
        if adjective.endswith(ending):
            return adjective[:-len(ending)] + replacement
    return adjective if adjective.endswith("e") else adjective + "e"


def plural(word):
    """Regular plural of a noun or a masculine adjective."""
    if word[-1] in "sxz":
        return word
    if word.endswith(("eau", "eu")) and word != "bleu":
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    if word in ("bijou", "genou", "hibou", "chou"):
        return word + "x"
    return word + "s"


def agree(adjective, gender, number, fem=None, following=""):
    """Adjective form. number: 's' or 'p'; following: the next word when the adjective precedes it."""
    if fem == "=":
        return adjective
    if gender == "f":
        form = fem or feminine(adjective)
        return form + "s" if number == "p" else form
    if number == "p":
        return plural(adjective)
    if following and adjective in BEFORE_VOWEL and starts_with_vowel(following):
        return BEFORE_VOWEL[adjective]
    return adjective


@functools.lru_cache(maxsize=None)
def agree_participle(form, gender, number):
    """Past participle agreement: regular in every verb once the base form is known."""
    if gender == "f":
        form += "e"
    if number == "p" and not form.endswith("s"):
        form += "s"
    return form


# --- determiners -----------------------------------------------------------------------------------

POSSESSIVE = {"m": ("mon", "ton", "son", "notre", "votre", "leur"),
              "f": ("ma", "ta", "sa", "notre", "votre", "leur"),
              "p": ("mes", "tes", "ses", "nos", "vos", "leurs")}


def possessive(person, gender, number, following):
    if number == "p":
        return POSSESSIVE["p"][person]
    if gender == "f" and starts_with_vowel(following):
        gender = "m"          # mon amie, son histoire
    return POSSESSIVE[gender][person]


@functools.lru_cache(maxsize=None)
def determine(kind, gender, number, core, person=0):
    """Put a determiner before a noun group. kind: def, indef, dem, poss, part, de, or a literal word."""
    fem = gender == "f"
    if kind == "def":
        word = "les" if number == "p" else "la" if fem else "le"
    elif kind == "indef":
        word = "des" if number == "p" else "une" if fem else "un"
    elif kind == "dem":
        word = ("ces" if number == "p" else "cette" if fem
                else "cet" if starts_with_vowel(core) else "ce")
    elif kind == "poss":
        word = possessive(person, gender, number, core)
    elif kind == "part":
        if number == "p":
            word = "des"
        else:
            word = "de la" if fem or starts_with_vowel(core) else "du"
    else:
        word = kind
    return elide(word + " " + core) if word else core
