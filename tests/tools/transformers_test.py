"""What calque saves, `transformers` opens, with the same ids, log-probabilities and translations (tools/goldens/check_transformers.py).
Skipped where transformers and torch are not installed, neither for python3 nor in the environment of tools/make-goldens."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHONS = [str(ROOT / ".deps/goldens/bin/python"), "python3"]


def can_import(python):
    try:
        return subprocess.run([python, "-c", "import torch, transformers"], capture_output=True).returncode == 0
    except OSError:
        return False


def main():
    python = next(filter(can_import, PYTHONS), None)
    if python is None:
        print("transformers and torch are not installed (tools/make-goldens installs them): skipped")
        sys.exit(77)
    models = ["llama", "sliding"] if os.environ.get("CALQUE_SANITIZE") else []  # all of them take too long under a sanitizer
    sys.exit(subprocess.run([python, str(ROOT / "tools/goldens/check_transformers.py"), *models]).returncode)


main()
