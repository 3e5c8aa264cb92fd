"""A scheduler that decides at random, to bring the coordinator into states that sensible ones avoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.core.online import EVERY_EVENT, Command, Fetch, RequeueTail
from headrace.core.scheduler import Assign
from headrace.model.events import Event

if TYPE_CHECKING:
    from headrace.core.view import RunView


class Wild:
    """Tasks go anywhere, ready or not, in any order, and are moved about; everything is placed in the end.

    `ordered`: ranks follow the order of the graph, for coordinators that start only the head of a queue.
    """

    name = "wild"
    wake = EVERY_EVENT

    def __init__(self, seed: int, *, ordered: bool = False) -> None:
        self.rng = np.random.default_rng([seed, 77])
        self.ordered = ordered
        self.rank: dict[int, float] = {}

    def react(self, state: RunView, events: Sequence[Event]) -> list[Command]:
        """Some of what waits; all of it when nothing else is going on."""
        rng, desk = self.rng, state.desk
        if not self.rank:
            order = {t: float(k) for k, t in enumerate(state.graph.order.tolist())}
            shuffled = rng.permutation(state.graph.n_tasks).astype(float)
            self.rank = order if self.ordered else dict(enumerate(shuffled.tolist()))
        hosts = [h for h in range(len(state.platform.hosts)) if desk.host_up[h]]
        waiting = state.waiting().tolist()
        chosen = waiting if not events else [t for t in waiting if rng.random() < 0.7]
        if rng.random() < 0.3:
            free = np.flatnonzero((desk.done == 0) & (desk.run_host < 0))
            chosen += [t for t in free.tolist() if rng.random() < 0.2 and t not in chosen]
        answers: list[Command] = []
        if events and rng.random() < 0.05:
            answers.append(RequeueTail(int(rng.integers(0, 3))))
        for task in chosen:
            host = hosts[int(rng.integers(len(hosts)))]
            answers.append(
                Assign(state.graph.task_names[task], state.platform.hosts[host].name, self.rank[task])
            )
        return answers + self._deliveries(state)

    def _deliveries(self, state: RunView) -> list[Command]:
        """Transfers that nobody may need, of items that may not exist."""
        rng, graph, places = self.rng, state.graph, state.platform.network.place_names
        if len(places) < 2 or not graph.n_items or rng.random() < 0.7:
            return []
        answers: list[Command] = []
        for item in rng.integers(graph.n_items, size=2).tolist():
            source, target = rng.permutation(len(places))[:2].tolist()
            rank = float(rng.random())
            answers.append(Fetch(graph.item_names[item], places[source], places[target], rank))
        return answers
