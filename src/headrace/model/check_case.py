"""Shared by all plan checks: tolerances, findings, and a plan prepared for checking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.model.graph import Bools, Floats, Graph
from headrace.model.network import Network
from headrace.model.plan import Plan
from headrace.model.platform import Platform

RELATIVE = 1e-6
"""Relative tolerance of a duration ..."""
ABSOLUTE = 1e-9
"""... plus this absolute tolerance in seconds. Times closer than this are considered equal."""
ROUNDING = 1e-12
"""Relative tolerance of a time, for rounding errors in summing many durations."""
EXCESS = 1e-9
"""Relative tolerance for a sum of bytes above a capacity, or a bound above the makespan."""

Numbers: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule; the message includes the offending values.

    Rules: shape, finite, host, core, start, release, deadline, duration, overlap, cores, memory, resource, order,
    input, item, place, route, source, twice, transfer, link, storage, result, bound; `more` gives the number omitted.
    """

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


class Findings:
    """Violations: all are counted, and those up to a limit are stored."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found: list[Violation] = []
        self.total = 0

    def add(self, rule: str, which: Bools | Numbers, message: Callable[[int], str]) -> None:
        """Add a violation for each index (or true entry of a mask), described by `message`."""
        indices = np.flatnonzero(which) if which.dtype == np.bool_ else which
        self.total += len(indices)
        room = max(0, self.limit - len(self.found))
        self.found.extend(Violation(rule, message(i)) for i in indices[:room].tolist())

    def say(self, rule: str, message: str) -> None:
        self.add(rule, np.zeros(1, np.int64), lambda _: message)


@dataclass(frozen=True, eq=False)
class Case:
    """A plan with arrays of known types, and masks of the entries that can be checked further."""

    graph: Graph
    platform: Platform
    network: Network
    plan: Plan
    task_ok: Bools
    """Per task: the host exists and times are finite."""
    core_ok: Bools
    place: Numbers
    """Per task; 0 where the host does not exist."""
    move_ok: Bools
    """Per transfer: item, places and route exist, and times are finite."""
    move_size: Floats
    """Per transfer; 0 where the item does not exist."""
    maker_ok: Bools
    """Per item: it is an external input, or its producer can be checked."""
    reader: Numbers
    """The task of each entry of graph.reads."""
    home_place: Numbers
    """The place of each entry of graph.initial_locations."""
    goal_place: Numbers
    """The place of each entry of graph.destinations."""

    def task(self, t: int) -> str:
        plan, hosts = self.plan, self.platform.hosts
        h = int(plan.host[t])
        host = repr(hosts[h].name) if 0 <= h < len(hosts) else f"number {h}"
        span = f"{float(plan.start[t])!r} to {float(plan.finish[t])!r}"
        return f"task {self.graph.task_names[t]!r} on host {host}, core {int(plan.core[t])}, {span}"

    def move(self, k: int) -> str:
        plan = self.plan
        i = int(plan.move_item[k])
        item = repr(self.graph.item_names[i]) if 0 <= i < self.graph.n_items else f"number {i}"
        ends = f"from {self.place_name(plan.move_source[k])} to {self.place_name(plan.move_target[k])}"
        span = f"{float(plan.move_start[k])!r} to {float(plan.move_finish[k])!r}"
        return f"transfer of item {item} {ends}, {span}"

    def place_name(self, place: int) -> str:
        known = 0 <= place < self.network.n_places
        return repr(self.network.place_names[place]) if known else f"place number {int(place)}"


def slack(moment: Floats) -> Floats:
    """Tolerance within which another time is considered equal to this one."""
    return ABSOLUTE + ROUNDING * np.abs(moment)


def makespan_of(case: Case) -> float:
    """The latest finite finish time."""
    plan = case.plan
    ends = np.concatenate((plan.finish, plan.move_finish))
    return float(ends[np.isfinite(ends)].max(initial=0.0))


def differs(start: Floats, finish: Floats, right: Floats) -> Bools:
    """Whether finish - start differs from the correct duration."""
    wrong: Bools = np.abs((finish - start) - right) > RELATIVE * right + slack(finish)
    return wrong


def overlaps(group: Numbers, start: Floats, finish: Floats) -> tuple[Numbers, Numbers]:
    """Entries that start while an earlier one of their group is still running: (earlier entries, those entries).

    Each entry is compared with the one that finishes last so far, by rank so that no precision is lost.
    An entry of zero duration may touch the edge of another, but not lie inside it. O(n log n).
    """
    n = len(group)
    order = np.lexsort((finish, start, group))
    group, start, finish = group[order], start[order], finish[order]
    by_finish = np.argsort(finish, kind="stable")
    rank = np.empty(n, np.int64)
    rank[by_finish] = np.arange(n)
    longest = np.maximum.accumulate(group * n + rank)[:-1] - group[:-1] * n
    same = np.flatnonzero(group[1:] == group[:-1])
    before, late = by_finish[longest[same]], same + 1
    clash = (start[late] < finish[before] - slack(finish[before])) & (
        finish[late] > start[before] + slack(start[before])
    )
    return order[before[clash]], order[late[clash]]
