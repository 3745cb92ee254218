"""The commands that write files, beside training: what is there before, what they write, and what must hold after one was
killed or failed: under final names there is what was there before or the new result, and the same command works."""

import json
import shlex
import shutil

from lab import ROOT, Trial, Wrong, digest, timeless, weights

TRAINED = "cp -a ../trained/runs ."  # a run `r` of cached.yaml, done


class Command:
    def __init__(self, name, words, result, prepare="", refuses=False, ignored=r"$^"):
        self.name, self.words, self.result, self.before_it = name, words.split(), result, prepare
        self.refuses = refuses  # to run again where its result is already
        self.ignored = ignored  # files that change with every run

    def prepare(self, trial):
        if self.before_it:
            trial.shell(self.before_it)

    def found(self, trial):
        return digest(trial / self.result, self.ignored)

    def learn(self, lab):
        """Runs it undisturbed, once."""
        if hasattr(self, "after"):
            return
        trial = Trial(lab, "learn-" + "-".join(shlex.split(self.name)).replace("/", ""))
        self.prepare(trial)
        self.before = self.found(trial)
        self.operations = trial.operations(*self.words)
        self.after = self.found(trial)
        self.see_after(trial)
        trial.remove()

    def see_after(self, trial):
        """What else an undisturbed command gives."""

    def check_left(self, trial):
        """After a fault: nothing but old and new results under final names."""
        for name, hash in self.found(trial).items():
            if hash not in (self.before.get(name), self.after.get(name)):
                raise Wrong(f"{self.name}: {self.result}/{name} is neither the old nor the new one")
        for name in self.before.keys() & self.after.keys() - self.found(trial).keys():
            raise Wrong(f"{self.name}: {self.result}/{name} is gone")

    def check_again(self, trial):
        """The same command now works and gives the undisturbed result."""
        complete = self.found(trial) == self.after
        outcome = trial.calque(*self.words)
        if not (outcome.code == 0 or (self.refuses and complete and outcome.code == 2)):
            raise Wrong(f"{self.name}: the same command again: exit {outcome.code}: {outcome.said}")
        if self.found(trial) != self.after:
            raise Wrong(f"{self.name}: the same command again gives another result in {self.result}")


class Fresh(Command):
    """train --fresh over a run: what is left is the old run or the new one, never a mixture."""

    def see_after(self, trial):
        self.new = weights(trial / "runs/r/checkpoints/last")
        self.earlier = weights(trial / "runs/r/checkpoints/step-4")

    def check_left(self, trial):
        if not (trial / "runs/r/config.yaml").exists():
            return
        old = weights(trial.lab.folder / "trained/runs/r/checkpoints/last")
        trial.shell("cp -a runs kept")
        trial.done("resume", "r")
        seed = 2 if "seed: 2" in (trial / "runs/r/config.yaml").read_text() else 1
        found = weights(trial / "runs/r/checkpoints/last")
        if seed == 2 and found == self.earlier:
            raise Wrong(f"{self.name}: resumed and done, but checkpoints/last has other weights: those of step 4")
        if found != (self.new if seed == 2 else old):
            raise Wrong(f"{self.name}: what is left is resumed to a mixture of the old run and the new one")
        trial.shell("rm -r runs && mv kept runs")

    def check_again(self, trial):
        trial.done(*self.words)
        if weights(trial / "runs/r/checkpoints/last") != self.new:
            raise Wrong(f"{self.name}: the same command again gives other weights")


class Evaluate(Command):
    """evaluate with a beam of 3, where the evaluation with a beam of 1 is stored."""

    before_words = "evaluate r --json --threads 1 --beam 1".split()

    def prepare(self, trial):
        trial.shell(TRAINED)
        self.stored = self.scores(trial.done(*self.before_words))

    @staticmethod
    def scores(outcome):
        return timeless(json.loads(outcome.out))

    def see_after(self, trial):
        self.new = self.scores(trial.done(*self.words))

    def check_left(self, trial):
        trial.shell("cp -a runs kept")
        if self.scores(trial.done(*self.before_words)) != self.stored:
            raise Wrong(f"{self.name}: the evaluation that was stored before now has other scores")
        trial.shell("rm -r runs && mv kept runs")

    def check_again(self, trial):
        if self.scores(trial.done(*self.words)) != self.new:
            raise Wrong(f"{self.name}: the same command again gives other scores")


def prepare_commands(lab):
    """The commands and their inputs, which lie in the lab's folder."""
    if lab.commands:
        return lab.commands
    shutil.copytree(ROOT / "tests/golden/models/llama", lab.folder / "hf", dirs_exist_ok=True)
    sources = [line.split("\t")[0] for line in (lab.folder / "data/valid.tsv").read_text().splitlines()]
    (lab.folder / "sources.txt").write_text("\n".join(sources) + "\n")
    Trial(lab, "trained").done("-q", "train", "../cached.yaml", "run=r")
    lab.commands = [
        Command("import", "import ../hf out/model", "out", refuses=True),
        Command("export --format hf", "export r out/model --causal --format hf", "out", TRAINED, refuses=True),
        Command("export --format gguf", "export r out/model.gguf --causal", "out", TRAINED, refuses=True),
        Command("tokenizer train", "tokenizer train -o out/a.model --no-nfkc --vocabulary 340 ../data/train.tsv", "out",
                "mkdir out && cp ../tokenizer.model out/a.model"),
        Command("data batches (makes the cache)", "data batches ../cached.yaml", "runs/.cache"),
        Command("translate -o", "translate r -o out/a.txt --threads 1 --beam 1 ../sources.txt", "out",
                TRAINED + " && mkdir out && echo before >out/a.txt"),
        Command("compare --report", "compare r ../sources.txt --threads 1 --beam 1 --report out/report.html", "out",
                TRAINED + " && mkdir out && echo before >out/report.html"),
        Command("resume of a run that is done (report, summary)", "resume r", "runs/r", TRAINED,
                ignored=r"^(log\.txt|\.lock)$"),
        Command("runs remove", "runs remove r", "runs/r", TRAINED, refuses=True),
        Evaluate("evaluate", "evaluate r --json --threads 1 --beam 3", "runs/r/evaluations"),
        Fresh("train --fresh", "train ../cached.yaml run=r seed=2 --fresh", "runs/r", TRAINED),
    ]
    return lab.commands
