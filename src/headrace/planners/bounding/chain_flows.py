"""Flows along chains of tasks and prices of cores: one step towards those that give the largest bound.

A step takes the mean run times and delays of the answers so far, sends more flow along chains that are long by these,
raises the prices of classes of hosts that are busy for long, and finds the answer to both: the class on which each task
costs least, and the inputs that each task best finds at its own place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.model.check_case import Numbers
from headrace.model.graph import Floats, Ints

_TOGETHER = 4
"""Inputs of a task for which all choices of those found at its place are tried."""
_LEAST_FLOW = 1e-5
"""Flows below this share of the largest are not told apart."""
_LEAST_PRICE = 1e-15
_CHANGES = 4
"""Answers to prices in a step."""


class Chains(NamedTuple):
    """What flows and prices are about. Edges are sorted by maker."""

    order: Ints
    out_ptr: Numbers
    in_ptr: Numbers
    in_edge: Numbers
    maker: Numbers
    reader: Numbers
    away: Floats
    """[edges] least time until data is at another place."""
    quickest: Floats
    """[tasks] least run time,"""
    head: Floats
    """least time before its start,"""
    tail: Floats
    """and after its finish."""
    row: Numbers
    """[tasks] tasks of a row have run times that differ by a factor,"""
    factor: Floats
    """[tasks] this one."""
    unit: Floats
    """[rows, classes] run time of a task with factor 1; inf where it may not run."""
    width: Floats
    """[rows] cores of its tasks."""
    cores: Floats
    """[classes]"""
    lost: Floats
    """[classes] least time before the first start and after the last finish of tasks there."""


class Means(NamedTuple):
    """Means of the answers so far, and the prices."""

    seconds: Floats
    """[tasks]"""
    delay: Floats
    """[edges] time from the end of the maker to the start of the reader."""
    price: Floats
    """[classes] of a core. All prices of cores and that of chains have the sum 1."""
    share: Floats
    """[1] the price of chains."""


class Flow(NamedTuple):
    """A flow of value 1 along chains: each unit enters at some task and leaves at the same or a later one."""

    edge: Floats
    enter: Floats
    """[tasks]"""
    task: Floats
    """[tasks] what passes through it."""
    leave: Floats
    """[tasks]"""
    weight: Floats
    """[tasks] logarithm of the weights of all chains from here; for the search only."""


class Levels(NamedTuple):
    """Tasks by row and flow."""

    flow: Floats
    """[levels]"""
    work: Floats
    """[rows, levels] factors of tasks, divided between the levels next to their flow."""
    seconds: Floats
    """[rows, levels] mean run time of factor 1."""
    load: Floats
    """[classes] seconds for which the cores are busy."""


@entry
def step(
    chains: Chains,
    means: Means,
    flow: Flow,
    levels: Levels,
    slope: float,
    sharp: float,
    pace: float,
    gain: float,
) -> float:
    """One step; returns nearly the bound of the flow and prices that it ends with.

    O(edges + tasks + rows * levels * classes).

    Args:
        chains: The problem.
        means: Changed by the step.
        flow: Set to the flow of the step.
        levels: Room for intermediate results.
        slope: Chains get flow by exp(slope * length).
        sharp: Classes get tasks by exp(-sharp * relative excess of their cost).
        pace: Relative change of prices.
        gain: Weight of the new answer in the means.
    """
    _send(chains, means, flow, slope)
    delay = np.zeros(len(chains.maker))
    fixed = join_delays(chains, flow.edge, delay)
    for task in range(len(chains.order)):
        fixed += flow.enter[task] * chains.head[task] + flow.leave[task] * chains.tail[task]
    _sort_by_flow(chains, flow.task, levels)
    value = 0.0
    for k in range(_CHANGES):
        value = _respond(chains, means, levels, fixed, sharp, pace if k < _CHANGES - 1 else 0.0)
    _answer(chains, flow.task, levels, means.seconds, gain)
    means.delay[:] += gain * (delay - means.delay)
    return float(value)


@inner
def _send(chains: Chains, means: Means, flow: Flow, slope: float) -> None:
    """A unit of flow, divided between chains by the exponential of their length."""
    reader, out_ptr, weight = chains.reader, chains.out_ptr, flow.weight
    most = -np.inf
    for task in chains.order[::-1]:
        top = slope * chains.tail[task]
        for e in range(out_ptr[task], out_ptr[task + 1]):
            top = max(top, slope * means.delay[e] + weight[reader[e]])
        total = np.exp(slope * chains.tail[task] - top)
        for e in range(out_ptr[task], out_ptr[task + 1]):
            total += np.exp(slope * means.delay[e] + weight[reader[e]] - top)
        weight[task] = top + np.log(total) + slope * means.seconds[task]
        most = max(most, weight[task] + slope * chains.head[task])
    total = 0.0
    for task in chains.order:
        flow.enter[task] = np.exp(weight[task] + slope * chains.head[task] - most)
        total += flow.enter[task]
    flow.task[:] = 0.0
    for task in chains.order:
        flow.enter[task] /= total
        flow.task[task] += flow.enter[task]
        here, rest = flow.task[task], weight[task] - slope * means.seconds[task]
        left = here
        for e in range(out_ptr[task], out_ptr[task + 1]):
            flow.edge[e] = min(left, here * np.exp(slope * means.delay[e] + weight[reader[e]] - rest))
            flow.task[reader[e]] += flow.edge[e]
            left -= flow.edge[e]
        flow.leave[task] = left


@entry
def join_delays(chains: Chains, flow: Floats, delay: Floats) -> float:
    """The least sum of flow times delay on edges, where each core is alone at its place, and the delays in that case.

    Of the inputs of a task, some were made at its place, one after another, and all others had to be transferred. At
    most four inputs at a time are considered. O(edges).
    """
    total = 0.0
    for task in range(len(chains.order)):
        first, last = chains.in_ptr[task], chains.in_ptr[task + 1]
        for start in range(first, last, _TOGETHER):
            total += _join(chains, flow, delay, chains.in_edge[start : min(start + _TOGETHER, last)])
    return total


@inner
def _join(chains: Chains, flow: Floats, delay: Floats, edges: Numbers) -> float:
    maker, away, quickest = chains.maker, chains.away, chains.quickest
    best, chosen = np.inf, 0
    for here in range(1, 1 << len(edges)):
        cost = 0.0
        for a in range(len(edges)):
            one = edges[a]
            if not (here >> a) & 1:
                cost += flow[one] * away[one]
                continue
            for b in range(a):
                if (here >> b) & 1:  # the last one delays the other's data for as long as it runs
                    other = edges[b]
                    cost += min(flow[one] * quickest[maker[other]], flow[other] * quickest[maker[one]])
        if cost < best:
            best, chosen = cost, here
    for a in range(len(edges)):
        one = edges[a]
        if not (chosen >> a) & 1:
            delay[one] = away[one]
            continue
        delay[one] = 0.0
        for b in range(len(edges)):
            other = edges[b]
            if b != a and (chosen >> b) & 1:
                waits, lets = flow[one] * quickest[maker[other]], flow[other] * quickest[maker[one]]
                if waits < lets or (waits == lets and a < b):
                    delay[one] += quickest[maker[other]]
    return best


@inner
def _sort_by_flow(chains: Chains, flow: Floats, levels: Levels) -> None:
    """Levels of flow from 0 to the largest, and the work at each, so that total work and flow times work are kept."""
    count = len(levels.flow)
    levels.flow[0] = 0.0
    most = flow.max()
    for k in range(1, count):
        levels.flow[k] = most * _LEAST_FLOW ** ((count - 1 - k) / (count - 2))
    levels.work[:] = 0.0
    for task in range(len(flow)):
        k, part = _level(levels.flow, flow[task])
        levels.work[chains.row[task], k] += chains.factor[task] * (1.0 - part)
        levels.work[chains.row[task], k + 1] += chains.factor[task] * part


@inner
def _level(levels: Floats, flow: float) -> tuple[int, float]:
    """The level at or below a flow, and how far it is on the way to the next one."""
    count, most = len(levels), levels[len(levels) - 1]
    k = 0
    if flow >= levels[1]:
        k = int((count - 1) - np.log(flow / most) / np.log(_LEAST_FLOW) * (count - 2))
        k = max(1, min(k, count - 2))
    return k, min(1.0, max(0.0, (flow - levels[k]) / (levels[k + 1] - levels[k])))


@inner
def _respond(chains: Chains, means: Means, levels: Levels, fixed: float, sharp: float, pace: float) -> float:
    """The answer to the prices, which then change; returns the bound before that, less what levels lose."""
    price, load, cores = means.price, levels.load, chains.cores
    share = means.share[0]
    load[:] = chains.lost
    length, value = fixed, share * fixed
    chosen = np.empty(len(price))
    for row in range(len(chains.width)):
        for k in range(len(levels.flow)):
            work = levels.work[row, k]
            least = _choose(chains, row, share * levels.flow[k], price, sharp, chosen)
            seconds = 0.0
            for c in range(len(price)):
                if chosen[c] > 0.0:
                    used = chosen[c] * chains.unit[row, c]
                    seconds += used
                    load[c] += work * used * chains.width[row] / cores[c]
            levels.seconds[row, k] = seconds
            length += work * levels.flow[k] * seconds
            value += work * least
    mean = share * length
    for c in range(len(price)):
        mean += cores[c] * price[c] * load[c]
        value += cores[c] * price[c] * chains.lost[c]
    if pace > 0.0:
        _raise(means, cores, load, length, mean, pace)
    return float(value)


@inner
def _raise(means: Means, cores: Floats, load: Floats, length: float, mean: float, pace: float) -> None:
    """Raise the prices of what is used for longer than the mean."""
    price = means.price
    share = means.share[0] * np.exp(pace * min(1.0, length / mean - 1.0))
    total = share
    for c in range(len(price)):
        price[c] = max(price[c] * np.exp(pace * min(1.0, load[c] / mean - 1.0)), _LEAST_PRICE)
        total += cores[c] * price[c]
    means.share[0] = share / total
    price /= total


@inner
def _choose(chains: Chains, row: int, flow: float, price: Floats, sharp: float, chosen: Floats) -> float:
    """The least cost of a task of factor 1 with this flow; `chosen`: its fractions on classes, mostly the cheapest."""
    least = np.inf
    for c in range(len(price)):
        chosen[c] = (flow + price[c] * chains.width[row]) * chains.unit[row, c]
        least = min(least, chosen[c])
    total = 0.0
    for c in range(len(price)):
        over = chosen[c] / least - 1.0 if least > 0.0 else 0.0
        chosen[c] = chains.cores[c] * np.exp(-sharp * over) if chains.unit[row, c] < np.inf else 0.0
        total += chosen[c]
    chosen /= total
    return float(least)


@inner
def _answer(chains: Chains, flow: Floats, levels: Levels, seconds: Floats, gain: float) -> None:
    """Take the run times of the answer into their means."""
    for task in range(len(flow)):
        k, part = _level(levels.flow, flow[task])
        row = chains.row[task]
        found = (1.0 - part) * levels.seconds[row, k] + part * levels.seconds[row, k + 1]
        seconds[task] += gain * (chains.factor[task] * found - seconds[task])
