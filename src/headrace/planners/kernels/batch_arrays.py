"""What the batch-mode loops read and write: named tuples of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

MINMIN, MAXMIN, SUFFERAGE, FIRST_JUMP, FEWEST_BEFORE_JUMP = 0, 1, 2, 3, 4
"""Rules: which ready task is next."""

FREE_LINKS, OWN_LINKS, STAR, SHARED_LINKS = 0, 1, 2, 3
"""What a transfer to one place changes for others: nothing; nothing but new copies; nothing for tasks whose
inputs all come from the origin; everything."""


class Grid(NamedTuple):
    """Hosts by place. Hosts of one place with the same speeds are one group."""

    network: Any
    """FREE_LINKS, OWN_LINKS, STAR or SHARED_LINKS."""
    places: Any
    """The places that have hosts; below, a place is an index into this."""
    host_place: Any
    host_group: Any
    place_group: Any
    """Groups of place k are place_group[k] .. place_group[k + 1] - 1."""
    group_rate: Any
    """[kinds, groups]"""
    group_ptr: Any
    group_hosts: Any
    """CSR of the hosts of each group, ascending."""
    cluster: Any
    """The cluster (site) of each place."""
    back_latency: Any
    back_bandwidth: Any
    """To the origin from each place: inf where there is nothing to cross, 0 where there is no route."""
    in_link: Any
    in_latency: Any
    in_bandwidth: Any
    """STAR: the only link from the origin to each place, -1 at the origin."""


class Inputs(NamedTuple):
    """What tasks read that may have to be moved, in the order of sending."""

    ptr: Any
    item: Any
    shared: Any
    """STAR: column of the item in `since`, or -1 for items with one reader."""
    plain: Any
    """STAR: tasks whose inputs all lie at the origin and nowhere else at first."""
    since: Any
    """STAR: [places, columns] since when a shared item is at a place; inf: it is not."""
    made: Any
    """When each item was made; 0 for items from outside."""
    released: Any
    """When the last predecessor of each task has finished."""
    out_size: Any
    """The largest result of each task that returns to the origin."""
    reader_ptr: Any
    readers: Any


class Free(NamedTuple):
    """When processors can take the next task."""

    core: Any
    host: Any
    """The earliest of a host's cores."""
    first: Any
    """The earliest host of each group."""
    second: Any
    """The earliest other host of each group; inf for a group of one."""


class Wave(NamedTuple):
    """The ready tasks, one row each, in task order."""

    task: Any
    row: Any
    """Row of each task, or -1."""
    live: Any
    """Rows that are not placed yet, ascending."""
    arrival: Any
    """[rows, places] when all inputs can be at a place."""
    time: Any
    """[rows, places] best completion time at a place."""
    next_time: Any
    """[rows, places] completion on the second best host of a place; only for SUFFERAGE."""
    best: Any
    second: Any
    """SUFFERAGE: completion on the second best host; jumps: height of the jump when last looked at."""
    key: Any
    """The task with the least key is next,"""
    tie: Any
    """then the least of these, then the lower number."""
    order: Any
    """[rows, clusters] clusters as they were last sorted by completion time; only for jumps."""
    largest: Any
    """The largest difference between neighbouring clusters when last looked at."""
    margin: Any
    """How clearly the first jump was the first."""
    drift: Any
    """How much completion times have moved since."""
    here: Any
    """Rows for which one place has changed."""
    rest: Any
    """Rows for which any place may have changed."""
    steps: Any
    """[how many tasks have been placed]"""
    cluster_time: Any
    ordered: Any
    """Room for one time per cluster, by number and in order."""
    touched: Any
    """Rows that read an item that has just been moved: 1, else 0."""


class Lazy(NamedTuple):
    """How far rows may be out of date, where they wait (see kernels.lazy)."""

    growth: Any
    """How much completion times at each place have grown at most."""
    changed: Any
    """The step of the last growth of each place."""
    end: Any
    first: Any
    """What completion times depend on: the end of each place's link, the free times of groups."""
    seen: Any
    """The step up to which each row is up to date."""
    place: Any
    mark: Any
    """The place of a row's best host, and its growth when last seen."""
