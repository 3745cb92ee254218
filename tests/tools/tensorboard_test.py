"""The event files of `train.tensorboard: true` are what the tensorboard package reads. Skipped where it is not installed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("the tensorboard package is not installed: skipped")
    sys.exit(77)


def main():
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "a.yaml"
        config.write_text(
            f"data: {{train: {ROOT}/data/everyday/natural-train.tsv, valid: {ROOT}/data/everyday/natural-test.tsv}}\n"
            f"tokenizer: {{path: {ROOT}/tests/golden/tokenizer/bpe.model}}\nmodel: {{size: tiny}}\n"
            "train: {steps: 20, warmup_steps: 2, log_every: 5, validate_every: 10, tensorboard: true, batch_tokens: 1024}\n")
        subprocess.run([os.environ["CALQUE"], "-q", "train", str(config)], cwd=folder, check=True)
        lines = [json.loads(line) for line in open(f"{folder}/runs/a/metrics.jsonl", encoding="utf-8")]
        events = EventAccumulator(f"{folder}/runs/a/tensorboard")
        events.Reload()
        for tag in ("loss", "learning_rate", "valid_loss"):
            expected = [(line["step"], line[tag]) for line in lines if tag in line]
            found = [(event.step, event.value) for event in events.Scalars(tag)]
            assert len(expected) == len(found) > 0, tag
            for (step, value), (found_step, found_value) in zip(expected, found):
                assert step == found_step and abs(value - found_value) <= 1e-6 * abs(value), (tag, step)
    print("ok")


main()
