"""How long the cores of a pool stay idle before their first and after their last job, because links feed it slowly.

The i-th core of a pool starts only when the private inputs of i jobs have come in, at best the i smallest. The links
into its place carry them at no more than their bandwidths together. The same holds for results on the way out. A core
that is never used is idle for the whole makespan, so each idle time counts up to half of a proven bound only.
"""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.coschedule.instance import NONE, Instance


def ramps(instance: Instance, head: Floats, tail: Floats, known: float) -> tuple[Floats, Floats]:
    """[hosts] mean over the cores of a pool of the least idle time before the first job and after the last one.

    `head` and `tail` are the least times of any core, `known` is a proven bound. O(jobs * hosts).
    """
    readers = np.bincount(instance.reads, minlength=len(instance.size))
    job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
    private = (readers[instance.reads] == 1) & (instance.source[instance.reads] != NONE)
    into = _bytes(instance, job[private], instance.reads[private], instance.source)
    job = np.repeat(np.arange(instance.n), np.diff(instance.write_ptr))
    leaving = instance.destination[instance.writes] != NONE
    out = _bytes(instance, job[leaving], instance.writes[leaving], instance.destination)
    first = _means(instance, head, into, _rates(instance, instance.paths.arcs.head), known)
    last = _means(instance, tail, out, _rates(instance, instance.paths.arcs.tail), known)
    return first, last


def _bytes(instance: Instance, job: Ints, item: Ints, ends: Ints) -> Floats:
    """[jobs, hosts] bytes that must pass between the host's place and elsewhere; inf where the job cannot run."""
    found = np.zeros(instance.seconds.shape)
    np.add.at(found, job, instance.size[item][:, None] * ~_there(instance, ends[item]))
    return np.where(instance.can_run, found, np.inf)


def _there(instance: Instance, sets: Ints) -> Bools:
    table = np.zeros((len(instance.paths.sets), instance.places), np.bool_)
    for s, places in enumerate(instance.paths.sets):
        table[s, list(places)] = True
    inside: Bools = table[sets][:, instance.host_place]
    return inside


def _rates(instance: Instance, end: Ints) -> Floats:
    """[hosts] bytes per second into (or out of) the place of each host, over all arcs together."""
    total = np.zeros(instance.places)
    np.add.at(total, end, instance.paths.arcs.bandwidth)
    rates: Floats = total[instance.host_place]
    return rates


def _means(instance: Instance, least: Floats, needed: Floats, rate: Floats, known: float) -> Floats:
    """The mean over the cores of each host: the i-th waits for the bytes of the i smallest jobs."""
    widest = max(1, int(instance.problem.graph.cores.max(initial=1)))
    found = least.copy()
    for h, cores in enumerate(instance.host_cores.tolist()):
        smallest = np.sort(needed[:, h])
        smallest = smallest[np.isfinite(smallest)]
        # Hosts at one place share its links; each alone gets all of them, which is the best case.
        if not len(smallest) or not 0 < rate[h] < np.inf:
            continue
        arrived = np.cumsum(smallest)[np.minimum(np.arange(cores) // widest, len(smallest) - 1)] / rate[h]
        found[h] = max(least[h], float(np.minimum(np.maximum(arrived, least[h]), known / 2).mean()))
    return found
