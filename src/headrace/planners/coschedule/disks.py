"""How much of a disk a job needs: bytes times seconds, the least that any plan holds there for it.

A job at a site holds its results from its start to its end and, if they are delivered elsewhere and nobody else reads
them, until their first transfer has ended. It holds each input while it runs. Readers of the same copy that run at
the same time hold it once: at most as many as the cores of the site allow. Before its first reader starts, a copy is
held for the time of the transfer that brings it, which is divided among all readers of the item.
"""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.coschedule.instance import NONE, Instance


def disk_seconds(instance: Instance) -> Floats:
    """[jobs, hosts] byte-seconds on the disk of the host's site, divided by its size; 0 for unlimited disks.

    O((reads + writes) * hosts).
    """
    place = instance.host_place
    room = instance.storage[instance.site[place]]
    if not np.isfinite(room).any():
        return np.zeros(instance.seconds.shape)
    run = np.where(instance.can_run, instance.seconds, 0.0)
    held = _inputs(instance, run) + _results(instance, run)
    loads: Floats = np.where(np.isfinite(room), held / np.where(np.isfinite(room), room, 1.0), 0.0)
    return loads


def _inputs(instance: Instance, run: Floats) -> Floats:
    """[jobs, hosts] byte-seconds of inputs: while the job runs, and its share of the last transfer."""
    graph, place = instance.problem.graph, instance.host_place
    job, item = _entries(instance.read_ptr, instance.reads)
    readers = np.bincount(item, minlength=len(instance.size))
    narrowest = np.full(len(instance.size), np.iinfo(np.int32).max)
    np.minimum.at(narrowest, item, graph.cores[job])
    at_place = np.bincount(place, instance.host_cores, instance.places)[place]
    at_once = np.minimum(readers[item][:, None], at_place // np.maximum(1, narrowest[item])[:, None])
    size = instance.size[item][:, None]
    last = _transfer(instance, size, incoming=True)
    # A copy that is there from the beginning, or that may be made there, needs no transfer.
    there = _in_sets(instance, instance.source[item]) | (graph.producer[item] >= 0)[:, None]
    brought = np.where(there, 0.0, last / readers[item][:, None])
    held = np.zeros(run.shape)
    np.add.at(held, job, size * (run[job] / np.maximum(1, at_once) + brought))
    return held


def _results(instance: Instance, run: Floats) -> Floats:
    """[jobs, hosts] byte-seconds of results: while the job runs, and their first transfer if nobody reads them."""
    job, item = _entries(instance.write_ptr, instance.writes)
    size = instance.size[item][:, None]
    first = _transfer(instance, size, incoming=False)
    leaves = (instance.destination[item] != NONE) & ~np.isin(item, instance.reads)
    stays = _in_sets(instance, instance.destination[item]) | ~leaves[:, None]
    held = np.zeros(run.shape)
    np.add.at(held, job, size * (run[job] + np.where(stays, 0.0, first)))
    return held


def _entries(ptr: Ints, items: Ints) -> tuple[Ints, Ints]:
    """The job and the item of each entry of a list by job."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)), items


def _transfer(instance: Instance, size: Floats, *, incoming: bool) -> Floats:
    """[entries, hosts] least seconds of one transfer into (or out of) the place of each host."""
    arcs = instance.paths.arcs
    end = arcs.head if incoming else arcs.tail
    rate, latency = np.zeros(instance.places), np.full(instance.places, np.inf)
    np.maximum.at(rate, end, arcs.bandwidth)
    np.minimum.at(latency, end, arcs.latency)
    rate, latency = rate[instance.host_place], latency[instance.host_place]
    seconds: Floats = np.where(rate > 0, latency + size / np.where(rate > 0, rate, 1.0), 0.0)
    return seconds


def _in_sets(instance: Instance, sets: Ints) -> Bools:
    """[entries, hosts] whether the place of the host belongs to the set; False for NONE."""
    table = np.zeros((len(instance.paths.sets) + 1, instance.places), np.bool_)
    for s, places in enumerate(instance.paths.sets):
        table[s, list(places)] = True
    inside: Bools = table[sets][:, instance.host_place]  # NONE is the last row, which is empty
    return inside
