"""Batch-mode planning: builds the arrays of the compiled engine and runs it.

How completion times are estimated, for every rule:
- A task is appended to the core that is free first; a wave of ready tasks (a level of the graph) is placed
  before the next one is looked at.
- Its inputs are booked in the first gaps of the links, items that more tasks read first. An item that is at a
  place (shared storage of a site, or one host) is not sent again.
- Results wait: they return to the origin in the gaps that inputs leave, so that they never hold up work. What
  they need on free links counts as part of the completion time.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Bools, Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.planners.batch_grid import grid_of
from headrace.planners.board import Board
from headrace.planners.booking import booked_plan, with_bound
from headrace.planners.kernels.batch import batch_schedule, free_hosts, workqueue_schedule
from headrace.planners.kernels.batch_arrays import (
    FIRST_JUMP,
    STAR,
    SUFFERAGE,
    Columns,
    Free,
    Grid,
    Inputs,
    Lanes,
    Wave,
)
from headrace.planners.kernels.columns import TILE
from headrace.planners.kernels.jumps import LANES

MOST_ENTRIES = 100_000_000
"""Largest number of entries of the columns of a sweep: 800 MB."""
EXACT = -1.0
"""A tolerance below 0: no draw, ties go to the lower task number."""


def batch_plan(
    problem: Problem, name: str, rule: int, *, tolerance: float = EXACT, by_usage: bool = True
) -> Plan:
    """The plan of one rule (see kernels.batch_arrays).

    With a `tolerance` the next task is drawn, by the problem's seed, among those whose key is within this
    share of the best. Without `by_usage` a task's inputs are sent in the order in which it reads them.
    On one site the rules over clusters compare hosts: there is no other cluster to suffer on.
    """
    began = time.perf_counter()

    def place_all(board: Board) -> None:
        grid = grid_of(problem, board.arrays)
        clusters = int(grid.cluster.max()) + 1
        chosen = SUFFERAGE if rule >= FIRST_JUMP and clusters == 1 else rule
        inputs = _inputs(problem, board, grid, by_usage)
        free = _free(problem, board, grid)
        columns = _columns(problem.graph, grid, inputs, chosen)
        levels, wave = _wave(problem.graph, grid, chosen, clusters, len(columns.task) > 0)
        outcome, at = batch_schedule(
            chosen, tolerance, problem.seed, levels, board.arrays.tasks, board.arrays.machines, grid, inputs,
            free, wave, columns, board.links, board.copies, board.moves, board.log,
            board.scratch, board.placed,
        )  # fmt: skip
        board.judge(outcome, at)
        board.return_results()

    return with_bound(booked_plan(problem, name, place_all), problem, began)


def workqueue_plan(problem: Problem, name: str) -> Plan:
    """Tasks in the order of the graph, each to the host that is free first."""
    began = time.perf_counter()

    def place_all(board: Board) -> None:
        grid = grid_of(problem, board.arrays)
        inputs = _inputs(problem, board, grid, by_usage=True)
        outcome, at = workqueue_schedule(
            problem.graph.order.astype(np.int64), board.arrays.tasks, board.arrays.machines, grid, inputs,
            _free(problem, board, grid), board.links, board.copies, board.moves, board.log, board.scratch,
            board.placed,
        )  # fmt: skip
        board.judge(outcome, at)
        board.return_results()

    return with_bound(booked_plan(problem, name, place_all), problem, began)


def _inputs(problem: Problem, board: Board, grid: Grid, by_usage: bool) -> Inputs:
    """What may have to be moved for each task, popular items first: O(reads log reads)."""
    graph, tasks, origin = problem.graph, board.arrays.tasks, problem.platform.network.origin
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    usage = np.diff(graph.reader_ptr)
    first = np.lexsort((-usage[graph.reads] if by_usage else np.zeros(len(reader)), reader))
    first = first[(graph.size[graph.reads[first]] > 0) & ~tasks.everywhere[graph.reads[first]]]
    item, reader = graph.reads[first].astype(np.int64), reader[first]
    column = np.full(graph.n_items, -1, np.int64)
    plain = np.zeros(graph.n_tasks, np.bool_)
    if grid.network == STAR:
        at_origin, copies = _at_origin(problem, board, grid)
        plain[:] = np.bincount(reader, weights=~at_origin[item], minlength=graph.n_tasks) == 0
        shared = np.flatnonzero(at_origin & ((usage > 1) | (copies > 1)) & (graph.size > 0))
        column[shared] = np.arange(len(shared))
    since = np.full((len(grid.places), int(column.max(initial=-1)) + 1), np.inf)
    if grid.network == STAR:
        _note_copies(problem, board, grid, column, since)
    returned = (graph.producer != OUTSIDE) & graph.result & (origin >= 0)
    out_size = np.zeros(graph.n_tasks)
    np.maximum.at(out_size, graph.producer[returned], graph.size[returned])
    return Inputs(
        ptr=np.concatenate(([0], np.cumsum(np.bincount(reader, minlength=graph.n_tasks)))),
        item=item,
        shared=column[item],
        plain=plain,
        since=since,
        made=np.zeros(graph.n_items),
        released=np.zeros(graph.n_tasks),
        out_size=out_size,
        reader_ptr=graph.reader_ptr,
        readers=graph.readers,
    )


def _at_origin(problem: Problem, board: Board, grid: Grid) -> tuple[Bools, Ints]:
    """Items that lie at the origin, elsewhere only at places of hosts; and how many copies there are."""
    tasks, origin = board.arrays.tasks, problem.platform.network.origin
    item = np.repeat(np.arange(problem.graph.n_items), np.diff(tasks.held_ptr))
    strange = ~np.isin(tasks.held, [*grid.places, origin])
    there = np.bincount(item[tasks.held == origin], minlength=problem.graph.n_items) > 0
    there &= np.bincount(item[strange], minlength=problem.graph.n_items) == 0
    for (late, place), _ in problem.since.items():
        there[late] &= place != origin
    return there, np.diff(tasks.held_ptr)


def _note_copies(
    problem: Problem, board: Board, grid: Grid, column: NDArray[np.int64], since: Floats
) -> None:
    """Copies at places of hosts that there are from the start, or that are on their way."""
    tasks = board.arrays.tasks
    number = {int(place): k for k, place in enumerate(grid.places)}
    for item in np.flatnonzero((column >= 0) & (np.diff(tasks.held_ptr) > 1)).tolist():
        for place in tasks.held[tasks.held_ptr[item] : tasks.held_ptr[item + 1]].tolist():
            if place in number:
                since[number[place], column[item]] = problem.since.get((item, place), 0.0)


def _free(problem: Problem, board: Board, grid: Grid) -> Free:
    machines = board.arrays.machines
    groups = len(grid.group_ptr) - 1
    free = Free(
        core=np.repeat(machines.free_at, np.diff(machines.core_ptr)),
        host=machines.free_at.copy(),
        first=np.empty(groups),
        second=np.empty(groups),
    )
    for host in grid.group_hosts[grid.group_ptr[:-1]].tolist():
        free_hosts(machines, grid, free, host)
    return free


def _wave(graph: Graph, grid: Grid, rule: int, clusters: int, sweep: bool) -> tuple[Ints, Wave]:
    """Offsets of the levels, and room for the widest of them."""
    levels = np.concatenate(([0], np.cumsum(np.bincount(graph.level)))) if graph.n_tasks else np.zeros(1)
    widest = int(np.diff(levels).max(initial=0))
    matrix = (len(grid.places), widest)
    return levels.astype(np.int64), Wave(
        task=graph.order.astype(np.int64),
        row=np.full(graph.n_tasks, -1, np.int64),
        live=np.empty(widest, np.int64),
        arrival=np.empty(matrix),
        time=np.empty(matrix),
        next_time=np.empty(matrix if rule == SUFFERAGE else (0, 0)),
        best=np.empty(widest),
        second=np.empty(widest),
        key=np.zeros(widest),
        tie=np.zeros(widest),
        before=np.empty(widest),
        largest=np.empty(widest),
        margin=np.empty(widest),
        firm=np.empty(widest),
        drift=np.empty(widest),
        seen=np.zeros(matrix if rule >= FIRST_JUMP and sweep else (0, 0)),
        here=np.empty(widest, np.int64),
        rest=np.empty(widest, np.int64),
        steps=np.zeros(1, np.int64),
        ordered=np.empty((clusters, LANES)),
        lanes=_lanes(),
        touched=np.zeros(widest, np.int64),
    )


def _lanes() -> Lanes:
    return Lanes(*np.empty((len(Lanes._fields), LANES)))


def _columns(graph: Graph, grid: Grid, inputs: Inputs, rule: int) -> Columns:
    """Room for the first level if it is a sweep on a STAR; else, or if that were too much, none."""
    first = np.flatnonzero(graph.level == 0)
    places, groups = len(grid.places), len(grid.group_ptr) - 1
    most = max(1, int(np.diff(inputs.ptr)[first].max(initial=0)))
    fits = len(first) * ((most + 2) * places + groups) <= MOST_ENTRIES
    rows = len(first) if grid.network == STAR and fits and inputs.plain[first].all() else 0
    block = math.isqrt(places - 1) + 1
    blocks = -(-places // block) if rule <= SUFFERAGE else 0
    return Columns(
        task=np.empty(rows, np.int64),
        width=np.zeros(1, np.int64),
        cost=np.empty((most, places, rows)),
        held=np.empty((places, rows)),
        seconds=np.empty((groups, rows)),
        back=np.empty((places, rows)),
        block=block,
        block_best=np.empty((blocks, rows)),
        block_second=np.empty((blocks if rule == SUFFERAGE else 0, rows)),
        arrival=np.empty(TILE),
        new=np.empty(TILE),
        after=np.empty(TILE),
    )
