"""Records of the schedules of single sites, for compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats, Ints

LEFT_OUT = -1
"""The site of a job of the pool."""


class SiteArrays(NamedTuple):
    """Jobs, sites with small disks, and the arcs into and out of these; all other hosts are one pool."""

    seconds: Floats
    """[sites, jobs] run time; inf where the job cannot run."""
    cores: Ints
    disk: Floats
    read_ptr: Ints
    reads: Ints
    write_ptr: Ints
    writes: Ints
    reader_ptr: Ints
    readers: Ints
    size: Floats
    in_ptr: Ints
    in_arcs: Ints
    out_ptr: Ints
    out_arcs: Ints
    """The arcs into and out of each site,"""
    line: Ints
    """and by arc: the number of its link among those of its site,"""
    latency: Floats
    bandwidth: Floats
    lines: Ints
    """Number of links of each site."""
    released: Floats
    """[arcs, items] when an input is at the tail of an arc, at best; inf: it never is."""
    onward: Floats
    """[arcs, items] how long a result travels from the head of an arc, at best."""
    pool_seconds: Floats
    """For how long each job would occupy all cores of the pool,"""
    pool_cores: float
    pool_slack: float
    """and by how many seconds the pool ends later than if it were never idle."""


class SiteRun(NamedTuple):
    """The state of a simulation of one site, and its results by job and by transfer."""

    state: Int64s
    """By item: ABSENT, COMING or HERE."""
    users: Int64s
    """By item: readers at the site that have not ended,"""
    waiting: Int64s
    """and that have not started."""
    position: Int64s
    """Of each job in the list."""
    started: Bools
    """By position: whether the job has started,"""
    begun: Int64s
    """how many of its inputs have been sent,"""
    missing: Floats
    """the bytes of those that have not,"""
    own: Floats
    """of those that have and that no other job waits for,"""
    leaves: Floats
    """and of its results."""
    core_job: Int64s
    core_end: Floats
    line_job: Int64s
    line_item: Int64s
    line_arc: Int64s
    line_end: Floats
    queue_item: Int64s
    queue_job: Int64s
    queue_sent: Bools
    """Results, in the order in which they were made."""
    start: Floats
    delivered: Floats
    move_item: Int64s
    move_arc: Int64s
    move_start: Floats
    level: Floats
    """[time, bytes on the disk, those of them for jobs that have not started, when the wait for an input ends]"""
    counter: Int64s
    """[first position that has not started, end of those with inputs, first result and end of the queue, transfers,
    results that have left, steps of work since these were last reset]"""


class SiteChoice(NamedTuple):
    """Which jobs run at which site, in which order of preference."""

    order: Int64s
    """[sites, jobs]"""
    length: Int64s
    site: Int64s
    """By job, or LEFT_OUT."""
    keep: Int64s
    """How many jobs of each site wait with all inputs before results are sent first."""
    excess: Floats
    """[sites] seconds by which deliveries exceed the target, in all."""
    totals: Floats
    """[seconds of the pool, excess of all, target, the smallest target that was met]"""


class Trial(NamedTuple):
    """A change of one or two sites."""

    order: Int64s
    """[2, jobs] the new lists,"""
    length: Int64s
    site: Int64s
    """of these sites; -1: none."""
    moved: Int64s
    """[a job that joins the first site, one that leaves it]; -1: none."""
    excess: Floats
    keep: Int64s


def new_run(arrays: SiteArrays) -> SiteRun:
    jobs, items = len(arrays.pool_seconds), len(arrays.size)
    cores, lines = int(arrays.cores.max()), int(arrays.lines.max())
    moves = len(arrays.reads) + len(arrays.writes)

    def numbers(count: int) -> Int64s:
        return np.zeros(count, np.int64)

    return SiteRun(
        state=numbers(items),
        users=numbers(items),
        waiting=numbers(items),
        position=numbers(jobs),
        started=np.zeros(jobs, np.bool_),
        begun=numbers(jobs),
        missing=np.zeros(jobs),
        own=np.zeros(jobs),
        leaves=np.zeros(jobs),
        core_job=numbers(cores),
        core_end=np.zeros(cores),
        line_job=numbers(lines),
        line_item=numbers(lines),
        line_arc=numbers(lines),
        line_end=np.zeros(lines),
        queue_item=numbers(len(arrays.writes)),
        queue_job=numbers(len(arrays.writes)),
        queue_sent=np.zeros(len(arrays.writes), np.bool_),
        start=np.zeros(jobs),
        delivered=np.zeros(jobs),
        move_item=numbers(moves),
        move_arc=numbers(moves),
        move_start=np.zeros(moves),
        level=np.zeros(4),
        counter=numbers(7),
    )


def new_choice(sites: int, jobs: int) -> SiteChoice:
    """All jobs in the pool."""
    return SiteChoice(
        order=np.zeros((sites, jobs), np.int64),
        length=np.zeros(sites, np.int64),
        site=np.full(jobs, LEFT_OUT, np.int64),
        keep=np.full(sites, 2, np.int64),
        excess=np.zeros(sites),
        totals=np.array([0.0, 0.0, 0.0, np.inf]),
    )


def new_trial(jobs: int) -> Trial:
    return Trial(
        order=np.zeros((2, jobs), np.int64),
        length=np.zeros(2, np.int64),
        site=np.zeros(2, np.int64),
        moved=np.zeros(2, np.int64),
        excess=np.zeros(2),
        keep=np.zeros(1, np.int64),
    )


def copied(choice: SiteChoice) -> SiteChoice:
    return SiteChoice(
        choice.order.copy(),
        choice.length.copy(),
        choice.site.copy(),
        choice.keep.copy(),
        choice.excess.copy(),
        choice.totals.copy(),
    )
