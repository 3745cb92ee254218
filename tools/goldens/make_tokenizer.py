"""Golden files for data/tokenizer: two models trained on data/everyday, and the token ids that the `sentencepiece`
package gives for sentences and for odd Unicode. Writes tests/golden/tokenizer."""

import io
import json
import random
import pathlib

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/golden/tokenizer"

ODD = [
    "", " ", "   two  spaces  ", "tab\there", "l'été à Noël, d'où ?", "« guillemets »", "\u00a0narrow\u202fspaces\u2009",
    "emoji 🙂👩‍👩‍👧", "漢字かな交じり文", "e\u0301 combining", "ﬁ ligature ½ ①", "Ω≈ç√∫", "<s> </s> <sep> <unk>", "<0x41>",
    "a" * 300, "\u200bzero\u200bwidth", "ABC abc 123 ١٢٣", "👍🏽", "\ufeffbom", "line\u2028separator", "🇫🇷",
]


def sentences():
    lines = []
    for name in ("natural-train.tsv", "train.tsv"):
        for line in (ROOT / "data/everyday" / name).read_text(encoding="utf-8").splitlines():
            lines.extend(line.split("\t"))
    return lines


def random_text(rng):
    ranges = [(0x20, 0x7E), (0xC0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x2000, 0x206F), (0x4E00, 0x4E40), (0x1F600, 0x1F64F)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 40)))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    lines = sentences()
    texts = ODD + rng.sample(lines, 120) + [random_text(rng) for _ in range(120)]
    for kind in ("bpe", "unigram"):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(rng.sample(lines, 6000)), model_writer=model, model_type=kind, vocab_size=600,
            byte_fallback=True, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, control_symbols=["<sep>"], minloglevel=2)
        (OUT / f"{kind}.model").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        rows = []
        for text in texts:
            ids = processor.encode(text)
            rows.append({"text": text, "ids": ids, "decoded": processor.decode(ids)})
        (OUT / f"{kind}.json").write_text(json.dumps(rows, ensure_ascii=True, indent=0) + "\n", encoding="utf-8")
        print(f"{kind}: {len(rows)} texts")


if __name__ == "__main__":
    main()
