"""The shared PCs of the macro-dataflow paper, and measured runs of its two schedulers on them.

The paper used up to 32 equal PCs on 1 Gbit/s Ethernet that students used at the same time. Its network
carries a tenth of the ports' capacity, so transfers have no contention here, as in the paper's HEFT.
Distributing initial data and collecting results is omitted, as in section 5.3 of the paper.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import AssignMany, Command, Scheduler, WakeConditions
from headrace.core.view import RunView
from headrace.experiment.dataflow import GIGABIT
from headrace.experiment.diagram import Diagram
from headrace.experiment.grids import SeriesSpec, make_series
from headrace.model.behaviour import Change, GridScript
from headrace.model.events import Event
from headrace.model.graph import Graph
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.online.adapter import accepted_policy, make_scheduler
from headrace.reproductions import Claim
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.grid_state import HOST_LEFT, TASK_ENDED
from headrace.simulator.events.run import SimulatedRun
from headrace.simulator.events.simulate import simulate_program

CONTRIBUTORS = (16, 20, 24, 28, 32)
RESCHEDULED = {640: (82, 102, 62, 58, 63), 6400: (913, 987, 659, 752, 732)}
"""Table 1 of the paper: how often D-HEFT replanned, by number of contributors."""
BURST, LOST_SHARE = 10.0, 0.6
"""Owners use their PC in half of all intervals of BURST seconds, and then take this share of it.

