"""The prompt of `calque translate` on a terminal: typed into as a person does, through a pseudo-terminal."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALQUE = os.environ.get("CALQUE", str(ROOT / "build/calque"))


class Terminal:
    """A program on a pseudo-terminal of 80 columns."""

    def __init__(self, words, folder):
        environment = {**os.environ, "TERM": "xterm", "HOME": str(folder), "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
        environment.pop("XDG_STATE_HOME", None)
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(words[0], words, environment)

    def read_until(self, pattern, seconds=20):
        """All output up to `pattern`, without escape sequences."""
        text, end = "", time.time() + seconds
        while time.time() < end:
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    text += os.read(self.file, 65536).decode("utf-8", "replace")
                except OSError:
                    break
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", "", text)
            if re.search(pattern, plain):
                return plain
        raise AssertionError(f"{pattern!r} did not appear in {text!r}")

    def type(self, text):
        time.sleep(0.2)  # the prompt is shown just before the terminal is ready for single keys
        os.write(self.file, text.encode())

    def exit_code(self, seconds=20):
        """Reads what is left, so that the program does not wait for its terminal, until it ends."""
        end = time.time() + seconds
        while time.time() < end:
            if select.select([self.file], [], [], 0.05)[0]:
                try:
                    os.read(self.file, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        raise AssertionError("the prompt did not end")


class Prompt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        for run, size in (("one", "tiny"), ("a-second-run-with-quite-a-long-name-for-a-label", "tiny")):
            subprocess.run([CALQUE, "-q", "train", str(ROOT / "configs/demo.yaml"), f"run={run}", f"model.size={size}",
                            "train.steps=60", "train.warmup_steps=5", "train.validate_every=0"],
                           cwd=cls.folder, check=True, timeout=200)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def start(self):
        terminal = Terminal([CALQUE, "translate", "one"], self.folder)
        terminal.read_until("fr> $")
        return terminal

    def test_translates_as_the_filter_does(self):
        expected = subprocess.run([CALQUE, "-q", "translate", "one"], input="Le chat dort.\n", cwd=self.folder, text=True,
                                  capture_output=True, check=True).stdout.strip()
        terminal = self.start()
        terminal.type("Le chat dort.\n")
        shown = " ".join(terminal.read_until(r"\n[\s\S]*" + re.escape(expected.split()[-1]) + r"[\s\S]*\nfr> $").split())
        self.assertIn(" ".join(expected.split()), shown)
        terminal.type(":quit\n")
        self.assertEqual(terminal.exit_code(), 0)

    def test_survives_mistakes_and_goes_on(self):
        terminal = self.start()
        for line, answer in ((":nonsense", "no such command"), (":beam many", "needs a number"), (":attention", "nothing has been"),
                             (":set beeam 3", "did you mean beam"), (":set beam 0", "too small"), (":model none", "no such run"),
                             (":nbest 6", "6 best translations, beam 6"), (":nbest 1", "1 best translations, beam 4"),
                             (":set length_penalty 1.5", "length_penalty 1.5"), ("Bonjour.", ""),
                             (":attention", "Bonjour"), (":compare a-second-run-with-quite-a-long-name-for-a-label", "comparing"),
                             ("Merci.", "a-second-run"), (":model a-second-run-with-quite-a-long-name-for-a-label", "parameters"),
                             (":attention", "nothing has been"), (":save out.tsv", "written")):
            terminal.type(line + "\n")
            terminal.read_until(answer + r"[\s\S]*fr> $")
        terminal.type(":quit\n")
        self.assertEqual(terminal.exit_code(), 0)
        self.assertEqual(len((self.folder / "out.tsv").read_text(encoding="utf-8").splitlines()), 2)

    def test_control_c_clears_the_line(self):
        terminal = self.start()
        terminal.type("half a line")
        terminal.read_until("half a line")
        terminal.type("\x03")
        terminal.read_until(r"\^C\nfr> $")
        terminal.type(":scores\n")
        terminal.read_until("showing scores")
        terminal.type("\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_history_is_kept(self):
        terminal = self.start()
        terminal.type(":set seed 77\n")
        terminal.read_until(r"seed 77[\s\S]*fr> $")
        os.kill(terminal.pid, 15)
        terminal.exit_code()
        again = self.start()
        again.type("\x1b[A")
        again.read_until(":set seed 77")
        again.type("\n")
        again.read_until(r"seed 77[\s\S]*fr> $")
        again.type("\x04")
        self.assertEqual(again.exit_code(), 0)


if __name__ == "__main__":
    unittest.main()
