"""`headrace demo`: one real program, run twice on the same unequal workers, without and with a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.demo_program import demo_program, try_each_kind
from headrace.commands.options import JsonOption
from headrace.core.replan import Replan
from headrace.core.scheduler import Problem, Scheduler
from headrace.model.check import require_valid
from headrace.model.events import TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.model.units import show_time
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import make
from headrace.predict.history import Measurement, predict

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.execute import Outcome

PLANNING_SECONDS = 1.0
SPEEDS = (4.0, 2.0, 1.0, 1.0)
STRETCH = 18.0
"""A worker of speed s makes each task last STRETCH / s times its CPU time: four of them fit on two cores."""


@dataclass(frozen=True, eq=False)
class Demo:
    """Both runs and their lower bounds."""

    plan: Plan
    engine: Outcome
    planned: Outcome
    engine_bound: float
    """No placement takes less time on these workers, with run times as measured in that run."""
    planned_bound: float
    same: bool
    """Whether both runs gave the same image, bit for bit."""

    def rows(self) -> list[Figures]:
        """The figures of both runs, in order."""
        return [
            Figures("Dask's own scheduling", self.engine.makespan, self.engine_bound),
            Figures("Headrace plan", self.planned.makespan, self.planned_bound),
        ]

    @property
    def speedup(self) -> float:
        return self.engine.makespan / self.planned.makespan


class Figures(NamedTuple):
    """The figures of one run."""

    placed_by: str
    makespan: float
    bound: float

    @property
    def ratio(self) -> float:
        return self.makespan / self.bound


def run_demo(say: Callable[[str], None]) -> Demo:
    """Run under Dask's own scheduling, plan with the measured run times, run the plan, and compare."""
    from headrace.runtime.cluster import open_local

    program = demo_program()
    shown = " : ".join(f"{speed:g}" for speed in SPEEDS)
    say(f"starting four workers; their speeds {shown} are emulated: each worker stretches its tasks")
    with open_local(speeds=SPEEDS, stretch=STRETCH) as cluster:
        _warm_up(cluster)
        say(f"running {len(program.tasks)} tasks with Dask's own scheduling")
        engine = _checked(cluster, program, None)
        say("planning with the run times measured in this run")
        graph, platform = predict(program.graph, cluster.platform, _measurements(program, engine))
        planner = make("best", time=PLANNING_SECONDS)
        plan = planner.plan(Problem(graph, platform))
        require_valid(graph, platform, plan)
        say("running the Headrace plan")
        planned = _checked(cluster, program, Replan(planner, first=plan))
        engine_bound, planned_bound = (
            _bound(program.graph, cluster.platform, outcome) for outcome in (engine, planned)
        )
    same = all(np.array_equal(engine.results[name], planned.results[name]) for name in planned.results)
    return Demo(plan, engine, planned, engine_bound, planned_bound, same and bool(planned.results))


def _measurements(program: Program, outcome: Outcome) -> list[Measurement]:
    """The run time of each task, in order of completion."""
    return [
        Measurement(
            program.tasks[e.task].kind, e.host, e.time - e.start, float(outcome.measured[e.task]["read"])
        )
        for e in outcome.events
        if isinstance(e, TaskFinished)
    ]


def _bound(graph: Graph, platform: Platform, outcome: Outcome) -> float:
    """The lower bound with the stretched CPU time of each task in this run."""
    work = np.array([outcome.measured[name]["cpu"] for name in graph.task_names]) * STRETCH
    return lower_bound(Problem(graph.with_work(work), platform))


def _checked(cluster: Cluster, program: Program, scheduler: Scheduler | None) -> Outcome:
    outcome = cluster.execute(program, scheduler)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome


def _warm_up(cluster: Cluster) -> None:
    """Import what tasks need on every worker before measuring."""
    cluster.client.run(try_each_kind)


