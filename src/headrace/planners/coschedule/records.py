"""Records that the compiled list scheduler of jobs reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Floats, Ints


class InstanceArrays(NamedTuple):
    """An instance as arrays for compiled loops (see `Instance`).

    In the calendar of shared resources, host h is resource h and the storage of site s is resource hosts + s.
    """

    seconds: Floats
    cores: Ints
    release: Floats
    deadline: Floats
    host_place: Ints
    host_cores: Ints
    host_free: Floats
    read_ptr: Ints
    reads: Ints
    write_ptr: Ints
    writes: Ints
    wait_ptr: Ints
    waits: Ints
    size: Floats
    source: Ints
    arrival: Floats
    link_free: Floats
    producer: Ints
    destination: Ints
    site: Ints
    storage: Floats
    limited_storage: bool
    """Whether any storage is finite."""
    exclusive_links: bool
    set_ptr: Ints
    sets: Ints
    pair_ptr: Ints
    path_start: Ints
    path_ptr: Ints
    path_arcs: Ints
    path_room: Floats
    """The smallest disk that a file on the path is written to."""
    tail: Ints
    head: Ints
    latency: Floats
    bandwidth: Floats
    arc_link_ptr: Ints
    arc_links: Ints
    busy_latency: Floats
    busy_bandwidth: Floats


class DecisionArrays(NamedTuple):
    """The order of jobs, the host of each, the path of each input and output.

    A path is an index into the paths of its pair, or -1 for the one with the earliest arrival. With `pull`, jobs take a
    core on the first free host, in order, and then fetch their inputs. If it is `open_ended` where jobs run, copies
    are held only for jobs that have been placed.
    """

    order: Ints
    host: Ints
    input_path: Ints
    output_path: Ints
    pull: bool
    open_ended: bool


class Preferences(NamedTuple):
    """What hosts prefer if they take jobs one after another."""

    order: Ints
    """[hosts, jobs] the jobs by preference."""
    penalty: Floats
    """[jobs, hosts] added to the seconds for which a core would wait; inf: not there."""
    waiting: Floats
    """[hosts] what a second for which a core waits costs."""
    width: int
    """Number of jobs that a host looks at,"""
    most: int
    """and if it would have to wait."""
    last: int
    """Number of jobs that are not taken by hosts but go where they deliver first."""


class ItemCopies(NamedTuple):
    """Copies by item * places + place."""

    ready: Floats
    until: Floats
    """End of the storage reservation (inf: open); only with finite storage."""
    since: Floats
    last_use: Floats
    users: Ints
    """Number of unplaced jobs that will read it at this place."""


class JobSchedule(NamedTuple):
    start: Floats
    finish: Floats
    host: Ints
    delivered: Floats
    """When each job has finished and its results have arrived."""
    transfer_item: Ints
    transfer_arc: Ints
    transfer_start: Floats
    transfer_finish: Floats
    state: Int64s
    """[transfers so far, job that could not be placed or -1]"""


class Workspace(NamedTuple):
    """Scratch space for one job: lower bounds of its operations, bookings to cancel, storage reservations."""

    not_before: Floats
    undo_link: Ints
    undo_how: Ints
    undo_at: Ints
    undo_start: Floats
    undo_end: Floats
    claim_key: Int64s
    claim_op: Ints
    claim_start: Floats
    claim_end: Floats
    used: Int64s
    """[bookings, claims, operations]"""


def new_copies(size: int, limited_storage: bool) -> ItemCopies:
    few = size if limited_storage else 1
    return ItemCopies(
        np.full(size, np.inf), np.zeros(few), np.zeros(few), np.zeros(few), np.zeros(few, np.int32)
    )


def new_schedule(jobs: int, transfers: int) -> JobSchedule:
    return JobSchedule(
        np.zeros(jobs),
        np.zeros(jobs),
        np.zeros(jobs, np.int32),
        np.zeros(jobs),
        np.zeros(transfers, np.int32),
        np.zeros(transfers, np.int32),
        np.zeros(transfers),
        np.zeros(transfers),
        np.array([0, -1], np.int64),
    )


def new_workspace(operations: int, links: int) -> Workspace:
    bookings = operations * max(1, links)
    return Workspace(
        np.zeros(operations + 1),
        np.zeros(bookings, np.int32),
        np.zeros(bookings, np.int32),
        np.zeros(bookings, np.int32),
        np.zeros(bookings),
        np.zeros(bookings),
        np.zeros(2 * operations + 2, np.int64),
        np.zeros(2 * operations + 2, np.int32),
        np.zeros(2 * operations + 2),
        np.zeros(2 * operations + 2),
        np.zeros(3, np.int64),
    )
