"""Programs of any size as a picture of levels: tasks of one kind in one level are one box, which opens in place."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace.formats.loading import load_program
from headrace.model.errors import UsageError
from headrace.model.graph import Graph
from headrace.ui.workspace import Workspace

MOST_OPEN = 400
"""Tasks of one box that are shown when it is open."""
MOST_BOXES = 400
SMALL = 60
"""Programs of at most this many tasks are shown open."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Structure:
    """A program by level and kind; boxes are numbered by level, then kind."""

    name: str
    tasks: tuple[str, ...]
    box: np.ndarray
    """Of each task."""
    boxes: tuple[tuple[int, str, int], ...]
    """Level, kind and number of tasks of each."""
    edges: np.ndarray
    """Pairs of tasks: one writes what the other reads, or comes after it."""


def overview(space: Workspace, program: str, opened: Sequence[str]) -> dict[str, Any]:
    """Boxes and the tasks of open boxes, with connections between them: O(tasks + connections)."""
    file, _, _ = program.partition(":")
    path = space.path(file)
    if file.endswith(".py"):
        raise UsageError(f"{file} would be executed", hint="plan it in the view Plan")
    with _lock:  # a file that is asked for twice is read once
        found = _structure(str(path), path.stat().st_mtime_ns)
    return picture(found, _opened(found, opened))


def _opened(found: Structure, opened: Sequence[str]) -> set[int]:
    if list(opened) == ["small"]:
        return set(range(len(found.boxes))) if len(found.tasks) <= SMALL else set()
    return {int(one) for one in opened if one.isascii() and one.isdigit() and len(one) < 9}


@lru_cache(maxsize=4)
def _structure(path: str, changed: int) -> Structure:
    program = load_program(Path(path))
    kinds = [task.kind for task in program.tasks.values()]
    return structure(program.name, program.graph, kinds)


def structure(name: str, graph: Graph, kinds: Sequence[str]) -> Structure:
    """Levels by the longest path from an entry: O(tasks + connections)."""
    pairs = _pairs(graph)
    level = _levels(graph.n_tasks, pairs)
    keys = [(int(level[i]), kinds[i]) for i in range(graph.n_tasks)]
    if len(set(keys)) > MOST_BOXES:  # a deep program, or one of many kinds: neighbouring levels are one box
        width = -(-(int(level.max()) + 1) // MOST_BOXES)
        keys = [(band, _band_name(band, width)) for band in (level // width).tolist()]
    order = sorted(set(keys))
    number = {key: i for i, key in enumerate(order)}
    count = Counter(keys)
    boxes = tuple((*key, count[key]) for key in order)
    box = np.fromiter((number[key] for key in keys), np.int64, graph.n_tasks)
    return Structure(name, tuple(graph.task_names), box, boxes, pairs)


def _band_name(band: int, width: int) -> str:
    return f"level {band + 1}" if width == 1 else f"levels {band * width + 1} to {(band + 1) * width}"


def picture(found: Structure, opened: set[int]) -> dict[str, Any]:
    """What is drawn: an open box is replaced by its first tasks, and a rest if there are more."""
    node_of = found.box.copy()
    nodes: list[dict[str, Any]] = [
        {"id": f"b{i}", "level": level, "kind": kind, "tasks": count, "box": i}
        for i, (level, kind, count) in enumerate(found.boxes)
        if i not in opened or count > MOST_OPEN
    ]
    shown: Counter[int] = Counter()
    n_boxes = len(found.boxes)
    for task, box in enumerate(found.box.tolist()):
        if box in opened and shown[box] < MOST_OPEN:
            shown[box] += 1
            node_of[task] = n_boxes + task
            level, kind, _ = found.boxes[box]
            nodes.append(
                {"id": f"t{task}", "level": level, "kind": kind, "name": found.tasks[task], "box": box}
            )
    for node in nodes:
        if "tasks" in node and node["box"] in opened:
            node["tasks"] -= shown[node["box"]]
            node["rest"] = True
    return {
        "name": found.name,
        "tasks": len(found.tasks),
        "nodes": nodes,
        "edges": _edges(node_of, found.edges, n_boxes),
        "opened": sorted(opened),
    }


def _edges(node_of: np.ndarray, pairs: np.ndarray, n_boxes: int) -> list[list[Any]]:
    """Connections between what is shown, each with the number of connections of tasks that it stands for."""
    if not len(pairs):
        return []
    ends, counts = np.unique(node_of[pairs], axis=0, return_counts=True)

    def name(node: int) -> str:
        return f"b{node}" if node < n_boxes else f"t{node - n_boxes}"

    rows = zip(ends.tolist(), counts.tolist(), strict=True)
    return [[name(a), name(b), count] for (a, b), count in rows if a != b]


def _pairs(graph: Graph) -> np.ndarray:
    """Producer and reader of each item that a task makes, without duplicates."""
    readers = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    producers = np.asarray(graph.producer)[np.asarray(graph.reads)]
    inside = producers >= 0
    return np.unique(np.stack([producers[inside], readers[inside]], axis=1), axis=0)


def _levels(n_tasks: int, pairs: np.ndarray) -> np.ndarray:
    following: list[list[int]] = [[] for _ in range(n_tasks)]
    waiting = np.zeros(n_tasks, np.int64)
    for before, after in pairs.tolist():
        following[before].append(after)
        waiting[after] += 1
    level = np.zeros(n_tasks, np.int64)
    ready = [i for i in range(n_tasks) if waiting[i] == 0]
    while ready:
        at = ready.pop()
        for after in following[at]:
            level[after] = max(level[after], level[at] + 1)
            waiting[after] -= 1
            if waiting[after] == 0:
                ready.append(after)
    return level
