"""The list scheduler: places tasks in a given order, each on the host where it finishes first, and books transfers.

>>> from headrace.testing import random_platform, random_program
>>> problem = Problem(random_program(1).graph, random_platform(1))
>>> list_plan(problem, problem.graph.order, "in-order").scheduler
'in-order'
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar, full
from headrace.arrays.compiling import entry, leaf
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays, problem_arrays
from headrace.arrays.routes import NetworkArrays, lower_arrivals, transfer_seconds
from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.constraint_failures import DeadEnd, lateness, starting_state
from headrace.planners.cores import book_cores, earliest_core, has_cores
from headrace.planners.list.host_choice import HostConstraints, host_constraints
from headrace.planners.partial_schedule import (
    LINKS_FULL,
    NO_HOST,
    NO_ROUTE,
    OK,
    Copies,
    PartialSchedule,
    Placement,
    Transfers,
    book_inputs,
    book_results,
    commit,
    empty_schedule,
    no_route,
    plan_of,
    return_all_results,
    undo,
    with_more_links_room,
)

FEW_INPUTS = 32


class Workspace(NamedTuple):
    """Scratch arrays of the compiled loop, allocated once."""

    arrival: Floats
    """When all inputs of a task could be at each place if no link were busy,"""
    item_arrival: Floats
    """and one input."""
    return_seconds: Floats
    """Seconds to return the results of a task from each place to the origin if no link were busy."""
    cost: Floats
    """The cost of a task at each host if no link were busy."""
    inputs: Int64s
    """The inputs of a task that may have to be sent,"""
    inputs_ready: Floats
    """and when each is produced."""
    inputs_used: Int64s
    """[number of these inputs]"""
    inputs_held: Int64s
    """Number of a task's inputs that each place holds; zero between tasks."""
    hosts: Int64s
    places: Int64s
    """The hosts that a task is restricted to, and their places."""


class ListScheduler:
    """Places tasks one after another; earlier placements are final."""

    def __init__(self, problem: Problem, arrays: ProblemArrays | None = None) -> None:
        self.problem = problem
        self.arrays = problem_arrays(problem) if arrays is None else arrays
        self.schedule = empty_schedule(self.arrays)
        self._workspace = new_workspace(self.arrays)
        self._constraints = None if problem.constraints is None else starting_state(problem, self.arrays)

    def place(
        self,
        order: Ints | Int64s,
        constraints: HostConstraints | None = None,
        *,
        results_wait: bool = False,
    ) -> None:
        """Place these tasks in this order; their predecessors must be placed or come before them.

        Args:
            order: Tasks by number.
            constraints: Allowed hosts and criterion; by default the host where a task finishes first.
            results_wait: Do not send results to the origin yet; `return_results` does that at the end.

        Raises:
            NoPlan: A task cannot get its inputs on any host, or its results cannot return.
            DeadEnd: The problem's constraints leave no host for a task, given the hosts of those placed before.
        """
        arrays = self.arrays
        if results_wait:
            tasks = arrays.tasks._replace(result=np.zeros_like(arrays.tasks.result))
            arrays = arrays._replace(tasks=tasks)
        constraints = host_constraints(arrays) if constraints is None else constraints
        order = order.astype(np.int64)
        while True:
            outcome, position = self._run(arrays, order, constraints)
            if outcome == NO_ROUTE:
                raise no_route(self.problem, int(order[position]))
            if outcome == NO_HOST:
                raise DeadEnd(self.problem, int(order[position]))
            if outcome == OK:
                return
            self.schedule, order = with_more_links_room(self.schedule), order[position:]

    def _run(self, arrays: ProblemArrays, order: Int64s, constraints: HostConstraints) -> tuple[int, int]:
        if self._constraints is None:
            return list_schedule(arrays, self.schedule, order, constraints, self._workspace)
        from headrace.planners.list.constrained_schedule import constrained_list_schedule

        return constrained_list_schedule(
            arrays, self.schedule, order, constraints, self._constraints, self._workspace
        )

    def return_results(self) -> None:
        """Send all results to the origin in the gaps left by inputs, in order of finish, after all tasks are placed."""
        self.schedule = return_all_results(self.problem, self.arrays, self.schedule)

    def plan(self, name: str) -> Plan:
        """The schedule as a plan, without a bound."""
        return plan_of(self.problem, self.schedule, name)


