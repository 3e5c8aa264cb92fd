"""Improve a list schedule a few tasks at a time, judging each choice by the list schedule of the tasks that follow.

HEFT sends each task where it finishes first, whatever that means for tasks that read from it. Here the next few tasks
in HEFT's order are placed in many ways: each way changes the best one so far at random, is continued as HEFT would
for the tasks of the next levels, and is judged by when all these finish and what follows them on average. The best way
is kept. So a decision is paid for by a look ahead, not by whole schedules: gains of single steps add up, where whole
random schedules only average them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, leaf
from headrace.arrays.problem import ProblemArrays
from headrace.model.graph import Floats
from headrace.planners.list.ranks import by_decreasing_rank, mean_costs, upward_rank
from headrace.planners.search.random_numbers import RandomState, next_random, random_state
from headrace.planners.search.records import SearchTables

_TOGETHER = 10
"""Tasks that are decided on together."""
_LEVELS = 3.0
"""Levels of the graph that are placed after them, as mean numbers of tasks,"""
_LEAST_AHEAD, _MOST_AHEAD = 40, 400
"""within these numbers of tasks."""
_CHANGED = 0.2
"""Probability that a task is placed anew in a way, not as in the best one so far."""
_NOISE, _WARMTH = 0.5, 2.0
"""Mean run times of a task: added at random to the finishes among which a task chooses, and by which a later end counts
e times as much."""
_LEAST_TRIES = 4
_CHUNKS = 50
"""Calls of the compiled loop; between calls the clock is read."""
PLACE, CHOOSE, ARRIVE = 0.15e-6, 2.5e-9, 0.5e-9
"""Counted seconds for placing a task, for trying a core, and for the arrival of an input at a place."""


class Rolled(NamedTuple):
    """A partial schedule that can be taken back: tasks and, per core, what it is busy with, by time."""

    host: Int64s
    core: Int64s
    start: Floats
    finish: Floats
    begins: Floats
    ends: Floats
    """[cores, entries] of the tasks on each core,"""
    used: Int64s
    """and how many there are."""
    kept: Int64s
    """The host of each task in the best way so far."""
    arrival: Floats
    """[places] scratch space."""
    random: RandomState


class Outlook(NamedTuple):
    """How ways are made and judged."""

    order: Int64s
    tail: Floats
    """The mean time from the finish of each task to the end of the program."""
    together: int
    ahead: int
    tries: int
    noise: float
    warmth: float


def rolled_out(
    arrays: ProblemArrays, tables: SearchTables, seed: int, seconds: float, stop: Callable[[], bool]
) -> tuple[Int64s, Int64s, float]:
    """The order and the host of each task, and the counted seconds; if `stop` says so, the rest is as HEFT has it.

    Hosts are -1 if there is not even time for a few tries, or if a task cannot get its inputs from where they are made.
    O(tasks * tries * (together + ahead) / together) placements, each O(inputs * places + cores). The number of tries
    follows from the seconds.
    """
    outlook = _outlook(arrays, tables, seconds)
    n = len(outlook.order)
    if outlook.tries == 0:
        return outlook.order, np.full(n, -1), 0.0
    rolled = _room(tables, n, seed)
    step = outlook.together * -(-n // (_CHUNKS * outlook.together))
    for first in range(0, n, step):
        outlook = outlook if not stop() else outlook._replace(tries=0)
        roll(tables, outlook, rolled, first, min(first + step, n))
    return outlook.order, rolled.host, _seconds_a_try(tables, outlook) * outlook.tries


def _outlook(arrays: ProblemArrays, tables: SearchTables, seconds: float) -> Outlook:
    costs = mean_costs(arrays)
    rank = upward_rank(arrays.tasks, costs)
    levels = int(arrays.tasks.level.max(initial=0)) + 1
    mean = float(costs.run_seconds.mean())
    outlook = Outlook(
        order=by_decreasing_rank(arrays.tasks, rank).astype(np.int64),
        tail=rank - costs.run_seconds,
        together=_TOGETHER,
        ahead=int(min(_MOST_AHEAD, max(_LEAST_AHEAD, _LEVELS * len(rank) / levels))),
        tries=0,
        noise=_NOISE * mean,
        warmth=max(_WARMTH * mean, 1e-300),
    )
    tries = int(seconds / _seconds_a_try(tables, outlook))
    return outlook._replace(tries=tries if tries >= _LEAST_TRIES else 0)


def _seconds_a_try(tables: SearchTables, outlook: Outlook) -> float:
    """Counted seconds of one more way for every step."""
    n, inputs = len(outlook.order), len(tables.predecessor)
    cores, places = int(tables.core_ptr[-1]), len(tables.latency)
    each = PLACE + CHOOSE * cores + ARRIVE * places * (1 + inputs / n)
    return each * n * (outlook.together + outlook.ahead) / outlook.together


def _room(tables: SearchTables, n: int, seed: int) -> Rolled:
    cores = int(tables.core_ptr[-1])
    entries = min(n, 16 * n // cores + 512)
    return Rolled(
        host=np.full(n, -1),
        core=np.zeros(n, np.int64),
        start=np.zeros(n),
        finish=np.zeros(n),
        begins=np.zeros((cores, entries)),
        ends=np.zeros((cores, entries)),
        used=np.zeros(cores, np.int64),
        kept=np.zeros(n, np.int64),
        arrival=np.zeros(len(tables.latency)),
        random=random_state(seed),
    )


@entry(nogil=True)
def roll(tables: SearchTables, outlook: Outlook, rolled: Rolled, first: int, last: int) -> None:
    """Decide on the tasks at positions first .. last - 1 of the order."""
    order, kept = outlook.order, rolled.kept
    for low in range(first, last, outlook.together):
        high = min(low + outlook.together, last)
        end = min(high + outlook.ahead, len(order)) if outlook.tries > 0 else high
        least, latest = np.inf, 0.0
        for number in range(outlook.tries + 1):
            for i in range(low, end):
                task = order[i]
                if number == 0 or i >= high:
                    _place(tables, rolled, task, -1, 0.0)
                elif next_random(rolled.random) < _CHANGED:
                    _place(tables, rolled, task, -1, outlook.noise)
                else:
                    _place(tables, rolled, task, kept[task], 0.0)
            if number == 0:
                latest = _latest(tables, outlook, rolled, low, end)
            value = _value(tables, outlook, rolled, low, end, latest)
            if value < least:
                least = value
                for i in range(low, high):
                    kept[order[i]] = rolled.host[order[i]]
            for i in range(end - 1, low - 1, -1):
                _take_back(rolled, order[i])
        for i in range(low, high):
            _place(tables, rolled, order[i], kept[order[i]], 0.0)


@leaf
def _ends_after(tables: SearchTables, outlook: Outlook, rolled: Rolled, task: int) -> float:
    """When the program ends on account of a task: what follows it on average, or its results' return."""
    row = 0 if tables.return_seconds.shape[0] == 1 else task
    back = tables.return_seconds[row, tables.host_place[rolled.host[task]]]
    return float(rolled.finish[task] + max(outlook.tail[task], back))


