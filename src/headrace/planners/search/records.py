"""Records that the annealing search reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats

BLOCK = 64
"""The last task on each core is stored for every BLOCK-th position, for fast look-up."""
MOVE, LOOK, COMPUTE, EDGE = 0.8e-6, 1.5e-9, 100e-9, 5e-9
"""Counted seconds for a move, for checking a task, for computing its times, and for each of its edges."""


class SearchTables(NamedTuple):
    """Tables that do not change during the search, derived from the problem's arrays for fast look-up."""

    run_seconds: Floats
    """[tasks, speed classes] run time of each task on each kind of host."""
    speed_class: Int64s
    """The column of `run_seconds` for each host."""
    host_place: Int64s
    core_ptr: Int64s
    core_free_at: Floats
    """When each core becomes available."""
    latency: Floats
    """[places, places]; 0 on the diagonal, inf where there is no route."""
    seconds_per_byte: Floats
    """[places, places]; 0 on the diagonal."""
    predecessor_ptr: Int64s
    predecessor: Int64s
    """For each read of an item produced by a task: that task."""
    read_bytes: Floats
    successor_ptr: Int64s
    successor: Int64s
    """For each task: the tasks that read from it,"""
    sent_bytes: Floats
    """and the bytes that each of them reads."""
    outside_arrival: Floats
    """[1 or tasks, places] when a task's inputs from outside can be at each place."""
    return_seconds: Floats
    """[1 or tasks, places] seconds to return a task's results from each place."""


class Solution(NamedTuple):
    """The current solution and values derived from it."""

    order: Int64s
    position: Int64s
    host: Int64s
    core: Int64s
    before: Int64s
    """The previous task on the core of each task, or -1,"""
    next: Int64s
    """the next task on the core, or -1,"""
    first: Int64s
    """and the first task of each core."""
    last: Int64s
    """[blocks, cores] the last task of each core before every BLOCK-th position, or -1."""
    finish: Floats
    returned: Floats
    """When a task has finished and its results have returned."""
    cause: Int64s
    """The task that determined the start of each task, or -1."""
    tail: Floats
    """Time from the start of each task to the end of everything that depends on it."""


class Trial(NamedTuple):
    """Scratch space for one move; between moves `finish` is that of the solution and all else is empty."""

    finish: Floats
    core: Int64s
    last: Int64s
    """The last task of each core among changed positions, or -1."""
    insertion: Int64s
    """[core, preceding task] of the moved task."""
    marked: Bools
    """Tasks that must be recomputed."""
    path: Int64s
    work: Floats
    """[seconds of work so far, on a machine of ordinary speed]: counted, not measured, for reproducibility."""
