"""Where the engine may run each key: restrictions and priorities that follow the coordinator's assignments.

- A task with `worker_restrictions` is neither queued by the engine's scheduler nor stolen, so neither need be turned
  off; restricted to an address that does not exist, it stays in `no-worker` until that changes.
- Restrictions and priorities set before a task is placed are obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from distributed.metrics import time as engine_time

from headrace.core.scheduler import Assign
from headrace.model.errors import NoPlan

if TYPE_CHECKING:
    from headrace.runtime.dask_hosts import Hosts
    from headrace.runtime.graph import Key, Layout

NOWHERE = "headrace://no-host-yet"
"""The restriction of a task that has no host yet."""
_FIRST = float("-inf")


class Pins:
    """The host of every task, carried out as restrictions of the engine's tasks.

    State changes of tasks must not be nested in others: they are collected, and made by `apply`.
    """

    def __init__(self, scheduler: Any, layout: Layout, hosts: Hosts, policy_name: str) -> None:
        self.scheduler = scheduler
        self.layout = layout
        self.hosts = hosts
        self.address = hosts.address
        self.policy_name = policy_name
        self.key_of = {name: key for key, name in layout.tasks.items()}
        self.helpers_of: dict[str, list[Key]] = {}
        for key, tasks in layout.follows.items():
            for task in tasks:
                self.helpers_of.setdefault(task, []).append(key)
        self.pin: dict[str, Assign] = {}
        self.to_apply: dict[Key, str] = {}
        self.unreleased: Mapping[str, float] = {}
        """Tasks that may not start yet: they have a host, but no worker."""

    def held(self) -> list[str]:
        """Ready tasks that have no host, by name."""
        return sorted(
            self.layout.tasks[state.key]
            for state in self.scheduler.unrunnable
            if state.worker_restrictions == {NOWHERE}
            and self.layout.tasks.get(state.key, "") not in self.unreleased
            and state.key in self.layout.tasks
        )

    def awaits_worker(self) -> bool:
        """Whether a task waits for a worker that has just come, which the engine does not use yet."""
        there = set(self.hosts.usable().values())
        return any(
            state.key in self.layout.tasks and (state.worker_restrictions or set()) & there
            for state in self.scheduler.unrunnable
        )

    def finished(self, task: str) -> None:
        """A task has finished: the engine must not run it again unless it is assigned again."""
        self.pin.pop(task, None)
        state = self.scheduler.tasks.get(self.key_of[task])
        if state is not None:
            state.worker_restrictions = {NOWHERE}

    def hold(self, task: str, running: bool) -> None:
        """Remove a task from its worker; it waits until it is assigned again."""
        self.pin.pop(task, None)
        state = self.scheduler.tasks.get(self.key_of[task])
        if state is None:
            return
        state.worker_restrictions = {NOWHERE}
        if state.state == "processing" and (running or state not in state.processing_on.executing):
            self.to_apply[self.key_of[task]] = "released"

    def assign(self, answer: Iterable[Assign]) -> None:
        """Set restrictions and priorities; state changes are deferred to `_apply`."""
        helpers: dict[Key, None] = {}
        for assignment in answer:
            address = self.address.get(assignment.host)
            if address is None or assignment.task not in self.key_of:
                raise NoPlan(
                    f"{assignment.task!r} was assigned to {assignment.host!r}, which is not there",
                    where=self.policy_name,
                    hint="use another scheduler",
                )
            self.pin[assignment.task] = assignment
            if assignment.task not in self.unreleased:
                self._place(self.key_of[assignment.task], address, assignment.rank)
            helpers.update(dict.fromkeys(self.helpers_of.get(assignment.task, ())))
        for key in helpers:
            self._place_helper(key)

    def _place_helper(self, key: Key) -> None:
        pins = [self.pin[task] for task in self.layout.follows[key] if task in self.pin]
        pins = [pin for pin in pins if pin.host in self.address]
        if pins:
            self._place(key, self.address[min(pins, key=lambda pin: pin.rank).host], _FIRST)

    def _place(self, key: Key, address: str, rank: float) -> None:
        state = self.scheduler.tasks.get(key)
        if state is None:
            return
        state.worker_restrictions = {address}
        state.loose_restrictions = False
        state.priority = (*state.priority[:2], rank)
        if state.state == "no-worker":
            self.to_apply[key] = "processing"
        elif state.state == "processing":
            worker = state.processing_on
            # A task that has started stays: moving it would only repeat its work.
            if worker.address != address and state not in worker.executing:
                self.to_apply[key] = "released"

    def place(self, key: Key, host: str) -> None:
        """Have a key made on a host before all tasks that wait there."""
        self._place(key, self.address[host], _FIRST)

    def stranded(self, key: Key) -> bool:
        """Whether a key waits for a worker that is not there."""
        state = self.scheduler.tasks.get(key)
        if state is None or state.state != "no-worker":
            return False
        return not (state.worker_restrictions or set()) & set(self.hosts.usable().values())

    def rescue(self, key: Key) -> None:
        """Place a key that nothing else will place: where it is read first, or where it finds what it reads."""
        usable = self.hosts.usable()
        if not usable:  # another worker may come
            return
        state = self.scheduler.tasks[key]
        reader = self.first_reader(state, usable)
        if reader is not None:
            self._place(key, usable[reader.host], reader.rank)
            return
        near = sorted({w.address for d in state.dependencies for w in d.who_has or ()} & set(usable.values()))
        self._place(key, near[0] if near else usable[self.least_busy(usable)], _FIRST)

    def leave(self, address: str) -> None:
        """A worker takes no more tasks: keys that follow others wait elsewhere. Tasks are assigned again. O(keys)."""
        for key in self.layout.follows:
            state = self.scheduler.tasks.get(key)
            if state is None or address not in (state.worker_restrictions or ()):
                continue
            state.worker_restrictions = {NOWHERE}
            if state.state == "processing" and state not in state.processing_on.executing:
                self.to_apply[key] = "released"

    def first_reader(self, state: Any, usable: Mapping[str, str]) -> Assign | None:
        """The pin of the first task, by rank, that reads this key's data and has a live host."""
        pins: list[Assign] = []
        for reader in state.dependents:
            tasks = (
                [self.layout.tasks[reader.key]]
                if reader.key in self.layout.tasks
                else [self.layout.tasks[r.key] for r in reader.dependents if r.key in self.layout.tasks]
            )
            pins += [self.pin[t] for t in tasks if t in self.pin and self.pin[t].host in usable]
        return min(pins, key=lambda pin: (pin.rank, pin.task), default=None)

    def least_busy(self, hosts: Iterable[str]) -> str:
        """The host with the fewest tasks; of several, the first by name."""
        workers = self.scheduler.workers
        return min(hosts, key=lambda host: (len(workers[self.address[host]].processing), host))

    def apply(self) -> None:
        """Move tasks to their assigned hosts: those that waited for a host, and those on another one."""
        changes, self.to_apply = self.to_apply, {}
        movable = []
        for key, target in changes.items():
            state = self.scheduler.tasks.get(key)
            expected = "no-worker" if target == "processing" else "processing"
            if state is not None and state.state == expected:
                movable.append((state.priority, key, target))
        if movable:
            # The engine processes the last of them first.
            moves = {key: target for _, key, target in sorted(movable, reverse=True)}
            self.scheduler.transitions(moves, stimulus_id=f"headrace-{engine_time()}")
