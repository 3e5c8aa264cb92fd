"""Just in time: a host that has nothing to do gets the next ready task. The floor for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.online import WakeConditions
from headrace.core.scheduler import Assign
from headrace.model.events import Event
from headrace.model.graph import Ints

if TYPE_CHECKING:
    from headrace.core.view import RunView


class Workqueue:
    """The workqueue: tasks in the order in which they become ready, to the fastest host that is free."""

    name = "workqueue"
    wake = WakeConditions(idle=True)

    def __init__(self) -> None:
        self.given = 0
        self._cores: Any = None
        self._wide = False
        """Whether some tasks need several cores."""

    def react(self, state: RunView, events: Sequence[Event]) -> list[Assign]:
        """Tasks for the free cores; one that finds too few of them on every host waits, others pass it.

        O(hosts log hosts + tasks given), plus O(hosts) for each task that needs several cores.
        """
        desk, hosts = state.desk, state.platform.hosts
        if self._cores is None:
            self._cores = np.array([host.cores for host in hosts])
            self._wide = bool((state.graph.cores > 1).any())
        room = np.where(desk.host_up == 1, self._cores - desk.busy_cores - self._queued(state), 0)
        fastest = np.argsort(-state.rates().max(axis=0), kind="stable")
        answers: list[Assign] = []
        task, at = int(desk.queue_head[-1]), 0
        while task >= 0:
            while at < len(fastest) and room[fastest[at]] <= 0:
                at += 1
            if at == len(fastest):
                break
            need = int(state.graph.cores[task])
            fits = fastest[at:][room[fastest[at:]] >= need] if need > 1 else fastest[at : at + 1]
            if len(fits):
                self.given += 1
                room[fits[0]] -= need
                answers.append(Assign(state.graph.task_names[task], hosts[fits[0]].name, self.given))
            task = int(desk.queue_next[task])
        return answers

    def _queued(self, state: RunView) -> Ints:
        """Cores that the tasks in each queue will need; one each, if none needs more."""
        if not self._wide:
            return np.asarray(state.desk.queue_length[:-1])
        cores = state.graph.cores
        return np.array([int(cores[state.queue(h)].sum()) for h in range(len(self._cores))], np.int32)