@leaf
def _latest(tables: SearchTables, outlook: Outlook, rolled: Rolled, low: int, end: int) -> float:
    latest = 0.0
    for i in range(low, end):
        latest = max(latest, _ends_after(tables, outlook, rolled, outlook.order[i]))
    return latest


@leaf
def _value(
    tables: SearchTables, outlook: Outlook, rolled: Rolled, low: int, end: int, latest: float
) -> float:
    """A sum over tasks that grows exponentially with the end of the program on account of each."""
    value = 0.0
    for i in range(low, end):
        over = (_ends_after(tables, outlook, rolled, outlook.order[i]) - latest) / outlook.warmth
        value += np.exp(min(over, 600.0))
    return value


@leaf
def _place(tables: SearchTables, rolled: Rolled, task: int, wanted: int, noise: float) -> None:
    """Place a task on the wanted host, or if that is -1 where it finishes first, up to noise, in a gap if it fits."""
    arrival, host_place, core_ptr = rolled.arrival, tables.host_place, tables.core_ptr
    _arrivals(tables, rolled, task)
    best, best_core, best_start, best_host = np.inf, -1, np.inf, -1
    run_seconds, speed_class = tables.run_seconds[task], tables.speed_class
    low, high = (0, len(host_place)) if wanted < 0 else (wanted, wanted + 1)
    for host in range(low, high):
        ready, seconds = arrival[host_place[host]], run_seconds[speed_class[host]]
        if ready + seconds >= best:
            continue
        for core in range(core_ptr[host], core_ptr[host + 1]):
            start = _first_gap(tables, rolled, core, ready, seconds)
            if start + seconds >= best:
                continue
            cost = start + seconds + (noise * next_random(rolled.random) if noise > 0.0 else 0.0)
            if cost < best:
                best, best_core, best_start, best_host = cost, core, start, host
    rolled.host[task] = best_host
    rolled.core[task] = best_core
    rolled.start[task] = best_start
    rolled.finish[task] = np.inf if best_core < 0 else best_start + run_seconds[speed_class[best_host]]
    if best_core >= 0:
        _insert(rolled, best_core, best_start, rolled.finish[task])


