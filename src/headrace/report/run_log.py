"""The log of a simulated run as records: for logs of JSON lines, traces, and lists of stopped executions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.simulator.events.run import SimulatedRun

Entry = dict[str, Any]
_EXECUTION, _TRANSFER = ("task", "host", "core"), ("item", "from", "to")
KEYS = {
    "start": _EXECUTION,
    "end": _EXECUTION,
    "stop": _EXECUTION,
    "send": _TRANSFER,
    "arrive": _TRANSFER,
    "cut": _TRANSFER,
    "drop": ("item", "place"),
    "left": ("host",),
    "joined": ("host",),
    "link-down": ("link",),
    "link-up": ("link",),
    "storage-down": ("place",),
    "storage-up": ("place",),
    "changed": ("resource",),
    "rule-dropped": ("rule", "why"),
}
"""What the words after each event mean."""
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


def log_entry(line: str) -> Entry:
    """A line of the log as a record.

    >>> log_entry('12.5 send "paint 1.out" n1 store')
    {'time': 12.5, 'event': 'send', 'item': 'paint 1.out', 'from': 'n1', 'to': 'store'}
    >>> log_entry('0.0 start paint n1 3')["core"]
    3
    """
    time, event, *words = _WORD.findall(line)
    names = [json.loads(word) if word.startswith('"') else word for word in words]
    entry = {"time": float(time), "event": event, **dict(zip(KEYS[event], names, strict=True))}
    return entry | {"core": int(entry["core"])} if "core" in entry else entry


def log_entries(run: SimulatedRun) -> Iterator[Entry]:
    """The events of a run, in order of time."""
    return map(log_entry, run.log_lines())


def log_text(run: SimulatedRun, path: Path) -> str:
    """The log as the suffix of its file asks: JSON lines for .jsonl, plain words otherwise."""
    lines = run.log_lines()
    if path.suffix.lower() == ".jsonl":
        lines = [json.dumps(log_entry(line), ensure_ascii=False) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def stopped_executions(run: SimulatedRun) -> list[Entry]:
    """Executions that did not count, because their host left, they were cancelled, or a duplicate was faster."""
    begun: dict[tuple[str, str], float] = {}
    stopped = []
    for entry in log_entries(run):
        if entry["event"] == "start":
            begun[entry["task"], entry["host"]] = entry["time"]
        elif entry["event"] == "stop":
            where = {"id": entry["task"], "host": entry["host"], "core": entry["core"]}
            stopped.append(where | {"start": begun[entry["task"], entry["host"]], "stop": entry["time"]})
    return stopped
