"""A plan or a run as one HTML file: a Gantt chart to zoom and ask, rules, and why bars are late."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from headrace.model.plan import Plan
from headrace.model.units import show_time
from headrace.report.deviations import deviations
from headrace.report.page import Data, Heading, Paragraph, Part, Table, page_html
from headrace.report.schedule_data import FinishedRun, plan_data, run_data
from headrace.report.tables import summary

Rules = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Headers and rows, as `headrace.report.rules.rule_rows` makes them."""
_MOST_LATE = 10


def plan_report(plan: Plan, rules: Rules | None = None) -> str:
    """The page of a plan, with the table of its rules if it has some.

    >>> import headrace as hr
    >>> program = hr.Program("one")
    >>> done = program.task(None, name="a", work=2.0)
    >>> "<h1>one on platform" in plan_report(hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6)))
    True
    """
    data = plan_data(plan)
    rows = [list(row) for row in summary(plan)]
    return _page(data, rows, rules)


def run_report(run: FinishedRun, rules: Rules | None = None) -> str:
    """The page of a run: its bars over the outlines of the plan, the makespan by cause, and cause chains."""
    data = run_data(run)
    rows = [["makespan", show_time(run.timeline.end)]]
    if run.plan is not None:
        rows.append(["planned makespan", show_time(run.plan.makespan)])
    if run.bound:
        rows.append(["lower bound", show_time(run.bound)])
    split = deviations(run.plan, run.events, run.graph, run.platform)
    if split is not None:
        rows.append(["difference" if run.plan is not None else "time spent", split.text()])
    return _page(data, rows, rules, _late(run))


def chart_script() -> str:
    """The script that draws the charts of a page."""
    return (files("headrace.report") / "static" / "report.js").read_text(encoding="utf-8")


def _page(data: dict[str, Any], rows: list[list[str]], rules: Rules | None, more: Sequence[Part] = ()) -> str:
    parts: list[Part] = [Table(["", ""], rows), Data(data)]
    parts += [Paragraph(note) for note in data["notes"]]
    if rules is not None:
        parts += [Heading("Rules"), Table(*rules)]
    return page_html(data["title"], [*parts, *more], chart_script())


def _late(run: FinishedRun) -> list[Part]:
    """The latest tasks, each with the root of its delay and the chain to it."""
    causes = run.causes
    if causes is None:
        return []
    late = [
        (cause.late, i)
        for i, cause in enumerate(causes.causes)
        if cause is not None and cause.late > causes.tolerance and causes.run.activities[i].is_task
    ]
    if not late:
        return [Heading("Late tasks"), Paragraph("No task ended later than planned.")]
    rows = [
        [
            causes.run.activities[i].name,
            show_time(seconds),
            causes.chain(i)[-1].reason,
            "; ".join(step.text for step in causes.chain(i)[::-1][:6]),
        ]
        for seconds, i in sorted(late, key=lambda entry: (-entry[0], entry[1]))[:_MOST_LATE]
    ]
    return [
        Heading("Late tasks"),
        Paragraph(
            f"{len(late)} tasks ended later than planned; these the latest. Causes start with the root."
        ),
        Table(["task", "late by", "root", "causes"], rows),
    ]
