"""The second study of the constraint paper: experiments on 47 programs, executed on real workers with emulated speeds.

In each program an input task and another task have four versions each: 16 combinations, merged so that each distinct
task runs once. Tasks sleep, so that two cores are enough for nine workers. A plan of the same merged program for nine
workstations on the paper's Ethernet, which local workers do not have, is shown for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace.core.scheduler import Problem
from headrace.experiment.diagram import Diagram
from headrace.experiment.image_processing import lesson
from headrace.experiment.sweep.axes import Axis, combinations
from headrace.experiment.sweep.merge import Merged, merge
from headrace.experiment.sweep.merged_program import merged_program
from headrace.experiment.sweep.substitute import Experiment
from headrace.formats.experiment_toml import ExperimentFile
from headrace.model.check import require_valid
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.model.units import plural
from headrace.planners.list.heft import Heft
from headrace.reproductions import Ask, Claim, Reproduction
from headrace.reproductions.constraints import ETHERNET, LESSONS, PAPER, PROCESSORS
from headrace.reproductions.contributors import judged
from headrace.reproductions.real_workers import run_real
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.emulate import Emulated, emulate

VERSIONS = 4
SPEEDS = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 0.4)
"""Of the workers: two of the workstations are in use by others."""
TIME_SCALE = 0.02
"""A task of 4 s sleeps 80 ms."""
SIZE_SCALE = 0.01
PAPER_SPEEDUP, PAPER_PROCESSORS = 3.4, 5.5


@dataclass(frozen=True)
class Version:
    """One of several versions of an emulated task."""

    body: Emulated
    number: int
    sets_own_pace = True

    def __call__(self, *inputs: object) -> object:
        return self.body(*inputs)


@dataclass(frozen=True)
class Result:
    """One program."""

    name: str
    tasks: int
    alone: int
    distinct: int
    executed: int
    work: float
    """Seconds of all distinct tasks on a worker of speed 1."""
    makespan: float
    processors: int
    planned_speedup: float
    """On nine workstations joined by Ethernet."""
    planned_processors: int

    @property
    def speedup(self) -> float:
        return self.work / self.makespan

    @property
    def saved(self) -> float:
        return 1.0 - self.distinct / self.alone


def merged_lesson(seed: int, time_scale: float, size_scale: float) -> Merged:
    """A program in which an input task and another one, chosen at random, have four versions each.

    >>> found = merged_lesson(3, 0.01, 0.01)
    >>> found.points, found.tasks_alone > len(found.identities)
    (16, True)
    """
    program = emulate(lesson(seed), time_scale=time_scale, size_scale=size_scale)
    rng = np.random.default_rng([seed, 3])
    inputs = [name for name, task in program.tasks.items() if not task.inputs]
    others = [name for name, task in program.tasks.items() if task.inputs]
    axes = tuple(_versions(str(rng.choice(names)), program) for names in (inputs, others))
    file = ExperimentFile(Path(f"{program.name}.toml"), program.name, "", ())
    return merge(Experiment(file, axes, combinations(axes, file), lambda values: program))


def _versions(task: str, program: Program) -> Axis:
    body: Any = program.tasks[task].body
    labels = tuple(f"version {k}" for k in range(VERSIONS))
    return Axis(task, "task", task, labels, tuple(Version(body, k) for k in range(VERSIONS)))


def reproduce(ask: Ask) -> Reproduction:
    """All 47 programs."""
    return study(ask, range(LESSONS), TIME_SCALE)


def study(ask: Ask, seeds: Sequence[int], time_scale: float) -> Reproduction:
    """The table for these programs; `time_scale` is how much faster than in the paper time goes."""
    results = []
    with open_local(speeds=SPEEDS) as cluster:
        for _ in range(2):  # every worker loads its code, which is not what is measured
            run_real(cluster, merged_program(merged_lesson(2, TIME_SCALE, SIZE_SCALE)).program, "heft")
        for seed in seeds:
            ask.tell(f"lesson {seed}")
            results.append(_run(seed, cluster, time_scale))
    return Reproduction(
        title="Experiments: two tasks in four versions each, every distinct task once",
        source=f"{PAPER}, section 5, second study (figure 7)",
        headers=[
            "program", "tasks", "tasks of 16 combinations", "distinct tasks", "executed", "saved %", "makespan s",
            "processors", "speedup", "planned on Ethernet: processors", "speedup there",
        ],
        rows=[_row(each) for each in results],
        claims=claims(results),
        pictures=[_picture(results)],
        notes=[
            "Generated programs instead of the paper's. Speedup: work of the distinct tasks on a worker of speed 1, "
            "divided by the makespan.",
            f"Real runs: nine local workers of speeds {', '.join(f'{s:g}' for s in SPEEDS)}, planned by HEFT; tasks "
            f"sleep {time_scale:g} of the paper's seconds, and transfers take next to no time.",
            "Ethernet: HEFT's plan for nine equal workstations joined by 10 Mbit/s; not executed.",
        ],
    )  # fmt: skip


def _run(seed: int, cluster: Cluster, time_scale: float) -> Result:
    merged = merged_lesson(seed, time_scale, SIZE_SCALE)
    program = merged_program(merged).program
    course = run_real(cluster, program, "heft")
    lab = Platform(
        (Site("lab", tuple(Host(name) for name in PROCESSORS), bandwidth=ETHERNET, latency=1e-3),),
        name="nine workstations",
    )
    full = merged_program(merged_lesson(seed, 1.0, 1.0)).program
    plan = Heft().plan(Problem(full.graph, lab))
    require_valid(full.graph, lab, plan)
    return Result(
        merged.experiment.name,
        len(merged.variants[0].program.tasks),
        merged.tasks_alone,
        len(program.tasks),
        len(course.executions),
        float(program.graph.work.sum()),
        course.makespan,
        len({host for _, _, _, host in course.executions}),
        float(full.graph.work.sum()) / plan.makespan,
        plan.hosts_used,
    )


def _row(each: Result) -> list[str | float | int | None]:
    return [
        each.name, each.tasks, each.alone, each.distinct, each.executed, 100.0 * each.saved, each.makespan,
        each.processors, each.speedup, each.planned_processors, each.planned_speedup,
    ]  # fmt: skip


def claims(results: Sequence[Result]) -> list[Claim]:
    """The paper's statements, compared with the results."""
    speedup = _geometric([each.speedup for each in results])
    processors = sum(each.processors for each in results) / len(results)
    planned = _geometric([each.planned_speedup for each in results])
    used = sum(each.planned_processors for each in results) / len(results)
    alone, distinct = sum(each.alone for each in results), sum(each.distinct for each in results)
    once = sum(each.executed == each.distinct for each in results)
    return [
        judged(
            "results of tasks are reused: a task of several combinations is executed once",
            f"{distinct} instead of {alone} tasks ({1 - distinct / alone:.0%} saved); in {once} of {len(results)} "
            "experiments every distinct task was executed exactly once",
            once == len(results) and distinct < alone,
            rule="no task is executed twice, and fewer than without reuse",
        ),
        judged(
            f"speedup {PAPER_SPEEDUP} on {PAPER_PROCESSORS} processors on average",
            f"{speedup:.2f} on {processors:.1f} processors in real runs; {planned:.2f} on {used:.1f} planned on "
            "Ethernet",
            speedup >= PAPER_SPEEDUP,
            rule="a real speedup of at least the paper's",
        ),
        judged(
            "experiments have much more parallelism than single programs (speedup 1.4)",
            f"speedup {speedup:.2f}",
            speedup > 2 * 1.4,
            rule="more than twice the paper's 1.4",
        ),
    ]


def _picture(results: Sequence[Result]) -> Diagram:
    used = sorted({each.processors for each in results})
    groups = [[each.speedup for each in results if each.processors == count] for count in used]
    return Diagram(
        title="Speedup of experiments on real workers, geometric means",
        x_label="processors used",
        y_label="speedup",
        x=[f"{count} ({plural(len(g), 'experiment')})" for count, g in zip(used, groups, strict=True)],
        curves={"speedup": [_geometric(group) for group in groups]},
        shape="bars",
    )


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
