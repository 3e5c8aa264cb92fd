"""Real runs under faults, every value compared with a plain computation: python -m bench.chaos --runs 200 --seed 1.

Each run has a random program, a random scheduler and a local cluster of real worker processes. While it runs, workers
are killed, stopped, continued, joined, retired, restarted, paused, at random; at least one worker always lives. A run
hangs if it takes longer than --limit seconds, and is aborted if it ends with an error.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headrace.model.errors import HeadraceError, RunStopped
from headrace.model.events import Event, TaskFinished
from headrace.model.platform import Host
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.local_workers import LocalWorkers, start_workers
from headrace.runtime.run_policy import RunPolicy

SCHEDULERS = ("lheft", "workqueue", "heft", "dheft", "minmin")
FAULTS = ("kill", "stop", "join", "retire", "restart", "pause")
LIMIT = 90.0
POLICY = RunPolicy(suspect=3.0, stall=20.0)


def work(seconds: float, number: int, *values: int) -> int:
    """What a task of a random program does: a wait, and a number that depends on everything before it."""
    time.sleep(seconds)
    return (31 * sum(values) + number) % 1_000_003


def two(seconds: float, number: int, *values: int) -> tuple[int, int]:
    """The same with two outputs."""
    made = work(seconds, number, *values)
    return made, made + 1


@dataclass(frozen=True)
class Case:
    """A random program with its right results."""

    program: Program
    results: dict[str, int]


def random_case(rng: random.Random) -> Case:
    """Levels of tasks that read what earlier levels made; a few have two outputs, a few only wait for another."""
    program, values = Program(f"chaos-{rng.randrange(10**6)}"), {}
    made: list[str] = []
    for level in range(rng.randint(3, 8)):
        row: list[str] = []
        for k in range(rng.randint(2, 8)):
            read = rng.sample(made, min(len(made), rng.randint(1, 4))) if made else []
            name, number = f"t{level}.{k}", rng.randrange(1000)
            seconds = rng.choice([0.0, 0.02, 0.1, 0.3])
            given = [
                program.input(f"s{name}", value=seconds),
                program.input(f"n{name}", value=number),
            ]
            result = (31 * sum(values[item] for item in read) + number) % 1_000_003
            outputs = [f"x{name}", f"y{name}"] if rng.random() < 0.2 else [f"x{name}"]
            after = [rng.choice(list(program.tasks))] if program.tasks and rng.random() < 0.1 else []
            program.task(
                two if len(outputs) == 2 else work,
                inputs=[*given, *read],
                outputs=outputs,
                name=name,
                after=after,
                work=seconds + 0.01,
            )
            values.update(zip(outputs, (result, result + 1), strict=False))
            row += outputs
        made = [*row, *rng.sample(made, min(3, len(made)))]
    results = {item.name: values[item.name] for item in program.results()}
    return Case(program, results)


@dataclass
class Chaos:
    """Disturbs one cluster from a thread of its own until told to stop."""

    cluster: Cluster
    rng: random.Random
    faults: int
    did: list[str] = field(default_factory=list)
    joined: list[LocalWorkers] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def disturb(self) -> None:
        """Up to `faults` random faults at random moments."""
        self.pids = dict(self.cluster.pids)
        for number in range(self.faults):
            if self.over.wait(self.rng.uniform(0.0, 0.8)):
                return
            what = self.rng.choice(FAULTS)
            with suppress(Exception):  # the cluster may be closing
                done = getattr(self, f"_{what}")(number)
                self.did.append(f"{what} {done}" if done else f"no {what}")

    def _victim(self) -> str:
        """A worker that may go: another one lives and is not stopped or paused."""
        able = [name for name in sorted(self.pids) if name not in self.stopped]
        return self.rng.choice(able) if len(able) > 1 else ""

    def _address(self, name: str) -> str:
        workers = self.cluster.client.scheduler_info(n_workers=-1)["workers"]
        return next(address for address, info in workers.items() if info["name"] == name)

    def _kill(self, _: int) -> str:
        name = self._victim()
        if name:
            os.kill(self.pids.pop(name), signal.SIGKILL)
        return name

    def _stop(self, _: int) -> str:
        name = self._victim()
        if name:
            os.kill(self.pids[name], signal.SIGSTOP)
            self.stopped.add(name)
            if self.rng.random() < 0.5:
                self._later(self.rng.uniform(1.0, 8.0), name)
        return name

    def _later(self, seconds: float, name: str) -> None:
        def go_on() -> None:
            if not self.over.wait(seconds):
                with suppress(ProcessLookupError):
                    os.kill(self.pids[name], signal.SIGCONT)
                self.did.append(f"continue {name}")

        threading.Thread(target=go_on, daemon=True).start()

    def _join(self, number: int) -> str:
        name = f"new{number}"
        address = self.cluster.client.scheduler.address
        started = start_workers(address, [Host(name)], 1.0)
        self.joined.append(started)
        self.pids.update(started.pids)
        return name

    def _retire(self, _: int) -> str:
        name = self._victim()
        if name:
            del self.pids[name]
            self.cluster.client.retire_workers([self._address(name)], close_workers=True)
        return name

    def _restart(self, _: int) -> str:
        name = self._victim()
        if name:  # without a nanny it goes, and does not come back
            del self.pids[name]
            with suppress(Exception):
                self.cluster.client.restart_workers([self._address(name)], timeout=1)
        return name

    def _pause(self, _: int) -> str:
        name = self._victim()
        if name:
            address = self._address(name)
            self.stopped.add(name)
            self.cluster.client.run(set_paused, True, workers=[address])

            def resume() -> None:
                self.over.wait(self.rng.uniform(0.5, 5.0))
                with suppress(Exception):
                    self.cluster.client.run(set_paused, False, workers=[address])
                    self.stopped.discard(name)

            threading.Thread(target=resume, daemon=True).start()
        return name

    def end(self) -> None:
        """Disturb no more; end what was started here."""
        self.over.set()
        for name in self.stopped:
            if name in self.pids:
                with suppress(ProcessLookupError):
                    os.kill(self.pids[name], signal.SIGCONT)
        for started in self.joined:
            started.end()


def set_paused(paused: bool, dask_worker: Any) -> None:
    """On a worker: take no more tasks, as if its memory were full, or take them again."""
    from distributed.core import Status

    dask_worker.status = Status.paused if paused else Status.running


@dataclass(frozen=True)
class Verdict:
    """How a run ended."""

    outcome: str
    """right, wrong, hang, or abort"""
    seed: int
    scheduler: str
    did: tuple[str, ...]
    seconds: float
    executions: int
    tasks: int
    error: str = ""

    def __str__(self) -> str:
        text = (
            f"seed {self.seed}, {self.scheduler}, {self.seconds:.1f} s, {', '.join(self.did) or 'no fault'}"
        )
        return f"{self.outcome}: {text}{': ' + self.error if self.error else ''}"


def disturbed_run(seed: int, limit: float = LIMIT, observe: Callable[[Event], None] | None = None) -> Verdict:
    """One run of one seed."""
    rng = random.Random(seed)
    case, scheduler = random_case(rng), rng.choice(SCHEDULERS)
    with open_local(rng.randint(2, 4)) as cluster:
        chaos = Chaos(cluster, random.Random(seed + 1), rng.randint(1, 5))
        thread = threading.Thread(target=chaos.disturb, daemon=True)
        count = 0

        def seen(event: Event) -> None:
            nonlocal count
            if isinstance(event, TaskFinished):
                count += 1
            if not thread.is_alive() and not chaos.over.is_set() and count == 1:
                with suppress(RuntimeError):
                    thread.start()

        began = time.perf_counter()
        outcome, error = "right", ""
        try:
            done = cluster.execute(
                case.program, make_scheduler(scheduler), seen, timeout=limit, policy=POLICY
            )
            if done.failure is not None:
                outcome, error = "abort", str(done.failure)
            elif done.results != case.results:
                outcome = "wrong"
        except RunStopped as problem:
            outcome, error = "hang", str(problem)
        except HeadraceError as problem:
            outcome, error = "abort", str(problem)
        finally:
            chaos.end()
    seconds = time.perf_counter() - began
    did = tuple(chaos.did)
    return Verdict(outcome, seed, scheduler, did, seconds, count, len(case.program.tasks), error)


def main(runs: int, seed: int, limit: float = LIMIT) -> int:
    """Print every run that went wrong and the counts; returns how many went wrong."""
    counts: Counter[str] = Counter()
    again = tasks = 0
    for number in range(runs):
        verdict = disturbed_run(seed + number, limit)
        counts[verdict.outcome] += 1
        again += max(0, verdict.executions - verdict.tasks)
        tasks += verdict.tasks
        if verdict.outcome != "right":
            print(verdict, flush=True)
        print(f"{number + 1} of {runs}: {verdict}", file=sys.stderr, flush=True)
    print(
        f"{runs} runs: {counts['right']} right, {counts['wrong']} wrong, {counts['hang']} hangs, "
        f"{counts['abort']} aborts; {again} of {tasks} tasks ran again"
    )
    return runs - counts["right"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT)
    given = parser.parse_args()
    faulthandler.enable()
    os.environ.setdefault("HEADRACE_HOME", tempfile.mkdtemp(prefix="headrace-chaos-"))
    sys.exit(1 if main(given.runs, given.seed, given.limit) else 0)
