"""A plan in the making: what is placed and booked so far, kept in arrays that compiled loops write into."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.kernels.arrays import (
    NO_ROUTE,
    POOL_FULL,
    Choice,
    Copies,
    Log,
    Moves,
    Placed,
    Scratch,
    Tasks,
)
from headrace.planners.kernels.calendar import new_calendar
from headrace.planners.kernels.listing import list_schedule
from headrace.planners.kernels.transfers import add_held, keep_busy, return_results
from headrace.planners.problem_arrays import Arrays

MANY_READERS = 16
"""Items with at least this many readers get a dense row over places."""


class CalendarFull(Exception):
    """There was too little room for bookings: start over on a board with more."""


class Board:
    """Tasks placed and transfers booked so far. `room` scales the space for bookings."""

    def __init__(self, problem: Problem, arrays: Arrays, room: int = 1) -> None:
        graph, platform = problem.graph, problem.platform
        self.problem, self.arrays = problem, arrays
        tasks, machines = arrays.tasks, arrays.machines
        n, n_cores, n_links = graph.n_tasks, int(machines.core_ptr[-1]), platform.network.n_links
        deliveries = len(graph.reads) + int(graph.result.sum())
        longest = int(np.diff(machines.route_ptr).max(initial=0)) + 2
        most_inputs = int(np.diff(graph.read_ptr).max(initial=0))
        booked = deliveries * longest if machines.booked else 0
        self.cores = new_calendar(n_cores, room * (4 * (n + n_cores) + 64))
        first_booked = booked + min(n_links, booked) + len(problem.link_free_at)
        self.links = new_calendar(n_links, room * (4 * first_booked + 64))
        self.copies = _room_for_copies(problem, len(tasks.held) + graph.n_items + deliveries)
        self.moves = _room_for_moves(deliveries)
        self.log = _room_for_log(most_inputs * longest)
        self.scratch = _room_for_scratch(problem, most_inputs, longest)
        self.placed = Placed(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), np.zeros(n))
        add_held(machines, tasks, self.copies, _held_since(problem, tasks))
        if machines.booked and problem.link_free_at:
            keep_busy(self.links, _free_since(problem))

    def place(self, order: Ints | NDArray[np.int64], choice: Choice, *, results_wait: bool = False) -> None:
        """Place these tasks in turn; their predecessors must be placed. See `list_schedule`.

        If `results_wait`, results are not sent to the origin yet: `return_results` does that in the end.
        """
        tasks = self.arrays.tasks
        if results_wait:
            tasks = tasks._replace(result=np.zeros_like(tasks.result))
        outcome, at = list_schedule(
            order.astype(np.int64),
            tasks,
            self.arrays.machines,
            choice,
            self.cores,
            self.links,
            self.copies,
            self.moves,
            self.log,
            self.scratch,
            self.placed,
        )
        self.judge(outcome, at)

    def judge(self, outcome: int, at: int) -> None:
        """Raise what the outcome of a compiled loop that got as far as task `at` stands for."""
        if outcome == POOL_FULL:
            raise CalendarFull
        if outcome == NO_ROUTE:
            raise NoPlan(
                f"task {self.problem.graph.task_names[at]!r} cannot get its inputs at any host, or its results "
                "cannot return",
                where=self.problem.platform.name,
                hint="add a [[link]] or uplink so that a route exists",
            )

    def return_results(self) -> None:
        """All tasks are placed: results go to the origin in the gaps that inputs left, those made first first.

        O(results * log).
        """
        graph = self.problem.graph
        if self.problem.platform.network.origin < 0:
            return
        items = np.flatnonzero(graph.result & (graph.producer != OUTSIDE) & (graph.size > 0))
        items = items[np.lexsort((items, self.placed.finish[graph.producer[items]]))]
        outcome, at = return_results(
            items, graph.producer[items], self.arrays.machines, self.arrays.tasks, self.links, self.copies,
            self.moves, self.scratch, self.placed,
        )  # fmt: skip
        self.judge(outcome, at)

    def plan(self, name: str) -> Plan:
        """What is on the board as a plan, without bound."""
        moves, used = self.moves, int(self.moves.count[0])
        return Plan(
            self.problem.graph,
            self.problem.platform,
            name,
            *self.placed,
            moves.item[:used],
            moves.source[:used],
            moves.target[:used],
            moves.start[:used],
            moves.finish[:used],
            notes=_notes(self.problem),
        )


def _held_since(problem: Problem, tasks: Tasks) -> Floats:
    """When each of the copies that need no transfer is there."""
    since = np.zeros(len(tasks.held))
    for (item, place), time in problem.since.items():
        first, last = int(tasks.held_ptr[item]), int(tasks.held_ptr[item + 1])
        since[first:last][tasks.held[first:last] == place] = time
    return since


def _free_since(problem: Problem) -> Floats:
    """When each link can first be used."""
    free = np.zeros(problem.platform.network.n_links)
    for link, time in problem.link_free_at.items():
        free[link] = time
    return free


def _notes(problem: Problem) -> tuple[str, ...]:
    graph, platform = problem.graph, problem.platform
    outside = (graph.producer == OUTSIDE) & (graph.size > 0)
    if platform.origin is None and not problem.holders and outside.any():
        return (
            f"{platform.name} has no origin: {int(outside.sum())} inputs from outside are taken to be on "
            "every host, and results stay where they are made",
        )
    return ()


def _room_for_moves(count: int) -> Moves:
    def ints() -> Ints:
        return np.zeros(count, np.int32)

    return Moves(ints(), ints(), ints(), np.zeros(count), np.zeros(count), np.zeros(1, np.int64))


def _room_for_scratch(problem: Problem, inputs: int, links: int) -> Scratch:
    places, hosts = problem.platform.network.n_places, len(problem.platform.hosts)
    return Scratch(
        arrival=np.empty(places),
        since=np.empty(places),
        back=np.empty(places),
        promise=np.empty(hosts),
        inputs=np.empty(inputs, np.int64),
        times=np.empty(inputs),
        links=np.empty(links, np.int64),
        held=np.zeros(places, np.int64),
        hosts=np.empty(hosts, np.int64),
        places=np.empty(hosts, np.int64),
    )


def _room_for_log(count: int) -> Log:
    return Log(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count),
        np.zeros(1, np.int64),
    )


def _room_for_copies(problem: Problem, count: int) -> Copies:
    graph, places = problem.graph, problem.platform.network.n_places
    popular = np.diff(graph.reader_ptr) >= MANY_READERS
    row = np.full(graph.n_items, -1, np.int32)
    row[popular] = np.arange(int(popular.sum()), dtype=np.int32)
    rows = int(popular.sum())
    return Copies(
        head=np.full(graph.n_items, -1, np.int32),
        next=np.full(count, -1, np.int32),
        place=np.zeros(count, np.int64),
        time=np.zeros(count),
        count=np.zeros(1, np.int64),
        row=row,
        arrival=np.full((rows, places), np.inf),
        node=np.full((rows, places), -1, np.int32),
    )
