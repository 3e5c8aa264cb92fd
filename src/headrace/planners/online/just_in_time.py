"""Just in time: a host that has nothing to do gets the next ready task. The floor for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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

    def react(self, state: GridState, events: Sequence[Event]) -> list[Assignment]:
        """One task for every free core; O(hosts log hosts + tasks given)."""
        desk, hosts = state.desk, state.platform.hosts
        rates = state.rates().max(axis=0)
        free = [
            h
            for h, host in enumerate(hosts)
            if desk.up[h]
            for _ in range(host.cores - int(desk.busy[h]) - int(desk.q_len[h]))
        ]
        free.sort(key=lambda h: (-rates[h], h))
        answers = []
        task = int(desk.q_head[-1])
        for h in free:
            if task < 0:
                break
            self.given += 1
            answers.append(Assignment(state.graph.task_names[task], hosts[h].name, self.given))
            task = int(desk.q_next[task])
        return answers