def write_demo_page(demo: Demo, path: Path) -> None:
    """Write both Gantt charts to one self-contained page, with the plan as outlines and the causes of late bars."""
    from headrace.report.interactive import chart_script
    from headrace.report.page import Data, Heading, Paragraph, Table, write_page
    from headrace.report.schedule_data import FinishedRun, run_data

    graph, platform = demo.plan.graph, demo.plan.platform
    longest = max(row.makespan for row in demo.rows())  # one time axis for both charts
    rows = [
        [row.placed_by, show_time(row.makespan), show_time(row.bound), f"{row.ratio:.2f}"]
        for row in demo.rows()
    ]

    def chart(outcome: Outcome, plan: Plan | None, bound: float, title: str) -> Data:
        run = FinishedRun(outcome.events, graph, platform, plan, bound=bound, title=title)
        return Data(run_data(run) | {"end": longest})

    write_page(
        path,
        "Headrace demo",
        [
            Paragraph(
                f"{graph.n_tasks} tasks that cut, sharpen and stitch a colour picture, run twice on the same four "
                f"workers. {_emulation()} The first run used Dask's own scheduling; the plan uses the run times "
                f"measured in it. Both runs gave {'the same' if demo.same else 'DIFFERENT'} results."
            ),
            Table(["placed by", "makespan", "lower bound", "ratio"], rows),
            Heading("With a plan"),
            Paragraph(
                "Filled bars show the run, outlines show the plan. Select a bar that ended late to see why."
            ),
            chart(demo.planned, demo.plan, demo.planned_bound, "Headrace plan"),
            Heading("Without"),
            chart(demo.engine, None, demo.engine_bound, "Dask's own scheduling"),
        ],
        chart_script(),
    )


def _emulation() -> str:
    shown = " : ".join(f"{speed:g}" for speed in SPEEDS)
    return (
        f"Their speeds {shown} are emulated on one machine: a worker of speed s makes each task last "
        f"{STRETCH:g} / s times the CPU time it used."
    )


def demo_json(demo: Demo) -> dict[str, Any]:
    """The figures as JSON."""
    return {
        "tasks": demo.plan.graph.n_tasks,
        "speeds": list(SPEEDS),
        "stretch": STRETCH,
        "runs": [row._asdict() | {"ratio": row.ratio} for row in demo.rows()],
        "speedup": demo.speedup,
        "same_results": demo.same,
    }


def record_runs(demo: Demo) -> list[str]:
    """Put both runs into the record, where `headrace ui` and `headrace report` find them; returns their names."""
    from headrace.record import Record
    from headrace.record.run_plans import note_hosts, note_plan

    graph, platform = demo.plan.graph, demo.plan.platform
    names = []
    with Record.open() as record:
        for outcome, plan, bound in (
            (demo.engine, None, demo.engine_bound),
            (demo.planned, demo.plan, demo.planned_bound),
        ):
            with record.begin("demo", graph, platform, "dask" if plan is None else "best", plan) as entry:
                note_plan(record, entry.id, graph, platform, plan)
                for event in outcome.events:
                    entry.observe(event)
                note_hosts(record, entry.id, outcome.events)
                entry.finish("done", makespan=outcome.makespan, bound=bound)
                names.append(entry.id)
    return names


def demo(
    page: Annotated[Path, typer.Option("--page", metavar="FILE", help="HTML page with both charts.")] = Path(
        "demo.html"
    ),
    as_json: JsonOption = False,
) -> None:
    """Run the demo, write its page, and print the comparison."""
    outcome = run_demo(lambda line: typer.echo(f"- {line}", err=True))
    write_demo_page(outcome, page)
    if as_json:
        print_json(demo_json(outcome))
    else:
        rows = [
            [row.placed_by, show_time(row.makespan), show_time(row.bound), f"{row.ratio:.2f}"]
            for row in outcome.rows()
        ]
        print_table(["placed by", "makespan", "lower bound", "ratio"], rows)
        same = "the same" if outcome.same else "DIFFERENT"
        typer.echo(f"both runs gave {same} results; the planned run was {outcome.speedup:.2f} times as fast")
        typer.echo(f"charts: {page}")
        typer.echo(f"both runs are in the record, as {' and '.join(record_runs(outcome))}; to look at them:")
        typer.echo("  headrace ui" if find_spec("starlette") else "  pip install 'headrace[ui]'; headrace ui")
    if not outcome.same:
        raise typer.Exit(1)
