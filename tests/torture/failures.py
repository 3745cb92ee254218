"""Calls that fail: no space, a broken disk, a read-only file system, at the n-th write, fsync, rename or open. And two
trainings in one run folder."""

import re
import signal
import time

from commands import prepare_commands
from lab import RUN, Wrong

ERRORS = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EROFS": "Read-only file system"}
UGLY = re.compile(r"terminate called|Aborted|Segmentation|core dumped|Exception raised from|#\d+ 0x|frame #\d|\[json\.")
# The kinds of calls that fail. Folders' fsyncs are tried by themselves; a full disk does not keep from deleting.
KINDS = {"ENOSPC": "open,write,fsync,rename,link,mkdir", "EIO": "open,write,fsync,rename,link,mkdir,delete"}
KINDS.update(short=KINDS["ENOSPC"], EROFS=KINDS["EIO"])


class Failure:
    """The n-th call of a command that fails, with what, and whether all later ones fail too."""

    def __init__(self, at, what, lasting):
        self.at, self.what, self.lasting = at, what, lasting

    def faults(self):
        faults = {"AT": self.at, "DO": self.what, "KINDS": KINDS[self.what], "NOTE": "note"}
        return {**faults, "STICKY": 1} if self.lasting else faults

    def happened(self, trial, outcome):
        if outcome.code != 0:
            check_message(outcome, self.what)
            return f"exit {outcome.code} with a message"
        note = trial / "note"
        if not note.exists() or not note.read_text():
            return "done before that call"
        kind, _, _, path, _ = note.read_text().split("\n")[0].split("\t")
        where = re.sub(r"\d+", "N", path.rsplit("/", 1)[-1])
        return f"went on without a {kind} of {where}"


