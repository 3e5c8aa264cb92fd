"""Constraints on the hosts of tasks as arrays for compiled loops, and what is placed of them so far.

Tasks that must run together are one unit: it takes a host as a whole, and its use of limits is booked as a whole when
its first task is placed. A unit with only one allowed host takes it before any task is placed, so that no other unit
uses up what it needs there.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar, first_fit, occupy, shared_calendar
from headrace.arrays.compiling import entry, inner, leaf
from headrace.arrays.problem import HostArrays, TaskArrays
from headrace.core.scheduler import Problem
from headrace.model.constraints import Limit
from headrace.model.graph import Bools, Floats
from headrace.planners.constraint_units import (
    Units,
    effective_limit,
    host_sites,
    offsets,
    sites_of_groups,
    units_of,
)

SUM_SLACK = 1.0 + 1e-12
"""Sums of seconds may exceed a limit by this factor, because their rounding depends on the order of summation."""


class ConstraintState(NamedTuple):
    """Units, their constraints, and the hosts they have taken."""

    active: bool
    """False: there are no constraints, and all arrays are empty."""
    unit: Int64s
    """The unit of each task,"""
    unit_ptr: Int64s
    unit_tasks: Int64s
    """and the tasks of each unit."""
    free: Bools
    """Units that may run on any host, whatever else runs there."""
    allowed_row: Int64s
    """The row of `allowed` of each unit."""
    allowed: Bools
    """[rows, hosts]"""
    row_ptr: Int64s
    row_hosts: Int64s
    """The allowed hosts of each row,"""
    row_place_ptr: Int64s
    row_places: Int64s
    """and their places."""
    by_row: Bools
    """Units whose hosts are those of their row, but for limits on sums."""
    limited: Int64s
    """Hosts with a limit on sums."""
    host: Int64s
    """The host that each unit has taken, or -1."""
    site_group: Int64s
    """The group of units at one site that each unit belongs to, or -1."""
    group_site: Int64s
    """The site of each group, or -1,"""
    group_placed: Int64s
    """how many of its units have a host,"""
    group_sites: Bools
    """[groups, sites] and the sites where each of its units has an allowed host."""
    host_site: Int64s
    apart_ptr: Int64s
    apart: Int64s
    """The groups of units on different hosts that each unit belongs to."""
    apart_used: Int64s
    """[groups, hosts] how many units of a group are on a host."""
    sum_ptr: Int64s
    sums: Int64s
    """The limits on sums (count, seconds) that hold on each host."""
    moment_ptr: Int64s
    moments: Int64s
    """The limits on tasks at once that hold on each host."""
    task_set: Int64s
    """The row of `member` of each limit."""
    member: Bools
    """[sets, tasks]"""
    weight: Floats
    """[sets, tasks] how much of `at_once` each member takes."""
    most_tasks: Floats
    most_seconds: Floats
    at_once: Floats
    """What each limit says,"""
    count_used: Floats
    seconds_used: Floats
    """and how much of it is taken."""
    timed: Bools
    """Tasks with a limit on tasks at once."""
    running: Calendar
    """[limits] how many tasks run over time."""
    release: Floats
    due: Int64s
    """Tasks with a deadline,"""
    deadline: Floats
    """and the deadline of each task."""
    hosts: Int64s
    places: Int64s
    stamp: Int64s
    """Scratch space: hosts that a unit may take, their places, and the last task that looked at each place."""


_templates: WeakKeyDictionary[Problem, ConstraintState] = WeakKeyDictionary()


def constraint_state(problem: Problem) -> ConstraintState:
    """The state in which no task is placed; the units with a single host are not placed either (see `take_singles`).

    O(tasks + limits * (tasks + hosts)) once for a problem, then O(state) for each call.
    """
    if problem not in _templates:
        _templates[problem] = _new_state(problem)
    made = _templates[problem]
    names = ("host", "group_site", "group_placed", "apart_used", "count_used", "seconds_used")
    fresh = {name: getattr(made, name).copy() for name in names}
    calendar = made.running._replace(**{k: v.copy() for k, v in made.running._asdict().items()})
    return made._replace(**fresh, running=calendar)


def no_constraints() -> ConstraintState:
    """The state for compiled functions that are called without constraints."""
    ints, floats, bools = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_)
    matrix, numbers = np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.int64)
    return ConstraintState(
        False, ints, ints, ints, bools, ints, matrix, ints, ints, ints, ints, bools, ints, ints, ints, ints, ints,
        matrix, ints, ints, ints, numbers, ints, ints, ints, ints, ints, matrix, np.zeros((0, 0)), floats, floats,
        floats, floats, floats, bools, shared_calendar(0, 0), floats, ints, floats, ints, ints, ints,
    )  # fmt: skip


def _new_state(problem: Problem) -> ConstraintState:
    constraints, graph = problem.constraints, problem.graph
    assert constraints is not None
    units, site = units_of(constraints), host_sites(problem)
    hosts, places = len(problem.platform.hosts), problem.platform.network.n_places
    unit_ptr, unit_tasks = units.tasks()
    row_ptr, row_hosts, row_place_ptr, row_places = _rows(units.allowed, problem)
    apart_ptr, apart = _apart_lists(units)
    limits = [effective_limit(limit) for limit in constraints.limits]
    sets, member, weight = _task_sets(limits, graph.n_tasks)
    finite = [np.isfinite(limit.count) or np.isfinite(limit.seconds) for limit in limits]
    sum_ptr, sums = _limits_by_host(limits, finite, hosts)
    moment_ptr, moments = _limits_by_host(limits, [np.isfinite(limit.at_once) for limit in limits], hosts)
    timed = np.zeros(graph.n_tasks, np.bool_)
    for limit in limits:
        timed |= limit.tasks & np.isfinite(limit.at_once)
    bookings = _bookings(limits)
    groups = int(units.site_group.max(initial=-1)) + 1
    return ConstraintState(
        active=True,
        unit=units.of_task.astype(np.int64),
        unit_ptr=unit_ptr,
        unit_tasks=unit_tasks,
        free=_free_units(units, limits),
        allowed_row=units.allowed_row.astype(np.int64),
        allowed=units.allowed,
        row_ptr=row_ptr,
        row_hosts=row_hosts,
        row_place_ptr=row_place_ptr,
        row_places=row_places,
        by_row=(units.site_group < 0) & (np.diff(apart_ptr) == 0),
        limited=np.flatnonzero(np.diff(sum_ptr)),
        host=np.full(units.count, -1),
        site_group=units.site_group.astype(np.int64),
        group_site=np.full(groups, -1),
        group_placed=np.zeros(groups, np.int64),
        group_sites=sites_of_groups(units, site, len(problem.platform.sites)),
        host_site=site,
        apart_ptr=apart_ptr,
        apart=apart,
        apart_used=np.zeros((len(units.apart), hosts), np.int64),
        sum_ptr=sum_ptr,
        sums=sums,
        moment_ptr=moment_ptr,
        moments=moments,
        task_set=sets,
        member=member,
        weight=weight,
        most_tasks=np.array([limit.count for limit in limits], np.float64),
        most_seconds=np.array([limit.seconds * SUM_SLACK for limit in limits], np.float64),
        at_once=np.array([limit.at_once for limit in limits], np.float64),
        count_used=np.zeros(len(limits)),
        seconds_used=np.zeros(len(limits)),
        timed=timed,
        running=shared_calendar(len(limits), 8 * (bookings + len(limits)) + 64 if bookings else 0),
        release=graph.release,
        due=np.flatnonzero(np.isfinite(graph.deadline)),
        deadline=graph.deadline,
        hosts=np.empty(hosts, np.int64),
        places=np.empty(hosts, np.int64),
        stamp=np.full(places, -1),
    )  # fmt: skip


def _rows(allowed: Bools, problem: Problem) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Offsets and hosts of each row of allowed hosts, and offsets and places of these."""
    place = problem.platform.network.host_place
    row, host = np.nonzero(allowed)
    there = np.zeros((len(allowed), problem.platform.network.n_places), np.bool_)
    there[row, place[host]] = True
    row_of_place, places = np.nonzero(there)
    # Views of one matrix, contiguous only if they have at most one element: compiled functions need one layout.
    host, places = np.ascontiguousarray(host), np.ascontiguousarray(places)
    return offsets(row, len(allowed)), host, offsets(row_of_place, len(allowed)), places


