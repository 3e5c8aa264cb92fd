"""What the list scheduler reads and writes: the instance as arrays, and a board of what is booked so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """An instance as the compiled loops read it. Sites with finite storage are resources hosts + site."""

    seconds: Any
    cores: Any
    release: Any
    deadline: Any
    host_place: Any
    host_cores: Any
    host_free: Any
    read_ptr: Any
    reads: Any
    write_ptr: Any
    writes: Any
    wait_ptr: Any
    waits: Any
    size: Any
    source: Any
    maker: Any
    goal: Any
    site: Any
    storage: Any
    stored: bool
    """Whether any storage is finite."""
    booked: bool
    set_ptr: Any
    sets: Any
    pair_ptr: Any
    path_start: Any
    path_ptr: Any
    path_arcs: Any
    tail: Any
    head: Any
    latency: Any
    bandwidth: Any
    link_ptr: Any
    links: Any


class Choices(NamedTuple):
    """The decisions: the order of jobs, the host of each, the way of each input and output.

    A way is a number among the paths of its pair, or -1: the one that arrives first. `pull`: jobs take a core
    first and their input then, in order, on whatever host is free; `hold` is a lower bound on every transfer and start.
    """

    order: Any
    host: Any
    in_way: Any
    out_way: Any
    pull: bool


class Copies(NamedTuple):
    """Copies by item * places + place."""

    ready: Any
    until: Any
    """Until when its room is booked (inf: open); only with finite storage."""
    since: Any
    last_use: Any
    users: Any
    """Jobs not yet placed that will read it at this place."""


class Outcome(NamedTuple):
    start: Any
    finish: Any
    host: Any
    done: Any
    """When each job has finished and its results have arrived."""
    move_item: Any
    move_arc: Any
    move_start: Any
    move_finish: Any
    count: Any
    """[transfers so far, job that could not be placed or -1]"""


class Scratch(NamedTuple):
    """Per job: lower bounds of its operations, bookings to take back, reservations of room."""

    bound: Any
    undo_link: Any
    undo_how: Any
    undo_at: Any
    undo_start: Any
    undo_end: Any
    claim_key: Any
    claim_op: Any
    claim_start: Any
    claim_end: Any
    count: Any
    """[bookings, claims, operations]"""


def new_copies(size: int, stored: bool) -> Copies:
    few = size if stored else 1
    return Copies(np.full(size, np.inf), np.zeros(few), np.zeros(few), np.zeros(few), np.zeros(few, np.int32))


def new_outcome(jobs: int, moves: int) -> Outcome:
    return Outcome(
        np.zeros(jobs),
        np.zeros(jobs),
        np.zeros(jobs, np.int32),
        np.zeros(jobs),
        np.zeros(moves, np.int32),
        np.zeros(moves, np.int32),
        np.zeros(moves),
        np.zeros(moves),
        np.array([0, -1], np.int64),
    )


def new_scratch(operations: int, links: int) -> Scratch:
    bookings = operations * max(1, links)
    return Scratch(
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
