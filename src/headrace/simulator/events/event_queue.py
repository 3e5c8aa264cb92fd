"""What ends when, and when a link in use takes the next step of its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.arrays.compiling import leaf
from headrace.arrays.heap import NONE, contains, least_key, remove, update

if TYPE_CHECKING:
    from headrace.simulator.events.grid_state import GridState

ENDS, STEPS = 0, 1
"""In `grid.queued`: the queue of things that end, and the queue of links by their next step."""


@leaf
def put(grid: GridState, number: int, time: float) -> None:
    """Set or change when a core or a transfer ends, or a link becomes idle: O(log)."""
    grid.queued[ENDS] = update(grid.ending, grid.queued[ENDS], number, time)


@leaf
def take_out(grid: GridState, number: int) -> None:
    """A core, transfer or link ends no more."""
    if contains(grid.ending, number):
        grid.queued[ENDS] = remove(grid.ending, grid.queued[ENDS], number)


@leaf
def first_end(grid: GridState) -> float:
    """When the first core, transfer or link ends; inf without any."""
    return least_key(grid.ending, grid.queued[ENDS])


@leaf
def take_due(grid: GridState) -> int:
    """What ends now, taken out, or NONE; at one moment in the order of their numbers."""
    if first_end(grid) > grid.now[0]:
        return NONE
    number = grid.queued[ENDS]
    take_out(grid, number)
    return int(number)


@leaf
def first_step(grid: GridState) -> float:
    """When the first link in use changes its bandwidth; inf if none does."""
    return least_key(grid.stepping, grid.queued[STEPS])


@leaf
def put_step(grid: GridState, link: int, time: float) -> None:
    """Set or change when a link takes its next step."""
    grid.queued[STEPS] = update(grid.stepping, grid.queued[STEPS], link, time)


@leaf
def take_step_out(grid: GridState, link: int) -> None:
    if contains(grid.stepping, link):
        grid.queued[STEPS] = remove(grid.stepping, grid.queued[STEPS], link)