def _apart_lists(units: Units) -> tuple[Int64s, Int64s]:
    """The groups that each unit belongs to, once for each of its tasks in it."""
    unit = np.concatenate([np.zeros(0, np.int64), *units.apart])
    group = np.repeat(np.arange(len(units.apart)), [len(members) for members in units.apart])
    order = np.argsort(unit, kind="stable")
    return offsets(unit[order].astype(np.int64), units.count), group[order].astype(np.int64)


def _bookings(limits: list[Limit]) -> int:
    """How often tasks are counted in limits at once; the limits that follow from one need are on different hosts."""
    timed = [limit for limit in limits if np.isfinite(limit.at_once)]
    needs = {limit.need: limit for limit in timed if limit.need}
    others = [limit for limit in timed if not limit.need]
    return sum(int(limit.tasks.sum()) for limit in (*others, *needs.values()))


def _task_sets(limits: list[Limit], tasks: int) -> tuple[Int64s, Bools, Floats]:
    """The different sets of tasks, because many limits (one for each host) are on the same tasks."""
    rows: dict[bytes | str, int] = {}
    kept: list[Limit] = []
    numbers = []
    for limit in limits:
        row = rows.setdefault(limit.need or limit.tasks.tobytes(), len(rows))
        if row == len(kept):
            kept.append(limit)
        numbers.append(row)
    member = np.array([limit.tasks for limit in kept], np.bool_).reshape(len(kept), tasks)
    weight = member.astype(np.float64)
    for row, limit in enumerate(kept):
        if limit.amount is not None:
            weight[row] = limit.amount
    return np.array(numbers, np.int64), member, weight


