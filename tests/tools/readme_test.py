"""The README is true: its configuration loads, its commands run, and what it shows is what the program says.

Commands that would train for minutes get a limit of a few steps behind them; `tools/…` are other tests."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CALQUE = os.environ.get("CALQUE", str(ROOT / "build/calque"))
QUICK = ["train.minutes=0", "train.steps=6", "train.warmup_steps=1", "tokenizer.vocabulary=600", "model.size=tiny"]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def run(command, folder):
    words = command.split()
    if words[:2] == ["calque", "train"]:
        words += QUICK
    return subprocess.run([CALQUE] + words[1:], cwd=folder, capture_output=True, text=True, timeout=120)


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        (self.folder / "my").mkdir()
        for split in ("train", "valid", "test"):
            source = "natural-train.tsv" if split == "train" else "natural-test.tsv"
            shutil.copy(ROOT / "data/everyday" / source, self.folder / "my" / f"{split}.tsv")
        for name in ("configs", "data", "checkpoints"):
            (self.folder / name).symlink_to(ROOT / name)
        yaml = [block for block in blocks("yaml") if block.startswith("# my.yaml")]
        self.assertEqual(len(yaml), 1)
        (self.folder / "my.yaml").write_text(yaml[0], encoding="utf-8")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_commands_run(self):
        commands = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
        ran = 0
        for command in filter(None, commands):
            if command.startswith("tools/"):
                self.assertTrue((ROOT / command.split()[0]).exists(), command)
                continue
            result = run(command, self.folder)
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stderr}")
            ran += 1
        self.assertGreaterEqual(ran, 3)

    def test_mistakes_read_as_shown(self):
        shown = 0
        for block in blocks("console"):
            lines = block.splitlines()
            if len(lines) == 2 and lines[1].startswith("error:"):
                words = lines[0].removeprefix("$ ").split()
                result = subprocess.run([CALQUE] + words[1:], cwd=self.folder, capture_output=True, text=True, timeout=60)
                self.assertEqual(result.stderr.strip(), lines[1])
                self.assertEqual(result.returncode, 2)
                shown += 1
        self.assertGreaterEqual(shown, 1)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#]+)\)", README):
            self.assertTrue((ROOT / target).exists(), target)


if __name__ == "__main__":
    unittest.main()
