"""Priorities of the tasks of a Dask graph by upward rank: the longest way from a task to the end of its graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.runtime.steering_times import Times

STEPS = 16
"""Number of steps in which ranks are compared."""


def upward_ranks(tasks: Iterable[Any], times: Times, latency: float, rate: float) -> dict[Any, float]:
    """Seconds of work and transfers from the begin of each task to the end of the graph; O(tasks + edges).

    `tasks` are the engine's, in an order in which a task comes after its inputs. A transfer counts half: about every
    other input is already there.
    """
    rank: dict[Any, float] = {}
    for ts in reversed(list(tasks)):
        move = 0.5 * (latency + times.size(ts.prefix.name) / rate)
        after = [rank[reader.key] for reader in ts.dependents if reader.key in rank]
        rank[ts.key] = times.work(ts.prefix.name, ts.key) + (move + max(after) if after else 0.0)
    return rank


def fits(tasks: Iterable[Any], times: Times, memory: float) -> bool:
    """Whether run times of all tasks are known and all results together take at most a quarter of the memory.

    The engine's own order keeps little in memory; that of ranks does not care.
    """
    total = 0.0
    for ts in tasks:
        name = ts.prefix.name
        if not times.knows(name):
            return False
        total += times.size(name)
    return total <= 0.25 * memory


def ranked(priority: tuple[Any, ...], rank: float, longest: float) -> tuple[Any, ...]:
    """A priority of the engine with the rank before its own order: the user's priority and the age come first.

    Ranks are compared in steps of the longest one. Within a step the engine's order decides: it goes through a graph
    depth first, so that tasks find their inputs where they run, and ranks of equal tasks differ by what was measured.

    >>> ranked((0, 3, 17), 2.5, longest=10.0), ranked((0, 3, 18), 2.6, longest=10.0)
    ((0, 3, -4, 17), (0, 3, -4, 18))
    """
    step = int(STEPS * rank / longest) if longest > 0 else 0
    return (*priority[:2], -step, *priority[2:])


def restore(states: Mapping[Any, Any], original: Mapping[Any, tuple[Any, ...]]) -> None:
    """Give tasks that are still there the priorities that the engine gave them."""
    for key, priority in original.items():
        if key in states:
            states[key].priority = priority
