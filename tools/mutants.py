"""The mutations of tools/mutate: what can be changed in a line of C++, and in which order the mutants of a layer are tried."""

import dataclasses
import random
import re

SOURCE_WEIGHT = 4  # of a line in a source, against 1 in a header: a header's mutant compiles many files

OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%=": "/=",
             "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
PAIRS = [("std::min", "std::max"), ("std::min_element", "std::max_element"), ("std::floor", "std::ceil"),
         ("std::lower_bound", "std::upper_bound"), ("std::any_of", "std::all_of"), ("hn::Min", "hn::Max"),
         ("hn::Add", "hn::Sub"), ("hn::MulAdd", "hn::NegMulAdd"), ("front()", "back()"), ("true", "false")]
WORDS = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}

# Comments, raw strings, strings, characters, preprocessor lines.
OPAQUE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9])'(?:\\.[^'\n]*|[^'\\\n])'"""
                    r"""|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""", re.S | re.M)
DECLARATION = re.compile(r"\b(?:throw|using)\b[^;]*|^[ \t]*template <[^\n]*", re.M)
# Messages, assertions, and calls that cannot change a result.
SKIPPED_CALL = re.compile(r"\b(?:static_assert|assert|TORCH_CHECK|fmt::\w+|log::\w+|fail|refuse|reserve|alignas)\s*(?=\()")
# Binary operators stand between spaces (clang-format), unlike those of templates, pointers and references.
OPERATOR = re.compile(r"(?<=\s)(?:[-+*/%]=?|[<>]=?|[=!]=|&&|\|\|)(?=\s|$)")
WORD = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, WORDS)) + r")(?!\w)")
NUMBER = re.compile(r"(?<![\w.])(?:(0[xX][\da-fA-F]+)|(\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?))([uUlLfF]*)(?![\w.])")
CONDITION = re.compile(r"\b(?:if|while) \(")
RETURN = re.compile(r"\breturn ([^;{}]+);")
HEAD = re.compile(r"(?:else )?(?:if|for|while) (?=\()|else ")  # of a statement on the same line
LVALUE = r"\*?[a-z_][\w:]*(?:(?:\.|->)\w+|\[[^\]]*\]|\([^()]*\))*"
STATEMENT = re.compile(rf"(?!(?:if|for|while|switch|return|else|case|delete)\b.)(?:{LVALUE} (?:[-+*/%|&^]|<<|>>)?= "
                       rf"(?!default|delete).*|{LVALUE}\(.*\)|(?:\+\+|--){LVALUE}|break|continue|return)(?=;$)")


@dataclasses.dataclass
class Mutant:
    layer: str
    file: str  # path from the root
    line: int
    after: str  # the new line
    diff: str
    kind: str


def closing(text, start):
    """Index just after the parenthesis that closes the one at text[start], or -1."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return -1


def mask(text):
    """The text with everything blank that is not to be mutated. Columns and lines stay; strings keep their quotes."""
    def blank(found):
        spaces = re.sub(r"[^\n]", " ", found[0])
        return f'"{spaces[2:]}"' if found[0][0] in "\"'R" else spaces
    marked = [re.search(r"//\s*mutate:", line) for line in text.split("\n")]
    text = DECLARATION.sub(blank, OPAQUE.sub(blank, text))
    for found in list(SKIPPED_CALL.finditer(text)):
        end = max(closing(text, found.end()), found.end())
        text = text[:found.end()] + re.sub(r"[^\n]", " ", text[found.end():end]) + text[end:]
    return "\n".join("" if mark else line for mark, line in zip(marked, text.split("\n")))


def other_numbers(hexadecimal, number, suffix):
    """What a literal may become: n + 1 or n - 1; twice a fraction."""
    if hexadecimal:
        return [hex(int(hexadecimal, 16) + 1) + suffix]
    if re.search(r"[.eE]", number):
        return [repr(2 * float(number.replace("'", "")) or 1.0) + suffix]
    value = int(number.replace("'", ""))
    return [f"{other}{suffix}" for other in (value + 1, value - 1) if other >= 0]


def mutations(line, previous):
    """All mutations of a masked line, as (kind, begin, end, replacement). `previous` is the code before it."""
    found = []
    for match in OPERATOR.finditer(line):
        if '"' not in (line[match.start() - 2:match.start() - 1], line[match.end() + 1:match.end() + 2]):  # joins texts or paths
            found.append(("operator", *match.span(), OPERATORS[match[0]]))
    for match in WORD.finditer(line):
        found.append(("word", *match.span(), WORDS[match[0]]))
    for match in NUMBER.finditer(line):
        if not re.search(r"\)[\w ]* = $", line[:match.start()]):  # a pure virtual function
            found += [("constant", *match.span(), other) for other in other_numbers(*match.groups())]
    for match in re.finditer(r"\.size\(\)", line):
        found.append(("off by one", match.end(), match.end(), " - 1"))
    for match in CONDITION.finditer(line):
        end = closing(line, match.end() - 1) - 1
        if end > 0 and not re.search(r" = |;", line[match.end():end]):
            found.append(("condition", match.end(), end, "!"))
    for match in RETURN.finditer(line):
        boolean = re.search(r" (?:[<>]=?|[=!]=|&&|\|\|) ", match[1]) and "?" not in match[1]
        if re.search(r"& \w+\(", line[:match.start()]):  # a reference to nothing says nothing
            continue
        if match[1].count("(") == match[1].count(")") and not re.search(r"^(?:true|false|[\w:]*null\w*|0|fmt::.*)$", match[1]):
            found.append(("return", *match.span(1), "!" if boolean else "{}"))
    if re.search(r"(?:^|[;{}:)]|\belse)$", previous) and line.count("(") == line.count(")"):
        code = line.rstrip()
        begin = len(code) - len(code.lstrip())
        while head := HEAD.match(code, begin):
            begin = closing(code, head.end()) + 1 if code[head.end()] == "(" else head.end()
        if match := STATEMENT.match(code, begin):
            found.append(("statement", *match.span(), ""))
    return found


def of_file(layer, file, text, generator):
    """One mutant for each line that has any, in random order."""
    mutants, previous = [], ""
    for number, (line, masked) in enumerate(zip(text.split("\n"), mask(text).split("\n")), 1):
        choices = mutations(masked, previous)
        previous = masked.strip() or previous
        if choices:
            kind = generator.choice(sorted({choice[0] for choice in choices}))
            _, begin, end, new = generator.choice([choice for choice in choices if choice[0] == kind])
            old, diff = line[begin:end], f"{{+{new}+}}" if new else ""
            if new == "!":
                new, diff = f"!({old})", f"{{+!(+}}{old}{{+)+}}"
            elif old:
                diff = f"[-{old}-]" + diff
            mutants.append(Mutant(layer, file, number, line[:begin] + new + line[end:],
                                  (line[:begin] + diff + line[end:]).strip(), kind))
    generator.shuffle(mutants)
    return mutants


def of_layer(root, layer, seed):
    """All mutants of a layer in the order to try them. Any first part of it is spread over the files by their lines."""
    placed = []
    for pattern in (f"src/{layer}/*.cpp", f"src/{layer}/*.h", f"include/calque/{layer}/*.h"):
        for path in sorted(root.glob(pattern)):
            file, text = str(path.relative_to(root)), path.read_text(encoding="utf-8")
            generator = random.Random(f"{seed} {file}")
            weight = text.count("\n") * (SOURCE_WEIGHT if path.suffix == ".cpp" else 1)
            for i, mutant in enumerate(of_file(layer, file, text, generator)):
                placed.append(((i + generator.random()) / weight, file, mutant))
    return [mutant for _, _, mutant in sorted(placed, key=lambda entry: entry[:2])]
