"""The list scheduler under constraints: as `list_schedule`, on the hosts that the constraints leave for each task.

A separate loop, so that problems without constraints pay nothing for it.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar, full
from headrace.arrays.compiling import entry, inner
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays
from headrace.arrays.routes import NetworkArrays
from headrace.planners.constraint_state import (
    ConstraintState,
    earliest_with_limits,
    fits,
    fitting_hosts,
    hosts_within_sums,
    note_running,
    take,
    unit_seconds,
)
from headrace.planners.cores import book_cores, earliest_core
from headrace.planners.list.host_choice import HostConstraints
from headrace.planners.list.list_scheduler import (
    Workspace,
    _best_on_free_links,
    _best_with_transfers,
    _earliest_arrivals,
    _hosts_with_all_inputs,
    _inputs_by_time,
    _return_seconds,
    extra_cost,
)
from headrace.planners.partial_schedule import (
    LINKS_FULL,
    NO_HOST,
    NO_ROUTE,
    OK,
    Copies,
    PartialSchedule,
    Transfers,
    book_inputs,
    book_results,
    commit,
    undo,
)


@entry
def constrained_list_schedule(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    order: Int64s,
    constraints: HostConstraints,
    state: ConstraintState,
    work: Workspace,
) -> tuple[int, int]:
    """Place tasks in this order, each on the host of least cost among those that the constraints leave.

    `constraints` are wishes here: a task that cannot go to a host they name goes to any other that fits. Returns the
    outcome and the position from which to continue; NO_HOST: no host fits. O(hosts * limits) more for each task than
    `list_schedule`, nothing for tasks without constraints.
    """
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    cores, links, copies = schedule.cores, schedule.links, schedule.copies
    transfers, placement = schedule.transfers, schedule.placement
    unit_of, free, timed, release = state.unit, state.free, state.timed, state.release
    unit_host, unit_ptr, by_row, some_of_row = state.host, state.unit_ptr, state.by_row, state.hosts
    row_of, row_ptr, row_hosts = state.allowed_row, state.row_ptr, state.row_hosts
    row_place_ptr, row_places = state.row_place_ptr, state.row_places
    everyone = np.arange(len(hosts.place))
    anywhere = len(constraints.hosts) == len(everyone)
    for position in range(len(order)):
        task = order[position]
        unit = unit_of[task]
        candidates, places = constraints.hosts, constraints.places
        wished = constraints.fixed[task] >= 0 or constraints.stay[task]
        if anywhere and not wished and not free[unit] and by_row[unit] and unit_host[unit] < 0:
            row = row_of[unit]
            places = row_places[row_place_ptr[row] : row_place_ptr[row + 1]]
            count = hosts_within_sums(state, tasks, hosts, unit)
            candidates = row_hosts[row_ptr[row] : row_ptr[row + 1]] if count < 0 else some_of_row[:count]
            if len(candidates) == 0:
                return NO_HOST, position
        elif wished or not free[unit]:
            count, n_places = _candidates(tasks, hosts, copies, constraints, state, task, everyone, work)
            if count == 0:
                return NO_HOST, position
            candidates, places = state.hosts[:count], state.places[:n_places]
        _earliest_arrivals(tasks, network, copies, task, places, work)
        if release[task] > 0.0:
            for p in places:
                work.arrival[p] = max(work.arrival[p], release[task])
        _return_seconds(tasks, network, task, places, work.return_seconds)
        inputs = work.inputs[: _inputs_by_time(tasks, copies, task, work)]
        leads = unit_host[unit] < 0 and unit_ptr[unit + 1] - unit_ptr[unit] > 1
        if timed[task] or leads:
            host = _best_by_trial(
                tasks, hosts, network, cores, links, copies, transfers, constraints, state, task, candidates,
                leads, work,
            )  # fmt: skip
        else:
            host = _best_on_free_links(tasks, hosts, cores, task, constraints, candidates, work)
            if network.exclusive_links and host >= 0 and len(candidates) > 1 and len(inputs) > 0:
                host = _best_with_transfers(
                    tasks, hosts, network, cores, links, copies, transfers, constraints, task, candidates,
                    host, work,
                )  # fmt: skip
        if host < 0:
            return (LINKS_FULL if full(links) else NO_ROUTE), position
        first, place = transfers.used[0], hosts.place[host]
        arrival = book_inputs(network, links, copies, transfers, inputs, tasks.size, place)
        ready = max(arrival, work.arrival[place])
        duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
        core, start = _start_on(tasks, hosts, cores, state, task, host, ready, duration)
        book_results(tasks, network, links, transfers, task, place, start + duration)
        if full(links):
            undo(links, transfers, first)
            return LINKS_FULL, position
        book_cores(cores, hosts.core_ptr[host + 1], core, tasks.cores[task], start, duration)
        placement.host[task], placement.core[task] = host, core - hosts.core_ptr[host]
        placement.start[task], placement.finish[task] = start, start + duration
        commit(tasks, network, copies, transfers, first, task, place, start + duration)
        if not free[unit]:
            take(state, tasks, hosts, unit, host)
        if timed[task]:
            note_running(state, task, host, start, start + duration)
    return OK, -1


@inner
def _candidates(
    tasks: TaskArrays,
    hosts: HostArrays,
    copies: Copies,
    constraints: HostConstraints,
    state: ConstraintState,
    task: int,
    everyone: Int64s,
    work: Workspace,
) -> tuple[int, int]:
    """Write the hosts to try for a task to `state`, and their places; returns how many of each.

    The first of these that is not empty: the host wished for it, the hosts with all its inputs, the hosts of
    `constraints`, all hosts; of each those that fit.
    """
    unit, wished = state.unit[task], constraints.fixed[task]
    if state.host[unit] >= 0:
        wished = state.host[unit]
    if wished >= 0 and fits(state, tasks, hosts, unit, wished):
        state.hosts[0], state.places[0] = wished, hosts.place[wished]
        return 1, 1
    if constraints.stay[task]:
        near = _hosts_with_all_inputs(tasks, hosts, copies, constraints, task, work)
        count, places = fitting_hosts(state, tasks, hosts, task, work.hosts[:near])
        if count > 0:
            return count, places
    count, places = fitting_hosts(state, tasks, hosts, task, constraints.hosts)
    if count > 0:
        return count, places
    return fitting_hosts(state, tasks, hosts, task, everyone)


@inner
def _start_on(
    tasks: TaskArrays,
    hosts: HostArrays,
    cores: Calendar,
    state: ConstraintState,
    task: int,
    host: int,
    ready: float,
    duration: float,
) -> tuple[int, float]:
    """The core with the earliest start that the limits on tasks at once permit, and that start."""
    needed = tasks.cores[task]
    core, start = earliest_core(hosts, cores, host, needed, ready, duration)
    while state.timed[task] and start < np.inf:
        later = earliest_with_limits(state, task, host, start, duration)
        if later == start:
            break
        core, start = earliest_core(hosts, cores, host, needed, later, duration)
    return core, start


@inner
def _best_by_trial(
    tasks: TaskArrays,
    hosts: HostArrays,
    network: NetworkArrays,
    cores: Calendar,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    constraints: HostConstraints,
    state: ConstraintState,
    task: int,
    candidates: Int64s,
    leads: bool,
    work: Workspace,
) -> int:
    """The best host for a task with a limit on tasks at once, or for the first task of a unit; -1: none.

    For a unit, the run time of its other tasks, spread over the cores of the host, is part of the cost. Hosts whose
    cost on free links already exceeds the best are skipped.
    """
    chosen, chosen_cost, chosen_end = -1, np.inf, np.inf
    booked = transfers.used[0]
    inputs = work.inputs[: work.inputs_used[0]]
    trials = network.exclusive_links and len(inputs) > 0
    likely = _costs_on_free_links(tasks, hosts, cores, constraints, state, task, candidates, leads, work)
    for trial in range(-1, len(candidates)):
        host = likely if trial < 0 else candidates[trial]
        if host < 0 or (trial >= 0 and host == likely) or work.cost[host] == np.inf:
            continue
        if work.cost[host] > chosen_cost:
            continue
        place = hosts.place[host]
        ready = work.arrival[place]
        if trials:
            ready = max(ready, book_inputs(network, links, copies, transfers, inputs, tasks.size, place))
            undo(links, transfers, booked)
            if full(links):
                return -1
            if ready == np.inf:
                continue
        cost, end = _cost_on(tasks, hosts, cores, constraints, state, task, host, ready, leads, work)
        better = cost < chosen_cost or (cost == chosen_cost and end < chosen_end)
        if better or (cost == chosen_cost and end == chosen_end and host < chosen):
            chosen, chosen_cost, chosen_end = host, cost, end
    return chosen


@inner
def _costs_on_free_links(
    tasks: TaskArrays,
    hosts: HostArrays,
    cores: Calendar,
    constraints: HostConstraints,
    state: ConstraintState,
    task: int,
    candidates: Int64s,
    leads: bool,
    work: Workspace,
) -> int:
    """Write the cost at each host if no link were busy to `work`, infinite where nothing arrives; the least, or -1."""
    best, best_cost = -1, np.inf
    for host in candidates:
        place = hosts.place[host]
        work.cost[host] = np.inf
        if work.arrival[place] == np.inf or work.return_seconds[place] == np.inf:
            continue
        ready = work.arrival[place]
        cost, _ = _cost_on(tasks, hosts, cores, constraints, state, task, host, ready, leads, work)
        work.cost[host] = cost
        if cost < best_cost:
            best, best_cost = host, cost
    return best


@inner
def _cost_on(
    tasks: TaskArrays,
    hosts: HostArrays,
    cores: Calendar,
    constraints: HostConstraints,
    state: ConstraintState,
    task: int,
    host: int,
    ready: float,
    leads: bool,
    work: Workspace,
) -> tuple[float, float]:
    """The cost of a task on a host where its inputs are ready at some time, and when its results have returned."""
    place = hosts.place[host]
    duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    _, start = _start_on(tasks, hosts, cores, state, task, host, ready, duration)
    end = start + duration + work.return_seconds[place]
    cost = (start if constraints.earliest_start else end) + extra_cost(constraints, task, place)
    if leads:
        cost += _others_seconds(tasks, hosts, state, task, host)
    return cost, end


@inner
def _others_seconds(
    tasks: TaskArrays, hosts: HostArrays, state: ConstraintState, task: int, host: int
) -> float:
    """Run time of the other tasks of a task's unit on a host, spread over its cores."""
    unit = state.unit[task]
    members = state.unit_ptr[unit + 1] - state.unit_ptr[unit]
    own = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    others = unit_seconds(state, tasks, hosts, unit, host) - own
    return float(others / min(members - 1, hosts.core_ptr[host + 1] - hosts.core_ptr[host]))
