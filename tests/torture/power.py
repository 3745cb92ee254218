"""The order in which a run writes: what strace sees of the fsyncs and renames, and what a crash between any two operations
would leave."""

import collections
import re
import shutil
import subprocess

from disk import CRASHES, Disk
from lab import RUN, TEMPORARY, Trial, Wrong, read_trace

CALLS = ("open,openat,creat,write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,"
         "mkdir")


def order(lab):
    for kind in ("scratch", "lora"):
        strace_run(lab, kind)
        replay_run(lab, kind)
    without_links(lab)


# ---- what strace sees

LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?")


def whole_lines(text):
    """strace cuts a call in two where another thread's comes between; here it counts when it has ended."""
    begun = {}
    for line in text.splitlines():
        thread = line.split(None, 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line[: -len("<unfinished ...>")].rstrip()
        elif " resumed>" in line:
            yield begun.pop(thread) + line.split(" resumed>", 1)[1]
        else:
            yield line


def strace_events(text, folder):
    """(call, path, other path) of the successful calls below folder/runs, relative to the folder."""
    events = []
    for line in whole_lines(text):
        found = LINE.match(line)
        if not found or found[3].startswith("-"):
            continue
        call, arguments = found[1], found[2]
        opened = re.match(r"\d+<([^>]*)>", arguments)
        if call in ("write", "pwrite64", "writev", "fsync", "fdatasync"):
            paths = [opened[1]] if opened else []
        elif call in ("open", "openat", "creat"):
            writes = re.search(r"O_WRONLY|O_RDWR|O_CREAT", arguments)
            paths = [found[4]] if writes and found[4] else []
        else:
            places = re.findall(r"(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?\"([^\"]*)\"", arguments)
            paths = [name if name.startswith("/") else f"{place or folder}/{name}" for place, name in places]
        paths = [path.removeprefix(f"{folder}/") for path in paths]
        if any(path.startswith("runs") for path in paths):
            events.append((call, *(paths + [""])[:2]))
    return events


def check_order(events):
    """What is published before it is on disk, and names that are never flushed; and how many renames are in order."""
    dirty, unsynced, problems, in_order = set(), {}, [], 0
    parent = lambda path: path.rpartition("/")[0]  # noqa: E731
    below = lambda path, folder: path == folder or path.startswith(folder + "/")  # noqa: E731
    for call, a, b in events:
        if call in ("write", "pwrite64", "writev", "open", "openat", "creat"):
            dirty.add(a)
        elif call in ("fsync", "fdatasync"):
            dirty.discard(a)
            unsynced.pop(a, None)
        elif call.startswith("rename"):
            late = [path for path in (*dirty, *unsynced) if below(path, a)]
            problems += [f"{path} was not fsynced before {a} was renamed" for path in late]
            in_order += not late
            unsynced.setdefault(parent(b), b)
        elif call.startswith("link"):
            unsynced.setdefault(parent(b), b)
        elif call.startswith("mkdir"):
            unsynced.setdefault(parent(a), a)
        elif call.startswith("unlink"):
            dirty.discard(a)
            if "/checkpoints/step-" in a and any(name.endswith("/checkpoints") for name in unsynced):
                problems.append(f"{a} was deleted before the newer checkpoint's name was fsynced")
    problems += [f"the folder {folder} was never fsynced after {name} was put into it"
                 for folder, name in unsynced.items() if folder]
    return problems, in_order


def strace_run(lab, kind):
    title = f"{kind}: every file fsynced before its rename and every folder after it, by strace"
    if not shutil.which("strace"):
        return lab.row("order", title, collections.Counter({"skipped, because strace is not installed": 1}))
    trial = Trial(lab, f"strace-{kind}")
    command = ["strace", "-f", "-y", "-s", "0", "-e", "trace=" + CALLS, "-o", "strace.txt", lab.calque, "-q", "train",
               f"../{kind}.yaml", "run=r", *RUN]
    subprocess.run(command, cwd=trial.folder, env=lab.environment, check=True, capture_output=True)
    events = strace_events((trial / "strace.txt").read_text(), trial.folder)
    trial.remove()
    renames = sum(call.startswith("rename") for call, *_ in events)

    def report(trial, problem):
        trial.note(" ".join(command))
        raise Wrong(problem)

    problems, in_order = check_order(events)
    happened = lab.attempts("order", f"strace-{kind}", library_problems(lab, kind, events) + problems, report)
    happened["renames in order"] = in_order
    lab.row("order", title, happened, renames)


def library_problems(lab, kind, events):
    """faults.c counts what strace sees: nothing that writes goes past it."""
    group = {"openat": "open", "pwrite64": "write", "fdatasync": "fsync", "renameat2": "rename", "linkat": "link"}
    seen = collections.Counter(group.get(call, call) for call, *_ in events)
    operations = lab.reference(kind, *RUN).operations
    recorded = collections.Counter({"syncdir": "fsync"}.get(kind, kind) for kind, *_ in operations)
    return [f"strace sees {seen[call]} × {call}, faults.c {recorded[call]}"
            for call in ("write", "fsync", "rename", "link", "open") if abs(seen[call] - recorded[call]) > 2]


def without_links(lab):
    """Where the file system has no hard links, files are copied; the copies must be on disk too."""
    trial = Trial(lab, "recorded-copies")
    outcome = trial.calque("-q", "train", "../scratch.yaml", "run=r", *RUN,
                           faults={"KINDS": "link", "AT": 1, "DO": "EIO", "STICKY": 1, "TRACE": trial / "trace"})
    if outcome.code != 0:
        raise Wrong(f"training where hard links fail: exit {outcome.code}: {outcome.said}")
    names = {"syncdir": "fsync", "delete": "unlink"}
    events = [(names.get(kind, kind), *(path.removeprefix(f"{trial.folder}/") for path in (a, b)))
              for kind, _, a, b, _ in read_trace(trial / "trace")]
    commands = trial.commands
    trial.remove()

    def report(trial, problem):
        trial.commands = commands
        raise Wrong("where hard links fail: " + problem)

    problems, in_order = check_order(events)
    happened = lab.attempts("order", "copies", [one for one in problems if "folder runs " not in one], report)
    happened["renames in order"] = in_order
    lab.row("order", "scratch, where hard links fail and files are copied: the same", happened,
            sum(call == "rename" for call, *_ in events))


# ---- what a crash would leave

def crash_states(lab, kind, operations, root):
    """(crash, number of operations, path -> content), one of each kind that differs in more than temporary files."""
    disk, seen, states = Disk(root), set(), []
    random = lab.random("order", kind)
    for done in range(len(operations) + 1):
        kind_done, _, path = operations[done - 1][:3] if done else ("", 0, "")
        hidden = kind_done in ("open", "write", "fsync") and TEMPORARY.search(path)
        for crash in CRASHES if not hidden else ():
            left = disk.after(crash, random)
            visible = hash(frozenset((path, content) for path, content in left.items() if not TEMPORARY.search(path)
                                     and not path.endswith(("log.txt", "/.lock"))))
            if (crash, visible) not in seen:
                seen.add((crash, visible))
                states.append((crash, done, left))
        if done < len(operations):
            disk.apply(*operations[done])
    return states


def write_state(folder, left):
    for path, content in left.items():
        if content is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def replay_run(lab, kind):
    trial = Trial(lab, f"recorded-{kind}")
    (trial / "runs").mkdir()
    recorded = [one for one in trial.operations("train", f"../{kind}.yaml", "run=r", *RUN)
                if not one[2].endswith("/runs") or one[0] != "mkdir"]
    states = crash_states(lab, kind, recorded, trial / "runs")
    trial.remove()

    def resume(trial, state):
        crash, done, left = state
        (trial / "runs").mkdir()
        write_state(trial / "runs", left)
        shutil.copytree(trial / "runs", trial / "state")
        trial.note(f"cp -a {trial.folder}/state runs  # after {done} of {len(recorded)} operations; {crash}")
        began = (trial / "runs/r/config.yaml").exists()
        outcome = lab.continue_run(trial, kind, "r", *RUN)
        if outcome.code == 0:
            try:
                lab.check_end(trial, "r", lab.reference(kind, *RUN))
            except Wrong as error:
                raise Wrong(f"{crash}, after operation {done} ({recorded[done - 1][0]} "
                            f"{recorded[done - 1][2].rsplit('/runs/')[-1]}): {error}") from None
            return "resumed to the same bits" if began else "started again to the same bits"
        if outcome.code != 2 or not outcome.err.startswith("error: ") or (crash == "killed" and began):
            raise Wrong(f"{crash}, after operation {done} ({recorded[done - 1][0]}): exit {outcome.code}: {outcome.said}")
        if not began:
            raise Wrong(f"{crash}, after operation {done}: cannot be started again: {outcome.said}")
        return "refused: " + outcome.err.splitlines()[0].removeprefix("error: ").replace("runs/r/", "")

    for crash in CRASHES:
        mine = [state for state in states if state[0] == crash]
        most = min(len(mine), max(2, lab.count // (2 * len(CRASHES))))
        chosen = lab.random("order", kind, crash).sample(mine[:-1], most - 1) + mine[-1:]
        lab.row("order", f"{kind}: {CRASHES[crash]}; {most} of {len(mine)} different states in {len(recorded)} operations",
                lab.attempts("order", f"{kind}-{crash}", chosen, resume))
