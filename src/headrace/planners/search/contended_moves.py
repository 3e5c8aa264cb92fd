"""Moves of the search under contention: small changes of the order and hosts of a solution."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.core.scheduler import Problem
from headrace.model.graph import Ints
from headrace.planners.list.ranks import ready_queue_order
from headrace.planners.search.contended_state import Passes
from headrace.planners.search.restarts import shared_inputs
from headrace.simulator.replay.dependencies import as_lists

_WIDEST = 128
"""Most tasks whose hosts are chosen anew in one move."""
_CRITICAL = 0.8
"""Share of moves that begin at a task of the critical chain."""


class Move(NamedTuple):
    order: Int64s
    host: Ints
    first: int
    """The first position that differs."""


class Moves:
    """Makes random moves from the current solution of `passes`."""

    def __init__(self, problem: Problem, passes: Passes, seed: int) -> None:
        self.problem, self.graph, self.passes = problem, problem.graph, passes
        self.random = Random(seed)
        self.hosts = len(problem.platform.hosts)
        self.n = passes.n
        self.position = np.empty(self.n, np.int64)
        self.chain: Int64s = np.arange(self.n)
        _, self.group_of = shared_inputs(problem)
        self.group_ptr, self.members = as_lists(
            self.group_of.astype(np.int32),
            np.arange(self.n, dtype=np.int32),
            int(self.group_of.max(initial=-1)) + 1,
        )
        self.shares = np.diff(self.group_ptr)[self.group_of] > 1
        """Whether other tasks have the same largest input."""
        self.kinds = (
            self.relocate, self.earlier, self.choose_window, self.swap, self.choose_family, self.shake,
            *((self.gather, self.advance_group) if self.shares.any() else ()),
        )  # fmt: skip

    def note_current(self) -> None:
        """The current solution of `passes` has changed; its last trial is the current solution."""
        self.position[self.passes.order] = np.arange(self.n)
        self.chain = self.passes.chain()

    def task(self) -> int:
        """A task, most often of the critical chain."""
        if self.random.random() < _CRITICAL:
            return int(self.chain[self.random.randrange(len(self.chain))])
        return self.random.randrange(self.n)

    def relocate(self) -> Move | None:
        """A task to the host of a neighbour, to any host, or to where it finishes first."""
        task, chance = self.task(), self.random.random()
        host = self.passes.host.copy()
        near = self._neighbours(task) if chance < 0.4 else []
        if near:
            host[task] = host[self.random.choice(near)]
        else:
            host[task] = -1 if chance < 0.6 else self.random.randrange(self.hosts)
        if host[task] == self.passes.host[task]:
            return None
        return Move(self.passes.order, host, int(self.position[task]))

    def swap(self) -> Move | None:
        """Two tasks exchange their hosts."""
        first, second = self.task(), self.random.randrange(self.n)
        host = self.passes.host.copy()
        if host[first] == host[second]:
            return None
        host[first], host[second] = host[second], host[first]
        return Move(self.passes.order, host, int(min(self.position[first], self.position[second])))

    def earlier(self) -> Move | None:
        """A task to a random earlier position after its predecessors."""
        task = self.task()
        at, low = int(self.position[task]), self._after_predecessors(task)
        if low >= at:
            return None
        target = self.random.randrange(low, at)
        order = self.passes.order.copy()
        order[target + 1 : at + 1] = self.passes.order[target:at]
        order[target] = task
        host = self.passes.host
        if self.random.random() < 0.3:
            host = host.copy()
            host[task] = -1
        return Move(order, host, target)

    def choose_window(self) -> Move | None:
        """Tasks near each other in the order choose hosts anew: all, those of one host or kind, or some."""
        centre = self.task()
        width = self._width()
        low = max(0, int(self.position[centre]) - self.random.randrange(width))
        tasks = self.passes.order[low : low + width]
        host, chance = self.passes.host.copy(), self.random.random()
        if chance < 0.25:
            tasks = tasks[host[tasks] == host[centre]]
        elif chance < 0.5:
            tasks = tasks[self.graph.speed_class[tasks] == self.graph.speed_class[centre]]
        elif chance < 0.75:
            tasks = tasks[:: 1 + self.random.randrange(3)]
        if not len(tasks):
            return None
        host[tasks] = -1
        return Move(self.passes.order, host, low)

    def choose_family(self) -> Move | None:
        """A task, its predecessors and successors choose their hosts anew."""
        task = self.task()
        family = np.array([task, *self._neighbours(task)[:_WIDEST]])
        host = self.passes.host.copy()
        host[family] = -1
        return Move(self.passes.order, host, int(self.position[family].min()))

    def shake(self) -> Move | None:
        """The order of tasks in a window is perturbed; some choose their hosts anew."""
        width = 2 * self._width()
        low = max(0, int(self.position[self.task()]) - self.random.randrange(width))
        key = self.position.astype(np.float64)
        window = self.passes.order[low : low + width]
        noise = np.array([self.random.random() for _ in range(len(window))])
        key[window] += (noise - 0.5) * width
        order = ready_queue_order(self.passes.arrays.tasks, -key).astype(np.int64)
        changed = np.flatnonzero(order != self.passes.order)
        if not len(changed):
            return None
        host = self.passes.host
        if self.random.random() < 0.5:
            host = host.copy()
            host[window[noise > 0.5]] = -1
            return Move(order, host, min(low, int(changed[0])))
        return Move(order, host, int(changed[0]))

    def gather(self) -> Move | None:
        """Tasks that share their largest input move to a host where it is read, or choose their hosts anew."""
        task = self.task()
        if not self.shares[task]:
            return None
        group = self._group(task)
        host, here = self.passes.host.copy(), self.passes.host[task]
        moved = group[host[group] == here]
        if self.random.random() < 0.3:
            moved = group
        target = host[int(group[self.random.randrange(len(group))])]
        host[moved] = -1 if target == here or self.random.random() < 0.3 else target
        return Move(self.passes.order, host, int(self.position[moved].min()))

    def advance_group(self) -> Move | None:
        """Tasks that share their largest input move to earlier or later positions together."""
        task = self.task()
        if not self.shares[task]:
            return None
        group = self._group(task)
        key = self.position.astype(np.float64)
        if self.random.random() < 0.5:
            key[group] += (self.random.random() - 0.5) * self.n * self.random.random()
        else:
            key[group] += (key[task] - key[group]) * self.random.random()
        order = ready_queue_order(self.passes.arrays.tasks, -key).astype(np.int64)
        changed = np.flatnonzero(order != self.passes.order)
        return Move(order, self.passes.host, int(changed[0])) if len(changed) else None

    def _group(self, task: int) -> Ints:
        group = self.group_of[task]
        return self.members[self.group_ptr[group] : self.group_ptr[group + 1]]

    def _width(self) -> int:
        most = max(2, min(self.n, _WIDEST))
        return int(2 * (most / 2) ** self.random.random())

    def _neighbours(self, task: int) -> list[int]:
        graph = self.graph
        makers = graph.producer[graph.reads_of(task)]
        near: list[int] = makers[makers >= 0].tolist()
        for item in graph.writes_of(task).tolist():
            near.extend(graph.readers_of(item).tolist())
        return near

    def _after_predecessors(self, task: int) -> int:
        makers = self.graph.producer[self.graph.reads_of(task)]
        return int(self.position[makers[makers >= 0]].max(initial=-1)) + 1
