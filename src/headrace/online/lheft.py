"""L-HEFT as it runs: ready tasks are buffered, ranked by level and least traffic, and placed near their data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.core.online import WakeConditions
from headrace.core.scheduler import Assign
from headrace.model.errors import UsageError
from headrace.model.events import Event
from headrace.model.graph import Ints

if TYPE_CHECKING:
    from headrace.core.view import RunView


_SPREAD = 2.0**32
"""Ranks in queues are levels, and within one the order of placing: far more than is ever placed."""


class LHeft:
    """Localized HEFT (the macro-dataflow paper, section 4.4 and figure 5).

    Ready tasks wait in a buffer until there are enough, or a host has nothing to do or will have nothing
    within `soon` seconds. Then they are ranked: lower level first, then less traffic on the best host
    (equation 3), then the longer run time. A task that needs no traffic goes to the host that holds its
    data, any other to the host where it finishes first: when the queue, as estimated and corrected at each
    completion, is worked off, or its inputs have arrived, whichever is later, plus the predicted time. When
    a host runs dry, tasks move there from the tail of the longest queue if they finish earlier that way; a
    task that is late is then taken to need `overdue` times as long again as it is late (0: the paper, which
    does not count it), since its host may have slowed down.

    O(tasks * (log tasks + reads * places + hosts)) for each batch.
    """

    name = "lheft"

    def __init__(
        self, buffer: int = 64, rebalance: bool = True, soon: float = 0.0, overdue: float = 1.0
    ) -> None:
        if buffer < 1:
            raise UsageError(f"buffer is {buffer}", where="lheft", hint="give 1 or more")
        if not soon >= 0:
            raise UsageError(f"soon is {soon}", where="lheft", hint="give seconds of 0 or more")
        if not 0 <= overdue < math.inf:
            raise UsageError(f"overdue is {overdue}", where="lheft", hint="give 0 or more, such as 1")
        self.buffer = buffer
        self.rebalance = rebalance
        self.overdue = overdue
        self.given = 0
        self.wake = WakeConditions(ready=buffer, idle=True, soon=soon, uneven=rebalance)
        self.next_time = math.inf
        self._told = False
        """Whether the back end says when tasks begin: simulated grids do, real workers only when they end."""

    def react(self, state: RunView, events: Sequence[Event]) -> list[Assign]:
        from headrace.online.lheft_placement import rebalance

        self._told = self._told or bool((state.desk.run_core >= 0).any())
        self.next_time = math.inf
        tasks = state.waiting()
        if len(tasks):
            tasks, hosts = self._place(state, tasks)
            if self.rebalance and self._leaves_uneven(state, hosts):
                self.next_time = state.time  # to look at the queues again as soon as they are filled
            return self._answers(state, tasks, hosts)
        if not self.rebalance:
            return []
        work, kind, rates = state.estimates.work, state.estimates.graph.kind, state.rates()
        moved = rebalance(*state.refs, work, kind, rates, state.time, self._told, self.overdue)
        return self._answers(state, *moved)

    def _place(self, state: RunView, tasks: Ints) -> tuple[Ints, Ints]:
        """Ready tasks by rank, each with its host; those that no host can run now are left out."""
        from headrace.online.lheft_placement import place_in_turn, traffic_of

        work, kind, rates = state.estimates.work, state.estimates.graph.kind, state.rates()
        total, least = traffic_of(*state.refs, tasks)
        mean = (1.0 / rates[:, state.desk.host_up == 1]).mean(axis=1)
        seconds = work[tasks] * mean[kind[tasks]]
        order = np.lexsort((tasks, -seconds, least, state.graph.level[tasks]))
        tasks, total, least = tasks[order], total[order], least[order]
        hosts = place_in_turn(*state.refs, tasks, total, least, work, kind, rates, state.time, self._told)
        return tasks[hosts >= 0], hosts[hosts >= 0]

    def _leaves_uneven(self, state: RunView, hosts: Ints) -> bool:
        """Whether a host is left with nothing to do while another gets more tasks than it has cores."""
        desk, up = state.desk, state.desk.host_up == 1
        cores = np.diff(state.static.core_ptr)
        given = desk.queue_length[:-1] + np.bincount(hosts, minlength=len(cores))
        idle = (given == 0) & (desk.busy_cores < cores)
        return bool((up & idle).any() and (up & (given > 0) & (given + desk.busy_cores > cores)).any())

    def _answers(self, state: RunView, tasks: Ints, hosts: Ints) -> list[Assign]:
        names, places = state.graph.task_names, state.platform.hosts
        level, first = state.graph.level, self.given
        self.given += len(tasks)
        return [
            Assign(names[t], places[h].name, int(level[t]) * _SPREAD + first + k)
            for k, (t, h) in enumerate(zip(tasks.tolist(), hosts.tolist(), strict=True))
        ]
