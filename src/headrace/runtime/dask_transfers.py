"""Transfers requested by a plan or a scheduler: prefetched from the planned source, in planned order.

By default the engine's workers fetch missing inputs, from any copy, when they receive a task. Planned transfers are
requested before that, one at a time per worker, so that a later one does not slow down an earlier one; another one
starts only while those under way come over links so slow that they leave most of the worker's own link idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.core.scheduler import Fetch

_WINDOW = 16
"""How many of the next transfers to a worker are examined for one that can start."""
_MOST_TAKEN = 0.5
"""The share of a worker's link that transfers under way may take if another one is to start."""


class PlannedTransfers:
    """Pending transfers to each worker, by rank."""

    def __init__(
        self,
        scheduler: Any,
        key_of: Mapping[str, Any],
        address: Mapping[str, str],
        share: Callable[[str, str], float] = lambda source, target: 1.0,
    ) -> None:
        """`share` is the part of the target's link that a transfer from a source can use."""
        self.scheduler = scheduler
        self.key_of = key_of
        self.address = address
        self.share = share
        self.waiting: dict[str, list[Fetch]] = {}
        self.under_way: dict[str, list[tuple[str, Fetch]]] = {}
        """By host: the address of its worker, and what it receives."""
        self.to_copy: list[tuple[str, str]] = []
        """Copies of items at hosts that were asked for and have not begun."""

    def replace(self, fetches: Iterable[Fetch]) -> None:
        """Replace transfers that have not started by those of a new plan."""
        self.waiting.clear()
        for fetch in sorted(fetches, key=lambda fetch: fetch.rank, reverse=True):
            self.waiting.setdefault(fetch.target, []).append(fetch)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to start."""
        return not self.waiting and not self.to_copy

    def start_next(self) -> None:
        """For each worker whose link is not in use, start the first transfers whose sources have the items."""
        self._start_copies()
        for host, fetches in self.waiting.items():
            target = self.address.get(host)
            while target is not None and not self._is_receiving(host, target):
                if not self._start_first(host, target, fetches):
                    break

    def _start_first(self, host: str, target: str, fetches: list[Fetch]) -> bool:
        """Start the first of these transfers whose source has the item; False if there is none."""
        while fetches and target in self._holders(fetches[-1].item):
            fetches.pop()
        for k in range(len(fetches) - 1, max(-1, len(fetches) - 1 - _WINDOW), -1):
            source = self.address.get(fetches[k].source)
            holders = self._holders(fetches[k].item)
            if source in holders and target not in holders:
                fetch = fetches.pop(k)
                self.under_way.setdefault(host, []).append((target, fetch))
                self._acquire(fetch.item, [source], target)
                return True
        return False

    def _is_receiving(self, host: str, target: str) -> bool:
        """Whether transfers under way take most of a worker's link."""
        self.under_way[host] = [
            (receiver, fetch)
            for receiver, fetch in self.under_way.get(host, [])
            if receiver == target
            and target not in self._holders(fetch.item)
            and self.address.get(fetch.source) in self._holders(fetch.item)
        ]
        taken = sum(self.share(fetch.source, host) for _, fetch in self.under_way[host])
        return taken > _MOST_TAKEN

    def _holders(self, item: str) -> set[str]:
        state = self.scheduler.tasks.get(self.key_of.get(item))
        return set() if state is None else {worker.address for worker in state.who_has or ()}

    def _acquire(self, item: str, sources: list[Any], target: str) -> None:
        key = self.key_of[item]
        if target not in self.scheduler.stream_comms:  # it is about to leave
            return
        self.scheduler.stream_comms[target].send(
            {
                "op": "acquire-replicas",
                "who_has": {key: sources},
                "nbytes": {key: self.scheduler.tasks[key].nbytes},
                "stimulus_id": f"headrace-fetch-{item}",
            }
        )

    def replicate(self, item: str, host: str) -> None:
        """Make one more copy, from any source, as soon as the item is there."""
        self.to_copy.append((item, host))

    def _start_copies(self) -> None:
        wanted, self.to_copy = self.to_copy, []
        for item, host in wanted:
            state = self.scheduler.tasks.get(self.key_of.get(item))
            holders, target = self._holders(item), self.address.get(host)
            if holders and target is not None and target not in holders:
                self._acquire(item, sorted(holders), target)
            elif not holders and state is not None and state.state in ("waiting", "processing", "no-worker"):
                self.to_copy.append((item, host))

    def remove(self, item: str, host: str) -> None:
        """Drop a copy, unless it is the last one."""
        holders, target = self._holders(item), self.address.get(host)
        if target in holders and len(holders) > 1:
            keys = [self.key_of[item]]
            self.scheduler.request_remove_replicas(target, keys, stimulus_id=f"headrace-remove-{item}")