def _limits_by_host(limits: list[Limit], use: list[np.bool_ | bool], hosts: int) -> tuple[Int64s, Int64s]:
    chosen = [
        (h, k) for k, limit in enumerate(limits) if use[k] for h in np.flatnonzero(limit.hosts).tolist()
    ]
    chosen.sort()
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return offsets(pairs[:, 0], hosts), np.ascontiguousarray(pairs[:, 1])


def _free_units(units: Units, limits: list[Limit]) -> Bools:
    everywhere: Bools = np.logical_and.reduce(units.allowed, axis=1)
    free: Bools = everywhere[units.allowed_row] & (units.site_group < 0)
    free &= np.bincount(units.of_task, minlength=units.count) == 1
    for members in units.apart:
        free[members] = False
    for limit in limits:
        if limit.hosts.any() and (np.isfinite(limit.count) or np.isfinite(limit.seconds)):
            free[units.of_task[limit.tasks]] = False
    return free


# Compiled


@leaf
def unit_seconds(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int) -> float:
    """Run time of all tasks of a unit on a host; inf if one of them needs more cores than it has."""
    total = 0.0
    for i in range(state.unit_ptr[unit], state.unit_ptr[unit + 1]):
        task = state.unit_tasks[i]
        if tasks.cores[task] > hosts.core_ptr[host + 1] - hosts.core_ptr[host]:
            return np.inf
        total += tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    return total


@leaf
def _amounts(
    state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int, limit: int
) -> tuple[float, float]:
    """How many tasks of a unit a limit counts, and their run time on a host."""
    count, seconds, row = 0.0, 0.0, state.task_set[limit]
    for i in range(state.unit_ptr[unit], state.unit_ptr[unit + 1]):
        task = state.unit_tasks[i]
        if state.member[row, task]:
            count += 1.0
            seconds += tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    return count, seconds


@leaf
def fits(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int) -> bool:
    """Whether a unit may take a host, given what is taken so far: O(groups + limits of the host * tasks)."""
    if state.host[unit] >= 0:
        return bool(state.host[unit] == host)
    if not state.allowed[state.allowed_row[unit], host]:
        return False
    group = state.site_group[unit]
    if group >= 0:
        site = state.host_site[host]
        if not state.group_sites[group, site]:
            return False
        if state.group_site[group] >= 0 and state.group_site[group] != site:
            return False
    for i in range(state.apart_ptr[unit], state.apart_ptr[unit + 1]):
        if state.apart_used[state.apart[i], host] > 0:
            return False
    return state.sum_ptr[host] == state.sum_ptr[host + 1] or within_sums(state, tasks, hosts, unit, host)


@leaf
def within_sums(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int) -> bool:
    """Whether the limits on sums of a host leave room for a unit: O(limits of the host * tasks)."""
    for i in range(state.sum_ptr[host], state.sum_ptr[host + 1]):
        limit = state.sums[i]
        room = state.most_tasks[limit] - state.count_used[limit]
        if state.unit_ptr[unit + 1] - state.unit_ptr[unit] <= room and state.most_seconds[limit] == np.inf:
            continue
        count, seconds = _amounts(state, tasks, hosts, unit, host, limit)
        if count > 0.0 and state.count_used[limit] + count > state.most_tasks[limit]:
            return False
        if seconds > 0.0 and state.seconds_used[limit] + seconds > state.most_seconds[limit]:
            return False
    return True


