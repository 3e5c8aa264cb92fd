"""Plans and runs as Chrome trace-event JSON, for chrome://tracing, Perfetto and Speedscope."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.formats.files import write_file
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.report.packing import pack
from headrace.report.run_log import Entry, log_entries

if TYPE_CHECKING:
    from headrace.simulator.events.run import SimulatedRun

_MICROSECONDS = 1e6
_FIRST_ARRIVAL_ROW = 100_000
"""First thread number of rows for transfers, above any number of cores."""


def plan_trace(plan: Plan) -> dict[str, Any]:
    """A plan: a process per host, a thread per core, and separate rows for incoming transfers."""
    rows = _Rows(plan.platform)
    kinds = plan.graph.kinds
    kind = dict(zip(plan.graph.task_names, plan.graph.kind.tolist(), strict=True))
    for task in plan.tasks():
        rows.add(task.host, task.core, task.id, kinds[kind[task.id]] or "task", task.start, task.finish)
    rows.add_moves([(m.target, m.start, m.finish, m.data, {"from": m.source}) for m in plan.transfers()])
    about = {"scheduler": plan.scheduler, "makespan": plan.makespan, "bound": plan.bound}
    return rows.trace(about)


def run_trace(
    events: Sequence[Event],
    platform: Platform,
    graph: Graph | None = None,
    *,
    kinds: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A run; kinds of tasks come from the graph, or are given by task.

    Events do not name cores, so tasks are packed into as few rows as possible: O(n log n).
    """
    rows = _Rows(platform)
    kind: Mapping[str, str] = kinds or {}
    if graph is not None:
        kind = {name: graph.kinds[k] for name, k in zip(graph.task_names, graph.kind.tolist(), strict=True)}
    by_host: dict[str, list[TaskFinished]] = {}
    for event in events:
        if isinstance(event, TaskFinished):
            by_host.setdefault(event.host, []).append(event)
    for host, there in by_host.items():
        for e, core in zip(there, pack([(e.start, e.time) for e in there]), strict=True):
            rows.add(host, core, e.task, kind.get(e.task, "") or "task", e.start, e.time)
    moves = [e for e in events if isinstance(e, DataMoved)]
    rows.add_moves([(e.target, e.start, e.time, e.item, {"from": e.source, "bytes": e.size}) for e in moves])
    for event in events:
        match event:
            case TaskErred():
                rows.instant(event.host, event.time, f"{event.task} failed: {event.error}")
            case HostLeft():
                rows.instant(event.host, event.time, "host left")
            case HostJoined():
                rows.instant(event.host, event.time, "host joined")
    return rows.trace({"platform": platform.name})


def simulated_trace(run: SimulatedRun) -> dict[str, Any]:
    """A simulated run with everything in its log: also executions that were stopped and transfers that were cut."""
    graph = run.graph
    rows = _Rows(run.platform)
    kind = {name: graph.kinds[k] for name, k in zip(graph.task_names, graph.kind.tolist(), strict=True)}
    size = dict(zip(graph.item_names, graph.size.tolist(), strict=True))
    begun: dict[tuple[str, str], float] = {}
    moves = []
    for entry in log_entries(run):
        time, event = entry["time"], entry["event"]
        if event in ("start", "send"):
            begun[_bar_of(entry)] = time
        elif event in ("end", "stop"):
            category = "stopped" if event == "stop" else kind[entry["task"]] or "task"
            start = begun.pop(_bar_of(entry))
            rows.add(entry["host"], entry["core"], entry["task"], category, start, time)
        elif event in ("arrive", "cut"):
            about = {"from": entry["from"], "bytes": size[entry["item"]]} | (
                {"cut": True} if event == "cut" else {}
            )
            moves.append((entry["to"], begun.pop(_bar_of(entry)), time, entry["item"], about))
        elif event in ("left", "joined"):
            rows.instant(entry["host"], time, f"host {event}")
    rows.add_moves(moves)
    return rows.trace({"scheduler": run.scheduler, "makespan": run.makespan, "bound": run.bound})


def _bar_of(entry: Entry) -> tuple[str, str]:
    """What the start and the end of an execution or a transfer have in common."""
    return (entry["task"], entry["host"]) if "task" in entry else (entry["item"], f"to {entry['to']}")


def write_trace(trace: dict[str, Any], path: str | Path) -> None:
    """Write a trace as JSON, atomically."""
    write_file(path, json.dumps(trace, separators=(",", ":"), allow_nan=False).encode())


class _Rows:
    """Trace events, with hosts and places numbered in platform order."""

    def __init__(self, platform: Platform) -> None:
        order = [name for site in platform.sites for name in (*(h.name for h in site.hosts), site.name)]
        self._pid = {name: i for i, name in enumerate(order, 1)}
        self._threads: dict[tuple[int, int], str] = {}
        self._events: list[dict[str, Any]] = []

    def add(
        self,
        host: str,
        row: int,
        name: str,
        category: str,
        start: float,
        finish: float,
        thread: str = "core",
        more: dict[str, Any] | None = None,
    ) -> None:
        pid = self._pid.setdefault(host, len(self._pid) + 1)
        self._threads.setdefault((pid, row), f"{thread} {row % _FIRST_ARRIVAL_ROW}")
        event = {"name": name, "cat": category, "ph": "X", "pid": pid, "tid": row}
        event |= {"ts": start * _MICROSECONDS, "dur": (finish - start) * _MICROSECONDS}
        self._events.append(event | {"args": more} if more else event)

    def add_moves(self, moves: Iterable[tuple[str, float, float, str, dict[str, Any]]]) -> None:
        """Add transfers in as many rows per place as overlap there: viewers do not support overlap within a row."""
        by_place: dict[str, list[tuple[str, float, float, str, dict[str, Any]]]] = {}
        for move in moves:
            by_place.setdefault(move[0], []).append(move)
        for place, there in by_place.items():
            lanes = pack([(start, finish) for _, start, finish, _, _ in there])
            for (_, start, finish, item, more), lane in zip(there, lanes, strict=True):
                row = _FIRST_ARRIVAL_ROW + lane
                self.add(place, row, item, "transfer", start, finish, "arriving", more)

    def instant(self, host: str, time: float, name: str) -> None:
        pid = self._pid.setdefault(host, len(self._pid) + 1)
        at = {"ph": "i", "s": "p", "pid": pid, "tid": 0, "ts": time * _MICROSECONDS}
        self._events.append({"name": name, "cat": "event", **at})

    def trace(self, about: dict[str, Any]) -> dict[str, Any]:
        used = {event["pid"] for event in self._events}
        names = [
            {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}}
            for name, pid in self._pid.items()
            if pid in used
        ]
        names += [
            {"name": "thread_name", "ph": "M", "pid": pid, "tid": row, "args": {"name": name}}
            for (pid, row), name in sorted(self._threads.items())
        ]
        order = {"ph": "M", "name": "process_sort_index", "tid": 0}
        names += [{**order, "pid": pid, "args": {"sort_index": pid}} for pid in sorted(used)]
        return {"traceEvents": names + self._events, "displayTimeUnit": "ms", "otherData": about}
