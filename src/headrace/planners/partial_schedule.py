"""A partial schedule: tasks placed so far, copies of items, and transfers booked on links.

On links that carry one transfer at a time, a transfer is booked in the first gap in which every link of its route is
free; otherwise it starts when its data is ready. Bookings are tentative until `commit`; `undo` reverts them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import (
    Booking,
    Calendar,
    book,
    cancel,
    earliest_common,
    exclusive_calendar,
    full,
    larger,
)
from headrace.arrays.compiling import entry, leaf
from headrace.arrays.problem import ProblemArrays, TaskArrays
from headrace.arrays.routes import NetworkArrays, busy_links, longest_route, transfer_seconds
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.plan import Plan
from headrace.model.units import plural
from headrace.planners.cores import core_bookings, too_few_cores
from headrace.planners.fair_times import as_executed

OK, LINKS_FULL, NO_ROUTE, NO_HOST = 0, 1, 2, 3
"""Outcomes of a compiled loop: done, the calendar of links must grow, a task has no route, or constraints leave no host
for it."""
MANY_READERS = 16
"""Items with at least this many readers get a dense row over places."""


class Copies(NamedTuple):
    """Places that hold each item, and since when: a linked list per item, the newest copy first.

    Items with many readers also have a dense row over places, so that look-up time does not grow with the number of
    copies.
    """

    head: Ints
    next: Ints
    place: Int64s
    since: Floats
    used: Int64s
    row: Ints
    """The dense row of each item, or -1."""
    arrival: Floats
    """[rows, places] when the item is at each place, or could be there if no link were busy."""
    node: Ints
    """[rows, places] the copy at each place, or -1."""


class Transfers(NamedTuple):
    """Transfers booked so far, `used[0]` of them, and the link bookings since the last commit."""

    item: Ints
    source: Ints
    target: Ints
    start: Floats
    finish: Floats
    used: Int64s
    undo_link: Int64s
    undo_how: Int64s
    undo_at: Int64s
    undo_start: Floats
    undo_end: Floats
    undo_count: Int64s
    route: Int64s
    busy: Floats
    """Scratch space for the links of one route, and how long each is busy."""


class Placement(NamedTuple):
    """Host, core and times of each task that is placed."""

    host: Ints
    core: Ints
    start: Floats
    finish: Floats


class PartialSchedule(NamedTuple):
    """A schedule under construction.

    Compiled functions take its parts, not the whole: extracting a part from a record costs as much as a small function
    call, so it is done once, outside loops.
    """

    placement: Placement
    cores: Calendar
    links: Calendar
    copies: Copies
    transfers: Transfers


def empty_schedule(problem: ProblemArrays, link_entries: int = 0) -> PartialSchedule:
    """An empty schedule with the initial copies. O(tasks + items + reads + cores + links).

    The calendar of links has room for the expected bookings, and at least for `link_entries`.
    """
    tasks, network = problem.tasks, problem.network
    n, n_cores, n_links = len(tasks.work), int(problem.hosts.core_ptr[-1]), len(network.link_free_at)
    deliveries = len(tasks.reads) + int(tasks.result.sum())
    longest = longest_route(network)
    bookings = deliveries * longest if network.exclusive_links else 0
    busy_links = int(np.count_nonzero(network.link_free_at))
    expected = 4 * (bookings + min(n_links, bookings) + busy_links) + 64
    most_reads = int(np.diff(tasks.read_ptr).max(initial=0))
    most_writes = int(np.diff(tasks.write_ptr).max(initial=0))
    schedule = PartialSchedule(
        placement=Placement(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n), np.zeros(n)),
        cores=exclusive_calendar(n_cores, 4 * (core_bookings(problem) + n_cores) + 64),
        links=exclusive_calendar(n_links, max(link_entries, expected)),
        copies=_room_for_copies(problem, len(problem.initial.place) + len(tasks.size) + deliveries),
        transfers=_room_for_transfers(deliveries, (most_reads + most_writes) * longest, longest),
    )
    _add_initial_state(problem, schedule)
    return schedule


def _room_for_transfers(count: int, bookings: int, longest: int) -> Transfers:
    return Transfers(
        item=np.zeros(count, np.int32),
        source=np.zeros(count, np.int32),
        target=np.zeros(count, np.int32),
        start=np.zeros(count),
        finish=np.zeros(count),
        used=np.zeros(1, np.int64),
        undo_link=np.zeros(bookings, np.int64),
        undo_how=np.zeros(bookings, np.int64),
        undo_at=np.zeros(bookings, np.int64),
        undo_start=np.zeros(bookings),
        undo_end=np.zeros(bookings),
        undo_count=np.zeros(1, np.int64),
        route=np.empty(longest, np.int64),
        busy=np.empty(longest),
    )


def _room_for_copies(problem: ProblemArrays, count: int) -> Copies:
    items, places = len(problem.tasks.size), len(problem.network.zone)
    popular = np.diff(problem.tasks.reader_ptr) >= MANY_READERS
    rows = int(popular.sum())
    row = np.full(items, -1, np.int32)
    row[popular] = np.arange(rows, dtype=np.int32)
    return Copies(
        head=np.full(items, -1, np.int32),
        next=np.full(count, -1, np.int32),
        place=np.zeros(count, np.int64),
        since=np.zeros(count),
        used=np.zeros(1, np.int64),
        row=row,
        arrival=np.full((rows, places), np.inf),
        node=np.full((rows, places), -1, np.int32),
    )


def with_more_links_room(schedule: PartialSchedule) -> PartialSchedule:
    """The same schedule with a larger calendar of links, after LINKS_FULL."""
    return schedule._replace(links=larger(schedule.links))


def plan_of(problem: Problem, schedule: PartialSchedule, name: str) -> Plan:
    """The finished schedule as a plan with the times of its execution, without a bound."""
    transfers, used = schedule.transfers, int(schedule.transfers.used[0])
    plan = Plan(
        graph=problem.graph,
        platform=problem.platform,
        scheduler=name,
        host=schedule.placement.host,
        core=schedule.placement.core,
        start=schedule.placement.start,
        finish=schedule.placement.finish,
        move_item=transfers.item[:used],
        move_source=transfers.source[:used],
        move_target=transfers.target[:used],
        move_start=transfers.start[:used],
        move_finish=transfers.finish[:used],
        notes=_notes(problem),
    )
    return as_executed(plan, problem) if problem.platform.contention == "fair" else plan


def _notes(problem: Problem) -> tuple[str, ...]:
    graph, platform = problem.graph, problem.platform
    outside = (graph.producer == OUTSIDE) & (graph.size > 0)
    if platform.origin is None and not problem.holders and outside.any():
        inputs = plural(int(outside.sum()), "input")
        return (
            f"{platform.name} has no origin: {inputs} of the program are assumed to be on every host, and results stay "
            "where they are produced",
        )
    return ()


def no_route(problem: Problem, task: int) -> NoPlan:
    """The error for a task that cannot be placed."""
    return too_few_cores(problem, task) or NoPlan(
        f"task {problem.graph.task_names[task]!r} cannot get its inputs at any host, or its results "
        "cannot return",
        where=problem.platform.name,
        hint="add a [[link]] or uplink so that a route exists",
    )


# Copies of items


@entry
def _add_initial_state(problem: ProblemArrays, schedule: PartialSchedule) -> None:
    """Add the initial copies, and the initial backlog of links."""
    initial, network, size = problem.initial, problem.network, problem.tasks.size
    links, copies = schedule.links, schedule.copies
    for item in range(len(size)):
        for i in range(initial.ptr[item], initial.ptr[item + 1]):
            add_copy(network, copies, item, size[item], initial.place[i], initial.since[i])
    if network.exclusive_links:
        for link in range(len(network.link_free_at)):
            if network.link_free_at[link] > 0.0:
                book(links, link, 0.0, network.link_free_at[link])


@leaf
def add_copy(
    network: NetworkArrays, copies: Copies, item: int, size: float, place: int, since: float
) -> None:
    """Add a copy of an item at a place."""
    node = copies.used[0]
    copies.used[0] += 1
    copies.place[node] = place
    copies.since[node] = since
    copies.next[node] = copies.head[item]
    copies.head[item] = node
    row = copies.row[item]
    if row >= 0:
        if copies.node[row, place] < 0:
            copies.node[row, place] = node
            copies.arrival[row, place] = since
        for target in range(copies.arrival.shape[1]):
            if copies.node[row, target] < 0:
                arrival = since + transfer_seconds(network, place, target, size)
                copies.arrival[row, target] = min(copies.arrival[row, target], arrival)


@leaf
def held_since(copies: Copies, item: int, place: int) -> float:
    """When a place has the item; inf if never."""
    row = copies.row[item]
    if row >= 0:
        node = copies.node[row, place]
        return copies.since[node] if node >= 0 else np.inf
    node = copies.head[item]
    while node >= 0:
        if copies.place[node] == place:
            return copies.since[node]
        node = copies.next[node]
    return np.inf


# Transfers


@leaf
def _best_source(
    network: NetworkArrays,
    links: Calendar,
    copies: Copies,
    route: Int64s,
    busy: Floats,
    item: int,
    size: float,
    target: int,
) -> tuple[int, float, float]:
    """The best copy of an item to send: its place, and start and finish of the transfer; finish inf: no route.

    Without contention this is the copy that arrives first. With contention, three copies are tried on the links: that
    one, the best in the target's own zone, and the newest, whose ports are least likely to be busy.
    """
    best, best_arrival = -1, np.inf
    near, near_arrival = -1, np.inf
    node = copies.head[item]
    newest = node
    while node >= 0:
        place = copies.place[node]
        arrival = copies.since[node] + transfer_seconds(network, place, target, size)
        if arrival < best_arrival or (arrival == best_arrival and best < 0):
            best, best_arrival = node, arrival
        if network.zone[place] == network.zone[target] and arrival < near_arrival:
            near, near_arrival = node, arrival
        node = copies.next[node]
    if best < 0:
        return -1, np.inf, np.inf
    if not network.exclusive_links or best_arrival == np.inf:
        return copies.place[best], copies.since[best], best_arrival
    source, start, finish = -1, np.inf, np.inf
    for trial in range(3):
        node = best if trial == 0 else (near if trial == 1 else newest)
        if node < 0 or (trial > 0 and node == best) or (trial == 2 and node == near):
            continue
        place = copies.place[node]
        duration = transfer_seconds(network, place, target, size)
        if duration == np.inf:
            continue
        count = busy_links(network, place, target, size, route, busy)
        begin = earliest_common(links, route, busy, count, copies.since[node])
        if begin + duration < finish:
            source, start, finish = place, begin, begin + duration
    return source, start, finish


@leaf
def _add_transfer(
    transfers: Transfers, item: int, source: int, target: int, start: float, finish: float
) -> None:
    number = transfers.used[0]
    transfers.used[0] += 1
    transfers.item[number] = item
    transfers.source[number] = source
    transfers.target[number] = target
    transfers.start[number] = start
    transfers.finish[number] = finish


@leaf
def _book_route(links: Calendar, transfers: Transfers, count: int, start: float) -> None:
    """Book the first `count` links of `transfers.route` as long as they are busy, and record that for `undo`."""
    for i in range(count):
        booking = book(links, transfers.route[i], start, start + transfers.busy[i])
        n = transfers.undo_count[0]
        transfers.undo_link[n] = transfers.route[i]
        transfers.undo_how[n] = booking.how
        transfers.undo_at[n] = booking.at
        transfers.undo_start[n] = booking.old_start
        transfers.undo_end[n] = booking.old_end
        transfers.undo_count[0] = n + 1


@leaf
def book_inputs(
    network: NetworkArrays,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    items: Int64s,
    size: Floats,
    place: int,
) -> float:
    """Book transfers of these items to a place, in this order; returns the last arrival; inf: no route.

    `size` is the size of each item in bytes.
    """
    latest = 0.0
    for item in items:
        since = held_since(copies, item, place)
        if since == np.inf:
            source, start, since = _best_source(
                network, links, copies, transfers.route, transfers.busy, item, size[item], place
            )
            if since == np.inf:
                return since
            if network.exclusive_links:
                count = busy_links(network, source, place, size[item], transfers.route, transfers.busy)
                _book_route(links, transfers, count, start)
            _add_transfer(transfers, item, source, place, start, since)
        latest = max(latest, since)
    return latest


@leaf
def _book_result(
    network: NetworkArrays,
    links: Calendar,
    transfers: Transfers,
    item: int,
    size: float,
    place: int,
    ready: float,
) -> bool:
    """Book the transfer of a result to the origin; False if there is no route."""
    duration = transfer_seconds(network, place, network.origin, size)
    if duration == np.inf:
        return False
    start = ready
    if network.exclusive_links:
        count = busy_links(network, place, network.origin, size, transfers.route, transfers.busy)
        start = earliest_common(links, transfers.route, transfers.busy, count, ready)
        _book_route(links, transfers, count, start)
    _add_transfer(transfers, item, place, network.origin, start, start + duration)
    return True


@leaf
def book_results(
    tasks: TaskArrays,
    network: NetworkArrays,
    links: Calendar,
    transfers: Transfers,
    task: int,
    place: int,
    finish: float,
) -> None:
    """Book the transfers of a task's results to the origin."""
    if network.origin < 0 or place == network.origin:
        return
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        if tasks.result[item] and tasks.size[item] > 0.0:
            _book_result(network, links, transfers, item, tasks.size[item], place, finish)


