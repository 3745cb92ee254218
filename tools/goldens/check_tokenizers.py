"""Holds our tokenizers against the originals on many lines: tools/goldens/check_tokenizers.py CHECKPOINT FILE…
The checkpoint's own tokenizer file is read by `tokenizers` or `sentencepiece` and by calque; every line must give the same ids."""

import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def odd_lines(count):
    rng = random.Random(4)
    ranges = [(0x20, 0x7E), (0xC0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x2010, 0x2027), (0x4E00, 0x4E40), (0x1F600, 0x1F64F)]
    return ["".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 60))) for _ in range(count)]


def main():
    folder, files = pathlib.Path(sys.argv[1]), sys.argv[2:]
    lines = odd_lines(1000)
    for file in files:
        for line in open(file, encoding="utf-8"):
            lines += [part for part in line.rstrip("\n").split("\t") if part]
    lines = [line for line in lines if "<|" not in line][:10000]
    name = folder / "tokenizer.json"
    if name.exists():
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(name))
        expected = [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
    else:
        import sentencepiece
        name = folder / "tokenizer.model"
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(name))
        expected = tokenizer.encode(lines)
    said = subprocess.run([str(ROOT / "build/calque"), "tokenizer", "encode", str(name)], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=True).stdout
    found = [[int(word) for word in line.split()] for line in said.split("\n")[:len(lines)]]
    wrong = [i for i in range(len(lines)) if found[i] != expected[i]]
    for i in wrong[:5]:
        print(repr(lines[i]), found[i], expected[i])
    print(f"{len(lines)} lines, {len(wrong)} different")
    sys.exit(1 if wrong else 0)


main()