@leaf
def hosts_within_sums(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int) -> int:
    """Write the hosts of a unit's row whose limits on sums leave room for it to `state`; returns how many.

    -1: all of them, and nothing is written. O(hosts with limits on sums), and O(hosts) if some leave no room.
    """
    row = state.allowed_row[unit]
    at, end, count, all_fit = state.row_ptr[row], state.row_ptr[row + 1], 0, True
    for host in state.limited:
        if state.allowed[row, host] and not within_sums(state, tasks, hosts, unit, host):
            all_fit = False
            while state.row_hosts[at] != host:
                state.hosts[count] = state.row_hosts[at]
                at, count = at + 1, count + 1
            at += 1
    if all_fit:
        return -1
    for rest in range(at, end):
        state.hosts[count] = state.row_hosts[rest]
        count += 1
    return count


@leaf
def take(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int) -> None:
    """Give a unit a host that fits; nothing changes if it has it already."""
    if state.host[unit] >= 0:
        return
    state.host[unit] = host
    _book(state, tasks, hosts, unit, host, 1.0)


@leaf
def give_back(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int) -> None:
    """Undo `take`."""
    host = state.host[unit]
    state.host[unit] = -1
    _book(state, tasks, hosts, unit, host, -1.0)


@leaf
def _book(
    state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, unit: int, host: int, sign: float
) -> None:
    group = state.site_group[unit]
    if group >= 0:
        state.group_placed[group] += int(sign)
        state.group_site[group] = state.host_site[host] if state.group_placed[group] > 0 else -1
    for i in range(state.apart_ptr[unit], state.apart_ptr[unit + 1]):
        state.apart_used[state.apart[i], host] += int(sign)
    for i in range(state.sum_ptr[host], state.sum_ptr[host + 1]):
        limit = state.sums[i]
        count, seconds = _amounts(state, tasks, hosts, unit, host, limit)
        state.count_used[limit] += sign * count
        state.seconds_used[limit] += sign * seconds


@entry
def take_singles(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays) -> int:
    """Give every unit with a single allowed host that host; returns the first that cannot have it, or -1."""
    n_hosts = state.allowed.shape[1]
    only = np.full(state.allowed.shape[0], -1)
    for row in range(len(only)):
        count = 0
        for host in range(n_hosts):
            if state.allowed[row, host]:
                count += 1
                only[row] = host
        if count != 1:
            only[row] = -1
    for unit in range(len(state.host)):
        host = only[state.allowed_row[unit]]
        if host >= 0 and not state.free[unit]:
            if not fits(state, tasks, hosts, unit, host):
                return unit
            take(state, tasks, hosts, unit, host)
    return -1


@leaf
def fitting_hosts(
    state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, task: int, among: Int64s
) -> tuple[int, int]:
    """Write the hosts among these that a task may take, and their places, to `state`; returns how many of each."""
    unit, count, places = state.unit[task], 0, 0
    for host in among:
        if fits(state, tasks, hosts, unit, host):
            state.hosts[count] = host
            count += 1
            place = hosts.place[host]
            if state.stamp[place] != task:
                state.stamp[place] = task
                state.places[places] = place
                places += 1
    for i in range(places):
        state.stamp[state.places[i]] = -1
    return count, places


@inner
def earliest_with_limits(
    state: ConstraintState, task: int, host: int, ready: float, duration: float
) -> float:
    """Earliest time from `ready` on at which no limit on tasks at once forbids to run a task on a host."""
    time, again = ready, True
    while again:
        again = False
        for i in range(state.moment_ptr[host], state.moment_ptr[host + 1]):
            limit = state.moments[i]
            row = state.task_set[limit]
            if state.member[row, task]:
                most = state.at_once[limit] - state.weight[row, task]
                fit = first_fit(state.running, limit, time, duration, most)
                if fit > time:
                    time, again = fit, True
    return time


@inner
def note_running(state: ConstraintState, task: int, host: int, start: float, finish: float) -> None:
    """Count a task in the limits on tasks at once."""
    for i in range(state.moment_ptr[host], state.moment_ptr[host + 1]):
        limit = state.moments[i]
        row = state.task_set[limit]
        if state.member[row, task]:
            occupy(state.running, limit, start, finish, state.weight[row, task])
