"""Where a shuffle of Dask (P2P) puts its output partitions: on fast workers more than on slow ones.

The engine divides them equally among all workers, and pins the tasks that read them to these.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any


def divided(count: int, workers: Sequence[str], power: Mapping[str, float]) -> list[str]:
    """The worker of each of `count` partitions of equal size, so that the last one ends early; workers stay in order.

    O(partitions log workers). Workers of which nothing is known have power 1.

    >>> names = divided(8, ["a", "b", "c"], {"a": 4.0, "b": 2.0, "c": 1.0})
    >>> "".join(names)
    'aaaaabbc'
    """
    given = dict.fromkeys(workers, 0)
    ends = [(1.0 / power.get(worker, 1.0), k) for k, worker in enumerate(workers)]
    heapq.heapify(ends)
    for _ in range(count):
        end, k = ends[0]
        given[workers[k]] += 1
        heapq.heapreplace(ends, (end + 1.0 / power.get(workers[k], 1.0), k))
    return [worker for worker, number in given.items() for _ in range(number)]


class UnequalSpec:
    """A shuffle as the engine describes it, except for the workers that it picks."""

    def __init__(self, spec: Any, power: Mapping[str, float]) -> None:
        self._spec = spec
        self._power = power
        self._workers: Sequence[str] = ()
        self._chosen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spec, name)

    def pick_worker(self, partition: Any, workers: Sequence[str]) -> str:
        """The engine divides the partitions into ranges of equal length, one for each entry of the list."""
        if workers is not self._workers:
            count = sum(1 for _ in self._spec.output_partitions)
            self._workers, self._chosen = workers, divided(count, workers, self._power)
        return str(self._spec.pick_worker(partition, self._chosen))
