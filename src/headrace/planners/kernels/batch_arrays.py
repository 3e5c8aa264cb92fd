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


class Lanes(NamedTuple):
    """For each of some rows: the differences between neighbouring clusters, and their first jump."""

    number: Any
    mean: Any
    squares: Any
    most: Any
    threshold: Any
    before: Any
    first: Any
    smaller: Any
    """The largest difference before the jump."""


class Wave(NamedTuple):
    """The ready tasks, one row each, in task order."""

    task: Any
    row: Any
    """Row of each task, or -1."""
    live: Any
    """Rows that are not placed yet, ascending."""
    arrival: Any
    """[places, rows] when all inputs can be at a place; not kept for sweeps (see kernels.columns)."""
    time: Any
    """[places, rows] best completion time at a place."""
    next_time: Any
    """[places, rows] completion on the second best host of a place; only for SUFFERAGE."""
    best: Any
    second: Any
    """SUFFERAGE: completion on the second best host; jumps: height of the jump when last looked at."""
    key: Any
    """The task with the least key is next,"""
    tie: Any
    """then the least of these, then the lower number."""
    before: Any
    """How many clusters came before the jump when last looked at."""
    largest: Any
    """The largest difference between neighbouring clusters when last looked at."""
    margin: Any
    """How far times may move until another difference can be the first jump,"""
    firm: Any
    """and until a larger one can be it."""
    drift: Any
    """How much any difference between neighbouring clusters can have moved since."""
    seen: Any
    """[places, rows] completion times then; only for jumps in sweeps."""
    here: Any
    """Rows for which one place has changed."""
    rest: Any
    """Rows for which any place may have changed."""
    steps: Any
    """[how many tasks have been placed]"""
    ordered: Any
    """[clusters, lanes] completion times of clusters, of some rows at a time; only for jumps."""
    lanes: Any
    """What is worked out of them."""
    touched: Any
    """Rows that read an item that has just been moved: 1, else 0."""


class Columns(NamedTuple):
    """Sweeps on a STAR: what completion times are made of (see kernels.columns); empty where it is not used."""

    task: Any
    """The task of each row,"""
    width: Any
    """[how many rows there are], those of placed tasks that are not squeezed out yet included."""
    cost: Any
    """[inputs, places, rows] how long an input keeps the link of a place busy; 0 if it is there, -inf in front
    if nothing is to be sent."""
    held: Any
    """[places, rows] since when the shared inputs that are at a place are there."""
    seconds: Any
    """[groups, rows] run times."""
    back: Any
    """[places, rows] the way back of results."""
    block: Any
    """How many places make a block."""
    block_best: Any
    block_second: Any
    """[blocks, rows] the least time, and the next, of a block of places."""
    arrival: Any
    new: Any
    after: Any
    """Room for one tile of rows."""
