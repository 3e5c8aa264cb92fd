"""Records that the compiled loops of batch planners read and write."""

from __future__ import annotations

from typing import NamedTuple

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats

MINMIN, MAXMIN, SUFFERAGE, CLUSTER_SUFFERAGE, FEWEST_CLUSTERS = 0, 1, 2, 3, 4
"""Rules: which ready task is next. The last two compare clusters (see `cluster_gap`)."""

FREE_LINKS, OWN_LINKS, STAR, SHARED_LINKS = 0, 1, 2, 3
"""How a transfer to one place affects other places: not at all; only by new copies; not for tasks whose inputs all come
from the origin; in every way."""


class HostGroups(NamedTuple):
    """Hosts by place. Hosts at one place with the same speeds form one group."""

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
    """Bandwidth from each place to the origin: inf if there is no link to cross, 0 if there is no route."""
    in_link: Int64s
    in_latency: Floats
    in_bandwidth: Floats
    """STAR: the only link from the origin to each place, -1 at the origin,"""
    busy_latency: Floats
    """and for how long a transfer keeps it busy besides its bytes: 0, or its latency with `store_and_forward`."""


class TaskInputs(NamedTuple):
    """Inputs of tasks that may have to be sent, in the order of sending."""

    ptr: Int64s
    item: Int64s
    column: Int64s
    """STAR: column of the item in `since`, or -1 for items with one reader."""
    from_origin: Bools
    """STAR: tasks whose inputs are all initially at the origin and nowhere else."""
    since: Floats
    """STAR: [places, columns] when an item with several readers becomes available at a place; inf: never."""
    made: Floats
    """When each item is produced; 0 for items from outside."""
    released: Floats
    """When the last predecessor of each task has finished; under constraints, not before its release."""
    largest_result: Floats
    """Bytes of the largest result of each task that returns to the origin."""
    cores_class: Int64s
    """The row of `Availability.needed` for each task."""


class Availability(NamedTuple):
    """When processors can take the next task, for each number of cores that tasks hold."""

    needed: Int64s
    """These numbers of cores, ascending."""
    core: Floats
    host: Floats
    """[numbers, hosts] when the first so many cores of each host are free; inf if it has fewer."""
    first: Floats
    """[numbers, groups] when the first host of each group is free."""
    second: Floats
    """[numbers, groups] when the second host of each group is free; inf for a group of one."""


class GapStatistics(NamedTuple):
    """Gaps between neighbouring clusters, for several rows at a time."""

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
    """Rows that have not been placed, ascending."""
    arrival: Floats
    """[places, rows] when all inputs can be at a place; not used for sweeps (see `completion_matrix`)."""
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
    """How far times may move before another gap can be the first,"""
    height_slack: Floats
    """and before a larger gap can be the first."""
    drift: Floats
    """How much any gap can have moved since it was measured."""
    measured_time: Floats
    """[places, rows] completion times when measured; only for rules over clusters in sweeps."""
    rows_here: Int64s
    """Rows for which one place has changed."""
    rows_anywhere: Int64s
    """Rows for which any place may have changed."""
    reads_moved: Int64s
    """1 for rows that read an item that has just been sent, else 0."""
    renewed: Int64s
    """Number of the step before which the key of a row was last renewed on its own (see `renewals`)."""
    steps: Int64s
    """[number of tasks placed]"""
    ordered: Floats
    """[clusters, rows measured together] completion times of clusters; only for rules over clusters."""
    statistics: GapStatistics


class ContendedRows(NamedTuple):
    """Levels on links that transfers share: what is known about the arrivals of rows (see `contended_rows`)."""

    bound: Floats
    """[places, rows] lower bound of the arrival of all inputs."""
    low: Floats
    high: Floats
    """[places, rows] earliest start and latest finish of the transfers that bring them, when last computed,"""
    links: Int64s
    """[places, rows] and the links of these, as bits."""
    leader: Int64s
    """[leaders, rows] the places on which the key of a row depends, or -1: that of its best time, for SUFFERAGE also
    that of its second best, for rules over clusters the best of every cluster."""
    stale: Bools
    """Rows whose key has to be computed again."""
    time: Floats
    next_time: Floats
    exact: Bools
    """[places] of the row at hand: its completion times, and whether they are more than lower bounds."""
    limit: Floats
    """[clusters] scratch space."""


class SweepMatrix(NamedTuple):
    """Sweeps on a STAR: the components of completion times (see `completion_matrix`); empty if not used."""

    task: Int64s
    """The task of each row,"""
    width: Int64s
    """[number of rows], including those of placed tasks that have not been removed yet."""
    changed: Bools
    """Places where completion times have changed since their column was updated."""
    send_seconds: Floats
    """[inputs, places, rows] how long an input occupies the link of a place; 0 if it is present, -inf in the first
    entry if no input has to be sent."""
    held: Floats
    """[places, rows] when the shared inputs at a place become available."""
    run_seconds: Floats
    """[groups, rows]"""
    return_seconds: Floats
    """[places, rows] seconds to return the results to the origin."""
    block: int
    """Number of places per block."""
    block_best: Floats
    block_second: Floats
    """[blocks, rows] the smallest and second smallest time of a block of places."""
    arrival: Floats
    new: Floats
    after: Floats
    """Scratch space for one tile of rows."""


class SweepBlocks(NamedTuple):
    """Sweeps on a STAR under MINMIN and MAXMIN: rows in blocks (see `sweep_blocks`); empty if not used."""

    order: Int64s
    """The position of each row's task in the level; decides ties."""
    block: Int64s
    """The block of each row,"""
    first: Int64s
    """and the rows of block b: first[b] .. first[b + 1] - 1."""
    placed: Bools
    """[rows] those that are placed,"""
    left: Int64s
    """[blocks] and the number of those that are not."""
    send: Floats
    held: Floats
    back: Floats
    """[places, blocks] extremes of the seconds to send inputs, `SweepMatrix.held` and the seconds to return results,"""
    run: Floats
    """[groups, blocks] and of run times."""
    bound: Floats
    """[places, blocks] bounds of completion times."""
    arrival: Floats
    """[blocks] scratch space."""
    listed: Int64s
    """[places] MINMIN: how many rows are listed; 0: search the place again."""
    row: Int64s
    time: Floats
    """[places, rows listed] MINMIN: the rows that complete first at each place, and their times. MAXMIN: in time[0, 0]
    the best time of the row chosen."""


class Batch(NamedTuple):
    """A batch planner's rule and data, in addition to the problem and the schedule."""

    rule: int
    tolerance: float
    """Negative: the best task is next. Otherwise one is drawn among those with keys within this share of the best."""
    seed: int
    exact: Int64s
    """Up to how many ready tasks all keys are current, in the first and in later levels (see `renewals`)."""
    groups: HostGroups
    inputs: TaskInputs
    available: Availability
    ready: ReadyTasks
    contended: ContendedRows
    sweep: SweepMatrix
    blocks: SweepBlocks
