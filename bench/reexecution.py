"""Tasks that run again after the loss of a worker, against the least possible: python -m bench.reexecution --losses 30.

Real local workers; one is killed at a random moment of each run. Without replication, and with --replicate N.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sys
import time

from headrace.model.events import Event, HostLeft, TaskFinished
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import open_local
from headrace.runtime.run_policy import RunPolicy
from headrace.testing.least_again import ran_again

SCHEDULERS = ("heft", "lheft")


def step(seconds: float, *values: int) -> int:
    time.sleep(seconds)
    return sum(values) % 1_000_003 + 1


def random_layers(rng: random.Random) -> Program:
    """Ten to fifteen levels of six to ten tasks; each reads two or three of the level above, all of it is joined."""
    program = Program("layers")
    pause = program.input("pause", value=0.02)
    above: list[str] = []
    for level in range(rng.randint(10, 15)):
        row = []
        for k in range(rng.randint(6, 10)):
            read = rng.sample(above, min(len(above), rng.randint(2, 3)))
            name = f"x{level}.{k}"
            program.task(step, inputs=[pause, *read], outputs=[name], name=f"t{level}.{k}", work=0.02)
            row.append(name)
        above = row
    program.task(step, inputs=[pause, *above], outputs=["end"], name="end", work=0.02)
    return program


def one_loss(seed: int, scheduler: str, replicate: int) -> tuple[int, int] | None:
    """Repeated executions and the least of one run with one loss; None if the run was over before."""
    rng = random.Random(seed)
    program = random_layers(rng)
    victim, after = rng.randrange(4), rng.randint(10, len(program.tasks) - 10)
    count = 0
    with open_local(4) as cluster:

        def observe(event: Event) -> None:
            nonlocal count
            count += isinstance(event, TaskFinished)
            if count == after and isinstance(event, TaskFinished):
                os.kill(cluster.pids[f"w{victim}"], signal.SIGKILL)

        outcome = cluster.execute(
            program,
            make_scheduler(scheduler),
            observe,
            timeout=120,
            policy=RunPolicy(replicate=replicate),
        )
    if not any(isinstance(event, HostLeft) for event in outcome.events):
        return None
    return ran_again(program, outcome.events)


def main(losses: int, seed: int, replicate: int) -> float:
    """Print a line per loss and the geometric mean of the ratio; one is added to both numbers, as they may be 0."""
    logs, repeated, least = [], 0, 0
    for number in range(losses):
        found = one_loss(seed + number, SCHEDULERS[number % len(SCHEDULERS)], replicate)
        if found is None:
            continue
        logs.append(math.log((found[0] + 1) / (found[1] + 1)))
        repeated, least = repeated + found[0], least + found[1]
        print(f"loss {number + 1}: {found[0]} again, least {found[1]}", file=sys.stderr, flush=True)
    mean = math.exp(sum(logs) / len(logs))
    print(f"{len(logs)} losses: {repeated} tasks ran again, least {least}; {mean:.2f}x in geometric mean")
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--losses", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicate", type=int, default=0)
    given = parser.parse_args()
    main(given.losses, given.seed, given.replicate)
