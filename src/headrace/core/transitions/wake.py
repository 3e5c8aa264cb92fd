"""Evaluate wake conditions: whether the scheduler must be called now."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.core.scheduler import WakeConditions
from headrace.core.state import IDLE_HOSTS, MISPREDICTED, READY
from headrace.core.transitions.balance import a_move_pays
from headrace.core.transitions.load import is_imbalanced
from headrace.model.graph import Floats, Ints


class Wake(NamedTuple):
    """`WakeConditions` and estimates in the form used by compiled functions."""

    every_event: bool
    ready: int
    idle_within: float
    """-1: idle hosts do not wake the scheduler."""
    imbalance: bool
    late_weight: float
    misprediction: float
    estimates_fixed: bool
    """Whether estimates change only with grid changes, after which the scheduler is called."""
    work: Floats
    speed_class: Ints
    rates: Floats


def compiled_wake(
    conditions: WakeConditions, work: Floats, speed_class: Ints, rates: Floats, estimates_fixed: bool
) -> Wake:
    """Convert wake conditions for compiled functions."""
    never = int(np.iinfo(np.int64).max)
    return Wake(
        conditions.every_event,
        conditions.ready if conditions.ready > 0 else never,
        float(conditions.idle_within) if conditions.idle else -1.0,
        conditions.imbalance,
        float(conditions.late_weight),
        float(conditions.misprediction),
        estimates_fixed,
        work,
        speed_class,
        rates,
    )


@leaf
def soon_idle(problem, state, now, within):
    """Whether a host with an empty queue has a free core, or is expected to have one within some seconds.

    O(1) if no seconds are given, else O(hosts + cores).
    """
    if state.counters[IDLE_HOSTS] > 0:
        return True
    if within <= 0.0:
        return False
    for host in range(len(state.host_up)):
        if not state.host_up[host] or state.queue_length[host] > 0:
            continue
        for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
            task = state.core_task[core]
            began = state.run_start[task] if state.run_host[task] == host else state.duplicate_start[task]
            if began + state.predicted[task] - now <= within:
                return True
    return False


@leaf
def asks_for_work(problem, state, now, wake):
    """Whether there are enough ready tasks without a host, or at least one and an idle host."""
    waiting = state.counters[READY]
    if waiting == 0:
        return False
    return waiting >= wake.ready or (
        wake.idle_within >= 0.0 and soon_idle(problem, state, now, wake.idle_within)
    )


@leaf
def asks_for_balance(problem, state, now, wake):
    """Whether queued tasks should move to idle hosts. With learning estimates the scheduler itself has to check."""
    if not wake.imbalance or not is_imbalanced(state):
        return False
    if state.counters[READY] > 0 or not wake.estimates_fixed:
        return True
    return a_move_pays(problem, state, wake.work, wake.speed_class, wake.rates, now, wake.late_weight)


@leaf
def wants_to_be_asked(problem, state, now, wake, happened, muted):
    """Whether a wake condition holds. `happened`: an event has occurred since the last call of the scheduler; `muted`:
    the scheduler has just been called and nothing has happened since."""
    if happened and (wake.every_event or state.counters[MISPREDICTED] > 0):
        return True
    if muted:
        return False
    return asks_for_balance(problem, state, now, wake) or asks_for_work(problem, state, now, wake)


@entry
def is_asked_for(problem, state, now, wake, happened, muted):
    """As `wants_to_be_asked`, called from Python."""
    return wants_to_be_asked(problem, state, now, wake, happened, muted)


@entry
def is_balance_asked_for(problem, state, now, wake):
    """As `asks_for_balance`, called from Python."""
    return asks_for_balance(problem, state, now, wake)
