"""Constraints on a schedule in terms that planners obey directly: hosts, groups, order, limits and times.

Rules of the rules language are compiled to these where their shape allows it (`rules.compile`). `check` never reads
them: it evaluates the rules themselves.

Order and times go into the graph (`bound_graph`), so that planners, simulators and the coordinator obey them without
knowing the constraints. Everything else is about the hosts of tasks and is obeyed by whoever chooses these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from headrace.model.graph import Bools, Floats, Graph, Ints, order_and_level
from headrace.model.sited import SiteLists

Levels = Callable[[Graph], tuple[Ints, Ints]]
"""Derives the order and the levels of a graph."""
ALL = "the constraints"
"""The name of constraints that are not known by rule."""


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """At most so much of some tasks on some hosts together."""

    tasks: Bools
    """[tasks] those that count."""
    hosts: Bools
    """[hosts] those on which they count."""
    count: float = np.inf
    """At most this many of them in the whole schedule,"""
    seconds: float = np.inf
    """at most this much run time,"""
    at_once: float = np.inf
    """and at most this many at any moment."""
    rule: str = ""
    """The rule that asks for it, for messages."""
    amount: Floats | None = None
    """[tasks] how much of `at_once` each task takes; None: 1."""
    need: str = ""
    """What tasks need of their host, if the limit follows from that and not from a rule."""

    def of_tasks(self, tasks: Ints, hosts: Ints) -> Limit:
        """The limit on some of the tasks, on some of the hosts."""
        amount = None if self.amount is None else self.amount[tasks]
        return replace(self, tasks=self.tasks[tasks], hosts=self.hosts[hosts], amount=amount)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Constraints:
    """What a schedule must satisfy besides the model's own rules. Every field has a value that constrains nothing."""

    allowed_class: Ints
    """[tasks] the row of `allowed` that applies to each task."""
    allowed: Bools
    """[classes, hosts] the hosts on which tasks of each class may run."""
    before: Ints
    """[pairs, 2] the second task starts when the first has finished, or later."""
    together: Ints
    """[tasks] tasks with the same number run on one host; -1: no such group."""
    together_at_site: Ints
    """[tasks] tasks with the same number run at one site; -1: no such group."""
    apart: tuple[Ints, ...]
    """Groups of tasks that run on hosts all different."""
    limits: tuple[Limit, ...]
    release: Floats
    """[tasks] the earliest start of each task; 0: none."""
    deadline: Floats
    """[tasks] the latest finish of each task; inf: none."""
    rules: tuple[str, ...] = ()
    """The rules that ask for them, in the order in which they are kept if not all of them can be."""
    of_rules: Callable[[tuple[str, ...]], Constraints] | None = None
    """The constraints of some of these rules alone; None if they are not known by rule."""
    needs: Literal["", "some", "all"] = ""
    """Which of the constraints follow from memory and resources that tasks need (`need_limits`); empty: these have not
    been added."""

    @property
    def names(self) -> tuple[str, ...]:
        """The rules, or one name for all constraints if they are not known by rule.

        >>> Constraints.none(3, 2).names
        ('the constraints',)
        """
        return self.rules if self.of_rules is not None else (ALL,)

    def only(self, names: Sequence[str]) -> Constraints:
        """The constraints of some of the `names`.

        >>> pinned = replace(Constraints.none(1, 2), allowed=np.array([[True, False]]))
        >>> pinned.only(()).allowed.tolist(), pinned.only(pinned.names) is pinned
        ([[True, True]], True)
        """
        if tuple(names) == self.names:
            return self
        if self.of_rules is None:
            none = Constraints.none(len(self.together), self.allowed.shape[1])
            return replace(none, of_rules=lambda names: none)
        return replace(self.of_rules(tuple(names)), rules=tuple(names), of_rules=self.of_rules)

    @staticmethod
    def none(tasks: int, hosts: int) -> Constraints:
        """The constraints that every schedule satisfies.

        >>> Constraints.none(3, 2).allowed.all()
        np.True_
        """
        return Constraints(
            allowed_class=np.zeros(tasks, np.int32),
            allowed=np.ones((1, hosts), np.bool_),
            before=np.empty((0, 2), np.int32),
            together=np.full(tasks, -1, np.int32),
            together_at_site=np.full(tasks, -1, np.int32),
            apart=(),
            limits=(),
            release=np.zeros(tasks),
            deadline=np.full(tasks, np.inf),
        )

    def of_tasks(self, tasks: Ints, hosts: Ints | None = None) -> Constraints:
        """The constraints on some of the tasks, renumbered, for a graph and a platform that hold only these.

        Groups and limits are those among the given tasks: what the other tasks already use must be subtracted by the
        caller. `hosts` are the numbers of the remaining hosts; None: all. O(limits * tasks + pairs).

        >>> few = Constraints.none(3, 2).of_tasks(np.array([0, 2], np.int32))
        >>> len(few.together), few.allowed.shape
        (2, (1, 2))
        """
        new = np.full(len(self.together), -1, np.int32)
        new[tasks] = np.arange(len(tasks), dtype=np.int32)
        there = np.arange(self.allowed.shape[1], dtype=np.int32) if hosts is None else hosts
        pairs = new[self.before]
        groups = [new[group][new[group] >= 0] for group in self.apart]
        return Constraints(
            allowed_class=self.allowed_class[tasks],
            allowed=self.allowed[:, there],
            before=pairs[(pairs >= 0).all(axis=1)],
            together=self.together[tasks],
            together_at_site=self.together_at_site[tasks],
            apart=tuple(group for group in groups if len(group) > 1),
            limits=tuple(limit.of_tasks(tasks, there) for limit in self.limits),
            release=self.release[tasks],
            deadline=self.deadline[tasks],
            needs=self.needs,
        )


