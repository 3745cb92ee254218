"""The torture test's laboratory: a temporary folder with small configurations, runs of calque with the faults of faults.c
(killed, slowed down, failing), what an undisturbed run gives, and the table of what happened."""

import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPORARY = re.compile(r"(^|/)\.([^/]*\.(tmp|old)|deleted-[^/]*)(/|$)|\.tmp-[\da-f-]+$")  # being written or deleted

SCRATCH = """\
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/valid.tsv, max_tokens: 80}
tokenizer: {path: tokenizer.model, sampling: 0.1}
model: {layers: 1, hidden_size: 16, heads: 2, mlp_size: 24, context_length: 96, dropout: 0.1}
train: {batch_tokens: 256, steps: 60, warmup_steps: 2, learning_rate: 3e-3, checkpoint_every: 5, validate_every: 15,
        validate_sentences: 2, log_every: 5, threads: 1, ema_decay: 0.9, keep_checkpoints: 2, tensorboard: true}
"""
LORA = """\
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/valid.tsv, max_tokens: 80}
model: {init_from: base, lora: {rank: 2, dropout: 0.1}}
train: {batch_tokens: 256, steps: 40, warmup_steps: 2, learning_rate: 3e-3, checkpoint_every: 5, validate_every: 10,
        validate_sentences: 0, log_every: 5, threads: 1, keep_checkpoints: 2}
"""
# The tokenizer is trained on the corpus, so that the cache keeps one.
CACHED = """\
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/valid.tsv, max_tokens: 80}
tokenizer: {vocabulary: 330, nfkc: false}
model: {layers: 1, hidden_size: 8, heads: 1, mlp_size: 8, context_length: 96}
train: {batch_tokens: 256, steps: 8, warmup_steps: 2, checkpoint_every: 4, validate_every: 4, validate_sentences: 0,
        log_every: 4, threads: 1}
"""
# A short run of `scratch` or `lora`. When step-6 is written, step-4, the best until then, is deleted.
RUN = ("train.steps=8", "train.checkpoint_every=2", "train.validate_every=4", "train.keep_checkpoints=1",
       "train.log_every=2")


class Wrong(Exception):
    """Something that must not happen."""


@dataclasses.dataclass
class Outcome:
    code: int  # negative: ended by this signal
    out: str
    err: str

    @property
    def said(self):
        return " / ".join(self.err.strip().splitlines()[-4:])[:600]


@dataclasses.dataclass
class Reference:
    """What an undisturbed run gives."""
    steps: dict  # step -> sha256 of the weights
    last: str
    best: str
    metrics: list
    seconds: float
    operations: list  # of faults.c, in order


def sha256(file):
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()


def weights(checkpoint):
    """The sha256 of a checkpoint's weights: of its adapters, or of the model."""
    for name in ("adapters.safetensors", "model.safetensors"):
        if (checkpoint / name).exists():
            return sha256(checkpoint / name)
    raise Wrong(f"{checkpoint.name}: no weights")


def digest(folder, ignored=r"$^"):
    """Name -> sha256 of all the files below a folder but temporary ones. Whole pages count as equal: they show times."""
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
    found = {name: sha256(file) for name, file in files.items()
             if not TEMPORARY.search(name) and not re.search(ignored, name)}
    return {name: "a page" if files[name].read_bytes().rstrip().endswith(b"</html>") else hash
            for name, hash in found.items()}


def read_trace(file):
    """The operations that faults.c recorded: (kind, number, path, other path, bytes)."""
    data, at, operations = pathlib.Path(file).read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        kind, number, size, a, b = data[at:end].decode().split("\t")
        at = end + 1 + int(size)
        operations.append((kind, int(number), a, b, data[end + 1 : at]))
    return operations


def timeless(line):
    """A line of metrics or a result without what depends on the clock."""
    clock = ("seconds", "per_second", "share_of_limit", "minutes", "checkpoint")
    return {key: value for key, value in line.items() if not key.endswith(clock)}


