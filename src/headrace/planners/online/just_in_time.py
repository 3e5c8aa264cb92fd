"""Just in time: a host that has nothing to do gets the next ready task. The floor for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.online import Wake
from headrace.core.scheduler import Assignment
from headrace.model.events import Event

if TYPE_CHECKING:
    from headrace.core.grid_state import GridState


class JustInTime:
    """The workqueue: tasks in the order in which they become ready, to the fastest host that is free."""

    name = "workqueue"
    wake = Wake(idle=True)

    def __init__(self) -> None:
        self.given = 0
        self._cores: Any = None

    def react(self, state: GridState, events: Sequence[Event]) -> list[Assignment]:
        """One task for every free core; O(hosts log hosts + tasks given)."""
        desk, hosts = state.desk, state.platform.hosts
        if self._cores is None:
            self._cores = np.array([host.cores for host in hosts])
        room = np.where(desk.up == 1, self._cores - desk.busy - desk.q_len[:-1], 0)
        free = np.repeat(np.arange(len(hosts)), np.maximum(room, 0))
        free = free[np.argsort(-state.rates().max(axis=0)[free], kind="stable")]
        answers = []
        task = int(desk.q_head[-1])
        for h in free.tolist():
            if task < 0:
                break
            self.given += 1
            answers.append(Assignment(state.graph.task_names[task], hosts[h].name, self.given))
            task = int(desk.q_next[task])
        return answers