def list_plan(
    problem: Problem,
    order: Ints | Int64s,
    name: str,
    constraints: HostConstraints | None = None,
    arrays: ProblemArrays | None = None,
) -> Plan:
    """The plan that places all tasks in `order`, each on the allowed host where it finishes first.

    Args:
        problem: The problem to plan.
        order: All tasks, each after its predecessors.
        name: The scheduler's name, for the plan.
        constraints: Allowed hosts and criterion; see `host_constraints`.
        arrays: The problem's arrays, if the caller already has them.

    Raises:
        NoPlan: A task cannot get its inputs on any host, or its results cannot return.
        DeadEnd: The problem's constraints leave no host for a task, given the hosts of those placed before.
    """
    scheduler = ListScheduler(problem, arrays)
    scheduler.place(order, constraints)
    plan = scheduler.plan(name)
    if problem.constraints is None or lateness(plan) <= 0.0:
        return plan
    return _by_urgency(problem, order, constraints, scheduler.arrays, plan)


def _by_urgency(
    problem: Problem,
    order: Ints | Int64s,
    constraints: HostConstraints | None,
    arrays: ProblemArrays,
    late: Plan,
) -> Plan:
    """The plan that places tasks by latest start instead, if it meets the deadlines better than the plan `late`."""
    from headrace.planners.list.ranks import latest_start_order

    scheduler = ListScheduler(problem, arrays)
    scheduler.place(latest_start_order(arrays, problem.graph.deadline, order), constraints)
    plan = scheduler.plan(late.scheduler)
    return plan if lateness(plan) < lateness(late) else late


def new_workspace(problem: ProblemArrays) -> Workspace:
    places, hosts = len(problem.network.zone), len(problem.hosts.place)
    most_reads = int(np.diff(problem.tasks.read_ptr).max(initial=0))
    return Workspace(
        arrival=np.empty(places),
        item_arrival=np.empty(places),
        return_seconds=np.empty(places),
        cost=np.empty(hosts),
        inputs=np.empty(most_reads, np.int64),
        inputs_ready=np.empty(most_reads),
        inputs_used=np.zeros(1, np.int64),
        inputs_held=np.zeros(places, np.int64),
        hosts=np.empty(hosts, np.int64),
        places=np.empty(hosts, np.int64),
    )


@entry
def list_schedule(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    order: Int64s,
    constraints: HostConstraints,
    work: Workspace,
) -> tuple[int, int]:
    """Place tasks in this order, each on the allowed host of least cost; ties: earliest finish, then lower number.

    The finish includes the time to return results. O(tasks * (places * copies + cores * (log blocks + gaps))), plus
    trial bookings per host if links are exclusive. Returns the outcome and the position from which to continue.
    """
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    cores, links, copies = schedule.cores, schedule.links, schedule.copies
    transfers, placement = schedule.transfers, schedule.placement
    for position in range(len(order)):
        outcome = place_task(
            tasks, hosts, network, cores, links, copies, transfers, placement, constraints, order[position], work
        )  # fmt: skip
        if outcome != OK:
            return outcome, position
    return OK, -1


@leaf
def place_task(
    tasks: TaskArrays,
    hosts: HostArrays,
    network: NetworkArrays,
    cores: Calendar,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    placement: Placement,
    constraints: HostConstraints,
    task: int,
    work: Workspace,
) -> int:
    """Place one task on the allowed host of least cost, with its transfers; returns the outcome."""
    candidates, places = constraints.hosts, constraints.places
    if constraints.fixed[task] >= 0:
        work.hosts[0], work.places[0] = constraints.fixed[task], hosts.place[constraints.fixed[task]]
        candidates, places = work.hosts[:1], work.places[:1]
    elif constraints.stay[task]:
        count = _hosts_with_all_inputs(tasks, hosts, copies, constraints, task, work)
        if count > 0:
            candidates, places = work.hosts[:count], work.places[:count]
    _earliest_arrivals(tasks, network, copies, task, places, work)
    _return_seconds(tasks, network, task, places, work.return_seconds)
    host = _best_on_free_links(tasks, hosts, cores, task, constraints, candidates, work)
    inputs = work.inputs[: _inputs_by_time(tasks, copies, task, work)]
    if network.exclusive_links and host >= 0 and len(candidates) > 1 and len(inputs) > 0:
        host = _best_with_transfers(
            tasks, hosts, network, cores, links, copies, transfers, constraints, task, candidates, host, work
        )
    if host < 0:
        return LINKS_FULL if full(links) else NO_ROUTE
    first, place = transfers.used[0], hosts.place[host]
    arrival = book_inputs(network, links, copies, transfers, inputs, tasks.size, place)
    duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    needed = tasks.cores[task]
    core, start = earliest_core(hosts, cores, host, needed, max(arrival, work.arrival[place]), duration)
    book_results(tasks, network, links, transfers, task, place, start + duration)
    if full(links):
        undo(links, transfers, first)
        return LINKS_FULL
    book_cores(cores, hosts.core_ptr[host + 1], core, needed, start, duration)
    placement.host[task], placement.core[task] = host, core - hosts.core_ptr[host]
    placement.start[task], placement.finish[task] = start, start + duration
    commit(tasks, network, copies, transfers, first, task, place, start + duration)
    return OK


