"""L-HEFT as it runs: ready tasks are buffered, ranked by level and least traffic, and placed near their data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.core.online import Wake
from headrace.core.scheduler import Assignment
from headrace.model.errors import UsageError
from headrace.model.events import Event
from headrace.model.graph import Ints

if TYPE_CHECKING:
    from headrace.core.grid_state import GridState


class OnlineLHeft:
    """Localized HEFT (the macro-dataflow paper, section 4.4 and figure 5).

    Ready tasks wait in a buffer until there are enough or a host has nothing to do. Then they are ranked:
    lower level first, then less traffic on the best host (equation 3). A task that needs no traffic goes to
    the host that holds its data, any other to the host where it finishes first: when the queue, as
    estimated and corrected at each completion, is worked off, or its inputs have arrived, whichever is
    later, plus the predicted time. When a host runs dry, tasks move there from the tail of the longest
    queue if they finish earlier that way.

    O(tasks * (log tasks + reads * places + hosts)) for each batch.
    """

    name = "lheft"

    def __init__(self, buffer: int = 64, rebalance: bool = True) -> None:
        if buffer < 1:
            raise UsageError(f"buffer is {buffer}", where="lheft", hint="give 1 or more")
        self.buffer = buffer
        self.rebalance = rebalance
        self.given = 0
        self.wake = Wake(ready=buffer, idle=True, uneven=rebalance)

    def react(self, state: GridState, events: Sequence[Event]) -> list[Assignment]:
        from headrace.planners.kernels.online_lheft import place_ready, rebalance

        tasks = state.waiting()
        hosts = np.empty(0, np.int32)
        case, desk = state.refs
        rates = state.rates()
        if len(tasks):
            tasks, hosts = place_ready(
                case, desk, tasks, state.beliefs.work, state.beliefs.graph.kind, rates, state.time
            )
        elif self.rebalance:
            tasks, hosts = rebalance(
                case, desk, state.beliefs.work, state.beliefs.graph.kind, rates, state.time
            )
        return self._answers(state, tasks, hosts)

    def _answers(self, state: GridState, tasks: Ints, hosts: Ints) -> list[Assignment]:
        names, places = state.graph.task_names, state.platform.hosts
        level, first = state.graph.level, self.given
        self.given += len(tasks)
        spread = 1.0 + state.graph.n_tasks * 8.0
        return [
            Assignment(names[t], places[h].name, int(level[t]) * spread + first + k)
            for k, (t, h) in enumerate(zip(tasks.tolist(), hosts.tolist(), strict=True))
        ]
