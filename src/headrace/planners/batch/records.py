"""What the compiled loops of batch planners read and write."""

from __future__ import annotations

from typing import NamedTuple

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats

MINMIN, MAXMIN, SUFFERAGE, CLUSTER_SUFFERAGE, FEWEST_CLUSTERS = 0, 1, 2, 3, 4
"""Rules: which ready task is next. The last two compare clusters (see `cluster_gap`)."""

FREE_LINKS, OWN_LINKS, STAR, SHARED_LINKS = 0, 1, 2, 3
"""What a transfer to one place changes for others: nothing; nothing but new copies; nothing for tasks whose
inputs all come from the origin; everything."""


class HostGroups(NamedTuple):
    """Hosts by place. Hosts of one place with the same speeds are one group."""

    network: int
    """FREE_LINKS, OWN_LINKS, STAR or SHARED_LINKS."""
    places: Int64s
    """The places that have hosts; in batch planners place k is places[k]."""
    host_place: Int64s
    host_group: Int64s
    place_group: Int64s
    """Groups of place k are place_group[k] .. place_group[k + 1] - 1."""
    group_rate: Floats
    """[kinds, groups]"""
    group_ptr: Int64s
    group_hosts: Int64s
    """The hosts of each group, ascending."""
    cluster: Int64s
    """The cluster (site) of each place."""
    back_latency: Floats
    back_bandwidth: Floats
    """To the origin from each place: inf where there is nothing to cross, 0 where there is no route."""
    in_link: Int64s
    in_latency: Floats
    in_bandwidth: Floats
    """STAR: the only link from the origin to each place, -1 at the origin."""


class TaskInputs(NamedTuple):
    """What tasks read that may have to be sent, in the order of sending."""

    ptr: Int64s
    item: Int64s
    column: Int64s
    """STAR: column of the item in `since`, or -1 for items with one reader."""
    from_origin: Bools
    """STAR: tasks whose inputs all lie at the origin and nowhere else at first."""
    since: Floats
    """STAR: [places, columns] since when an item with several readers is at a place; inf: it is not."""
    made: Floats
    """When each item was made; 0 for items from outside."""
    released: Floats
    """When the last predecessor of each task has finished."""
    largest_result: Floats
    """Bytes of the largest result of each task that returns to the origin."""


class Availability(NamedTuple):
    """When processors can take the next task."""

    core: Floats
    host: Floats
    """The earliest of a host's cores."""
    first: Floats
    """The earliest host of each group."""
    second: Floats
    """The earliest other host of each group; inf for a group of one."""


class GapStatistics(NamedTuple):
    """Of some rows at a time: the gaps between neighbouring clusters."""

    number: Floats
    mean: Floats
    squares: Floats
    largest: Floats
    threshold: Floats
    clusters_before: Floats
    """How many clusters come before the first gap above the threshold; 0 if there is none."""
    height: Floats
    """The height of that gap."""
    largest_before: Floats
    """The largest gap before it."""


class ReadyTasks(NamedTuple):
    """The ready tasks, one row each, in task order, with their completion matrix."""

    task: Int64s
    """All tasks, level by level; row r of the current level is task[first + r]."""
    row: Int64s
    """Row of each task, or -1."""
    unplaced: Int64s
    """Rows that are not placed yet, ascending."""
    arrival: Floats
    """[places, rows] when all inputs can be at a place; not kept for sweeps (see `completion_matrix`)."""
    time: Floats
    """[places, rows] best completion time at a place."""
    next_time: Floats
    """[places, rows] completion on the second best host of a place; only for SUFFERAGE."""
    best: Floats
    """Best completion time of each row,"""
    second: Floats
    """and that on the second best host; only for SUFFERAGE."""
    key: Floats
    """The task with the least key is next,"""
    tie: Floats
    """then the least of these, then the lower number."""
    gap: Floats
    """Rules over clusters: height of the first gap when last measured,"""
    clusters_before: Floats
    """how many clusters came before it,"""
    largest_gap: Floats
    """and the largest gap of all."""
    position_slack: Floats
    """How far times may move until another gap can be the first,"""
    height_slack: Floats
    """and until a larger gap can be the first."""
    drift: Floats
    """How much any gap can have moved since it was measured."""
    measured_time: Floats
    """[places, rows] completion times when measured; only for rules over clusters in sweeps."""
    rows_here: Int64s
    """Rows for which one place has changed."""
    rows_anywhere: Int64s
    """Rows for which any place may have changed."""
    reads_moved: Int64s
    """1 for rows that read an item that has just been moved, else 0."""
    steps: Int64s
    """[how many tasks have been placed]"""
    ordered: Floats
    """[clusters, rows measured together] completion times of clusters; only for rules over clusters."""
    statistics: GapStatistics


class SweepMatrix(NamedTuple):
    """Sweeps on a STAR: what completion times consist of (see `completion_matrix`); empty where it is not used."""

    task: Int64s
    """The task of each row,"""
    width: Int64s
    """[how many rows there are], those of placed tasks that are not removed yet included."""
    send_seconds: Floats
    """[inputs, places, rows] how long an input keeps the link of a place busy; 0 if it is there, -inf in the first
    if nothing is to be sent."""
    held: Floats
    """[places, rows] since when the shared inputs that are at a place are there."""
    run_seconds: Floats
    """[groups, rows]"""
    return_seconds: Floats
    """[places, rows] how long results take to the origin."""
    block: int
    """How many places make a block."""
    block_best: Floats
    block_second: Floats
    """[blocks, rows] the least time, and the next, of a block of places."""
    arrival: Floats
    new: Floats
    after: Floats
    """Room for one tile of rows."""


class Batch(NamedTuple):
    """A batch planner's rule and its data, beside the problem and the schedule."""

    rule: int
    tolerance: float
    """Below 0: the best task is next. Else one is drawn among those whose key is within this share of the best."""
    seed: int
    groups: HostGroups
    inputs: TaskInputs
    available: Availability
    ready: ReadyTasks
    sweep: SweepMatrix
