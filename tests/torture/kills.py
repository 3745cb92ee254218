"""kill -9: at random moments of a training run, inside the writing of its checkpoints, and in every other command that
writes files."""

import collections

from commands import prepare_commands
from lab import Wrong

INSIDE = {"MATCH": "checkpoints/"}  # operations that write, publish or delete a checkpoint
CONFIGURATIONS = {"scratch": "scratch with EMA, dropout and BPE-dropout", "lora": "LoRA on checkpoints/base"}


def plan_kill(random, reference):
    """(what, faults, seconds): a third inside a checkpoint's writing by count, a sixth in a slowed-down writing, the rest
    at any moment. Early ones are likelier, because a resumed run has fewer operations left."""
    draw = random.random()
    if draw < 1 / 3:
        inside = sum("checkpoints/" in a + b for _, _, a, b, _ in reference.operations)
        at = 1 + int(inside * random.random() ** 1.5)
        return "inside", {**INSIDE, "AT": at, "DO": random.choice(["kill", "tear"])}, None
    if draw < 1 / 2:
        return "slowed", {**INSIDE, "SLOW": 1000}, reference.seconds * random.uniform(0.3, 2)
    return "moment", None, reference.seconds * random.uniform(0.1, 1)


def kill(lab):
    """Training is killed, resumed, killed again, and ends with the same bits."""
    for kind, title in CONFIGURATIONS.items():
        reference = lab.reference(kind)
        killed, ends, chains = collections.Counter(), collections.Counter(), 0

        def chain(trial, number):
            random = lab.random("kill", kind, number)
            for _ in range(random.choice([1, 2, 2, 3, 4])):
                what, faults, seconds = plan_kill(random, reference)
                outcome = lab.continue_run(trial, kind, "r", faults=faults, kill_after=seconds)
                if outcome.code == -9:
                    with lab.lock:
                        killed[what] += 1
                elif outcome.code != 0:
                    raise Wrong(f"not resumed: exit {outcome.code}: {outcome.said}")
                if (trial / "runs/r/checkpoints").exists():
                    lab.check_published(trial, "r", reference)
            lab.finish_run(trial, kind, "r")
            return "runs that ended with the same bits"

        wanted = lab.count // len(CONFIGURATIONS)
        while sum(killed.values()) < wanted and not lab.out_of_time:  # some kills come too late and do not count
            more = range(chains, chains + max(2, (wanted - sum(killed.values())) // 3))
            chains = more.stop
            ends += lab.attempts("kill", f"{kind}-{more.start}", more, chain)
        lab.row("kill", f"{title}; killed at any moment ({killed['moment']}), inside the writing of a checkpoint "
                f"({killed['inside']}), in a slowed-down writing ({killed['slowed']})", ends, sum(killed.values()))


def kill_others(lab):
    """Every other command is killed at its n-th operation; then the same command works."""
    commands = lab.few("kill-others", prepare_commands(lab), 5)
    for command in commands:
        command.learn(lab)
        random = lab.random("kill-others", command.name)
        most = min(len(command.operations), max(1, lab.count // len(commands)))
        points = sorted(random.sample(range(1, len(command.operations) + 1), most))

        def one(trial, at):
            command.prepare(trial)
            outcome = trial.calque(*command.words, faults={"AT": at, "DO": "tear" if at % 2 else "kill"})
            if outcome.code not in (-9, 0):
                raise Wrong(f"{command.name}: exit {outcome.code}: {outcome.said}")
            command.check_left(trial)
            command.check_again(trial)
            return "the same command gave the same result"

        happened = lab.attempts("kill-others", command.name, points, one)
        lab.row("kill-others", f"`{command.name}`, killed at {most} of {len(command.operations)} operations", happened)
