"""What the search by moves reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats

BLOCK = 64
"""The last task on each core is kept for every BLOCK-th position, so that it is found quickly."""
MOVE, LOOK, COMPUTE, EDGE = 0.8e-6, 1.5e-9, 100e-9, 5e-9
"""Seconds for a move, for a look at a task, for its times, and for each edge into or out of it."""


class SearchTables(NamedTuple):
    """What does not change during the search, worked out from the problem's arrays for quick look-up."""

    run_seconds: Floats
    """[tasks, speed classes] run time of each task on each kind of host."""
    speed_class: Int64s
    """The column of `run_seconds` for each host."""
    host_place: Int64s
    core_ptr: Int64s
    core_free_at: Floats
    """When each core can first be used."""
    latency: Floats
    """[places, places]; 0 on the diagonal, inf where there is no route."""
    seconds_per_byte: Floats
    """[places, places]; 0 on the diagonal."""
    predecessor_ptr: Int64s
    predecessor: Int64s
    """For each read of an item that a task makes: that task."""
    read_bytes: Floats
    successor_ptr: Int64s
    successor: Int64s
    """For each task: the tasks that read from it,"""
    sent_bytes: Floats
    """and the bytes that each of them reads."""
    outside_arrival: Floats
    """[1 or tasks, places] when what a task reads from outside can be at each place."""
    return_seconds: Floats
    """[1 or tasks, places] how long a task's results take to return from each place."""


class Solution(NamedTuple):
    """The current solution and what follows from it."""

    order: Int64s
    position: Int64s
    host: Int64s
    core: Int64s
    before: Int64s
    """The task in front of each task on its core, or -1,"""
    next: Int64s
    """the one behind it,"""
    first: Int64s
    """and the first of each core."""
    last: Int64s
    """[blocks, cores] the last task of each core in front of every BLOCK-th position, or -1."""
    finish: Floats
    returned: Floats
    """When a task has finished and its results have returned."""
    cause: Int64s
    """The task that each task had to wait for last, or -1."""
    tail: Floats
    """From the start of each task to the end of everything that waits for it."""


class Trial(NamedTuple):
    """Room for one move; between moves `finish` is that of the solution, all else is empty."""

    finish: Floats
    core: Int64s
    last: Int64s
    """The last task of each core among changed positions, or -1."""
    insertion: Int64s
    """[core, task in front of it] that the moved task would get."""
    marked: Bools
    """Tasks that must be computed again."""
    path: Int64s
    work: Floats
    """[seconds of work so far, on a machine of ordinary speed]: counted, not measured, so that it repeats."""
