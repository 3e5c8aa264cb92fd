"""What rules are compiled to, piece by piece, and how the pieces become `Constraints`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from headrace.model.constraints import Constraints, Limit
from headrace.model.graph import Bools, Floats, Ints
from headrace.rules.vectors import Codes


@dataclass(frozen=True, eq=False, slots=True)
class Allow:
    """These tasks run on some of these hosts: one row of hosts for all of them, or one for each."""

    tasks: Codes
    """All different."""
    hosts: Bools
    """[hosts] or [tasks, hosts]"""


@dataclass(frozen=True, eq=False, slots=True)
class Together:
    """These tasks run on one host, or at one site."""

    tasks: Codes
    at_site: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Apart:
    """No two of these tasks run on the same host."""

    tasks: Codes


@dataclass(frozen=True, eq=False, slots=True)
class Before:
    """The second task of each pair starts when the first has finished, or later."""

    pairs: Codes
    """[pairs, 2]"""


@dataclass(frozen=True, eq=False, slots=True)
class Window:
    """These tasks start at `release` or later and have finished at `deadline`."""

    tasks: Codes
    release: Floats
    deadline: Floats


Part: TypeAlias = Allow | Together | Apart | Before | Window | Limit


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """Constraints that make a condition hold."""

    parts: tuple[Part, ...] = ()
    exact: bool = True
    """The condition also implies them."""


def joined(found: Iterable[Found]) -> Found:
    """All of them together."""
    every = list(found)
    return Found(tuple(part for each in every for part in each.parts), all(each.exact for each in every))


def constraints_of(parts: Sequence[Part], tasks: int, hosts: int) -> Constraints:
    """The constraints of all parts together: O((parts + pairs) * tasks + classes * hosts).

    >>> both = [Allow(np.array([0, 1]), np.array([True, False])), Allow(np.array([1, 2]), np.array([True, True]))]
    >>> made = constraints_of(both, 3, 2)
    >>> made.allowed[made.allowed_class].tolist()
    [[True, False], [True, False], [True, True]]
    """
    release, deadline = np.zeros(tasks), np.full(tasks, np.inf)
    for part in parts:
        if isinstance(part, Window):
            np.maximum.at(release, part.tasks, part.release)
            np.minimum.at(deadline, part.tasks, part.deadline)
    allowed_class, allowed = _allowed([part for part in parts if isinstance(part, Allow)], tasks, hosts)
    pairs = [part.pairs.reshape(-1, 2) for part in parts if isinstance(part, Before)]
    before = np.unique(np.concatenate(pairs), axis=0) if pairs else np.empty((0, 2))
    together = [part for part in parts if isinstance(part, Together)]
    return replace(
        Constraints.none(tasks, hosts),
        allowed_class=allowed_class,
        allowed=allowed,
        before=before.astype(np.int32),
        together=_groups([part.tasks for part in together if not part.at_site], tasks),
        together_at_site=_groups([part.tasks for part in together if part.at_site], tasks),
        apart=tuple(np.unique(part.tasks).astype(np.int32) for part in parts if isinstance(part, Apart)),
        limits=tuple(part for part in parts if isinstance(part, Limit)),
        release=release,
        deadline=deadline,
    )


def constraints_by_rule(parts: Mapping[str, Sequence[Part]], tasks: int, hosts: int) -> Constraints:
    """The constraints of the parts of all rules together, which know the constraints of each rule.

    >>> first = constraints_by_rule({"first": [Allow(np.array([0]), np.array([True, False]))]}, 1, 2)
    >>> first.allowed[first.allowed_class].tolist(), first.only(()).allowed.tolist()
    ([[True, False]], [[True, True]])
    """
    binding = {name: tuple(listed) for name, listed in parts.items() if listed}
    of_rules = _OfRules(binding, tasks, hosts)
    return replace(of_rules(tuple(binding)), rules=tuple(binding), of_rules=of_rules)


@dataclass(frozen=True, eq=False, slots=True)
class _OfRules:
    """The constraints of some of the rules. An object and not a function, so that it can be sent to other processes."""

    parts: dict[str, tuple[Part, ...]]
    tasks: int
    hosts: int

    def __call__(self, names: tuple[str, ...]) -> Constraints:
        return constraints_of([part for name in names for part in self.parts[name]], self.tasks, self.hosts)


def _allowed(parts: list[Allow], tasks: int, hosts: int) -> tuple[Ints, Bools]:
    """Tasks with the same hosts share a row; each part only looks at its own tasks."""
    number, rows = np.zeros(tasks, np.int64), np.ones((1, hosts), np.bool_)
    for part in parts:
        if part.hosts.ndim == 1 and len(part.tasks) == tasks:
            rows &= part.hosts
            continue
        if part.hosts.ndim == 1:
            listed, own = part.hosts[None, :], np.zeros(len(part.tasks), np.int64)
        else:
            listed, inverse = np.unique(part.hosts, axis=0, return_inverse=True)
            own = inverse.reshape(-1).astype(np.int64)
        combined = number[part.tasks] * len(listed) + own
        there = np.zeros(len(rows) * len(listed), np.bool_)
        there[combined] = True
        both = np.flatnonzero(there)
        number[part.tasks] = len(rows) - 1 + np.cumsum(there)[combined]
        rows = np.concatenate((rows, rows[both // len(listed)] & listed[both % len(listed)]))
    told = [row.tobytes() for row in rows]
    place = {row: k for k, row in enumerate(sorted(set(told)))}
    again = np.array([place[row] for row in told], np.int32)
    distinct = np.frombuffer(b"".join(place), np.bool_).reshape(-1, hosts)
    return again[number], distinct


def _groups(groups: list[Codes], tasks: int) -> Ints:
    """Groups that share a task are one; numbered by their first task. O(members)."""
    root: dict[int, int] = {}

    def find(task: int) -> int:
        while root[task] != task:
            root[task] = root[root[task]]
            task = root[task]
        return task

    for group in groups:
        members = group.tolist()
        for task in members:
            root.setdefault(task, task)
            a, b = sorted((find(members[0]), find(task)))
            root[b] = a
    grouped = np.full(tasks, -1, np.int32)
    for task in root:
        grouped[task] = find(task)
    return grouped