Chosen so that D-HEFT plans about as often as in table 1, for tasks of 1.6 s."""
PLANNING = 0.4e-3
"""Planning time of D-HEFT per thousand tasks times contributors, as measured: 1,008 plans in a run
of 6,400 tasks on 16 contributors, each for half of the tasks on average, took 21 s on one core."""
AS_PUBLISHED = ExecutionPolicy(task_order="ready", link_order="out-of-order", routes="nearest")
"""The behaviour of the papers' systems: any task with all its inputs may start, a file that is not ready is skipped,
and each file comes from the nearest copy."""
FETCHING = replace(AS_PUBLISHED, prefetch_depth=1)
"""A contributor prefetches the inputs of the next task only."""
NAMES = {"lheft": "L-HEFT", "dheft": "D-HEFT", "workqueue": "workqueue"}


def shared_pcs(
    count: int,
    seed: int,
    *,
    burst: float = BURST,
    bandwidth: float = GIGABIT,
) -> Platform:
    """Equal PCs on a switch, each used intermittently by its owner.

    >>> lab = shared_pcs(16, seed=0)
    >>> len(lab.hosts), sorted(set(lab.hosts[0].trace.value.tolist()))
    (16, [0.4, 1.0])
    """
    series = SeriesSpec("loaded", LOST_SHARE, burst)
    hosts = tuple(
        Host(f"pc{i}", trace=make_series(series, 1.0, 14_400.0, [seed, 51, i])) for i in range(count)
    )
    site = Site("lab", hosts, bandwidth=bandwidth, latency=2e-4)
    return Platform((site,), contention="none", name="lab")


def idle_pcs(count: int, contention: Literal["none", "fair"] = "none") -> Platform:
    """Equal PCs without other users."""
    hosts = tuple(Host(f"pc{i}") for i in range(count))
    return Platform((Site("lab", hosts, bandwidth=GIGABIT, latency=2e-4),), contention=contention, name="lab")


def with_changes(platform: Platform, changes: Sequence[Change]) -> GridScript:
    """The same PCs with scripted joins and losses."""
    return GridScript(platform, (), {}, changes=tuple(changes))


@dataclass(eq=False)
class Timed:
    """Wraps a scheduler and measures its CPU seconds."""

    inner: Scheduler
    cpu: float = 0.0
    calls: int = 0
    assigned: int = 0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.inner.name

    @property
    def wake(self) -> WakeConditions:
        return self.inner.wake

    @property
    def plans(self) -> int:
        return int(getattr(self.inner, "plans", self.calls))

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]:
        began = time.process_time()
        commands = self.inner.react(view, events)
        self.cpu += time.process_time() - began
        self.calls += 1
        self.assigned += sum(len(c.tasks) if isinstance(c, AssignMany) else 1 for c in commands)
        return commands


@dataclass(frozen=True)
class Measured:
    """One run: its makespan and the cost of scheduling."""

    makespan: float
    gigabytes: float
    """Data moved between contributors."""
    cpu: float
    """CPU seconds spent in the scheduler on this machine."""
    calls: int
    plans: int
    """Number of plans made by D-HEFT."""
    planned: int
    """Number of task placements, including repeated ones."""
    redone: int
    run: SimulatedRun


def measure(
    program: Program | Graph,
    grid: Platform | GridScript,
    scheduler: str | Scheduler,
    *,
    seed: int = 0,
    planning: float = PLANNING,
    execution: ExecutionPolicy = FETCHING,
) -> Measured:
    """Measure a run under a named scheduler that predicts from history; planning time is given by `planning`."""
    config = SimulationConfig(execution=execution, estimates="history")
    if isinstance(scheduler, str):
        policy = accepted_policy(scheduler, ReplanPolicy(planning=planning))
        made = make_scheduler(scheduler, policy, seed)
    else:
        made = scheduler
    timed = Timed(made)
    run = simulate_program(program, grid, timed, config, seed=seed)
    planned = int(getattr(made, "planned_tasks", timed.assigned))
    return Measured(
        run.makespan, run.bytes_moved / 1e9, timed.cpu, timed.calls, timed.plans, planned, run.redone, run
    )


def warm_up(program: Program) -> None:
    """Run each scheduler once without measuring it, so that compiled code is loaded."""
    for name in NAMES:
        measure(program, shared_pcs(4, seed=0), name)


def finished_over_time(run: SimulatedRun, moments: Sequence[float]) -> list[float]:
    """Tasks finished by each time; a task that is re-executed counts as unfinished from the loss that caused it."""
    ended = run.log_kind == TASK_ENDED
    losses = run.log_time[run.log_kind == HOST_LEFT]
    return count_finished(
        run.log_time[ended].tolist(), run.log_subject[ended].tolist(), losses.tolist(), moments
    )


def count_finished(
    times: Sequence[float],
    tasks: Sequence[int | str],
    losses: Sequence[float],
    moments: Sequence[float],
) -> list[float]:
    """Tasks finished by each moment, from the ends of all executions in order of time, and the times of losses.

    A task that is re-executed counts as unfinished from the loss that caused it. O(executions log executions).

    >>> count_finished([1.0, 2.0, 4.0], ["a", "b", "a"], [3.0], [1.0, 2.0, 3.0, 4.0])
    [1.0, 2.0, 1.0, 2.0]
    """
    steps: list[tuple[float, int]] = [(when, 1) for when in times]
    last: dict[int | str, float] = {}
    for task, when in zip(tasks, times, strict=True):
        if task in last:
            between = [loss for loss in losses if last[task] <= loss <= when]
            steps.append((between[0] if between else when, -1))
        last[task] = when
    steps.sort()
    at = np.array([when for when, _ in steps])
    total = np.concatenate(([0], np.cumsum([change for _, change in steps])))
    return [float(total[i]) for i in np.searchsorted(at, np.asarray(moments), "right")]


MOMENTS = [15.0 * k for k in range(4 * 60)]
"""Times within an hour at which finished tasks are counted."""


def finished_picture(title: str, curves: Mapping[str, Sequence[float]], last: float) -> Diagram:
    """A plot of finished tasks over minutes, at MOMENTS up to `last`."""
    shown = [moment for moment in MOMENTS if moment <= last]
    return Diagram(
        title=title,
        x_label="minutes",
        y_label="tasks",
        x=[moment / 60.0 for moment in shown],
        curves={name: curve[: len(shown)] for name, curve in curves.items()},
    )


def judged(
    paper: str,
    measured: str,
    agrees: bool,
    why: str = "no cause was isolated",
    *,
    rule: str,
    afterwards: bool = False,
) -> Claim:
    """A claim that includes `why` only if it disagrees.

    >>> judged("rises", "rises", True, rule="> 1").why, judged("rises", "falls", False, rule="> 1").why
    ('', 'no cause was isolated')
    """
    return Claim(paper, measured, agrees, "" if agrees else why, rule, afterwards)


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean; 0 for a single value.

    >>> standard_error([1.0]), standard_error([1.0, 3.0])
    (0.0, 1.0)
    """
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean.

    >>> mean([1.0, 2.0])
    1.5
    """
    return float(np.mean(values))