def with_order(graph: Graph, before: Ints, derived: Levels = order_and_level) -> Graph:
    """The graph in which the second task of each pair also waits for the first.

    O(tasks + items + reads + pairs log pairs), and levels are derived again, by `derived`, if any of them changes.

    Each first task writes one more item, a signal of 0 bytes, which its second tasks read. Tasks and items of the given
    graph keep their numbers, so that a plan for one graph is a plan for the other.

    Raises:
        BadProgram: Tasks would wait for each other in a circle.

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[1, 2], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    >>> ordered = with_order(g, np.array([[1, 0]], np.int32))
    >>> ordered.order.tolist(), ordered.size.tolist(), ordered.result.tolist()
    ([1, 0], [0.0], [False])
    """
    pairs = np.unique(before.reshape(-1, 2), axis=0)
    if not len(pairs):
        return graph
    first, signal = np.unique(pairs[:, 0], return_inverse=True)
    n, m, more = graph.n_tasks, graph.n_items, len(first)
    names = tuple(f"order after {graph.task_names[t]}" for t in first.tolist())
    waiting = np.argsort(pairs[:, 1], kind="stable")
    into = pairs[waiting, 1]
    added = graph.with_fields(
        size=np.concatenate((graph.size, np.zeros(more))),
        unknown_size=np.concatenate((graph.unknown_size, np.zeros(more, np.bool_))),
        result=np.concatenate((graph.result, np.zeros(more, np.bool_))),
        producer=_appended(graph.producer, first),
        reads=_inserted(graph.reads, graph.read_ptr[into + 1], m + signal.reshape(-1)[waiting]),
        read_ptr=_shifted(graph.read_ptr, into, n),
        writes=_inserted(graph.writes, graph.write_ptr[first + 1], m + np.arange(more)),
        write_ptr=_shifted(graph.write_ptr, first, n),
        readers=_appended(graph.readers, pairs[:, 1]),
        reader_ptr=_appended(
            graph.reader_ptr, graph.reader_ptr[-1] + np.cumsum(np.bincount(signal.reshape(-1)))
        ),
        item_names=_Names(graph.item_names, names),
        initial_locations=_with_items(graph.initial_locations, more),
        destinations=_with_items(graph.destinations, more),
    )
    if (graph.level[pairs[:, 0]] < graph.level[pairs[:, 1]]).all():
        return added
    order, level = derived(added)
    return added.with_fields(order=order, level=level)


def _appended(values: Ints, more: Any) -> Ints:
    return np.concatenate((values, np.asarray(more, np.int32)))


def _inserted(values: Ints, at: Ints, more: Any) -> Ints:
    """With more values before these positions of the given ones; those for one position in the order given."""
    return np.insert(values, at, np.asarray(more, np.int32))


def _shifted(pointers: Ints, owners: Ints, count: int) -> Ints:
    """Where the entries of each owner begin, with one more for each of these owners."""
    more = np.cumsum(np.bincount(owners, minlength=count))
    return (pointers + np.concatenate(([0], more))).astype(np.int32)


class _Names(Sequence[str]):
    """Names and more names, without a copy of the first ones.

    >>> names = _Names(("a", "b"), ("c",))
    >>> names[2], names[1:], len(names)
    ('c', ['b', 'c'], 3)
    """

    def __init__(self, first: Sequence[str], more: tuple[str, ...]) -> None:
        self.first = first
        self.more = more

    def __len__(self) -> int:
        return len(self.first) + len(self.more)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        return self.first[index] if index < len(self.first) else self.more[index - len(self.first)]


def _with_items(lists: SiteLists, more: int) -> SiteLists:
    """The same lists with empty ones for more items."""
    return replace(lists, ptr=np.concatenate((lists.ptr, np.full(more, lists.ptr[-1], np.int32))))


def bound_graph(graph: Graph, constraints: Constraints, derived: Levels = order_and_level) -> Graph:
    """The graph with the order, releases and deadlines of the constraints, besides its own; `derived` as above.

    Raises:
        BadProgram: Tasks would wait for each other in a circle.

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[1, 2], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    >>> late = replace(Constraints.none(2, 1), release=np.array([0.0, 5.0]))
    >>> bound_graph(g, late).release.tolist()
    [0.0, 5.0]
    """
    ordered = with_order(graph, constraints.before, derived)
    release = np.maximum(ordered.release, constraints.release)
    deadline = np.minimum(ordered.deadline, constraints.deadline)
    return ordered.with_fields(release=release, deadline=deadline)


def placement_only(constraints: Constraints) -> Constraints:
    """What is left of the constraints for a planner of the bound graph: the hosts of tasks."""
    none = Constraints.none(len(constraints.together), constraints.allowed.shape[1])
    return replace(constraints, before=none.before, release=none.release, deadline=none.deadline)