@leaf
def undo(links: Calendar, transfers: Transfers, first: int) -> None:
    """Undo the bookings since the last commit; transfers from number `first` on are discarded."""
    for i in range(transfers.undo_count[0] - 1, -1, -1):
        booking = Booking(
            transfers.undo_how[i], transfers.undo_at[i], transfers.undo_start[i], transfers.undo_end[i]
        )
        cancel(links, transfers.undo_link[i], booking)
    transfers.undo_count[0] = 0
    transfers.used[0] = first


@leaf
def commit(
    tasks: TaskArrays,
    network: NetworkArrays,
    copies: Copies,
    transfers: Transfers,
    first: int,
    task: int,
    place: int,
    finish: float,
) -> None:
    """Commit a placed task with its transfers from number `first` on: they and its outputs become copies."""
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        add_copy(network, copies, item, tasks.size[item], place, finish)
    for k in range(first, transfers.used[0]):
        item, target = transfers.item[k], transfers.target[k]
        add_copy(network, copies, item, tasks.size[item], target, transfers.finish[k])
    transfers.undo_count[0] = 0


@entry
def return_results(problem: ProblemArrays, schedule: PartialSchedule, items: Int64s) -> tuple[int, int]:
    """After all tasks are placed, send results to the origin in the gaps left by inputs on the links.

    Returns the outcome and the position in `items` from which to continue.
    """
    size, producer, network, host_place = (
        problem.tasks.size,
        problem.tasks.producer,
        problem.network,
        problem.hosts.place,
    )
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    for position in range(len(items)):
        item = items[position]
        if held_since(copies, item, network.origin) < np.inf:
            continue
        maker, first = producer[item], transfers.used[0]
        place, ready = host_place[placement.host[maker]], placement.finish[maker]
        if not _book_result(network, links, transfers, item, size[item], place, ready):
            return NO_ROUTE, position
        if full(links):
            undo(links, transfers, first)
            return LINKS_FULL, position
        transfers.undo_count[0] = 0
    return OK, -1


def return_all_results(problem: Problem, arrays: ProblemArrays, schedule: PartialSchedule) -> PartialSchedule:
    """Send all results to the origin, in the order in which they are produced: O(results * log)."""
    graph = problem.graph
    if arrays.network.origin < 0:
        return schedule
    items = np.flatnonzero(graph.result & (graph.producer != OUTSIDE) & (graph.size > 0))
    items = items[np.lexsort((items, schedule.placement.finish[graph.producer[items]]))]
    while True:
        outcome, position = return_results(arrays, schedule, items)
        if outcome == NO_ROUTE:
            raise no_route(problem, int(graph.producer[items[position]]))
        if outcome == OK:
            return schedule
        schedule, items = with_more_links_room(schedule), items[position:]