def plan_failures(lab, name, operations, most):
    """Half of them a full disk once, at every call in the long form; the rest other errors, once or lasting."""
    random = lab.random("faults", name)
    count = {what: sum(kind in kinds.split(",") for kind, *_ in operations) for what, kinds in KINDS.items()}
    every = [(at, "ENOSPC", False) for at in range(1, count["ENOSPC"] + 1)]
    rest = [(at, what, lasting) for what in KINDS for at in range(1, count[what] + 1) for lasting in (False, True)
            if (what, lasting) != ("ENOSPC", False)]
    first = random.sample(every, min(len(every), (most + 1) // 2))
    points = first + random.sample(rest, min(len(rest), most - len(first)))
    return count["EIO"], [Failure(*point) for point in points]


def check_message(outcome, what):
    """A failure is told in a line that says what went wrong, with exit 1 or 2."""
    if outcome.code not in (1, 2):
        raise Wrong(f"exit {outcome.code}: {outcome.said}")
    if UGLY.search(outcome.err):
        raise Wrong(f"an ugly message: {outcome.said}")
    error = ERRORS["ENOSPC" if what == "short" else what]
    lines = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    if not any(error in line and "/" in line for line in lines):
        raise Wrong(f"exit {outcome.code} without a line that names the file and says {error}: {outcome.said}")


def faults(lab):
    for kind in ("scratch", "lora"):
        fail_training(lab, kind)
    commands = lab.few("faults", prepare_commands(lab), 3)
    for command in commands:
        fail_command(lab, command, max(1, lab.count // len(commands)))
    fail_folder_syncs(lab)


def fail_training(lab, kind):
    reference = lab.reference(kind, *RUN)
    calls, points = plan_failures(lab, kind, reference.operations, max(2, lab.count // 2))

    def one(trial, failure):
        outcome = lab.continue_run(trial, kind, "r", *RUN, faults=failure.faults())
        happened = failure.happened(trial, outcome)
        if (trial / "runs/r/checkpoints").exists():
            lab.check_published(trial, "r", reference)
        lab.finish_run(trial, kind, "r", *RUN)
        return happened

    lab.row("faults", f"training, {kind}: one of {calls} calls fails, or all from there on; then resumed to the same bits",
            lab.attempts("faults", kind, points, one))


def fail_command(lab, command, most):
    command.learn(lab)
    calls, points = plan_failures(lab, command.name, command.operations, most)

    def one(trial, failure):
        command.prepare(trial)
        happened = failure.happened(trial, trial.calque(*command.words, faults=failure.faults()))
        command.check_left(trial)
        command.check_again(trial)
        return happened

    lab.row("faults", f"`{command.name}`: one of {calls} calls fails; then the same command works",
            lab.attempts("faults", command.name, points, one))


def fail_folder_syncs(lab):
    """A folder's fsync that fails with EIO means that a name may not be on disk: it must be told."""
    def one(trial, at):
        outcome = lab.continue_run(trial, "scratch", "r", *RUN, faults={"AT": at, "DO": "EIO", "KINDS": "syncdir"})
        if outcome.code == 0:
            raise Wrong("the fsync of a folder failed with EIO, and nothing was said")
        check_message(outcome, "EIO")
        lab.finish_run(trial, "scratch", "r", *RUN)
        return "exit 1 with a message"

    calls = sum(one[0] == "syncdir" for one in lab.reference("scratch", *RUN).operations)
    points = lab.random("faults", "syncdir").sample(range(1, calls + 1), 1 if lab.short else min(calls, 4))
    lab.row("faults", "training, scratch: the fsync of a folder fails", lab.attempts("faults", "syncdir", points, one))


# ---- two trainings in one folder

def two(lab):
    reference = lab.reference("scratch", *RUN)

    def refused(trial, words):
        first = trial.start(["train", "../scratch.yaml", "run=r", *RUN], {"SLOW": 5000, "MATCH": "checkpoints/"},
                            background=True)
        try:
            wait_for(trial / "runs/r/metrics.jsonl")
            first.send_signal(signal.SIGSTOP)  # it waits, and holds the run
            second = trial.calque(*words)
            if first.poll() is not None:
                raise Wrong("the first training ended too early to say anything")
        finally:
            first.send_signal(signal.SIGCONT)
            _, err = first.communicate()
        if first.returncode != 0:
            raise Wrong(f"the first training: exit {first.returncode}: {err.decode()[-300:]}")
        lab.check_end(trial, "r", reference)
        if second.code != 2:
            raise Wrong(f"the second one was not refused: exit {second.code}: {second.said}")
        if f"process {first.pid}" not in second.err:
            raise Wrong(f"`{words[0]}` beside a training: refused without naming the process that holds it: {second.said}")
        return "refused, naming the process; the first ended with its bits"

    def race(trial, words):
        fresh = "--fresh" in words
        if fresh:
            trial.done("train", "../scratch.yaml", "run=r", *RUN)
        both = [trial.start(words, background=True) for _ in range(2)]
        ends = [(process, *process.communicate()) for process in both]
        codes = sorted(process.returncode for process, *_ in ends)
        if codes not in ([0, 2], [0, 0]) or (codes == [0, 0] and not fresh):  # one after the other is allowed
            raise Wrong(f"two at once: exit codes {codes}: {ends[0][2].decode()[-200:]} {ends[1][2].decode()[-200:]}")
        lab.check_end(trial, "r", reference)
        return "one trained, the other was refused" if codes == [0, 2] else "one after the other"

    config = ["train", "../scratch.yaml", "run=r", *RUN]
    beside = (["resume", "r"], [*config, "--fresh"], config, ["runs", "remove", "r"])
    lab.row("two", "`resume r`, `train run=r --fresh`, `train run=r` and `runs remove r` while the run is being trained",
            lab.attempts("two", "beside", beside, refused))
    for words in lab.few("two", [config, [*config, "--fresh"]], 1):
        shown = " ".join(word for word in words if "." not in word)
        lab.row("two", f"`{shown}` twice at the same time", lab.attempts(
            "two", "race " + shown, [words] * (1 if lab.short else max(2, lab.count // 20)), race))


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise Wrong(f"{path.name} did not appear in {seconds} seconds")
        time.sleep(0.01)
