"""Tasks that run again after the loss of a worker, against the least possible: python -m bench.reexecution.

Real local workers that are not started again; in each run one is killed with SIGKILL at a random moment. Programs of
four shapes under three schedulers. Each loss (same program, scheduler, worker and moment, in finished tasks) happens
twice: without replication, and with --replicate N. Takes about four minutes for 30 losses on two idle cores.

The least possible is that of `headrace.testing.least_again`, with all copies that the engine has right after the loss.
A ratio is max(again, 1) / max(least, 1): a loss for which nothing had to run again counts 1 if nothing did, and else
as if one task had been necessary.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from headrace.experiment.dataflow import GIGABIT, fft
from headrace.model.events import Event, HostLeft, TaskFinished
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.emulate import emulate
from headrace.runtime.run_policy import Replication, RunPolicy
from headrace.testing.least_again import ran_again

SCHEDULERS = ("heft", "lheft", "workqueue")
WORKERS = 4
SECONDS = 0.02
SIZE = 1000.0


def layers(rng: random.Random) -> Program:
    """Ten to fifteen levels of six to ten tasks; each reads two or three of the level above, and all are joined."""
    program, above = Program("layers"), list[str]()
    for level in range(rng.randint(10, 15)):
        row = []
        for k in range(rng.randint(6, 10)):
            read = rng.sample(above, min(len(above), rng.randint(2, 3)))
            row += _task(program, f"t{level}.{k}", read)
        above = row
    _task(program, "end", above)
    return program


def wide(rng: random.Random) -> Program:
    """A source, two to four rows of 20 to 30 independent tasks that end in a join, which is the next source."""
    program, source = Program("wide"), list[str]()
    for part in range(rng.randint(2, 4)):
        start = _task(program, f"fork{part}", source)
        middle = [name for k in range(rng.randint(20, 30)) for name in _task(program, f"m{part}.{k}", start)]
        source = _task(program, f"join{part}", middle)
    return program


def transform(rng: random.Random) -> Program:
    """An FFT of 8 or 16 pieces: 6 levels within pieces, then levels that exchange them."""
    pieces = rng.choice((8, 16))
    size = 64 * 16  # bytes of 64 complex numbers
    return fft(64 * pieces, pieces, ratio=SECONDS * GIGABIT / (2 * size))


def chain(rng: random.Random) -> Program:
    """A chain of 15 to 25 tasks; two to four sides hang on each, and their results are joined."""
    program, before, sides = Program("chain"), list[str](), list[str]()
    for i in range(rng.randint(15, 25)):
        before = _task(program, f"c{i}", before)
        for k in range(rng.randint(2, 4)):
            sides += _task(program, f"s{i}.{k}", before)
    _task(program, "end", [*before, *sides])
    return program


def _task(program: Program, name: str, read: Sequence[str]) -> list[str]:
    program.task(inputs=read, outputs={f"x{name}": SIZE}, name=name, work=SECONDS)
    return [f"x{name}"]


SHAPES: dict[str, Callable[[random.Random], Program]] = {
    "layers": layers,
    "wide": wide,
    "fft": transform,
    "chain": chain,
}


class Survivors(SchedulerPlugin):  # type: ignore[misc]
    """Notes at each loss which items the engine still has, and where."""

    name = "survivors"

    def __init__(self) -> None:
        self.found: list[dict[str, list[str]]] = []

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        run = next(p for p in scheduler.plugins.values() if hasattr(p, "layout"))
        tasks = ((scheduler.tasks.get(key), item) for key, item in run.layout.items.items())
        self.found.append(
            {item: [str(w.name) for w in state.who_has] for state, item in tasks if state and state.who_has}
        )


@dataclass(frozen=True)
class Loss:
    """A run with one loss."""

    number: int
    shape: str
    scheduler: str
    replicate: Replication
    tasks: int
    after: int
    """Tasks that had finished when the worker was killed."""
    again: int
    least: int
    copies: int
    """Items of which there was more than one copy after the loss."""

    @property
    def ratio(self) -> float:
        return max(self.again, 1) / max(self.least, 1)


def one_loss(number: int, seed: int, replicate: Replication) -> Loss | None:
    """The run with this number; None if it was over before the loss was noticed."""
    rng = random.Random(f"{seed}.{number}")
    shape = list(SHAPES)[number % len(SHAPES)]
    scheduler = SCHEDULERS[number % len(SCHEDULERS)]
    program = emulate(SHAPES[shape](rng), time_scale=1.0)
    victim, after = rng.randrange(WORKERS), rng.randint(1, len(program.tasks) - 2)
    survivors = Survivors()
    with open_local(WORKERS, restart=False) as cluster:
        events = _events(cluster, program, scheduler, replicate, (f"w{victim}", after), survivors)
    if not any(isinstance(event, HostLeft) for event in events):
        return None
    again, least = ran_again(program, events, survivors.found)
    copies = sum(len(hosts) > 1 for hosts in survivors.found[0].values())
    return Loss(number, shape, scheduler, replicate, len(program.tasks), after, again, least, copies)


def _events(
    cluster: Cluster,
    program: Program,
    scheduler: str,
    replicate: Replication,
    loss: tuple[str, int],
    survivors: Survivors,
) -> Sequence[Event]:
    """Run the program, and kill a worker after so many finished tasks."""
    cluster.client.cluster.scheduler.add_plugin(survivors)
    count = 0

    def observe(event: Event) -> None:
        nonlocal count
        count += isinstance(event, TaskFinished)
        if count == loss[1] and isinstance(event, TaskFinished):
            os.kill(cluster.pids[loss[0]], signal.SIGKILL)

    policy = RunPolicy(replicate=replicate)
    return cluster.execute(program, make_scheduler(scheduler), observe, timeout=120, policy=policy).events


def geometric_mean(losses: Sequence[Loss]) -> float:
    return math.exp(sum(math.log(loss.ratio) for loss in losses) / len(losses))


def main(losses: int, seed: int, policies: Sequence[Replication], as_json: bool) -> None:
    """Print a line per loss on stderr; per policy the totals and the geometric mean of the ratio."""
    began, found = time.perf_counter(), list[Loss]()
    for number in range(losses):
        for replicate in policies:
            loss = one_loss(number, seed, replicate)
            if loss is not None:
                found.append(loss)
            print(loss or f"{number}: over before the loss", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps([asdict(loss) | {"ratio": loss.ratio} for loss in found]))
        return
    for replicate in policies:
        _show(f"replicate {replicate}", [loss for loss in found if loss.replicate == replicate])
        for shape in SHAPES:
            mine = [loss for loss in found if loss.replicate == replicate and loss.shape == shape]
            _show(f"  {shape}", mine)
    print(f"took {time.perf_counter() - began:.0f} s")


def _show(what: str, losses: Sequence[Loss]) -> None:
    if losses:
        again, least = sum(loss.again for loss in losses), sum(loss.least for loss in losses)
        print(
            f"{what}: {len(losses)} losses, {again} tasks ran again, least {least}; "
            f"{geometric_mean(losses):.2f}x in geometric mean"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--losses", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicate", nargs="*", default=["0", "3"], help="levels, or auto; 0 is without")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    chosen: list[Replication] = ["auto" if text == "auto" else int(text) for text in given.replicate]
    main(given.losses, given.seed, chosen, given.json)
