"""Compares calque's tokenizers with the originals on many lines: tools/goldens/check_tokenizers.py CHECKPOINT FILE…
The checkpoint's tokenizer file is read by `tokenizers` or `sentencepiece` and by calque; every line must give the same token ids."""

import itertools
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def odd_lines(count):
    rng = random.Random(4)
    ranges = [(0x20, 0x7E), (0xC0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x2010, 0x2027), (0x4E00, 0x4E40), (0x1F600, 0x1F64F)]
    return ["".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 60))) for _ in range(count)]


def lines_of(files):
    """Odd Unicode, and both sides of the files' pairs, equally many of each file: at most 10,000 lines."""
    lines, each = odd_lines(1000), 9000 // max(1, len(files))
    for file in files:
        parts = (part for line in open(file, encoding="utf-8") for part in line.rstrip("\n").split("\t") if part)
        lines += itertools.islice((part for part in parts if "<|" not in part), each)
    return lines


def tokenizer_file(folder):
    return next(folder / name for name in ("tokenizer.model", "tokenizer.json") if (folder / name).exists())


def our_ids(folder, lines):
    said = subprocess.run([str(ROOT / "build/calque"), "tokenizer", "encode", str(tokenizer_file(folder))],
                          input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    return [[int(word) for word in line.split()] for line in said.split("\n")[:len(lines)]]


def main():
    folder, lines = pathlib.Path(sys.argv[1]), lines_of(sys.argv[2:])
    name = tokenizer_file(folder)
    if name.suffix == ".json":
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(name))
        expected = [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
    else:
        import sentencepiece
        expected = sentencepiece.SentencePieceProcessor(model_file=str(name)).encode(lines)
    found = our_ids(folder, lines)
    wrong = [i for i in range(len(lines)) if found[i] != expected[i]]
    for i in wrong[:5]:
        print(repr(lines[i]), found[i], expected[i])
    print(f"{len(lines)} lines, {len(wrong)} different")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
