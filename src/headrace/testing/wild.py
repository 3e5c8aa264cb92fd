"""A scheduler that makes random decisions, to reach coordinator states that sensible ones avoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.core.scheduler import EVERY_EVENT, Assign, Command, Fetch, RequeueTail
from headrace.model.events import Event

if TYPE_CHECKING:
    from headrace.core.view import RunView


class Wild:
    """Assigns tasks to random hosts, ready or not, in any order, and moves them; all are placed eventually.

    `ordered`: ranks follow the order of the graph, for coordinators that start only the head of a queue.
    """

    name = "wild"
    wake = EVERY_EVENT

    def __init__(self, seed: int, *, ordered: bool = False) -> None:
        self.rng = np.random.default_rng([seed, 77])
        self.ordered = ordered
        self.rank: dict[int, float] = {}

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        """Place some of the waiting tasks; all of them if nothing else is going on."""
        rng, state = self.rng, view.state
        if not self.rank:
            order = {t: float(k) for k, t in enumerate(view.graph.order.tolist())}
            shuffled = rng.permutation(view.graph.n_tasks).astype(float)
            self.rank = order if self.ordered else dict(enumerate(shuffled.tolist()))
        hosts = [h for h in range(len(view.platform.hosts)) if state.host_up[h]]
        waiting = view.ready().tolist()
        chosen = waiting if not events else [t for t in waiting if rng.random() < 0.7]
        if rng.random() < 0.3:
            free = np.flatnonzero((state.done == 0) & (state.run_host < 0))
            chosen += [t for t in free.tolist() if rng.random() < 0.2 and t not in chosen]
        commands: list[Command] = []
        if events and rng.random() < 0.05:
            commands.append(RequeueTail(int(rng.integers(0, 3))))
        for task in chosen:
            host = hosts[int(rng.integers(len(hosts)))]
            commands.append(
                Assign(view.graph.task_names[task], view.platform.hosts[host].name, self.rank[task])
            )
        return commands + self._fetches(view)

    def _fetches(self, view: RunView) -> list[Command]:
        """Transfers that may be useless, of items that may not exist."""
        rng, graph, places = self.rng, view.graph, view.platform.network.place_names
        if len(places) < 2 or not graph.n_items or rng.random() < 0.7:
            return []
        commands: list[Command] = []
        for item in rng.integers(graph.n_items, size=2).tolist():
            source, target = rng.permutation(len(places))[:2].tolist()
            rank = float(rng.random())
            prefetch, in_turn = rank < 0.5, rank > 0.7
            commands.append(
                Fetch(graph.item_names[item], places[source], places[target], rank, prefetch, in_turn)
            )
        return commands
