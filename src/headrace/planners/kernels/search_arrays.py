"""What the search by moves reads and writes: named tuples of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 64
"""What comes last on each core is kept every so many positions, so that it is found quickly."""
MOVE, LOOK, COMPUTE, EDGE = 0.8e-6, 1.5e-9, 100e-9, 5e-9
"""Seconds for a move, for a look at a task, for its times, and for everything that it reads or that reads from it."""


class Fixed(NamedTuple):
    """What does not change during the search."""

    seconds: Any
    """[tasks, speeds] run time of each task on each kind of host."""
    speed_of: Any
    """The column of `seconds` for each host."""
    place_of: Any
    core_ptr: Any
    free_at: Any
    """When each core can first be used."""
    latency: Any
    """[places, places]; 0 on the diagonal, inf where there is no route."""
    per_byte: Any
    """[places, places] seconds per byte; 0 on the diagonal."""
    read_ptr: Any
    maker: Any
    """For each read of an item that another task makes: that task. Others are in `outside`."""
    size: Any
    """For each of these reads: bytes."""
    outside: Any
    """[1 or tasks, places] when what a task reads from outside can be at each place."""
    back: Any
    """[1 or tasks, places] how long a task's results take to return from each place."""
    after_ptr: Any
    after: Any
    """For each task: the tasks that read from it,"""
    after_size: Any
    """and the bytes that each of them reads."""


class Solution(NamedTuple):
    """The current solution and what follows from it."""

    order: Any
    position: Any
    host: Any
    core: Any
    before: Any
    """The task in front of each task on its core, or -1,"""
    next: Any
    """the one behind it,"""
    first: Any
    """and the first of each core."""
    last: Any
    """[blocks, cores] the last task of each core in front of every BLOCK-th position, or -1."""
    finish: Any
    over: Any
    """When a task has ended and its results have returned."""
    cause: Any
    """The task that each task had to wait for last, or -1."""
    rest: Any
    """From the start of each task to the end of everything that waits for it."""


class Trial(NamedTuple):
    """Room for one move; between moves `finish` is that of the solution, all else is empty."""

    finish: Any
    core: Any
    inside: Any
    """The last task of each core among changed positions, or -1."""
    choice: Any
    """[core, task in front of it] that the moved task would get."""
    marked: Any
    """Tasks that must be computed again."""
    path: Any
    work: Any
    """[seconds of work so far, on a machine of ordinary speed]: counted, not measured, so that it repeats."""
