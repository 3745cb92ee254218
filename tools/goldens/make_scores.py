"""Golden files for the metrics: scores of `sacrebleu` for random and difficult text, per sentence and per corpus, with its
confidence intervals and paired tests. Writes tests/golden/scores."""

import json
import logging
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/scores"

WORDS = """the a cat dog house river slowly quickly runs eats sees blue green 3 14 1,000 3.5 2024 didn't it's état mère
«bon» (well) well-known U.S.A. e-mail 50% $5 a/b C++ ... … — – ? ! , . ; : 'quoted' "so" [x] {y} naïve Straße ΣΑΣ İstanbul
été e\u0301te\u0301 漢字 かな 🙂 👍🏽 🇫🇷 ½ ² № € £ ° · \u00a0 \u202f \u200b &amp; &quot; &lt;b&gt; <skipped> 10-12 -5 x=y
d'accord aujourd'hui l’eau 1. 2, .5 ,5 5. a. .b""".split(" ")
WORDS = [word for part in WORDS for word in part.split("\n") if word]
NASTY = ["", " ", "\t", ".", "...", "?!", "\u00a0", "\u3000", "a", "A", "  two   spaces ", "🙂", "\u0301", "漢字", "、。", "1,2.3",
         "a" * 400, "\u2028", "\x1c", "\x85", "-", "--", "& ; &", "&amp;amp;", "ß", "İ", "ΑΣ", "ΑΣ.", "Σ", "ǅ", "x" + "\u200d" + "y"]


def random_characters(rng):
    ranges = [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x320), (0x370, 0x3FF), (0x2000, 0x206F), (0x20A0, 0x20BF), (0x4E00, 0x4E20),
              (0x1F600, 0x1F620), (0x660, 0x669), (0x2150, 0x2160), (0x3000, 0x3010)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 40)))


def sentence(rng, longest=25):
    return rng.choice([" ", " ", " ", "  "]).join(rng.choice(WORDS) for _ in range(rng.randint(0, longest)))


def change(rng, text):
    """Drops, inserts and replaces words and moves blocks, so that the result differs from the text as a translation from its reference."""
    words = text.split(" ")
    for _ in range(rng.randint(0, 5)):
        if not words:
            break
        at = rng.randrange(len(words))
        kind = rng.randrange(5)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(at, rng.choice(WORDS))
        elif kind == 2:
            words[at] = rng.choice(WORDS)
        elif kind == 3:
            words[at] = words[at].swapcase()
        else:
            block = words[at:at + rng.randint(1, 5)]
            del words[at:at + len(block)]
            to = rng.randint(0, len(words))
            words[to:to] = block
    return " ".join(words)


def pairs(rng):
    for hypothesis in NASTY:
        for reference in rng.sample(NASTY, 6):
            yield hypothesis, reference
    for _ in range(900):
        reference = sentence(rng)
        yield change(rng, reference), reference
    for _ in range(200):
        yield sentence(rng), sentence(rng)
    for _ in range(300):
        text = random_characters(rng)
        yield change(rng, text), text
    for _ in range(6):
        reference = sentence(rng, 160)
        yield change(rng, reference), reference
    yield sentence(rng, 3), sentence(rng, 120)
    yield sentence(rng, 120), sentence(rng, 3)
    few = ["a", "b", "c"]
    for _ in range(40):  # few different words, so that TER has many shifts to try
        yield (" ".join(rng.choice(few) for _ in range(rng.randint(1, 40))),
               " ".join(rng.choice(few) for _ in range(rng.randint(1, 40))))


METRICS = {
    "bleu": lambda: BLEU(effective_order=True),
    "bleu_intl": lambda: BLEU(tokenize="intl", effective_order=True),
    "bleu_char": lambda: BLEU(tokenize="char", effective_order=True),
    "bleu_none_lc": lambda: BLEU(tokenize="none", lowercase=True, effective_order=True),
    "bleu_floor": lambda: BLEU(smooth_method="floor"),
    "bleu_addk": lambda: BLEU(smooth_method="add-k", lowercase=True),
    "chrf": lambda: CHRF(),
    "chrf_lc": lambda: CHRF(lowercase=True),
    "chrfpp": lambda: CHRF(word_order=2),
    "ter": lambda: TER(),
    "ter_case": lambda: TER(case_sensitive=True),
}


def result(score, metric):
    low_high = [score._mean, score._ci]
    return {"score": float(score.score), "text": score.format(signature=str(metric.get_signature())), "mean": float(low_high[0]), "ci": float(low_high[1])}


def main():
    logging.disable(logging.WARNING)
    OUT.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    cases = list(pairs(rng))
    metrics = {name: make() for name, make in METRICS.items()}
    with open(OUT / "sentences.jsonl", "w", encoding="utf-8") as out:
        for hypothesis, reference in cases:
            scores = [round(metric.sentence_score(hypothesis, [reference]).score, 6) for metric in metrics.values()]
            out.write(json.dumps([hypothesis, reference, *scores], ensure_ascii=False) + "\n")
    hypotheses = [h for h, _ in cases]
    references = [r for _, r in cases]
    second = [change(rng, h) if rng.random() < 0.3 else h for h in hypotheses]
    third = [change(rng, change(rng, r)) for r in references]
    corpus = {"second": second, "third": third, "metrics": list(METRICS), "corpus": {}, "paired": {}}
    plain = {"bleu": BLEU(), "chrf": CHRF(), "chrfpp": CHRF(word_order=2), "ter": TER(), "bleu_intl": BLEU(tokenize="intl")}
    for name, metric in plain.items():
        corpus["corpus"][name] = result(metric.corpus_score(hypotheses, [references], n_bootstrap=1000), metric)
    two = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}
    for name, metric in two.items():
        corpus["corpus"][name + "_two"] = result(metric.corpus_score(hypotheses, [references, third], n_bootstrap=1000), metric)
    for kind in ("bs", "ar"):
        test = PairedTest([("a", hypotheses), ("b", second), ("c", third)],
                          {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}, [references], test_type=kind)
        _, scores = test()
        corpus["paired"][kind] = {name.lower(): [row.p_value for row in rows] for name, rows in scores.items() if name != "System"}
    (OUT / "corpus.json").write_text(json.dumps(corpus, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"tests/golden/scores: {len(cases)} sentences, sacrebleu {sacrebleu.__version__}")


main()
