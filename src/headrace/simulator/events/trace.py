"""The trace of a simulated run: as a plan, as events and as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, RuleDropped, Started, TaskFinished
from headrace.model.plan import Plan
from headrace.simulator.events import grid_state as w

if TYPE_CHECKING:
    from headrace.simulator.events.run import SimulatedRun

_WORDS = {
    w.TASK_STARTED: "start",
    w.TASK_ENDED: "end",
    w.TASK_STOPPED: "stop",
    w.MOVE_STARTED: "send",
    w.MOVE_ENDED: "arrive",
    w.MOVE_CUT: "cut",
    w.HOST_LEFT: "left",
    w.HOST_JOINED: "joined",
    w.LINK_LEFT: "link-down",
    w.LINK_JOINED: "link-up",
    w.CHANGED: "changed",
    w.STORAGE_LEFT: "storage-down",
    w.STORAGE_JOINED: "storage-up",
    w.COPY_DROPPED: "drop",
}


def executed_plan(run: SimulatedRun) -> Plan:
    """The last execution of every finished task, and every completed transfer: O(log of the run)."""
    n = run.graph.n_tasks
    host, core = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start, finish = np.zeros(n), np.zeros(n)
    begun: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int], tuple[float, int]] = {}
    moves: list[tuple[int, int, int, float, float]] = []
    rows = zip(
        run.log_kind.tolist(),
        run.log_time.tolist(),
        run.log_subject.tolist(),
        run.log_from.tolist(),
        run.log_to.tolist(),
        strict=True,
    )
    for kind, time, a, b, c in rows:
        if kind == w.TASK_STARTED:
            begun[a, b] = time
        elif kind == w.TASK_ENDED:
            host[a], core[a], start[a], finish[a] = b, c, begun[a, b], time
        elif kind == w.MOVE_STARTED:
            sent[a, c] = (time, b)
        elif kind == w.MOVE_ENDED:
            moves.append((a, b, c, sent[a, c][0], time))
    item, source, target, sent_at, arrived = (
        (np.array(column) for column in zip(*moves, strict=True)) if moves else (np.empty(0),) * 5
    )
    return Plan(
        graph=run.graph,
        platform=run.platform,
        scheduler=run.scheduler,
        host=host,
        core=core,
        start=start,
        finish=finish,
        move_item=item.astype(np.int32),
        move_source=source.astype(np.int32),
        move_target=target.astype(np.int32),
        move_start=sent_at.astype(np.float64),
        move_finish=arrived.astype(np.float64),
        bound=run.bound,
        seconds=run.seconds,
        notes=run.notes,
    )


def log_word(name: str) -> str:
    r"""A name as one word of a log line: unchanged, or a JSON string if it contains spaces, quotes or backslashes.

    >>> log_word("task_7"), log_word("uw -> ufmg"), log_word('a"b')
    ('task_7', '"uw -> ufmg"', '"a\\"b"')
    """
    plain = name.isprintable() and name and not any(mark in name for mark in ' "\\')
    return name if plain else json.dumps(name)


def events_of(run: SimulatedRun) -> Iterator[Event]:
    """The events that real workers would have reported to the coordinator: O(log of the run)."""
    tasks, items = run.graph.task_names, run.graph.item_names
    hosts, places = run.platform.hosts, run.platform.network.place_names
    begun: dict[tuple[int, int], float] = {}
    dropped = list(run.dropped)
    yield Started(0.0)
    rows = zip(
        run.log_kind.tolist(),
        run.log_time.tolist(),
        run.log_subject.tolist(),
        run.log_from.tolist(),
        run.log_to.tolist(),
        strict=True,
    )
    for kind, time, a, b, c in rows:
        while dropped and dropped[0].time < time:
            yield dropped.pop(0)
        if kind == w.TASK_STARTED:
            begun[a, b] = time
        elif kind == w.MOVE_STARTED:
            begun[a, ~c] = time
        elif kind == w.TASK_ENDED:
            yield TaskFinished(time, tasks[a], hosts[b].name, begun[a, b])
        elif kind == w.MOVE_ENDED:
            size = float(run.graph.size[a])
            yield DataMoved(time, items[a], places[b], places[c], begun[a, ~c], size)
        elif kind == w.HOST_LEFT:
            yield HostLeft(time, hosts[a].name)
        elif kind == w.HOST_JOINED:
            yield HostJoined(time, hosts[a].name)
    yield from dropped


def log_lines(run: SimulatedRun) -> list[str]:
    """One line per event: time, kind and the names concerned, separated by spaces."""
    tasks = [log_word(name) for name in run.graph.task_names]
    items = [log_word(name) for name in run.graph.item_names]
    hosts = [log_word(host.name) for host in run.platform.hosts]
    places = [log_word(name) for name in run.platform.network.place_names]
    links = [log_word(name) for name in run.platform.network.link_names]
    lines = []
    dropped = list(run.dropped)
    for k in range(len(run.log_time)):
        while dropped and dropped[0].time < run.log_time[k]:
            lines.append(_dropped_line(dropped.pop(0)))
        kind, a, b, c = (
            int(run.log_kind[k]),
            int(run.log_subject[k]),
            int(run.log_from[k]),
            int(run.log_to[k]),
        )
        if kind <= w.TASK_STOPPED:
            what = f"{tasks[a]} {hosts[b]} {c}"
        elif kind <= w.MOVE_CUT:
            what = f"{items[a]} {places[b]} {places[c]}"
        elif kind in (w.HOST_LEFT, w.HOST_JOINED):
            what = hosts[a]
        elif kind in (w.LINK_LEFT, w.LINK_JOINED):
            what = links[a]
        elif kind == w.CHANGED:
            what = hosts[a] if a >= 0 else links[b]
        elif kind in (w.STORAGE_LEFT, w.STORAGE_JOINED):
            what = places[a]
        elif kind == w.COPY_DROPPED:
            what = f"{items[a]} {places[b]}"
        else:
            what = ""
        lines.append(f"{float(run.log_time[k])!r} {_WORDS[kind]} {what}".rstrip())
    return [*lines, *map(_dropped_line, dropped)]


def _dropped_line(event: RuleDropped) -> str:
    return f"{event.time!r} rule-dropped {log_word(event.rule)} {log_word(event.why)}"