@leaf
def _arrivals(tables: SearchTables, rolled: Rolled, task: int) -> None:
    """When the inputs of a task can be at each place."""
    arrival = rolled.arrival
    outside = tables.outside_arrival[0 if tables.outside_arrival.shape[0] == 1 else task]
    for place in range(len(arrival)):
        arrival[place] = outside[place]
    for k in range(tables.predecessor_ptr[task], tables.predecessor_ptr[task + 1]):
        maker, size = tables.predecessor[k], tables.read_bytes[k]
        since = rolled.finish[maker]
        if size <= 0.0:
            for place in range(len(arrival)):
                arrival[place] = max(arrival[place], since)
            continue
        source = tables.host_place[rolled.host[maker]]
        latency, slowness = tables.latency[source], tables.seconds_per_byte[source]
        for place in range(len(arrival)):
            arrival[place] = max(arrival[place], since + latency[place] + size * slowness[place])


@leaf
def _first_gap(tables: SearchTables, rolled: Rolled, core: int, ready: float, seconds: float) -> float:
    """The earliest start on a core; inf if its calendar has no room."""
    begins, ends, count = rolled.begins[core], rolled.ends[core], rolled.used[core]
    if count >= len(begins):
        return np.inf
    start, at = max(ready, tables.core_free_at[core]), count
    while at > 0 and ends[at - 1] > start:
        at -= 1
    while at < count and start + seconds > begins[at]:
        start = ends[at]
        at += 1
    return float(start)


@leaf
def _insert(rolled: Rolled, core: int, start: float, finish: float) -> None:
    begins, ends, at = rolled.begins[core], rolled.ends[core], rolled.used[core]
    while at > 0 and (begins[at - 1] > start or (begins[at - 1] == start and ends[at - 1] > finish)):
        begins[at], ends[at] = begins[at - 1], ends[at - 1]
        at -= 1
    begins[at], ends[at] = start, finish
    rolled.used[core] += 1


@leaf
def _take_back(rolled: Rolled, task: int) -> None:
    """Remove a task from its core."""
    core = rolled.core[task]
    if core < 0:
        return
    begins, ends, last = rolled.begins[core], rolled.ends[core], rolled.used[core] - 1
    at = last
    while begins[at] != rolled.start[task] or ends[at] != rolled.finish[task]:
        at -= 1
    while at < last:
        begins[at], ends[at] = begins[at + 1], ends[at + 1]
        at += 1
    rolled.used[core] = last
