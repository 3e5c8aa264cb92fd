"""The demo: one real program, twice on the same unequal workers, with and without a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.commands.demo_program import demo_program, try_each_kind
from headrace.core.scheduler import Follow, Problem, Scheduler, assignments_of
from headrace.model.check import require_valid
from headrace.model.graph import Floats, Graph
from headrace.model.plan import Plan
from headrace.model.units import show_time
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import make

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.execute import Outcome

PLANNING_SECONDS = 2.0
SPEEDS = (4.0, 2.0, 1.0, 1.0)
STRETCH = 32.0
"""A worker of speed s makes each task last STRETCH / s times its CPU time: four of them fit on two cores."""


@dataclass(frozen=True, eq=False)
class Demo:
    """Both runs and what they are measured against."""

    plan: Plan
    engine: Outcome
    planned: Outcome
    bound: float
    """No placing of these tasks, as measured in both runs, can take less on these workers."""
    same: bool
    """Both runs gave the same picture, bit for bit."""

    def rows(self) -> list[tuple[str, float, float]]:
        """(who placed the tasks, makespan, ratio to the bound)."""
        return [
            (who, outcome.makespan, outcome.makespan / self.bound)
            for who, outcome in (("Dask's own scheduling", self.engine), ("Headrace plan", self.planned))
        ]

    @property
    def speedup(self) -> float:
        return self.engine.makespan / self.planned.makespan


def run_demo(say: Callable[[str], None]) -> Demo:
    """Estimate, plan, run under the engine alone, run under the plan, compare."""
    from headrace.runtime.cluster import open_local

    say("trying one task of each kind to estimate run times")
    seconds = {kind: cpu * STRETCH for kind, cpu in try_each_kind().items()}
    program = demo_program(seconds)
    graph = program.graph
    shown = " : ".join(f"{speed:g}" for speed in SPEEDS)
    say(f"starting four workers; their speeds {shown} are emulated: each worker stretches its tasks")
    with open_local(speeds=SPEEDS, stretch=STRETCH) as cluster:
        say(f"planning {graph.n_tasks} tasks")
        planner = make("best", time=PLANNING_SECONDS)
        plan = planner.plan(Problem(graph, cluster.platform))
        require_valid(graph, cluster.platform, plan)
        _warm_up(cluster)
        say("running with Dask's own scheduling")
        engine = _checked(cluster, program, None)
        say("running with the Headrace plan")
        planned = _checked(cluster, program, Follow(planner, assignments_of(plan)))
        work = _measured_work(graph, engine.measured, planned.measured)
        bound = lower_bound(Problem(graph.with_work(work), cluster.platform))
    same = all(np.array_equal(engine.results[name], planned.results[name]) for name in planned.results)
    return Demo(plan, engine, planned, bound, same and bool(planned.results))


def _checked(cluster: Cluster, program: Any, scheduler: Scheduler | None) -> Outcome:
    outcome = cluster.execute(program, scheduler)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome


def _warm_up(cluster: Cluster) -> None:
    """Import what tasks need on every worker before anything is measured."""
    cluster.client.run(try_each_kind)


def _measured_work(graph: Graph, *runs: Mapping[str, Mapping[str, Any]]) -> Floats:
    """Seconds of each task at speed 1: its CPU time in the quicker of the runs, stretched."""
    return np.array([min(run[name]["cpu"] for run in runs) for name in graph.task_names]) * STRETCH


def write_demo_page(demo: Demo, path: Path) -> None:
    """Both Gantt charts in one self-contained page, the plan as outlines behind what happened."""
    from headrace.report.gantt import run_chart
    from headrace.report.page import Heading, Paragraph, Table, write_page

    graph, platform = demo.plan.graph, demo.plan.platform
    longest = max(makespan for _, makespan, _ in demo.rows())  # one time axis for both charts
    rows = [
        [who, show_time(makespan), show_time(demo.bound), f"{ratio:.2f}"]
        for who, makespan, ratio in demo.rows()
    ]

    def chart(outcome: Outcome, plan: Plan | None, title: str) -> Any:
        drawn = run_chart(plan, outcome.events, platform, graph=graph, bound=demo.bound, title=title)
        return replace(drawn, end=longest)

    write_page(
        path,
        "Headrace demo",
        [
            Paragraph(
                f"{graph.n_tasks} tasks that cut, filter and stitch image tiles, run twice on the same four "
                f"workers. {_emulation()} Both runs gave {'the same' if demo.same else 'DIFFERENT'} results."
            ),
            Table(["placed by", "makespan", "lower bound", "ratio"], rows),
            Heading("With a plan"),
            Paragraph("Filled bars are what happened; outlines behind them are what was planned."),
            chart(demo.planned, demo.plan, "Headrace plan"),
            Heading("Without"),
            chart(demo.engine, None, "Dask's own scheduling"),
        ],
    )


def _emulation() -> str:
    shown = " : ".join(f"{speed:g}" for speed in SPEEDS)
    return (
        f"Their speeds {shown} are emulated on one machine: a worker of speed s makes each task last "
        f"{STRETCH:g} / s times the CPU time it used."
    )


def demo_json(demo: Demo) -> dict[str, Any]:
    """The figures for machines."""
    rows: Sequence[tuple[str, float, float]] = demo.rows()
    return {
        "tasks": demo.plan.graph.n_tasks,
        "speeds": list(SPEEDS),
        "stretch": STRETCH,
        "bound": demo.bound,
        "runs": [{"placed_by": who, "makespan": makespan, "ratio": ratio} for who, makespan, ratio in rows],
        "speedup": demo.speedup,
        "same_results": demo.same,
    }