@leaf
def _hosts_with_all_inputs(
    tasks: TaskArrays,
    hosts: HostArrays,
    copies: Copies,
    constraints: HostConstraints,
    task: int,
    work: Workspace,
) -> int:
    """Write the allowed hosts that have all inputs of a task to `work`; returns their number.

    O(copies of the inputs + hosts).
    """
    wanted = 0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item] or tasks.size[item] == 0.0:
            continue
        wanted += 1
        node = copies.head[item]
        while node >= 0:
            work.inputs_held[copies.place[node]] += 1
            node = copies.next[node]
    count = 0
    for host in constraints.hosts:
        if work.inputs_held[hosts.place[host]] == wanted and has_cores(hosts, host, tasks.cores[task]):
            work.hosts[count] = host
            work.places[count] = hosts.place[host]
            count += 1
    work.inputs_held[:] = 0
    return count


@leaf
def _earliest_arrivals(
    tasks: TaskArrays, network: NetworkArrays, copies: Copies, task: int, places: Int64s, work: Workspace
) -> None:
    """When all inputs are, or could be, at these places if no link were busy: O(inputs * copies * places)."""
    arrival, item_arrival = work.arrival, work.item_arrival
    for p in places:
        arrival[p] = 0.0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item]:
            continue
        node = copies.head[item]
        row = copies.row[item]
        if tasks.size[item] == 0.0:
            made = copies.since[node] if node >= 0 else 0.0
            for p in places:
                arrival[p] = max(arrival[p], made)
        elif row >= 0:
            for p in places:
                arrival[p] = max(arrival[p], copies.arrival[row, p])
        else:
            for p in places:
                item_arrival[p] = np.inf
            while node >= 0:
                lower_arrivals(
                    network, copies.place[node], copies.since[node], tasks.size[item], places, item_arrival
                )
                node = copies.next[node]
            node = copies.head[item]
            while node >= 0:  # what is on its way to a place is not sent again, even if that were faster
                item_arrival[copies.place[node]] = copies.since[node]
                node = copies.next[node]
            for p in places:
                arrival[p] = max(arrival[p], item_arrival[p])


@leaf
def _return_seconds(
    tasks: TaskArrays, network: NetworkArrays, task: int, places: Int64s, seconds: Floats
) -> None:
    """Seconds to return the results of a task from these places to the origin if no link were busy."""
    for p in places:
        seconds[p] = 0.0
    if network.origin < 0:
        return
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        if tasks.result[item]:
            for p in places:
                way = transfer_seconds(network, p, network.origin, tasks.size[item])
                seconds[p] = max(seconds[p], way)


@leaf
def _inputs_by_time(tasks: TaskArrays, copies: Copies, task: int, work: Workspace) -> int:
    """Write the items that a task may have to fetch to `work`, by the time they are ready; ties by number.

    Returns their number. O(inputs * log inputs).
    """
    inputs, ready, count = work.inputs, work.inputs_ready, 0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item] or tasks.size[item] == 0.0:
            continue
        first = np.inf
        node = copies.head[item]
        while node >= 0:
            first = min(first, copies.since[node])
            node = copies.next[node]
        inputs[count] = item
        ready[count] = first
        count += 1
    _sort_by_time(inputs, ready, count)
    work.inputs_used[0] = count
    return count


