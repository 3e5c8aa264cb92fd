"""Finished data that recovery may need stays on the workers, so that after a loss few tasks run again.

The engine drops data as soon as no waiting task reads it. What a later task made of it may then be lost with a worker,
and be made again only from the inputs of the program. Here an item is kept while a task that descends from it has not
finished, or made a result of the run. Workers move what does not fit into memory to disk. What the engine would have
dropped may occupy half of the workers' memory; beyond that the oldest is dropped first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.runtime.graph import Key

_SHARE = 0.5
"""Of the workers' memory, for data that only recovery may need."""


class Keeping:
    """Holds references to finished data, as a client of the engine would.

    A task is *live* while it has not finished, one of its outputs is a result, or a reader of one is live; an item is
    kept while a reader is live. O(reads) for the whole run, apart from losses.
    """

    def __init__(self, scheduler: Any, name: str, graph: Graph, item_of: dict[Key, str]) -> None:
        self.scheduler = scheduler
        self.client = name
        self.graph = graph
        number = {item: i for i, item in enumerate(graph.item_names)}
        self.number_of = {key: number[item] for key, item in item_of.items()}
        self.key_of = {i: key for key, i in self.number_of.items()}
        self.done = np.zeros(graph.n_tasks, np.bool_)
        self.live = np.ones(graph.n_tasks, np.bool_)
        self.live_readers = np.diff(graph.reader_ptr).astype(np.int64) + graph.result
        self.held: dict[Key, int] = {}
        """Bytes of each key that is held, oldest first."""
        self.bytes = 0
        self.to_release: list[Key] = []
        """Keys to be dropped by `flush`, as soon as no transition of the engine is under way."""

    def finished(self, task: int) -> None:
        """A task has finished: what nothing depends on any more is dropped."""
        self.done[task] = True
        stack, dropped = [task], []
        while stack:
            at = stack.pop()
            if not self.live[at] or not self.done[at] or self.live_readers[self.graph.writes_of(at)].any():
                continue
            self.live[at] = False
            for item in np.unique(self.graph.reads_of(at)).tolist():
                self.live_readers[item] -= 1
                if self.live_readers[item] == 0:
                    dropped.append(item)
                    if self.graph.producer[item] >= 0:
                        stack.append(int(self.graph.producer[item]))
        self.to_release += [self.key_of[item] for item in dropped if item in self.key_of]

    def again(self, tasks: Iterable[int]) -> None:
        """Tasks run again: they, and what they descend from, are live."""
        stack = list(tasks)
        for task in stack:
            self.done[task] = False
        while stack:
            at = stack.pop()
            if self.live[at]:
                continue
            self.live[at] = True
            for item in np.unique(self.graph.reads_of(at)).tolist():
                self.live_readers[item] += 1
                if self.graph.producer[item] >= 0:
                    stack.append(int(self.graph.producer[item]))

    def hold(self, key: Key) -> None:
        """A key is in memory: keep it if a live task reads it."""
        item = self.number_of.get(key, -1)
        if item < 0 or key in self.held or self.live_readers[item] == 0:
            return
        state = self.scheduler.tasks.get(key)
        if state is None:
            return
        self.held[key] = int(state.nbytes)
        self.bytes += self.held[key]
        self.scheduler.client_desires_keys(keys=[key], client=self.client)
        self._keep_within_limit()

    def _keep_within_limit(self) -> None:
        """Drop the oldest data that the engine would have dropped already, if the rest is too much."""
        limit = _SHARE * sum(w.memory_limit or np.inf for w in self.scheduler.workers.values())
        left = self.bytes
        for key, size in self.held.items():
            if left <= limit:
                return
            state = self.scheduler.tasks.get(key)
            if state is None or not state.waiters:
                self.to_release.append(key)
                left -= size

    def flush(self) -> list[Key]:
        """Drop what is no longer kept, and return it; must not be called inside a transition."""
        keys, self.to_release = self.to_release, []
        self.release(keys)
        return [key for key in keys if self.live_readers[self.number_of[key]] == 0]

    def lost(self, done: np.ndarray[Any, Any], loading: Container[Key]) -> None:
        """After a loss: do not insist on lost keys that are not loaded and, by the coordinator, need not be made."""
        gone = []
        for key in self.held:
            if key in loading:
                continue
            state = self.scheduler.tasks.get(key)
            if state is None or (state.state != "memory" and done[self.graph.producer[self.number_of[key]]]):
                gone.append(key)
        self.release(gone)

    def release(self, keys: Iterable[Key]) -> None:
        """Let the engine drop keys; must not be called inside a transition."""
        mine = [key for key in keys if key in self.held]
        for key in mine:
            self.bytes -= self.held.pop(key)
        if mine and self.client in self.scheduler.clients:
            self.scheduler.client_releases_keys(keys=mine, client=self.client)

    def stop(self) -> None:
        """Hold nothing any more."""
        self.release(list(self.held))
        self.scheduler.clients.pop(self.client, None)
