"""Batch-mode planning: from a problem and a rule to a plan.

How completion times are estimated, for every rule:
- A task is appended to the core that is free first, or to as many cores of a host as it holds; all ready tasks of one
  level of the graph are placed before the next level is considered.
- Its inputs are booked in the first gaps of the links, items with more readers first. An item that is already at a
  place (shared storage of a site, or one host) is not sent again.
- Results are sent last: they return to the origin in the gaps that inputs leave, so that they never delay inputs.
  Their transfer time over free links is included in the completion time.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import ProblemArrays, TaskArrays, problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.batch.availability import update_availability
from headrace.planners.batch.batch_schedule import batch_schedule
from headrace.planners.batch.cluster_gap import TOGETHER
from headrace.planners.batch.completion_matrix import TILE
from headrace.planners.batch.host_groups import host_groups
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    MAXMIN,
    STAR,
    SUFFERAGE,
    Availability,
    Batch,
    ContendedRows,
    GapStatistics,
    HostGroups,
    ReadyTasks,
    SweepBlocks,
    SweepMatrix,
    TaskInputs,
)
from headrace.planners.batch.similar_tasks import similar_tasks
from headrace.planners.batch.sweep_blocks import LISTED
from headrace.planners.constraint_failures import DeadEnd, starting_state
from headrace.planners.partial_schedule import (
    NO_HOST,
    NO_ROUTE,
    OK,
    PartialSchedule,
    empty_schedule,
    no_route,
    plan_of,
    return_all_results,
)

EXACT_ON_SHARED_LINKS = 24
EXACT_IN_SWEEPS = 10_000
"""Up to how many ready tasks all keys are current (see `renewals`): where a transfer can delay all others, and in
sweeps, where keys take much less time."""
TRIAL_ENTRIES = 4_000_000
"""Maximum number of entries of the calendar of links for transfers that are only tried."""
MOST_ENTRIES = 100_000_000
"""Maximum number of entries of the sweep matrix (800 MB)."""
EXACT = -1.0
"""A negative tolerance disables random draws: ties go to the lower task number."""


def batch_plan(
    problem: Problem, name: str, rule: int, *, tolerance: float = EXACT, by_usage: bool = True
) -> Plan:
    """The plan of one rule (see `records`).

    Args:
        problem: The problem to plan.
        name: The scheduler's name, for the plan.
        rule: Which ready task is next. On a single site, rules over clusters compare hosts instead.
        tolerance: The next task is drawn, with the problem's seed, among those whose key is within this share of the
            best; EXACT: no draw.
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.

    Raises:
        NoPlan: A task cannot get its inputs on any host, or its results cannot return.
        DeadEnd: The problem's constraints leave no host for a task, given the hosts of those placed before.
    """
    arrays = problem_arrays(problem)
    groups = host_groups(problem.platform.network, arrays)
    levels = _level_offsets(arrays.tasks.level)
    schedule = empty_schedule(arrays, link_entries=_trial_entries(arrays))
    while True:
        batch = _new_batch(problem, arrays, groups, levels, rule, tolerance, by_usage)
        outcome, task = _run(problem, arrays, schedule, batch, levels)
        if outcome == NO_ROUTE:
            raise no_route(problem, task)
        if outcome == NO_HOST:
            raise DeadEnd(problem, task)
        if outcome == OK:
            break
        schedule = empty_schedule(arrays, link_entries=2 * len(schedule.links.start))  # and start over
    return plan_of(problem, return_all_results(problem, arrays, schedule), name)


def _run(
    problem: Problem, arrays: ProblemArrays, schedule: PartialSchedule, batch: Batch, levels: Int64s
) -> tuple[int, int]:
    if problem.constraints is None:
        return batch_schedule(arrays, schedule, batch, levels)
    from headrace.planners.batch.constrained_batch import constrained_batch_schedule

    return constrained_batch_schedule(arrays, schedule, batch, starting_state(problem, arrays), levels)


def _level_offsets(level: Ints) -> Int64s:
    """Where each level begins in the topological order."""
    if not len(level):
        return np.zeros(1, np.int64)
    return np.concatenate(([0], np.cumsum(np.bincount(level)))).astype(np.int64)


def _new_batch(
    problem: Problem,
    arrays: ProblemArrays,
    groups: HostGroups,
    levels: Int64s,
    rule: int,
    tolerance: float,
    by_usage: bool,
) -> Batch:
    clusters = int(groups.cluster.max()) + 1
    rule = SUFFERAGE if rule >= CLUSTER_SUFFERAGE and clusters == 1 else rule
    inputs = _task_inputs(problem, arrays, groups, by_usage)
    as_sweep = _is_sweep(arrays.tasks, groups, inputs, levels)
    in_blocks = as_sweep and rule <= MAXMIN and tolerance < 0.0
    rows = int(levels[1]) if as_sweep and problem.constraints is None else 0
    return Batch(
        rule=rule,
        tolerance=tolerance,
        seed=problem.seed,
        exact=_exact_keys(groups, as_sweep, in_blocks),
        groups=groups,
        inputs=inputs,
        available=_availability(arrays, groups),
        ready=_ready_tasks(arrays.tasks, groups, levels, rule, rows > 0),
        contended=_contended_rows(groups, levels, rule),
        sweep=_sweep_matrix(groups, rule, rows, _most_inputs(arrays.tasks, inputs, levels)),
        blocks=_sweep_blocks(arrays.tasks, groups, inputs, rows if in_blocks else 0),
    )


def _is_sweep(tasks: TaskArrays, groups: HostGroups, inputs: TaskInputs, levels: Int64s) -> bool:
    """Whether the tasks of the first level can be planned as a sweep on a STAR, and its matrix is not too large."""
    if groups.network != STAR or len(levels) < 2 or len(np.unique(tasks.cores)) > 1:
        return False
    columns = (_most_inputs(tasks, inputs, levels) + 2) * len(groups.places) + len(groups.group_ptr) - 1
    return levels[1] * columns <= MOST_ENTRIES and bool(inputs.from_origin[tasks.order[: levels[1]]].all())


def _most_inputs(tasks: TaskArrays, inputs: TaskInputs, levels: Int64s) -> int:
    """Inputs that may have to be sent for a task of the first level, at most; at least 1."""
    return max(1, int(np.diff(inputs.ptr)[tasks.order[: levels[min(1, len(levels) - 1)]]].max(initial=0)))


def _exact_keys(groups: HostGroups, as_sweep: bool, in_blocks: bool) -> Int64s:
    """Up to how many ready tasks all keys are current, in the first and in later levels (see `renewals`)."""
    always = np.iinfo(np.int64).max
    if groups.network < STAR:
        return np.array([always, always])
    first = always if in_blocks else EXACT_IN_SWEEPS if as_sweep else EXACT_ON_SHARED_LINKS
    return np.array([first, EXACT_ON_SHARED_LINKS])


def _trial_entries(arrays: ProblemArrays) -> int:
    """Entries of the calendar for the transfers that are tried to each place before one of them is booked."""
    most_reads = int(np.diff(arrays.tasks.read_ptr).max(initial=0))
    return min(4 * most_reads * len(arrays.network.link_free_at), TRIAL_ENTRIES)


def _task_inputs(problem: Problem, arrays: ProblemArrays, groups: HostGroups, by_usage: bool) -> TaskInputs:
    """Items that may have to be sent for each task, the most used first: O(reads log reads)."""
    tasks = arrays.tasks
    n, n_items, size, reads = len(tasks.work), len(tasks.size), tasks.size, tasks.reads
    reader = np.repeat(np.arange(n), np.diff(tasks.read_ptr))
    usage = np.diff(tasks.reader_ptr)
    first = np.lexsort((-usage[reads] if by_usage else np.zeros(len(reader)), reader))
    first = first[(size[reads[first]] > 0) & ~tasks.everywhere[reads[first]]]
    item, reader = reads[first].astype(np.int64), reader[first]
    column = np.full(n_items, -1, np.int64)
    from_origin = np.zeros(n, np.bool_)
    if groups.network == STAR:
        at_origin = _only_at_origin(problem, arrays, groups)
        from_origin[:] = np.bincount(reader, weights=~at_origin[item], minlength=n) == 0
        shared = np.flatnonzero(at_origin & ((usage > 1) | (np.diff(arrays.initial.ptr) > 1)) & (size > 0))
        column[shared] = np.arange(len(shared))
    return TaskInputs(
        ptr=np.concatenate(([0], np.cumsum(np.bincount(reader, minlength=n)))),
        item=item,
        column=column[item],
        from_origin=from_origin,
        since=_shared_since(arrays, groups, column),
        made=np.zeros(n_items),
        released=np.zeros(n) if problem.constraints is None else problem.graph.release.copy(),
        largest_result=_largest_results(arrays),
        cores_class=np.unique(tasks.cores, return_inverse=True)[1].reshape(-1).astype(np.int64),
    )


def _largest_results(arrays: ProblemArrays) -> Floats:
    """Bytes of the largest result of each task that returns to the origin."""
    tasks = arrays.tasks
    largest = np.zeros(len(tasks.work))
    returned = (tasks.producer != OUTSIDE) & tasks.result & (arrays.network.origin >= 0)
    np.maximum.at(largest, tasks.producer[returned], tasks.size[returned])
    return largest


def _only_at_origin(problem: Problem, arrays: ProblemArrays, groups: HostGroups) -> Bools:
    """Items initially at the origin and, apart from that, only at places with hosts."""
    initial, origin, n_items = arrays.initial, arrays.network.origin, len(arrays.tasks.size)
    item = np.repeat(np.arange(n_items), np.diff(initial.ptr))
    without_hosts = ~np.isin(initial.place, [*groups.places, origin])
    there: Bools = np.bincount(item[initial.place == origin], minlength=n_items) > 0
    there &= np.bincount(item[without_hosts], minlength=n_items) == 0
    for late, place in problem.since:
        there[late] &= place != origin
    return there


def _shared_since(arrays: ProblemArrays, groups: HostGroups, column: Int64s) -> Floats:
    """[places, columns] when initial copies of shared items are available at places with hosts."""
    initial = arrays.initial
    since = np.full((len(groups.places), int(column.max(initial=-1)) + 1), np.inf)
    number = {int(place): k for k, place in enumerate(groups.places)}
    for item in np.flatnonzero((column >= 0) & (np.diff(initial.ptr) > 1)).tolist():
        for i in range(int(initial.ptr[item]), int(initial.ptr[item + 1])):
            place = int(initial.place[i])
            if place in number:
                since[number[place], column[item]] = initial.since[i]
    return since


def _availability(arrays: ProblemArrays, groups: HostGroups) -> Availability:
    hosts, needed = arrays.hosts, np.unique(arrays.tasks.cores).astype(np.int64)
    shape = (len(needed), len(groups.group_ptr) - 1)
    fits = np.diff(hosts.core_ptr) >= needed[:, None]
    available = Availability(
        needed=needed,
        core=np.repeat(hosts.free_at, np.diff(hosts.core_ptr)),
        host=np.where(fits, hosts.free_at, np.inf),
        first=np.empty(shape),
        second=np.empty(shape),
    )
    for host in groups.group_hosts[groups.group_ptr[:-1]].tolist():
        update_availability(hosts, groups, available, host)
    return available


def _ready_tasks(tasks: TaskArrays, groups: HostGroups, levels: Int64s, rule: int, sweep: bool) -> ReadyTasks:
    """Allocate rows for the widest level."""
    widest, clusters = int(np.diff(levels).max(initial=0)), int(groups.cluster.max()) + 1
    matrix = (len(groups.places), widest)
    return ReadyTasks(
        task=tasks.order.astype(np.int64),
        row=np.full(len(tasks.order), -1, np.int64),
        unplaced=np.empty(widest, np.int64),
        arrival=np.empty(matrix),
        time=np.empty(matrix),
        next_time=np.empty(matrix if rule == SUFFERAGE else (0, 0)),
        best=np.empty(widest),
        second=np.empty(widest),
        key=np.zeros(widest),
        tie=np.zeros(widest),
        gap=np.empty(widest),
        clusters_before=np.empty(widest),
        largest_gap=np.empty(widest),
        position_slack=np.empty(widest),
        height_slack=np.empty(widest),
        drift=np.empty(widest),
        measured_time=np.zeros(matrix if rule >= CLUSTER_SUFFERAGE and sweep else (0, 0)),
        rows_here=np.empty(widest, np.int64),
        rows_anywhere=np.empty(widest, np.int64),
        reads_moved=np.zeros(widest, np.int64),
        renewed=np.full(widest, -1, np.int64),
        steps=np.zeros(1, np.int64),
        ordered=np.empty((clusters, TOGETHER)),
        statistics=GapStatistics(*np.empty((len(GapStatistics._fields), TOGETHER))),
    )


def _contended_rows(groups: HostGroups, levels: Int64s, rule: int) -> ContendedRows:
    """Allocate rows for the widest level, if links are shared."""
    places, clusters = len(groups.places), int(groups.cluster.max()) + 1
    widest = int(np.diff(levels).max(initial=0)) if groups.network >= STAR else 0
    leaders = clusters if rule >= CLUSTER_SUFFERAGE else 2 if rule == SUFFERAGE else 1
    return ContendedRows(
        bound=np.empty((places, widest)),
        low=np.empty((places, widest)),
        high=np.empty((places, widest)),
        links=np.zeros((places, widest), np.int64),
        leader=np.full((leaders, widest), -1, np.int64),
        stale=np.ones(widest, np.bool_),
        time=np.empty(places),
        next_time=np.full(places, np.inf),
        exact=np.zeros(places, np.bool_),
        limit=np.empty(clusters),
    )


def _sweep_matrix(groups: HostGroups, rule: int, rows: int, most: int) -> SweepMatrix:
    """Allocate the matrix for a sweep of this many tasks with up to `most` inputs."""
    places, n_groups = len(groups.places), len(groups.group_ptr) - 1
    block = math.isqrt(places - 1) + 1
    blocks = -(-places // block) if rule <= SUFFERAGE else 0
    return SweepMatrix(
        task=np.empty(rows, np.int64),
        width=np.zeros(1, np.int64),
        changed=np.ones(places, np.bool_),
        send_seconds=np.empty((most, places, rows)),
        held=np.empty((places, rows)),
        run_seconds=np.empty((n_groups, rows)),
        return_seconds=np.empty((places, rows)),
        block=block,
        block_best=np.empty((blocks, rows)),
        block_second=np.empty((blocks if rule == SUFFERAGE else 0, rows)),
        arrival=np.empty(TILE),
        new=np.empty(TILE),
        after=np.empty(TILE),
    )


def _sweep_blocks(tasks: TaskArrays, groups: HostGroups, inputs: TaskInputs, rows: int) -> SweepBlocks:
    """Allocate blocks for this many rows."""
    places, count = len(groups.places), len(groups.group_ptr) - 1
    order, first = similar_tasks(tasks, groups, inputs, rows)
    blocks = len(first) - 1
    return SweepBlocks(
        order=order,
        block=np.repeat(np.arange(blocks), np.diff(first)),
        first=first,
        placed=np.zeros(rows, np.bool_),
        left=np.zeros(blocks, np.int64),
        send=np.empty((places, blocks)),
        held=np.empty((places, blocks)),
        back=np.empty((places, blocks)),
        run=np.empty((count, blocks)),
        bound=np.empty((places, blocks)),
        arrival=np.empty(blocks),
        listed=np.zeros(places, np.int64),
        row=np.empty((places, LISTED), np.int64),
        time=np.empty((places, LISTED)),
    )
