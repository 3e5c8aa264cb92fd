"""What a run was planned with: the program's estimates, the platform and the plan. A report explains the run by it."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.formats.plan_json import plan_from_bytes, plan_to_dict
from headrace.formats.platform_toml import platform_text, read_platform
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.graph import Graph, Ints, LabelColumn, make_graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.record.store import Record

_MAX_BYTES = 256_000_000
"""Most bytes of one run's plan, unpacked."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS run_plans (run TEXT PRIMARY KEY, planned BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS run_hosts (run TEXT NOT NULL, time REAL NOT NULL, host TEXT NOT NULL,"
    " joined INTEGER NOT NULL)",
)


@dataclass(frozen=True, eq=False)
class PlannedWith:
    """What a run was planned with."""

    graph: Graph
    platform: Platform
    plan: Plan | None
    rules: str = ""
    """The text of its rules; "" if it had none."""


def note_plan(
    record: Record, run: str, graph: Graph, platform: Platform, plan: Plan | None, rules: str = ""
) -> None:
    """Keep what a run was planned with: O(tasks + reads)."""
    stored = {
        "program": _graph_facts(graph),
        "platform": platform_text(platform),
        "plan": None if plan is None else _plan_facts(plan),
        "rules": rules,
    }
    packed = zlib.compress(json.dumps(stored, separators=(",", ":"), allow_nan=False).encode(), 1)
    _tables(record)
    with record.database.writing() as connection:
        record.database.insert(connection, "INSERT OR REPLACE INTO run_plans VALUES (?, ?)", [(run, packed)])


def note_hosts(record: Record, run: str, events: Iterable[Event]) -> None:
    """Keep when hosts left and joined during a run."""
    _tables(record)
    rows = [
        (run, event.time, event.host, int(isinstance(event, HostJoined)))
        for event in events
        if isinstance(event, HostLeft | HostJoined)
    ]
    with record.database.writing() as connection:
        record.database.insert(connection, "INSERT INTO run_hosts VALUES (?, ?, ?, ?)", rows)


def planned_with(record: Record, run: str) -> PlannedWith:
    """What a run was planned with; UsageError if an older version recorded it."""
    _tables(record)
    row = record.run(run)
    rows = record.database.rows("SELECT planned FROM run_plans WHERE run = ?", (row.id,))
    if not rows:
        raise UsageError(
            f"what run {row.id} was planned with is not recorded",
            hint="run the program again with this version",
        )
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(rows[0][0], _MAX_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise ValueError("it is too large or cut short")
        stored = json.loads(text)
        graph = _graph(stored["program"])
        platform = _platform(stored["platform"])
        plan = stored["plan"]
        if plan is not None:
            plan = plan_from_bytes(json.dumps(plan).encode(), graph, platform, f"run {row.id}")
        return PlannedWith(graph, platform, plan, str(stored.get("rules", "")))
    except (zlib.error, ValueError, TypeError, KeyError, IndexError, AttributeError, HeadraceError) as error:
        raise record.database.broken(f"the plan of run {row.id} cannot be read: {error}") from None


def events_of_run(record: Record, run: str) -> list[Event]:
    """The events of a run that matter for a report, in order of time."""
    _tables(record)
    name = record.run(run).id
    events: list[Event] = [Started(0.0)]
    for task in record.tasks(name):
        if task.status == "done" and task.start is not None:
            events.append(TaskFinished(task.finish, task.task, task.host, task.start))
        elif task.status != "done":
            events.append(TaskErred(task.finish, task.task, task.host, task.error))
    events += [
        DataMoved(m.finish, m.item, m.source, m.target, m.start, m.size) for m in record.transfers(name)
    ]
    query = "SELECT time, host, joined FROM run_hosts WHERE run = ? ORDER BY rowid"
    for time, host, joined in record.database.rows(query, (name,)):
        events.append(HostJoined(time, host) if joined else HostLeft(time, host))
    return sorted(events, key=lambda event: event.time)


def _tables(record: Record) -> None:
    for table in _TABLES:
        record.database.rows(table)


def _plan_facts(plan: Plan) -> dict[str, Any]:
    known = plan_to_dict(plan)
    return {
        key: known[key] for key in ("format", "scheduler", "bound", "seconds", "notes", "tasks", "transfers")
    }


def _graph_facts(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "tasks": list(graph.task_names),
        "items": list(graph.item_names),
        "kinds": list(graph.kinds),
        "kind": graph.kind.tolist(),
        "work": graph.work.tolist(),
        "cores": graph.cores.tolist(),
        "size": [None if unknown else s for s, unknown in zip(graph.size, graph.unknown_size, strict=True)],
        "producer": graph.producer.tolist(),
        "read_ptr": graph.read_ptr.tolist(),
        "reads": graph.reads.tolist(),
        "labels": {
            name: [column.tasks.tolist(), list(column.values)] for name, column in graph.labels.items()
        },
    }


def _graph(facts: dict[str, Any]) -> Graph:
    """Checked, since indices out of range would be errors far from here."""
    tasks, items = [str(name) for name in facts["tasks"]], [str(name) for name in facts["items"]]
    n, m = len(tasks), len(items)
    read_ptr, reads = np.array(facts["read_ptr"], np.int64), np.array(facts["reads"], np.int64)
    producer, kind = np.array(facts["producer"], np.int64), np.array(facts["kind"], np.int64)
    lengths = (len(facts["work"]), len(facts["cores"]), len(kind), len(read_ptr) - 1, len(facts["size"]))
    if lengths != (n, n, n, n, m) or len(producer) != m:
        raise ValueError("its lists have different lengths")
    if n and (read_ptr[0] != 0 or read_ptr[-1] != len(reads) or (np.diff(read_ptr) < 0).any()):
        raise ValueError("its reads are not in order")
    for values, least, below in ((reads, 0, m), (producer, -1, n), (kind, 0, len(facts["kinds"]))):
        if len(values) and (values.min() < least or values.max() >= below):
            raise ValueError("an index is out of range")
    return make_graph(
        work=facts["work"],
        size=[np.nan if size is None else size for size in facts["size"]],
        producer=producer,
        read_ptr=read_ptr,
        reads=reads,
        kind=kind,
        kinds=[str(name) for name in facts["kinds"]],
        task_names=tasks,
        item_names=items,
        name=str(facts["name"]),
        cores=facts["cores"],
        labels={
            str(name): LabelColumn(_indices(which, n), tuple(values))
            for name, (which, values) in facts["labels"].items()
        },
    )


def _indices(values: list[int], below: int) -> Ints:
    found = np.array(values, np.int32)
    if len(found) and (found.min() < 0 or found.max() >= below):
        raise ValueError("an index is out of range")
    return found


def _platform(text: str) -> Platform:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "platform.toml"
        path.write_text(text, encoding="utf-8")
        return read_platform(path)
