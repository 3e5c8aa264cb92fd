"""What an experiment would take, before anything runs: tasks after reuse, time with its spread, bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.execution import first_plan
from headrace.experiment.sweep.merge import Merged, merge
from headrace.experiment.sweep.merged_program import MergedProgram, merged_program
from headrace.experiment.sweep.remaining import Left, left_of
from headrace.experiment.sweep.substitute import Experiment, bind
from headrace.formats.experiment_toml import read_experiment
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.record.queries import mean_outputs
from headrace.record.run_reports import makespan_ratios
from headrace.run_request import RunRequest, run_request
from headrace.runtime.remaining import remaining_program

if TYPE_CHECKING:
    from headrace.record import Record

MOST_PLANNED = 5_000
"""With more tasks left, no plan is made: the time is estimated from a sample of combinations."""
SAMPLE = 200
"""Combinations in the sample."""
REPLAYS = 41
TASK_ERROR = 0.2
"""Share by which the run time of a single task may differ from its estimate."""
_TAIL = 1.645
"""Standard deviations between the middle and the 5th or 95th percentile."""
_LEAST_DEVIATION = 0.08
_WITHOUT_RUNS = 0.25
_WITHOUT_HISTORY = 0.7
"""Standard deviation of the logarithm of real over expected time, if nothing is known."""
_EACH_RUN = 0.15
"""Seconds that a run takes at its beginning and end, and is not planned."""


@dataclass(frozen=True, eq=False)
class Quote:
    """What an experiment would take."""

    name: str
    points: int
    alone: int
    """Tasks if every combination ran by itself."""
    tasks: int
    """Distinct tasks."""
    reused: int
    """Tasks whose results are kept, or that nothing needs any more."""
    left: int
    seconds: float
    """Expected time of the run, without the start of workers."""
    low: float
    high: float
    """The 5th and the 95th percentile."""
    stored: float
    """Bytes that would be stored."""
    basis: str
    """What the time is based on."""
    platform: Platform | None
    plan: Plan | None
    """None if nothing is left, or too much to plan it here."""
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "experiment": self.name,
            "combinations": self.points,
            "tasks_alone": self.alone,
            "tasks": self.tasks,
            "reused": self.reused,
            "left": self.left,
            "seconds": self.seconds,
            "low": self.low,
            "high": self.high,
            "stored_bytes": self.stored,
            "basis": self.basis,
            "platform": None if self.platform is None else self.platform.name,
            "planned": self.plan is not None,
            "notes": list(self.notes),
        }


def quote(
    file: str | Path,
    on: Any = "local",
    *,
    record: str | Path | None = None,
    allow_commands: bool = False,
    say: Callable[[str], None] = lambda text: None,
    **more: Any,
) -> Quote:
    """What `sweep` would do with these parameters, and how long it would take.

    The program's file is executed to build the program; no task is. Kept values are looked up but not verified.
    O(combinations * tasks + bytes of input files), and the time of a plan if at most 5,000 tasks are left.
    """
    from headrace.record import Record
    from headrace.record.reuse import find_kept

    request = run_request(on=on, **more)
    with Record.open(record) as book:
        experiment = bind(read_experiment(file), commands=allow_commands)
        say(f"merging {len(experiment.points)} combinations")
        merged = merge(experiment)
        kept = find_kept(book, _item_identities(merged), contents=False)
        left = left_of(merged, kept)
        base = Quote(
            experiment.name, merged.points, merged.tasks_alone, len(merged.identities), left.reused, left.tasks,
            0.0, 0.0, 0.0, 0.0, "nothing is left to run", None, None, _notes(merged),
        )  # fmt: skip
        if left.tasks == 0:
            return base
        say(f"{left.tasks} of {len(merged.identities)} distinct tasks are left to run")
        if left.tasks <= MOST_PLANNED:
            return _planned(base, merged, kept.keys(), request, book)
        return _sampled(base, experiment, left, request, book)


def _notes(merged: Merged) -> tuple[str, ...]:
    unknown = [
        f"{name} refers to {what}, whose changes cannot be noticed: it is never reused"
        for name, what in merged.known.unknown.items()
    ]
    return (*merged.experiment.notes, *unknown)


def _item_identities(merged: Merged) -> set[str]:
    """Identities of all items that tasks make."""
    found = set(merged.identities)
    for variant in merged.variants:
        for name, of in variant.tasks.items():
            for k in range(1, len(variant.program.tasks[name].outputs)):
                found.update(f"{identity}.{k}" for identity in of.identity)
    return found


def _planned(base: Quote, merged: Merged, kept: Any, request: RunRequest, book: Record) -> Quote:
    """With a plan of what is left, replayed with errors of run times."""
    from headrace.simulator.replay.plan_replay import PlanReplays

    built = merged_program(merged)
    program = _left_program(built, kept)
    forecast = first_plan(program, request, book)
    plan = forecast.plan
    if plan is None:  # a scheduler that decides while the program runs
        forecast = first_plan(program, replace(request, scheduler="heft"), book)
        plan = forecast.plan
    assert plan is not None, "heft plans"
    replays = PlanReplays(plan, error=TASK_ERROR)
    times = np.sort([replays(seed) for seed in range(REPLAYS)])
    seen = forecast.learned.same_task + forecast.learned.by_kind
    rows = [(task.kind, 1, _declared(program, task.name)) for task in program.tasks.values()]
    low, middle, high, text = _interval(times, seen / len(program.tasks), forecast.platform.name, book)
    return replace(
        base, seconds=middle, low=low, high=high, stored=_stored(rows, book),
        basis=f"{seen} of {len(program.tasks)} run times from history; {text}",
        platform=forecast.platform, plan=forecast.plan,
    )  # fmt: skip


def _left_program(built: MergedProgram, kept: Any) -> Program:
    items = {item: (1.0, 0) for item, identity in built.items.items() if identity in kept}
    return remaining_program(built.program, items).program


def _interval(times: Any, known: float, platform: str, book: Record) -> tuple[float, float, float, str]:
    """Percentiles of the time: those of replays, widened by how far earlier runs were from their plans.

    `known` is the share of run times that come from history.
    """
    ratios = np.log(makespan_ratios(book, platform))
    if known < 0.5:
        centre, deviation, text = 0.0, _WITHOUT_HISTORY, "too little history for a narrow interval"
    elif len(ratios) < 3:
        centre, deviation, text = 0.0, _WITHOUT_RUNS, "fewer than three earlier runs to compare plans with"
    else:
        centre = float(np.median(ratios))
        spread = 1.4826 * float(np.median(np.abs(ratios - centre)))
        # With few runs the deviation is itself uncertain.
        deviation = max(_LEAST_DEVIATION, spread * (1.0 + 2.0 / len(ratios)), 0.3 * abs(centre))
        text = f"{len(ratios)} earlier runs took {math.exp(centre):.2f} times their plans"
    low, middle, high = np.quantile(times, [0.05, 0.5, 0.95]) * math.exp(centre)
    return (
        float(low * math.exp(-_TAIL * deviation)),
        float(middle) + _EACH_RUN / 2,
        float(high * math.exp(_TAIL * deviation)) + _EACH_RUN,
        text,
    )


def _declared(program: Program, task: str) -> float:
    """Bytes of a task's outputs as the program says."""
    return sum(program.data[name].size or 0.0 for name in program.tasks[task].outputs)


