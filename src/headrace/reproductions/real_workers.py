"""Runs of emulated programs on real local workers, and simulations of the same cases.

Tasks sleep, so that two cores are enough for eight workers. A simulation has the same program, platform and scheduler,
and hosts that leave and join when they did so in the real run.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.growth import with_host
from headrace.model.behaviour import Change
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.platform import Host, Platform
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.reproductions.contributors import count_finished, measure, with_changes
from headrace.runtime.cluster import Cluster
from headrace.runtime.run_policy import RunPolicy
from headrace.simulator.events import grid_state as g
from headrace.simulator.events.run import SimulatedRun

_LIMIT = 300.0
"""Seconds after which a run is given up."""


@dataclass(frozen=True)
class Course:
    """The course of a run, real or simulated: what both have in common."""

    makespan: float
    executions: Sequence[tuple[float, float, str, str]]
    """Finish, start, task and host of each, in order of finish."""
    losses: Sequence[tuple[float, str]]
    joins: Sequence[tuple[float, str]]
    receiving: float
    """Seconds during which hosts received data, summed over hosts."""

    @property
    def redone(self) -> int:
        """Executions of tasks that had finished before."""
        return len(self.executions) - len({task for _, _, task, _ in self.executions})

    @property
    def overhead(self) -> float:
        """Time during which hosts receive data, divided by the run time of all tasks."""
        return self.receiving / sum(finish - start for finish, start, _, _ in self.executions)

    def finished(self, moments: Sequence[float]) -> list[float]:
        """Tasks finished by each moment; one that is re-executed counts as unfinished from the loss on."""
        times = [finish for finish, _, _, _ in self.executions]
        tasks = [task for _, _, task, _ in self.executions]
        return count_finished(times, tasks, [when for when, _ in self.losses], moments)

    def response(self) -> float | None:
        """Mean seconds from a join to the first task that starts there; None if nobody joined or was used."""
        waits = []
        for when, host in self.joins:
            starts = [start for _, start, _, ran_on in self.executions if ran_on == host and start >= when]
            waits += [min(starts) - when] if starts else []
        return sum(waits) / len(waits) if waits else None


def course_of(events: Sequence[Event]) -> Course:
    """The course of a real run.

    >>> course_of([Started(0.0), TaskFinished(2.0, "a", "w0", 0.5), HostLeft(2.5, "w1")]).makespan
    2.0
    """
    ended = sorted((e.time, e.start, e.task, e.host) for e in events if isinstance(e, TaskFinished))
    joined: dict[str, float] = {}
    for event in events:
        if isinstance(
            event, HostJoined
        ):  # again when it was paused, as the engine's workers are while they start
            joined.setdefault(event.host, event.time)
    moves: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        if isinstance(event, DataMoved):
            moves.setdefault(event.target, []).append((event.start, event.time))
    return Course(
        max((finish for finish, _, _, _ in ended), default=0.0),
        ended,
        [(e.time, e.host) for e in events if isinstance(e, HostLeft)],
        [(when, host) for host, when in joined.items()],
        sum(_covered(spans) for spans in moves.values()),
    )


def simulated_course(run: SimulatedRun) -> Course:
    """The course of a simulated run."""
    time, kind, subject, host = run.log_time, run.log_kind, run.log_subject, run.log_from
    hosts, tasks = run.platform.hosts, run.graph.task_names
    began: dict[tuple[int, int], float] = {}
    ended = []
    for k in np.flatnonzero((kind == g.TASK_STARTED) | (kind == g.TASK_ENDED)).tolist():
        pair = int(subject[k]), int(host[k])
        if kind[k] == g.TASK_STARTED:
            began[pair] = float(time[k])
        else:
            ended.append((float(time[k]), began[pair], tasks[pair[0]], hosts[pair[1]].name))
    plan = run.executed
    moves: dict[int, list[tuple[float, float]]] = {}
    rows = zip(plan.move_target.tolist(), plan.move_start.tolist(), plan.move_finish.tolist(), strict=True)
    for target, start, finish in rows:
        moves.setdefault(target, []).append((start, finish))
    changes = {
        what: [(float(time[k]), hosts[int(subject[k])].name) for k in np.flatnonzero(kind == what).tolist()]
        for what in (g.HOST_LEFT, g.HOST_JOINED)
    }
    receiving = sum(_covered(spans) for spans in moves.values())
    return Course(run.makespan, ended, changes[g.HOST_LEFT], changes[g.HOST_JOINED], receiving)


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """The length of the union of intervals.

    >>> _covered([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
    4.0
    """
    total, reached = 0.0, -np.inf
    for start, finish in sorted(spans):
        total += max(0.0, finish - max(start, reached))
        reached = max(reached, finish)
    return float(total)


@dataclass(frozen=True)
class Disturbance:
    """What happens to the workers of a run."""

    kill: str = ""
    """The worker that is killed."""
    after: int = 0
    """It is killed when this many tasks have finished."""
    join: Sequence[tuple[float, str]] = ()
    """When new workers are started, in seconds, and their names; a new process joins a second or two later."""


UNDISTURBED = Disturbance()


def run_real(
    cluster: Cluster,
    program: Program,
    scheduler: str,
    disturbance: Disturbance = UNDISTURBED,
    replicate: int = 0,
) -> Course:
    """Run an emulated program on the workers of a local cluster, disturbed as described."""
    count = 0
    with _timers(cluster, disturbance) as timers:

        def observe(event: Event) -> None:
            nonlocal count
            if isinstance(event, Started):
                for timer in timers:
                    timer.start()
            elif isinstance(event, TaskFinished):
                count += 1
                if disturbance.kill and count == disturbance.after:
                    os.kill(cluster.pids[disturbance.kill], signal.SIGKILL)

        outcome = cluster.execute(
            program,
            make_scheduler(scheduler),
            observe,
            timeout=_LIMIT,
            policy=RunPolicy(replicate=replicate),
        )
    if outcome.failure is not None:
        raise outcome.failure
    return course_of(outcome.events)


@contextmanager
def _timers(cluster: Cluster, disturbance: Disturbance) -> Iterator[list[threading.Timer]]:
    """Timers that start the new workers; none goes off after the run."""
    timers = [threading.Timer(when, cluster.start_workers, [name]) for when, name in disturbance.join]
    try:
        yield timers
    finally:
        for timer in timers:
            timer.cancel()
        for timer in timers:
            if timer.ident is not None:
                timer.join()


def simulate_same(
    platform: Platform,
    program: Program,
    scheduler: str,
    real: Course,
    replicate: int = 0,
    pace: float = 1.0,
) -> Course:
    """Simulate the case of a real run: hosts leave and join when they did, in seconds times `pace`."""
    for _, name in real.joins:
        platform = with_host(platform, Host(name))
    changes = [Change(pace * when, "host-up", name) for when, name in real.joins]
    changes += [Change(pace * when, "host-down", name) for when, name in real.losses]
    grid = with_changes(platform, sorted(changes, key=lambda change: change.time)) if changes else platform
    execution = ExecutionPolicy(replicate=replicate)
    return simulated_course(measure(program, grid, scheduler, execution=execution).run)
