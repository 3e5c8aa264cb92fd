"""Plans and runs as rows: for pandas, CSV and Parquet. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.formats.files import is_stdout
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.graph import Graph
from headrace.report.table_files import is_table, write_table

if TYPE_CHECKING:
    from headrace.model.plan import Plan

Rows = tuple[list[str], list[list[Any]]]
"""The names of columns, and rows of plain values."""


def plan_rows(plan: Plan, what: str = "tasks") -> Rows:
    """The tasks or transfers of a plan, by start time."""
    if _is_tasks(what):
        kinds = _kinds(plan.graph)
        rows = [[t.id, kinds[t.id], t.host, t.core, t.start, t.finish] for t in plan.tasks()]
        return ["task", "kind", "host", "core", "start", "finish"], rows
    sizes = dict(zip(plan.graph.item_names, plan.graph.size.tolist(), strict=True))
    moves = [[m.data, m.source, m.target, sizes[m.data], m.start, m.finish] for m in plan.transfers()]
    return ["item", "source", "target", "size", "start", "finish"], moves


def event_rows(events: Iterable[Event], graph: Graph, what: str = "tasks") -> Rows:
    """The executions or transfers of a real run, as they ended."""
    if _is_tasks(what):
        kinds = _kinds(graph)
        rows = [
            [e.task, kinds.get(e.task, ""), e.host, e.start, e.time]
            for e in events
            if isinstance(e, TaskFinished)
        ]
        return ["task", "kind", "host", "start", "finish"], rows
    moves = [
        [e.item, e.source, e.target, e.size, e.start, e.time] for e in events if isinstance(e, DataMoved)
    ]
    return ["item", "source", "target", "size", "start", "finish"], moves


def plan_frame(plan: Plan, what: str = "tasks") -> Any:
    """The tasks or transfers of a plan as a `pandas.DataFrame`."""
    return frame(*plan_rows(plan, what))


def events_frame(events: Iterable[Event], graph: Graph, what: str = "tasks") -> Any:
    """The executions or transfers of a run as a `pandas.DataFrame`."""
    return frame(*event_rows(events, graph, what))


def frame(columns: list[str], rows: list[list[Any]]) -> Any:
    """Rows as a `pandas.DataFrame`."""
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise UsageError("this needs pandas, which is not installed", hint="pip install pandas") from None
    return pandas.DataFrame(rows, columns=columns)


def write_plan_as(plan: Plan, path: str | Path) -> None:
    """Write a plan in the format that the suffix of the file selects."""
    from headrace.formats.plan_json import write_plan

    name = str(path).lower()
    if name.endswith(".svg"):
        plan.gantt(path)
    elif is_table(path):
        write_table(path, *plan_rows(plan))
    elif name.endswith((".json", ".json.gz")) or is_stdout(path):
        write_plan(plan, Path(path))
    else:
        raise UsageError(
            f"the suffix of {str(path)!r} selects no format for a plan",
            hint="use .json, .csv, .parquet or .svg",
        )


def _is_tasks(what: str) -> bool:
    if what not in ("tasks", "transfers"):
        raise UsageError(f"there is no table of {what!r}", hint="tasks or transfers")
    return what == "tasks"


def _kinds(graph: Graph) -> dict[str, str]:
    return {name: graph.kinds[kind] for name, kind in zip(graph.task_names, graph.kind.tolist(), strict=True)}