def _stored(rows: Iterable[tuple[str, int, float]], book: Record) -> float:
    """Bytes of outputs: rows are kinds of tasks, how many, and the bytes that each makes if there is no history."""
    found = list(rows)
    measured = mean_outputs(book.database, [kind for kind, _, _ in found])
    return sum(count * measured.get(kind, declared) for kind, count, declared in found)


def _sampled(base: Quote, experiment: Experiment, left: Left, request: RunRequest, book: Record) -> Quote:
    """Without a plan: total work over total speed, and the longest path, from a sample of combinations."""
    rng = np.random.default_rng(len(experiment.points))
    chosen = np.sort(rng.choice(len(experiment.points), min(SAMPLE, len(experiment.points)), replace=False))
    built = merged_program(merge(replace(experiment, points=experiment.points[chosen])))
    forecast = first_plan(built.program, replace(request, scheduler="heft", rules=None), book)
    learned, platform = forecast.learned, forecast.platform
    graph = learned.graph
    work: dict[str, list[float]] = {}
    example: dict[str, str] = {}
    for name, seconds in zip(graph.task_names, graph.work.tolist(), strict=True):
        of = built.facts[name].base
        work.setdefault(of, []).append(seconds)
        example[of] = name
    total = sum(count * float(np.mean(work.get(name) or [1.0])) for name, count in left.by_task.items())
    cores = np.array([host.cores for host in platform.hosts], float)
    speed = float((platform.rates(graph).mean(axis=0) * cores).sum())
    longest = float(forecast.plan.bound) if forecast.plan is not None else 0.0
    expected = max(total / speed, min(longest, total))
    rows = [
        (built.program.tasks[example[name]].kind, count, _declared(built.program, example[name]))
        for name, count in left.by_task.items()
        if name in example
    ]
    seen = learned.same_task + learned.by_kind
    low, middle, high, text = _interval(
        np.array([expected, 1.05 * expected, 1.15 * expected]), seen / graph.n_tasks, platform.name, book
    )
    return replace(
        base, seconds=middle, low=low, high=high, stored=_stored(rows, book),
        basis=f"a sample of {len(chosen)} combinations, total work over total speed; {text}", platform=platform,
    )  # fmt: skip
