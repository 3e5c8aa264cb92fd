"""Which tasks that wait at a worker would finish sooner at another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.runtime.steering_dispatch import Slot

COST = 0.02
"""Seconds that a move takes, and that it must gain."""


def worthwhile_moves(
    slots: Mapping[str, Slot], now: float, ready_at: Callable[[Any, str], tuple[float, float]]
) -> Iterator[tuple[Any, str, str]]:
    """Tasks with the worker where they wait and an idle one where they finish sooner, at most one for each idle one.

    `ready_at(task, worker)` gives the seconds of its transfer and of the task itself. O(idle workers * waiting tasks).
    """
    idle = [name for name, slot in slots.items() if len(slot.tasks) < slot.threads]
    if not idle:
        return
    crowded = [(slot.busy(now), name) for name, slot in slots.items() if len(slot.tasks) > slot.running]
    taken: set[Any] = set()
    for _, source in sorted(crowded, reverse=True):
        waiting = [
            key for key, task in slots[source].tasks.items() if task.started is None and key not in taken
        ]
        for key in waiting:
            if not idle:
                return
            here = slots[source].busy(now)
            target = min(idle, key=lambda name: sum(ready_at(key, name)))
            if sum(ready_at(key, target)) + 2 * COST < here:
                taken.add(key)
                idle.remove(target)
                yield key, source, target