@leaf
def _sort_by_time(inputs: Int64s, ready: Floats, count: int) -> None:
    """Sort items by (time, number), in place: a few by insertion, many by a heap, O(count log count)."""
    if count > FEW_INPUTS:
        for root in range(count // 2 - 1, -1, -1):
            _sift_down(inputs, ready, root, count)
        for end in range(count - 1, 0, -1):
            inputs[0], inputs[end] = inputs[end], inputs[0]
            ready[0], ready[end] = ready[end], ready[0]
            _sift_down(inputs, ready, 0, end)
        return
    for i in range(1, count):
        item, time = inputs[i], ready[i]
        at = i
        while at > 0 and (ready[at - 1] > time or (ready[at - 1] == time and inputs[at - 1] > item)):
            inputs[at], ready[at] = inputs[at - 1], ready[at - 1]
            at -= 1
        inputs[at], ready[at] = item, time


@leaf
def _sift_down(inputs: Int64s, ready: Floats, root: int, end: int) -> None:
    """Let an item sink in the heap of the first `end` items, the latest at its top."""
    item, time = inputs[root], ready[root]
    at, child = root, 2 * root + 1
    while child < end:
        right = child + 1
        if right < end and (
            ready[right] > ready[child] or (ready[right] == ready[child] and inputs[right] > inputs[child])
        ):
            child = right
        if ready[child] < time or (ready[child] == time and inputs[child] < item):
            break
        inputs[at], ready[at] = inputs[child], ready[child]
        at, child = child, 2 * child + 1
    inputs[at], ready[at] = item, time


@leaf
def extra_cost(constraints: HostConstraints, task: int, place: int) -> float:
    """The extra cost of a task at a place."""
    return constraints.extra[min(task, constraints.extra.shape[0] - 1), place]


@leaf
def _best_on_free_links(
    tasks: TaskArrays,
    hosts: HostArrays,
    cores: Calendar,
    task: int,
    constraints: HostConstraints,
    candidates: Int64s,
    work: Workspace,
) -> int:
    """The best host if no link were busy, or -1; writes the cost at each host to `work`."""
    best, best_cost, best_end = -1, np.inf, np.inf
    amount, rate = tasks.work[task], hosts.rate[tasks.speed_class[task]]
    for host in candidates:
        place = hosts.place[host]
        work.cost[host] = np.inf
        if work.arrival[place] == np.inf or work.return_seconds[place] == np.inf:
            continue
        duration = amount / rate[host]
        _, start = earliest_core(hosts, cores, host, tasks.cores[task], work.arrival[place], duration)
        end = start + duration + work.return_seconds[place]
        cost = (start if constraints.earliest_start else end) + extra_cost(constraints, task, place)
        work.cost[host] = cost
        if cost < best_cost or (cost == best_cost and end < best_end):
            best, best_cost, best_end = host, cost, end
    return best


@leaf
def _best_with_transfers(
    tasks: TaskArrays,
    hosts: HostArrays,
    network: NetworkArrays,
    cores: Calendar,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    constraints: HostConstraints,
    task: int,
    candidates: Int64s,
    first_host: int,
    work: Workspace,
) -> int:
    """The best host with the transfers of the inputs in `work` booked, or -1; all trial bookings are undone.

    Hosts whose cost on free links already exceeds the best are skipped; `first_host` is tried first.
    """
    chosen, chosen_cost, chosen_end = -1, np.inf, np.inf
    booked = transfers.used[0]
    inputs = work.inputs[: work.inputs_used[0]]
    for trial in range(-1, len(candidates)):
        host = first_host if trial < 0 else candidates[trial]
        if (trial >= 0 and host == first_host) or work.cost[host] > chosen_cost:
            continue
        place = hosts.place[host]
        ready = book_inputs(network, links, copies, transfers, inputs, tasks.size, place)
        price = _link_cost(network, transfers, booked, constraints.link_price)
        undo(links, transfers, booked)
        if full(links):
            return -1
        if ready == np.inf:
            continue
        duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
        _, start = earliest_core(
            hosts, cores, host, tasks.cores[task], max(ready, work.arrival[place]), duration
        )
        end = start + duration + work.return_seconds[place]
        cost = (start if constraints.earliest_start else end) + extra_cost(constraints, task, place) + price
        better = cost < chosen_cost or (cost == chosen_cost and end < chosen_end)
        if better or (cost == chosen_cost and end == chosen_end and host < chosen):
            chosen, chosen_cost, chosen_end = host, cost, end
    return chosen


@leaf
def _link_cost(network: NetworkArrays, transfers: Transfers, first: int, price: Floats) -> float:
    """The seconds of the transfers from number `first` on, each at the price between its zones."""
    cost = 0.0
    if price.shape[0] > 1 or price[0, 0] > 0.0:
        for k in range(first, transfers.used[0]):
            source, target = network.zone[transfers.source[k]], network.zone[transfers.target[k]]
            seconds = transfers.finish[k] - transfers.start[k]
            cost += seconds * price[min(source, price.shape[0] - 1), min(target, price.shape[1] - 1)]
    return cost
