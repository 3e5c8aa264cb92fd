"""What ends when, and when a link in use takes the next step of its trace."""

from __future__ import annotations

from headrace.arrays.compiling import inner
from headrace.arrays.heap import NONE, contains, least_key, remove, update

ENDS, STEPS = 0, 1
"""In `grid.queued`: the queue of things that end, and the queue of links by their next step."""


@inner
def put(grid, number, time):
    """Set or change when a core or a transfer ends: O(log)."""
    grid.queued[ENDS] = update(grid.ending, grid.queued[ENDS], number, time)


@inner
def take_out(grid, number):
    """A core or a transfer ends no more."""
    if contains(grid.ending, number):
        grid.queued[ENDS] = remove(grid.ending, grid.queued[ENDS], number)


@inner
def first_end(grid):
    """When the first core or transfer ends; inf without any."""
    return least_key(grid.ending, grid.queued[ENDS])


@inner
def take_due(grid):
    """A core or transfer that ends now, taken out, or NONE; at one moment in the order of their numbers."""
    if first_end(grid) > grid.now[0]:
        return NONE
    number = grid.queued[ENDS]
    take_out(grid, number)
    return number


@inner
def first_step(grid):
    """When the first link in use changes its bandwidth; inf if none does."""
    return least_key(grid.stepping, grid.queued[STEPS])


@inner
def put_step(grid, link, time):
    """Set or change when a link takes its next step."""
    grid.queued[STEPS] = update(grid.stepping, grid.queued[STEPS], link, time)


@inner
def take_step_out(grid, link):
    if contains(grid.stepping, link):
        grid.queued[STEPS] = remove(grid.stepping, grid.queued[STEPS], link)
