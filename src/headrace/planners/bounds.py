"""Lower bounds on the makespan that hold under the platform's contention model.

Each is a relaxation of the problem, so none can exceed the optimum:
- chain: the least time before and after each task at its best place (`placed_bounds`); if computing that takes too
  long, the longest chain of tasks, each on its fastest host, with transfers from and to the origin;
- work: work that cannot start before `a` and is followed by at least `b`, spread perfectly over all cores, or over as
  many cores as there are tasks; with speeds per kind, at prices of cores that make it as large as possible;
- memory and resources: what tasks hold of them for as long as they run, over all that hosts have;
- data: bytes that must leave or reach an origin without hosts through its adjacent links.

`full_bound` adds linear and integer programs (`bounding`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.bound import Bound, Effort
from headrace.model.errors import UsageError
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.planners.longest_paths import heads_and_tails
from headrace.planners.need_bounds import need_areas
from headrace.planners.placed_bounds import (
    affordable,
    before_and_after,
    fetched_items,
    hops_of,
    quickest_at_places,
    returned_items,
)
from headrace.planners.work_prices import kinds_of, priced_rates

FULL_SECONDS = 2.0
"""Time limit of a full bound; most need far less."""
CHAIN, WORK, KINDS, DATA = (
    "chain of tasks",
    "work over cores",
    "work per kind over hosts",
    "data at the origin",
)
"""Names of the quick bounds."""
_THRESHOLDS = 24
"""Number of values of `a`, and of `b`, that the area bound tries."""


def lower_bound(problem: Problem) -> Bound:
    """The best of the quick bounds, with its name.

    O(tasks * hosts + tasks log tasks), plus (tasks + reads) * places if that is affordable.

    >>> from headrace.testing import random_platform, random_program
    >>> lower_bound(Problem(random_program(1).graph, random_platform(1))) > 0
    True
    """
    return max(quick_bounds(problem)) if problem.graph.n_tasks else Bound(0.0)


def quick_bounds(problem: Problem) -> list[Bound]:
    """All quick bounds of a problem with tasks."""
    graph = problem.graph
    if affordable(problem):
        quick = quickest_at_places(problem)
        before, after = before_and_after(problem, quick)
        path = float((before + quick + after).min(axis=1).max())
        head, tail = before.min(axis=1), after.min(axis=1)
    else:
        shortest = graph.work / problem.platform.rates(graph).max(axis=1)[graph.speed_class]
        head, tail = _heads_and_tails(problem, shortest)
        np.maximum(head, graph.release, out=head)
        path = float((head + shortest + tail).max())
    room = [Bound(_windowed_room(area, most, head, tail), name) for name, area, most in need_areas(problem)]
    return [
        Bound(path, CHAIN),
        *_area_bounds(problem, head, tail),
        *room,
        Bound(_origin_bound(problem), DATA),
    ]


def full_bound(
    problem: Problem,
    *,
    most: float = np.inf,
    seconds: float = FULL_SECONDS,
    best: Bound | None = None,
    tell: Callable[[Bound], None] = lambda bound: None,
) -> Bound:
    """The best bound found in a time limit, by quick bounds and by linear and integer programs.

    Args:
        problem: The problem to plan.
        most: The makespan of a known plan; a bound is not improved further once it proves that plan optimal.
        seconds: Time limit; a solver that is running may exceed it a little.
        best: A bound that is known already.
        tell: Called with each better bound.

    >>> from headrace.testing import random_platform, random_program
    >>> problem = Problem(random_program(1).graph, random_platform(1))
    >>> full_bound(problem) >= lower_bound(problem) > 0
    True
    """
    until = work_clock() + seconds
    best = lower_bound(problem) if best is None else best
    tell(best)
    if problem.graph.n_tasks == 0:
        return best
    from headrace.planners.bounding.anytime import improving_bounds

    for found in improving_bounds(problem, best, most, until):
        best = found
        tell(best)
    return best


def bound_of(problem: Problem, effort: Effort = "quick", most: float = np.inf) -> Bound:
    """A bound of this effort, `quick` or `full`.

    Raises:
        UsageError: There is no such effort.
    """
    if effort not in get_args(Effort):
        raise UsageError(f"bound is {effort!r}", hint=f"use {' or '.join(get_args(Effort))}")
    return lower_bound(problem) if effort == "quick" else full_bound(problem, most=most)


def _heads_and_tails(problem: Problem, shortest: Floats) -> tuple[Floats, Floats]:
    """Lower bounds on the time before each task can start and after it has finished, wherever it runs."""
    graph, network = problem.graph, problem.platform.network
    fetch = np.zeros(graph.n_items)
    give = np.zeros(graph.n_items)
    places = np.unique(network.host_place)
    if network.origin != EVERYWHERE and network.origin not in places:
        hops = hops_of(network)
        near, origin = hops.at(places), network.origin
        fetched, returned = fetched_items(problem), returned_items(problem)
        fetch[fetched] = _least_journey(graph.size[fetched], origin, hops.out, near.into)
        give[returned] = _least_journey(graph.size[returned], origin, hops.into, near.out)
    return heads_and_tails(problem_arrays(problem).tasks, shortest, fetch, give)


def _least_journey(
    size: Floats, origin: int, there: tuple[Floats, Floats], near: tuple[Floats, Floats]
) -> Floats:
    """The longer of the hop at the origin and the fastest hop at any host."""
    far: Floats = there[0][origin] + size * there[1][origin]
    longer: Floats = np.maximum(far, near[0].min() + size * near[1].min())
    return longer


def _area_bounds(problem: Problem, head: Floats, tail: Floats) -> list[Bound]:
    """max over a, b of a + b + area(tasks with head >= a and tail >= b) / capacity, for some prices per core.

    A task adds at least min_h(duration * price) to the sum of price * busy time over cores, so the sum of these over
    the sum of all prices is a bound; k tasks keep at most k cores busy, at best those with the largest price.
    """
    graph, hosts = problem.graph, problem.platform.hosts
    rate, of_task = kinds_of(problem)
    cores = np.array([h.cores for h in hosts])
    plain = np.array([h.speed * (1.0 - h.load) for h in hosts])
    work = graph.work * graph.cores

    def area(price: Floats, name: str) -> Bound:
        each = work * (price[None, :] / rate).min(axis=1)[of_task]
        capacity = np.cumsum(np.sort(np.repeat(price, cores))[::-1])
        return Bound(_windowed_area(each, graph.cores, capacity, head, tail), name)

    prices = priced_rates(rate, np.bincount(of_task, work, len(rate)).astype(np.float64), cores, plain)
    return [area(plain, WORK), *(area(price, KINDS) for price in prices)]


def _windowed_area(area: Floats, width: Ints, capacity: Floats, head: Floats, tail: Floats) -> float:
    """`capacity` is that of the 1, 2, ... best cores; tasks occupy `width` of them."""
    by_tail = np.argsort(-tail, kind="stable")
    area, width, head, tail = area[by_tail], width[by_tail], head[by_tail], tail[by_tail]
    best = 0.0
    for a in _levels(head):
        after = head >= a
        busy = np.minimum(np.cumsum(width[after]), len(capacity)) - 1
        total = a + tail[after] + np.cumsum(area[after]) / capacity[busy]
        best = max(best, float(total.max()))
    return best


def _windowed_room(area: Floats, most: float, head: Floats, tail: Floats) -> float:
    """As `_windowed_area`, for what tasks hold of something of which all hosts have `most`."""
    holds = area > 0
    one = np.ones(int(holds.sum()), np.int32)
    if not len(one):
        return 0.0
    return _windowed_area(area[holds], one, np.array([most]), head[holds], tail[holds])


def _levels(head: Floats) -> Floats:
    """Values of `a` to try: all if there are few, otherwise an evenly spaced selection."""
    values: Floats = np.unique(head)
    if len(values) <= _THRESHOLDS:
        return values
    chosen: Floats = values[np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int)]
    return chosen


def _origin_bound(problem: Problem) -> float:
    """Time for the bytes that must cross the links adjacent to an origin without hosts, if links are limited."""
    graph, network = problem.graph, problem.platform.network
    origin = network.origin
    places = np.unique(network.host_place)
    if origin == EVERYWHERE or problem.platform.contention == "none" or origin in places:
        return 0.0
    read = np.diff(graph.reader_ptr) > 0
    elsewhere = np.zeros(graph.n_items, np.bool_)
    elsewhere[[i for i, held in problem.holders.items() if held]] = True
    out = float(graph.size[(graph.producer == OUTSIDE) & read & ~elsewhere].sum())
    back = float(graph.size[graph.result & (graph.producer != OUTSIDE)].sum())
    first = {route[0] for p in places.tolist() if (route := network.route(origin, p))}
    last = {route[-1] for p in places.tolist() if (route := network.route(p, origin))}

    def least(size: float, links: set[int]) -> float:
        return size / float(network.link_bandwidth[sorted(links)].sum()) if links else 0.0

    bounds = [least(out, first), least(back, last)]
    if first & last:
        bounds.append(least(out + back, first | last))
    return max(bounds)
