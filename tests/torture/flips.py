"""Damaged files: one flipped bit or a file cut short, in checkpoints, run folders and the cache. Each must be noticed and
named, made again, or make no difference."""

import collections
import os

from commands import TRAINED, prepare_commands
from lab import Trial, Wrong, digest

# State, model and tokenizer are a few kilobytes each, so that a large share of their bytes can be damaged.
SMALL = ("tokenizer.sampling=0", "model.hidden_size=8", "model.heads=1", "model.mlp_size=8", "train.steps=8",
         "train.checkpoint_every=4", "train.validate_every=4", "train.log_every=4", "train.keep_checkpoints=9",
         "train.validate_sentences=0", "train.tensorboard=false")
LORA = ("train.steps=8", "train.checkpoint_every=4", "train.validate_every=4", "train.log_every=4",
        "train.keep_checkpoints=9")
FIRST = 1_000_000  # damaged copies are step-1000000, …: newer than every good checkpoint
BATCH = 400
CHANGED = " at the last checkpoint and is "  # a person may have changed config.yaml: a warning is enough
MODEL_FILES = ["model.safetensors", "config.json", "tokenizer.model", "manifest.json"]


def damages(random, size, most):
    """(offset, bit) to flip and (length, None) to cut at: all of them, or a sample."""
    flips = random.sample(range(size), min(size, (most + 1) // 2))
    cuts = random.sample(range(size), min(size, most // 2))
    return [(at, random.randrange(8)) for at in flips] + [(at, None) for at in cuts]


def damaged(content, damage):
    at, bit = damage
    if bit is None:
        return content[:at]
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def damage_file(trial, path, damage):
    """Writes the file anew: its other hard links stay as they are."""
    content = (trial / path).read_bytes()
    (trial / path).unlink()
    (trial / path).write_bytes(damaged(content, damage))
    trial.note(damage_command(path, damage))


def damage_command(path, damage):
    at, bit = damage
    change = f"b[:{at}]" if bit is None else f"b[:{at}]+bytes([b[{at}]^{1 << bit}])+b[{at + 1}:]"
    return f"""python3 -c 'import os; p="{path}"; b=open(p,"rb").read(); os.unlink(p); open(p,"wb").write({change})'"""


def flip(lab):
    prepare_half(lab, "scratch", SMALL)
    prepare_half(lab, "lora", LORA)
    prepare_commands(lab)
    flip_checkpoints(lab, "scratch", SMALL)
    flip_checkpoints(lab, "lora", LORA, ["adapters.safetensors", "config.json", "state.safetensors"])
    flip_run_files(lab, "scratch", SMALL, ["tokenizer.model", "run_id", "metrics.jsonl", "config.yaml"])
    flip_run_files(lab, "lora", LORA, ["base/" + file for file in MODEL_FILES])
    flip_cache(lab)
    flip_model(lab)
    flip_unverified(lab)


def prepare_half(lab, kind, overrides):
    """A run `r` in the folder half-KIND that has step-4 of 8 and nothing newer."""
    trial = Trial(lab, f"half-{kind}")
    trial.done("-q", "train", f"../{kind}.yaml", "run=r", *overrides)
    trial.shell("cd runs/r && rm -r checkpoints/step-8 checkpoints/last checkpoints/best summary.json report.html")
    lab.reference(kind, *overrides)


# ---- many damaged checkpoints in one run: a resume looks at all of them, from the newest to the good one

def flip_checkpoints(lab, kind, overrides, files=None):
    good = lab.folder / f"half-{kind}/runs/r/checkpoints/step-4"
    random = lab.random("flip", kind)
    for name in lab.few(f"flip {kind}", files or sorted(file.name for file in good.iterdir()), 4):
        size = (good / name).stat().st_size
        most = min(2 * size, lab.count * 20)
        planned = damages(random, size, most)
        seen = collections.Counter()

        def batch(trial, some):
            try_damaged(lab, trial, kind, overrides, name, some, seen)
            return "batch"

        batches = [planned[at : at + BATCH] for at in range(0, len(planned), BATCH)]
        happened = lab.attempts("flip", f"{kind}-{name}", batches, batch)
        for what, count in happened.items():
            if what != "batch":
                seen[what] += count
        flips = sum(bit is not None for _, bit in planned)
        lab.row("flip", f"checkpoint, {kind}: {name}, {size:,} bytes: {flips:,} flipped, cut at {len(planned) - flips:,} "
                "lengths; resumed", seen)


def try_damaged(lab, trial, kind, overrides, name, some, seen):
    """Resumes a run that has all these damaged checkpoints and, as the oldest, the good one."""
    trial.shell(f"cp -a ../half-{kind}/runs .")
    checkpoints = trial / "runs/r/checkpoints"
    content = (checkpoints / "step-4" / name).read_bytes()
    for number, damage in enumerate(some):
        folder = checkpoints / f"step-{FIRST + number}"
        folder.mkdir()
        for file in (checkpoints / "step-4").iterdir():
            if file.name != name:
                os.link(file, folder / file.name)
        (folder / name).write_bytes(damaged(content, damage))
    outcome = trial.calque("resume", "r")
    if outcome.code != 0:
        if len(some) == 1:
            say_how(trial, kind, name, some[0])
            raise Wrong(f"{name} damaged at {some[0]}: exit {outcome.code}: {outcome.said}")
        for half in (some[: len(some) // 2], some[len(some) // 2 :]):
            trial.shell("rm -r runs")
            try_damaged(lab, trial, kind, overrides, name, half, seen)
        return
    # One line for each that was looked at, until one was accepted.
    listed = outcome.err.partition("cannot be used:\n")[2].splitlines()
    lines = listed[: next((at for at, line in enumerate(listed) if not line.startswith("  ")), len(listed))]
    used = len(some) - 1 - len(lines)  # -1: the good one
    unnamed = [at for at, line in enumerate(lines) if f"/{name}" not in line and name != "manifest.json"]
    with lab.lock:
        seen["noticed and named"] += len(lines) - len(unnamed)
        seen["noticed, not named"] += len(unnamed)
        seen["made no difference"] += used >= 0
    try:
        lab.check_end(trial, "r", lab.reference(kind, *overrides))
    except Wrong as error:
        say_how(trial, kind, name, some[used])
        raise Wrong(f"{name} damaged at {some[used]} was not noticed: {error}") from None
    if used > 0:  # a damaged one was used, and it made no difference; the older ones were not looked at
        trial.shell("rm -r runs")
        try_damaged(lab, trial, kind, overrides, name, some[:used], seen)
    if unnamed:
        say_how(trial, kind, name, some[len(some) - 1 - unnamed[0]])
        raise Wrong(f"{name} damaged: noticed, but the message does not name the file: {lines[unnamed[0]].strip()}")


def say_how(trial, kind, name, damage):
    """Of the many damaged checkpoints of this trial, the commands that repeat this one."""
    trial.commands = [f"cp -a ../half-{kind}/runs .", "cd runs/r/checkpoints", f"cp -a step-4 step-{FIRST}",
                      damage_command(f"step-{FIRST}/{name}", damage), "cd ../../..", '"$CALQUE" resume r']


# ---- the other files of a run

def flip_run_files(lab, kind, overrides, names):
    run = lab.folder / f"half-{kind}/runs/r"
    for name in lab.few("flip", names, 2):
        most = max(1, lab.count // 5)
        planned = damages(lab.random("flip", kind, name), (run / name).stat().st_size, most)

        def one(trial, damage):
            trial.shell(f"cp -a ../half-{kind}/runs .")
            damage_file(trial, f"runs/r/{name}", damage)
            try:
                outcome = trial.calque("resume", "r", patience=30)
            except Wrong as error:  # a configuration that lost its limit trains for 20,000 steps
                if CHANGED in str(error):
                    return "warned, went on"
                raise Wrong(f"{name}: a different result in silence: {error}") from None
            return judge(lab, trial, outcome, kind, overrides, name)

        lab.row("flip", f"run, {kind}: {name}; resumed", lab.attempts("flip", f"{kind}-{name}", planned, one))


def judge(lab, trial, outcome, kind, overrides, name):
    if outcome.code == 2 and outcome.err.startswith("error: "):
        named = name.rsplit("/", 1)[-1] in outcome.err
        return "noticed and named" if named else "refused"
    if outcome.code != 0:
        raise Wrong(f"{name}: exit {outcome.code}: {outcome.said}")
    if CHANGED in outcome.err:
        return "warned, went on"
    try:
        lab.check_end(trial, "r", lab.reference(kind, *overrides), with_metrics=name != "metrics.jsonl")
    except Wrong as error:
        raise Wrong(f"{name}: a different result in silence: {error}") from None
    return "made no difference"


# ---- the cache

def flip_cache(lab):
    """The token store and the tokenizer in runs/.cache."""
    words = ["data", "batches", "../cached.yaml"]
    made = Trial(lab, "cache")
    made.done(*words)
    expected = digest(made / "runs/.cache")
    for name in sorted(expected):
        title = "token store" if name.endswith(".tokens") else "tokenizer"
        size = (made / "runs/.cache" / name).stat().st_size
        planned = damages(lab.random("flip", title), size, lab.count // 2)

        def one(trial, damage):
            trial.shell("cp -a ../cache/runs .")
            damage_file(trial, f"runs/.cache/{name}", damage)
            outcome = trial.calque(*words)
            if outcome.code == 2 and name in outcome.err:
                return "noticed and named"
            if outcome.code != 0:
                raise Wrong(f"cached {title}: exit {outcome.code}: {outcome.said}")
            found = digest(trial / "runs/.cache")
            if found != expected:
                raise Wrong(f"cached {title}: a damaged one was used in silence")
            return "made again"

        lab.row("flip", f"cache: {title}, {size:,} bytes; used", lab.attempts("flip", title, planned, one))


# ---- models

def flip_model(lab):
    """Commands that only read a model: they check it against manifest.json."""
    commands = {
        "translate": "translate r --threads 1 --beam 1 ../sources.txt".split(),
        "score": "score r --threads 1 ../data/valid.tsv".split(),
        "export": "export r out --causal --format hf".split(),
        "import": "import runs/r/checkpoints/best out".split(),
        "inspect": ["inspect", "runs/r/checkpoints/best", "--logits", "1 5 7"],
    }
    best = lab.folder / "trained/runs/r/checkpoints/best"
    for command, words in lab.few("flip", list(commands.items()), 3):
        undisturbed = []

        def one(trial, damage):
            trial.shell(TRAINED)
            if damage:
                damage_file(trial, f"runs/r/checkpoints/best/{damage[0]}", damage[1])
            outcome = trial.calque(*words)
            found = (outcome.code, outcome.out, digest(trial / "out"))
            if not damage:
                undisturbed.append(found)
                return None
            if outcome.code == 2 and outcome.err.startswith("error: ") and "checkpoints/best" in outcome.err:
                return "noticed and named"
            if outcome.code != 0:
                raise Wrong(f"`{command}` with a damaged {damage[0]}: exit {outcome.code}: {outcome.said}")
            if found != undisturbed[0]:
                raise Wrong(f"`{command}` with a damaged {damage[0]}: a different result in silence")
            return "made no difference"

        lab.attempts("flip", command, [None], one)
        planned = [(name, damage) for name in lab.few(f"flip {command}", MODEL_FILES, 1) for damage in
                   damages(lab.random("flip", command, name), (best / name).stat().st_size, max(1, lab.count // 20))]
        lab.row("flip", f"model: {', '.join(MODEL_FILES)}; `{command}`", lab.attempts("flip", command, planned, one))


def flip_unverified(lab):
    """Weights of a folder without a manifest, as other programs write it: nothing tells that a bit is wrong."""
    content = (lab.folder / "hf/model.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    random = lab.random("flip", "unverified")

    def look(trial, at):
        trial.shell("cp -a ../hf .")
        if at:
            damage_file(trial, "hf/model.safetensors", (at, random.randrange(8)))
        return trial.calque("inspect", "hf", "--logits", "1 5 7")

    undisturbed = []
    lab.attempts("flip", "unverified-undisturbed", [0], lambda trial, at: undisturbed.append(look(trial, at).out))

    def one(trial, at):
        outcome = look(trial, at)
        if outcome.code not in (0, 2):
            raise Wrong(f"a model without a manifest: exit {outcome.code}: {outcome.said}")
        if outcome.code == 2:
            return "refused"
        return "the same logits" if outcome.out == undisturbed[0] else "other logits (nothing could tell)"

    planned = [random.randrange(start, len(content)) for _ in range(max(1, lab.count // 10))]
    lab.row("flip", "weights of a Hugging Face folder without manifest.json; `inspect --logits`",
            lab.attempts("flip", "unverified", planned, one))
