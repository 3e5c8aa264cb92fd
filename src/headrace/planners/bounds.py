"""Lower bounds on the makespan that hold under the platform's contention model.

Each is a relaxation of the problem, so none can exceed the optimum:
- path: the least time before and after each task at its best place (`placed_bounds`); if computing that takes too long,
  the longest chain of tasks, each on its fastest host, with transfers from and to the origin;
- area: work that cannot start before `a` and is followed by at least `b`, spread perfectly over all cores, or over as
  many cores as there are tasks;
- links: bytes that must leave or reach an origin without hosts through its adjacent links.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats
from headrace.model.network import EVERYWHERE
from headrace.planners.longest_paths import heads_and_tails
from headrace.planners.placed_bounds import (
    affordable,
    before_and_after,
    fetched_items,
    hops_of,
    quickest_at_places,
    returned_items,
)

_THRESHOLDS = 24
"""Number of values of `a`, and of `b`, that the area bound tries."""


def lower_bound(problem: Problem) -> float:
    """The best of the bounds: O(tasks * hosts + tasks log tasks), plus (tasks + reads) * places if that is affordable.

    >>> from headrace.testing import random_platform, random_program
    >>> lower_bound(Problem(random_program(1).graph, random_platform(1))) > 0
    True
    """
    graph = problem.graph
    if graph.n_tasks == 0:
        return 0.0
    rate = problem.platform.rates(graph)
    if affordable(problem):
        quick = quickest_at_places(problem)
        before, after = before_and_after(problem, quick)
        path = float((before + quick + after).min(axis=1).max())
        head, tail = before.min(axis=1), after.min(axis=1)
    else:
        shortest = graph.work / rate.max(axis=1)[graph.speed_class]
        head, tail = _heads_and_tails(problem, shortest)
        path = float((head + shortest + tail).max())
    return max(path, _area_bound(problem, rate, head, tail), _origin_bound(problem))


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


def _area_bound(problem: Problem, rate: Floats, head: Floats, tail: Floats) -> float:
    """max over a, b of a + b + area(tasks with head >= a and tail >= b) / capacity.

    Weights y = plain speed per core: a task adds at least min_h(duration * y) to the sum of y * busy time
    over cores (the dual of spreading work over hosts), so the sum of these over the total of y is a bound;
    k tasks keep at most k cores busy, at best those with the largest weight.
    """
    graph, hosts = problem.graph, problem.platform.hosts
    weight = np.array([h.speed * (1.0 - h.load) for h in hosts])
    area = graph.work * (weight[None, :] / rate).min(axis=1)[graph.speed_class]
    per_core = np.sort(np.repeat(weight, [h.cores for h in hosts]))[::-1]
    capacity = np.cumsum(per_core)
    best = 0.0
    for a in _levels(head):
        after = head >= a
        tails, areas = tail[after], area[after]
        by_tail = np.argsort(-tails, kind="stable")
        tails, areas = tails[by_tail], np.cumsum(areas[by_tail])
        cores = np.minimum(np.arange(1, len(tails) + 1), len(capacity)) - 1
        best = max(best, float((a + tails + areas / capacity[cores]).max()))
    return best


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
