"""Workqueue: each idle host receives the next ready task. The baseline for all other schedulers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.core.scheduler import AssignMany, WakeConditions
from headrace.core.view import RunView
from headrace.model.events import Event
from headrace.model.graph import Graph, Ints


class Workqueue:
    """Self-scheduling: dispatch tasks in the order in which they become ready to the fastest host with a free core.

    Estimated speeds are used only to choose between hosts that are free at the same time.

    >>> Workqueue().name
    'workqueue'
    """

    name = "workqueue"
    wake = WakeConditions(idle=True)

    def __init__(self) -> None:
        self.placed = 0
        self._graph: Graph | None = None
        self._several = False

    def react(self, view: RunView, events: Sequence[Event]) -> list[AssignMany]:
        """Assign ready tasks to free cores; tasks that need more cores than any host has free are skipped.

        O(hosts log hosts + tasks placed), plus O(hosts) for each task that needs several cores.
        """
        state, cores = view.state, np.diff(view.static.core_ptr)
        several = self._need_several_cores(view)
        room = np.where(state.host_up == 1, cores - state.busy_cores - self._queued(view, several), 0)
        fastest = np.argsort(-view.rates().max(axis=0), kind="stable").astype(np.int32)
        fastest = fastest[room[fastest] > 0]
        if not len(fastest):
            return []
        if several:
            tasks, hosts = _fitting(view, view.ready(), fastest, room)
        else:
            slots = np.repeat(fastest, room[fastest])
            tasks = view.ready(len(slots))
            hosts = slots[: len(tasks)]
        if not len(tasks):
            return []
        ranks = self.placed + np.arange(1, len(tasks) + 1, dtype=np.float64)
        self.placed += len(tasks)
        return [AssignMany(tasks, hosts, ranks)]

    def _need_several_cores(self, view: RunView) -> bool:
        if self._graph is not view.graph:
            self._graph, self._several = view.graph, bool((view.graph.cores > 1).any())
        return self._several

    def _queued(self, view: RunView, several: bool) -> Ints:
        """Cores that the tasks in each queue will need."""
        if not several:
            return view.state.queue_length[:-1]
        hosts = range(len(view.platform.hosts))
        return np.array([int(view.graph.cores[view.queue(h)].sum()) for h in hosts], np.int32)


def _fitting(view: RunView, ready: Ints, fastest: Ints, room: Ints) -> tuple[Ints, Ints]:
    """Ready tasks, each with the fastest host that has enough free cores for it."""
    tasks: list[int] = []
    hosts: list[int] = []
    for task in ready.tolist():
        if room[fastest].max(initial=0) <= 0:
            break
        need = int(view.graph.cores[task])
        fitting = fastest[room[fastest] >= need]
        if len(fitting):
            room[fitting[0]] -= need
            tasks.append(task)
            hosts.append(int(fitting[0]))
    return np.array(tasks, np.int32), np.array(hosts, np.int32)
