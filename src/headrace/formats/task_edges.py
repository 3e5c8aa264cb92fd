"""A program as a graph of tasks, as graph tools expect it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.model.program import Program


class TaskEdge(NamedTuple):
    """The data that one task passes to another."""

    source: str
    target: str
    bytes: float
    """Sum of the sizes of the items that are known."""
    data: tuple[str, ...]
    """Names of the items; empty for an ordering without data."""
    sizes: tuple[float | None, ...] = ()
    """The size of each item; None: unknown."""


def task_edges(program: Program) -> Iterator[TaskEdge]:
    """One edge for every pair of dependent tasks, in program order: O(reads). Unknown sizes do not count.

    >>> p = Program()
    >>> a = p.task(name="a", outputs={"x": 5, "y": 7})
    >>> _ = p.task(name="b", inputs=a)
    >>> list(task_edges(p))
    [TaskEdge(source='a', target='b', bytes=12.0, data=('x', 'y'), sizes=(5.0, 7.0))]
    """
    for task in program.tasks.values():
        handed: dict[str, list[str]] = {}
        for item in dict.fromkeys(task.inputs):
            if item in program.producer:
                handed.setdefault(program.producer[item], []).append(item)
        for before in task.after:
            handed.setdefault(before, [])
        for source, items in handed.items():
            sizes = tuple(program.data[item].size for item in items)
            yield TaskEdge(source, task.name, sum((size or 0.0 for size in sizes), 0.0), tuple(items), sizes)
