"""Workqueue: each idle host receives the next ready task. The baseline for all other schedulers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.core.replan_constraints import OpenPlaces
from headrace.core.replan_policy import WhenImpossible
from headrace.core.scheduler import AssignMany, Command, RequeueTail, WakeConditions
from headrace.core.view import RunView
from headrace.model.events import Event
from headrace.model.graph import Floats, Graph, Ints
from headrace.online.settling import Obedient, is_stuck


class Workqueue(Obedient):
    """Self-scheduling: dispatch tasks in the order in which they become ready to the fastest host with a free core.

    Estimated speeds are used only to choose between hosts that are free at the same time. When a rule can no longer be
    kept, the run stops, or leaves it out, as `when_impossible` says.

    >>> Workqueue().name
    'workqueue'
    """

    name = "workqueue"
    wake = WakeConditions(idle=True)

    def __init__(self, when_impossible: WhenImpossible = "stop") -> None:
        super().__init__(when_impossible)
        self.placed = 0
        self._sorted: tuple[Floats, Ints] | None = None
        self._graph: Graph | None = None
        self._several = False

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        """Assign ready tasks to free cores; tasks that need more cores than any host has free are skipped.

        O(hosts log hosts + tasks placed), plus O(hosts) for each task that needs several cores.
        """
        if self._run is None:
            return self._placed(view)
        if self._run.update(view, events):
            return [RequeueTail(0)]
        commands = self._placed(view)
        if not commands and is_stuck(view):
            self._run.settle(view)
            commands = self._placed(view)
        return commands

    def _placed(self, view: RunView) -> list[Command]:
        state, cores = view.state, np.diff(view.static.core_ptr)
        several = self._need_several_cores(view)
        room = np.where(state.host_up == 1, cores - state.busy_cores - self._queued(view, several), 0)
        fastest = self._by_speed(view.rates())
        fastest = fastest[room[fastest] > 0]
        if not len(fastest):
            return []
        run = self._run
        if several or run is not None:
            places = None
            if run is not None and run.settled is not None:
                places = OpenPlaces(run, run.settled, view, at_once=True)
            tasks, hosts = _fitting(view, view.ready(), fastest, room, places)
        else:
            slots = np.repeat(fastest, room[fastest])
            tasks = view.ready(len(slots))
            hosts = slots[: len(tasks)]
        if not len(tasks):
            return []
        ranks = self.placed + np.arange(1, len(tasks) + 1, dtype=np.float64)
        self.placed += len(tasks)
        return [AssignMany(tasks, hosts, ranks)]

    def _by_speed(self, rates: Floats) -> Ints:
        """Hosts, the fastest first; sorted again only when speeds are estimated again."""
        if self._sorted is None or self._sorted[0] is not rates:
            self._sorted = rates, np.argsort(-rates.max(axis=0), kind="stable").astype(np.int32)
        return self._sorted[1]

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


def _fitting(
    view: RunView, ready: Ints, fastest: Ints, room: Ints, places: OpenPlaces | None
) -> tuple[Ints, Ints]:
    """Ready tasks, each with the fastest host that has enough free cores for it and that constraints leave for it."""
    tasks: list[int] = []
    hosts: list[int] = []
    for task in ready.tolist():
        if room[fastest].max(initial=0) <= 0:
            break
        need = int(view.graph.cores[task])
        fitting = fastest[room[fastest] >= need]
        if places is not None:
            fitting = fitting[places.hosts(task)[fitting]]
        if len(fitting):
            if places is not None:
                places.take(task, int(fitting[0]))
            room[fitting[0]] -= need
            tasks.append(task)
            hosts.append(int(fitting[0]))
    return np.array(tasks, np.int32), np.array(hosts, np.int32)
