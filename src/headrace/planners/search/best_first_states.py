"""States of the best-first search: partial schedules in the order in which they are opened."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.rules.incremental_columns import Batch, Placement
from headrace.rules.semi_active import ScheduleSpace


@dataclass(slots=True, eq=False)
class State:
    """A partial schedule: its parent's with one more task. The arrays are made when it is opened."""

    batch: Batch
    number: int
    """Its number in the batch."""
    created: int
    placed: int
    cost: float
    weight: float
    deferred: bool
    """A requirement fails on the partial schedule, which a completion may still satisfy."""
    signature: int

    def key(self, hurry: float, tasks: int) -> tuple[bool, float, int, int]:
        """The state of least key is opened first: score, then more tasks placed, then order of creation."""
        waiting = (tasks - self.placed) / max(tasks, 1)
        total = self.weight + hurry
        score = (self.cost + hurry * waiting) / total if total > 0 else 0.0
        return self.deferred, score, -self.placed, self.created

    def placement(self, space: ScheduleSpace) -> Placement:
        changed = int(self.batch.task[self.number]) >= 0
        return self.batch.child(self.number, space) if changed else self.batch.parent

    @property
    def complete(self) -> bool:
        return self.placed == len(self.batch.parent.host)


class OpenStates:
    """The states not yet opened, as a heap; sorted again when the hurry changes."""

    def __init__(self, tasks: int, hurry: float) -> None:
        self.tasks, self.hurry = tasks, hurry
        self._heap: list[tuple[tuple[bool, float, int, int], State]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, state: State) -> None:
        heapq.heappush(self._heap, (state.key(self.hurry, self.tasks), state))

    def pop(self) -> State:
        return heapq.heappop(self._heap)[1]

    def turn(self, hurry: float) -> None:
        """Sort all states by another hurry: O(states)."""
        if hurry != self.hurry:
            self.hurry = hurry
            self._heap = [(state.key(hurry, self.tasks), state) for _, state in self._heap]
            heapq.heapify(self._heap)

    def keep_best(self, count: int) -> None:
        """Drop all but the best states."""
        self._heap = heapq.nsmallest(count, self._heap)

    def __iter__(self) -> Iterator[State]:
        return (state for _, state in self._heap)


class Seen:
    """Recognises schedules that were reached before in another order.

    Signatures are sums over the placed tasks; equal signatures are confirmed by comparing the schedules, so that only
    equal ones are merged. Two partial schedules with the same hosts, starts and free cores have the same completions.
    """

    def __init__(self, space: ScheduleSpace) -> None:
        self.space = space
        self._states: dict[int, State] = {}

    def new(self, state: State) -> bool:
        other = self._states.setdefault(state.signature, state)
        if other is state:
            return True
        a, b = state.placement(self.space), other.placement(self.space)
        return not all(
            np.array_equal(x, y) for x, y in ((a.host, b.host), (a.start, b.start), (a.free, b.free))
        )

    def forget(self) -> None:
        self._states.clear()


def signature(parent: int, task: int, host: int, start: float) -> int:
    """The signature of a schedule with one more task; the same in whatever order tasks are placed."""
    return (parent + hash((task, host, start))) & 0xFFFFFFFFFFFFFFFF
