"""Queues at unavoidable links: a result enters the queue only after its job, an input leaves it before its job.

For a time t, the results that cannot reach the link before t pass it after t: the makespan is at least t plus their
load. Likewise for inputs whose jobs and results still take t after they have passed. Each is an additional constraint
of the relaxation and may have a weight in the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.relaxation import (
    FAR,
    Entries,
    arc_loads,
    arcs_on,
    file_entries,
    least_times,
    shortest,
)

_QUANTILES = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.7, 0.9)
"""Quantiles of the times of all jobs at which the constraints are set."""
_MOST_WORK = 1e8
"""Maximum of links times places^3 for which unavoidable links are searched."""


@dataclass(frozen=True, eq=False)
class Queue:
    """Loads of a link by (job, host), the least time before (or after) each, and the times of its constraints."""

    link: int
    into: bool
    load: Floats
    moment: Floats
    thresholds: tuple[float, ...]

    def loads(self, threshold: float) -> Floats:
        """Loads that cannot reach the link before this time."""
        late: Floats = np.where(self.moment >= threshold, self.load, 0.0)
        return late


def find_queues(instance: Instance) -> list[Queue]:
    """Queues of all links that are unavoidable for some files: O(links * (places^3 + files * hosts))."""
    network = instance.problem.platform.network
    if not instance.exclusive_links or network.n_links * instance.places**3 > _MOST_WORK:
        return []
    graph, arcs = instance.problem.graph, instance.paths.arcs
    before, after = least_times(instance)
    start = np.maximum(np.maximum(before, graph.release[:, None]), instance.host_free)
    done = np.where(instance.can_run, start + instance.seconds, 0.0)
    rest = np.where(instance.can_run, instance.seconds + after, 0.0)
    _, link_of, per_byte = arc_loads(instance)
    queues: list[Queue] = []
    for link in range(network.n_links):
        using = arcs_on(instance, link)
        if not len(using):
            continue
        least = float(per_byte[(link_of == link)].min())
        weight = np.zeros(len(arcs.tail))
        weight[using] = 1.0
        passed = shortest(instance, weight)
        for entries, moment in zip(file_entries(instance), (rest, done), strict=True):
            load = _unavoidable(instance, entries, passed) * least
            if load.any():
                queues.append(Queue(link, entries.into, load, moment, _moments(moment[load > 0])))
    return queues


def _unavoidable(instance: Instance, entries: Entries, passed: Floats) -> Floats:
    """[jobs, hosts] bytes that must pass the link."""
    load = np.zeros(instance.seconds.shape)
    for s in np.unique(entries.ends).tolist():
        places = list(instance.paths.sets[s])
        distances = (
            passed[places][:, instance.host_place]
            if entries.into
            else passed[instance.host_place][:, places].T
        )
        least = distances.min(axis=0)
        must = (least > 0.5) & (least < FAR)
        mine = entries.ends == s
        np.add.at(load, entries.job[mine], entries.part[mine][:, None] * must)
    return load


def seen_moments(queue: Queue, host: Ints, uses: Uses, makespan: float) -> Floats:
    """For each threshold, how long a schedule actually delayed the loads after it on the link, including idle times.

    `host` is the host of each job; results are examined from the beginning, inputs from the end.
    """
    start, finish = uses.start, uses.finish
    if queue.into:
        start, finish = makespan - uses.finish, makespan - uses.start
    jobs = np.arange(len(host))
    moment = np.where(queue.load[jobs, host] > 0, queue.moment[jobs, host], -1.0)[uses.job]
    seen = np.array(queue.thresholds)
    for k, threshold in enumerate(queue.thresholds):
        late = moment >= threshold
        if late.any():
            first, last = float(start[late].min()), float(finish[moment >= 0].max())
            busy = float((finish - start)[(moment >= 0) & (start >= first)].sum())
            seen[k] = max(seen[k], first + (last - first - busy))
    return seen


@dataclass(frozen=True, eq=False)
class Uses:
    """The transfers over one link: their jobs and times."""

    job: Ints
    start: Floats
    finish: Floats


def _moments(values: Floats) -> tuple[float, ...]:
    found = np.unique(np.quantile(values, _QUANTILES, method="lower"))
    return tuple(float(v) for v in found if v > 0)