def metrics(run):
    return [timeless(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]


class Trial:
    """A folder of its own, the commands run in it, and again.sh, which repeats them."""

    def __init__(self, lab, name):
        self.lab, self.name, self.folder = lab, name, lab.folder / name
        self.folder.mkdir()
        self.commands = []

    def __truediv__(self, name):
        return self.folder / name

    def note(self, command):
        self.commands.append(command)

    def shell(self, command):
        self.note(command)
        subprocess.run(["bash", "-c", command], cwd=self.folder, check=True)

    def start(self, words, faults=None, kill_after=None, background=False):
        """Starts calque; returns the process. faults: keys of faults.c without FAULTS_."""
        environment = dict(self.lab.environment)
        shown = ""
        if faults:
            mine = {"LD_PRELOAD": str(self.lab.library), "FAULTS_ROOT": str(self.folder)}
            mine.update({"FAULTS_" + key: str(value) for key, value in faults.items()})
            environment.update(mine)
            mine["FAULTS_ROOT"] = "$PWD"
            shown = "env " + " ".join(f'{key}="{value}"' for key, value in mine.items()) + " "
        if kill_after is not None:
            shown += f"timeout -s KILL {kill_after:.3f} "
        self.note(shown + '"$CALQUE" ' + shlex.join(map(str, words)) + (" &\nsleep 0.7" if background else ""))
        return subprocess.Popen([self.lab.calque, *map(str, words)], cwd=self.folder, env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def calque(self, *words, faults=None, kill_after=None, patience=180):
        process = self.start(words, faults, kill_after)
        try:
            out, err = process.communicate(timeout=patience if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            if kill_after is None:
                said = Outcome(process.returncode, "", err.decode(errors="replace")).said
                raise Wrong(f"calque {shlex.join(map(str, words))}: not done after {patience} seconds: {said}") from None
        return Outcome(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def done(self, *words):
        """Runs calque undisturbed, which must work."""
        outcome = self.calque(*words)
        if outcome.code != 0:
            raise Wrong(f"calque {shlex.join(map(str, words))}: exit {outcome.code}: {outcome.said}")
        return outcome

    def operations(self, *words):
        """The operations of an undisturbed command."""
        trace = self.folder / "trace"
        outcome = self.calque(*words, faults={"TRACE": trace})
        if outcome.code != 0:
            raise Wrong(f"calque {shlex.join(map(str, words))}: exit {outcome.code}: {outcome.said}")
        operations = read_trace(trace)
        trace.unlink()
        return operations

    def write_again(self):
        script = ["#!/bin/bash", f"# {self.name}: repeats what was done, in a new folder.",
                  f"export CALQUE=${{CALQUE:-{self.lab.calque}}}"]
        script += [f"export {key}={value}" for key, value in self.lab.settings.items()]
        script += [f"cd $(mktemp -d {self.lab.folder}/again-XXXX) && pwd && set -x", *self.commands]
        (self.folder / "again.sh").write_text("\n".join(script) + "\n")

    def remove(self):
        shutil.rmtree(self.folder)


class Lab:
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

    def __init__(self, calque, seed, count, short, minutes):
        self.calque, self.seed, self.count, self.short = str(calque), seed, count, short
        self.deadline = time.monotonic() + minutes * 60
        self.out_of_time = False
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="torture-"))
        self.library = self.folder / "faults.so"
        self.environment = {**os.environ, **self.settings}
        self.rows, self.failures = 0, []
        self.lock = threading.Lock()
        self.references, self.commands = {}, []
        self.prepare()

    def prepare(self):
        source = ROOT / "tests/torture/faults.c"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", self.library, source, "-ldl", "-lpthread"], check=True)
        everyday = ROOT / "data/everyday"
        (self.folder / "data").mkdir()
        for name, file, count in (("train", "natural-train.tsv", 60), ("valid", "natural-test.tsv", 8)):
            lines = [line for line in (everyday / file).read_text().splitlines() if 24 < len(line) < 60]
            (self.folder / "data" / f"{name}.tsv").write_text("\n".join(lines[:count]) + "\n")
        shutil.copytree(ROOT / "checkpoints/base", self.folder / "base")
        for name, text in (("scratch", SCRATCH), ("lora", LORA), ("cached", CACHED)):
            (self.folder / f"{name}.yaml").write_text(text)
        trial = Trial(self, "tokenizer")
        trial.done("-q", "tokenizer", "train", "-o", "../tokenizer.model", "--no-nfkc", "--vocabulary", "330",
                   "../data/train.tsv")
        trial.remove()

    def random(self, *names):
        """A source of random numbers that depends on the seed and the names only."""
        return random.Random(":".join(map(str, (self.seed, *names))))

    def few(self, name, items, most):
        """All of them; in the short form some."""
        chosen = range(len(items))
        if self.short and len(items) > most:
            chosen = sorted(self.random("few", name).sample(chosen, most))
        return [items[i] for i in chosen]

    def reference(self, kind, *overrides):
        """What an undisturbed run of a configuration gives."""
        key = (kind, *overrides)
        if key not in self.references:
            trial = Trial(self, "reference-" + hashlib.md5(repr(key).encode()).hexdigest()[:8])
            started = time.monotonic()
            operations = trial.operations("train", f"../{kind}.yaml", "run=r", *overrides)
            seconds = time.monotonic() - started
            kept = trial / "runs/kept"
            trial.done("-q", "train", f"../{kind}.yaml", "run=kept", *overrides, "train.keep_checkpoints=1000")
            steps = {int(folder.name[5:]): weights(folder) for folder in (kept / "checkpoints").glob("step-*")}
            self.references[key] = Reference(steps, weights(kept / "checkpoints/last"),
                                             weights(kept / "checkpoints/best"), metrics(kept), seconds, operations)
            self.check_end(trial, "r", self.references[key])
            trial.remove()
        return self.references[key]

    # ---- what must hold

    def check_end(self, trial, run, reference, with_metrics=True):
        """A run that is done has the weights, best and last, and the metrics of an undisturbed one."""
        folder = trial / "runs" / run
        for name, expected in (("last", reference.last), ("best", reference.best)):
            found = weights(folder / "checkpoints" / name)
            if found != expected:
                step = [step for step, hash in reference.steps.items() if hash == found]
                which = f"those of step {step[0]}" if step else "of no step of the undisturbed run"
                raise Wrong(f"resumed and done, but checkpoints/{name} has other weights: {which}")
        if with_metrics and metrics(folder) != reference.metrics:
            raise Wrong("resumed and done, but metrics.jsonl has other lines")

    def check_published(self, trial, run, reference):
        """Every checkpoint under its final name is complete; one that is being deleted has newer ones beside it."""
        folder = trial / "runs" / run / "checkpoints"
        complete, torn = [], []
        for checkpoint in sorted(folder.glob("[!.]*")):
            try:
                names = json.loads((checkpoint / "manifest.json").read_text())
                missing = [name for name in names if not (checkpoint / name).exists()]
                if missing:
                    raise Wrong(f"checkpoints/{checkpoint.name} has no {missing[0]}")
                found = weights(checkpoint)
                step = int(checkpoint.name[5:]) if checkpoint.name.startswith("step-") else None
                if found not in ([reference.steps.get(step)] if step is not None else reference.steps.values()):
                    raise Wrong(f"checkpoints/{checkpoint.name} has other weights than the undisturbed run")
                complete.append(step or 0)
            except (Wrong, OSError, ValueError) as error:
                torn.append((checkpoint.name, error))
        for name, error in torn:
            if not (name.startswith("step-") and any(step > int(name[5:]) for step in complete)):
                raise Wrong(f"half a checkpoint under its final name: {error}")

    def continue_run(self, trial, kind, run, *overrides, **disturbance):
        """Resumes a run; starts it where it did not begin yet."""
        if (trial / "runs" / run / "config.yaml").exists():
            return trial.calque("resume", run, **disturbance)
        return trial.calque("train", f"../{kind}.yaml", f"run={run}", *overrides, **disturbance)

    def finish_run(self, trial, kind, run, *overrides):
        """Resumes a run undisturbed; it must end as one that never stopped."""
        outcome = self.continue_run(trial, kind, run, *overrides)
        if outcome.code != 0:
            raise Wrong(f"not resumed: exit {outcome.code}: {outcome.said}")
        self.check_end(trial, run, self.reference(kind, *overrides))

    # ---- the work and its table

    def attempt(self, part, name, work):
        """Runs work(trial), which returns what happened; None if it went wrong or there was no time."""
        if time.monotonic() > self.deadline:
            self.out_of_time = True
            return None
        trial = Trial(self, f"{part}-{name}")
        try:
            happened = work(trial)
            trial.remove()
            return happened
        except (Wrong, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            return self.failed(part, trial, error if isinstance(error, Wrong) else f"{type(error).__name__}: {error}")

    def failed(self, part, trial, error):
        """Keeps the trial's folder for a look."""
        message = f"{part}: {error}".replace(str(self.folder), "").replace("\n", " ")
        trial.write_again()
        with self.lock:
            self.failures.append((message, f"bash {trial.folder}/again.sh"))
        return f"WRONG: {error}".replace("\n", " ")[:150]

    def attempts(self, part, name, items, work):
        """Two trials at a time: work(trial, item) returns what happened. Counts it."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            name = re.sub(r"\W+", "-", name).strip("-")
            jobs = [pool.submit(self.attempt, part, f"{name}-{i}", lambda trial, item=item: work(trial, item))
                    for i, item in enumerate(items)]
            return collections.Counter(filter(None, (job.result() for job in jobs)))

    def row(self, part, tried, happened, times=None):
        """Prints a row of the table: what was tried and what happened."""
        said = ", ".join(f"{what}: {count:,}" for what, count in happened.most_common() if count)
        if not said:
            return
        if not self.rows:
            print("| part | what was tried | times | what happened |\n|---|---|---:|---|")
        self.rows += 1
        print(f"| {part} | {tried} | {sum(happened.values()) if times is None else times:,} | {said} |", flush=True)
