"""Orders in which jobs are placed: simple rules based on run times and transfer times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.relaxation import least_times


def topological(instance: Instance, key: Floats) -> Ints:
    """Jobs by ascending key, but never before a job whose output they read; ties by number."""
    graph = instance.problem.graph
    order: Ints = np.lexsort((np.arange(instance.n), key, graph.level)).astype(np.int32)
    return order


def rules(instance: Instance, host: Ints) -> Iterator[tuple[str, Ints]]:
    """Named orders, for jobs with these hosts: O(n log n) each."""
    before, after = least_times(instance)
    jobs = np.arange(instance.n)
    run, come, leave = (table[jobs, host] for table in (instance.seconds, before, after))
    graph = instance.problem.graph
    due = np.where(np.isfinite(graph.deadline), graph.deadline, 0.0)
    if np.isfinite(graph.deadline).any():
        yield "due first", topological(instance, np.where(np.isfinite(graph.deadline), due, np.inf))
    yield "longest first", topological(instance, -run)
    yield "longest run and output transfer first", topological(instance, -(run + leave))
    yield "as given", topological(instance, np.zeros(instance.n))
    yield "shortest first", topological(instance, run)
    yield "longest output transfer first", topological(instance, -leave)
    yield "shortest input transfer first", topological(instance, come)
    yield "input less output transfer", topological(instance, come - leave)
    yield "earliest output first", topological(instance, come + run)
    yield (
        "largest ratio of run to output transfer first",
        topological(instance, -run / (leave + 1e-9 + 1e-6 * run)),
    )
    yield "released first", topological(instance, graph.release)


def mixed(instance: Instance, host: Ints, orders: list[Ints], ends: list[Floats]) -> Ints:
    """For the jobs of each host, the order of the rule under which they finished first; hosts alternate in proportion.

    `ends` lists, for each order, the latest end of each host's jobs. O(n log n + n * rules).
    """
    best = np.argmin(np.array(ends), axis=0)
    key = np.zeros(instance.n)
    for rule, order in enumerate(orders):
        mine = order[best[host[order]] == rule]
        for h in np.unique(host[mine]).tolist():
            here = mine[host[mine] == h]
            key[here] = (np.arange(len(here)) + 0.5) / len(here)
    chosen = np.zeros(instance.n, np.bool_)
    chosen[orders[0]] = True
    whole = topological(instance, key)
    return whole[chosen[whole]]
