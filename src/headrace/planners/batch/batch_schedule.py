"""Batch-mode heuristics: choose the next ready task by a rule and place it on the host where it completes first.

Ready tasks are processed level by level; a sweep is one level. Each level has a matrix of completion times, places by
tasks. Placing a task changes the processors of one place and the links of its transfers, so only the entries that
depend on these are recomputed.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar, full
from headrace.arrays.compiling import entry, inner, leaf
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays
from headrace.arrays.routes import NetworkArrays
from headrace.planners.batch.arrivals import arrival_at, return_seconds, sort_inputs_by_time
from headrace.planners.batch.availability import take_cores, update_availability
from headrace.planners.batch.cluster_gap import measure_all_rows, update_gap_keys
from headrace.planners.batch.completion_matrix import (
    best_sweep_host,
    fill_matrix,
    note_arrivals,
    remove_placed_rows,
    renew_sweep_row,
    update_column,
)
from headrace.planners.batch.contended_rows import (
    LinkState,
    mark_stale_rows,
    new_bookings,
    renew_first_rows,
    restart_row,
    update_row,
    update_stale_rows,
)
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    FREE_LINKS,
    MINMIN,
    OWN_LINKS,
    STAR,
    Availability,
    Batch,
    ContendedRows,
    HostGroups,
    ReadyTasks,
    SweepBlocks,
    SweepMatrix,
    TaskInputs,
)
from headrace.planners.batch.renewals import FIRST, least_key, until_renewal
from headrace.planners.batch.sweep_blocks import (
    earliest_row,
    latest_row,
    measure_block_at,
    remove_from_blocks,
    row_times,
    start_blocks,
)
from headrace.planners.batch.update import update_rows
from headrace.planners.partial_schedule import (
    LINKS_FULL,
    NO_ROUTE,
    OK,
    Copies,
    PartialSchedule,
    Placement,
    Transfers,
    book_inputs,
    commit,
)


@entry
def batch_schedule(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, levels: Int64s
) -> tuple[int, int]:
    """Place all tasks, level by level: `levels` are the offsets of the levels in `batch.ready.task`.

    For n tasks of one level on P places, each step evaluates n entries of one place (FREE_LINKS, OWN_LINKS, and sweeps
    of up to `exact` tasks) and looks through n keys: O(n^2) evaluations; in a sweep these are a few additions each, and
    under MINMIN and MAXMIN only those of blocks that may contain the next task (see `sweep_blocks`). On networks with
    shared links, and in larger sweeps, keys are kept for a while (see `renewals`): O(n) evaluations of a row at up to P
    places, in practice one to four, and O(n^2) comparisons of keys. Rules over C clusters sort the clusters of rows
    that may be next, O(n * C) per step in the worst case.

    Returns the outcome (after LINKS_FULL, start over with a larger calendar) and the task reached.
    """
    for level in range(len(levels) - 1):
        first, last = levels[level], levels[level + 1]
        _start_level(batch.inputs, batch.ready, first, last)
        if level == 0 and len(batch.blocks.placed) > 0:
            outcome, task = _place_blocks(problem, schedule, batch, last)
        elif level == 0 and len(batch.sweep.task) > 0:
            outcome, task = _place_sweep(problem, schedule, batch, last)
        elif batch.groups.network >= STAR:
            outcome, task = _place_contended_level(problem, schedule, batch, first, last)
        else:
            outcome, task = _place_level(problem, schedule, batch, first, last)
        if outcome != OK:
            return outcome, task
    return OK, -1


@leaf
def _start_level(inputs: TaskInputs, ready: ReadyTasks, first: int, last: int) -> None:
    """Initialise rows for the tasks first .. last - 1 of `ready.task`."""
    for row in range(last - first):
        task = ready.task[first + row]
        ready.row[task] = row
        ready.unplaced[row] = row
        sort_inputs_by_time(inputs, task)
        for k in range(ready.time.shape[0]):
            ready.time[k, row] = np.inf
        ready.best[row], ready.second[row], ready.gap[row], ready.drift[row] = np.inf, np.inf, np.inf, np.inf
        ready.position_slack[row], ready.height_slack[row] = 0.0, 0.0
        ready.largest_gap[row], ready.clusters_before[row] = 0.0, 0.0


@inner
def _place_level(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, first: int, last: int
) -> tuple[int, int]:
    """Place the tasks first .. last - 1 of `ready.task`."""
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    groups, inputs, available, ready = batch.groups, batch.inputs, batch.available, batch.ready
    k, sent = -1, transfers.used[0]
    for left in range(last - first, 0, -1):
        moved = transfers.used[0] > sent
        here = _affected_rows(
            tasks, network.origin, groups.network, inputs, ready, transfers, first, left, k, sent
        )
        rows_here, rows_anywhere = ready.rows_here[:here], ready.rows_anywhere[: left - here]
        if k >= 0:
            if moved and groups.network != FREE_LINKS:
                _update_arrivals(
                    tasks, network, links, copies, transfers, groups, inputs, ready, rows_here, first, k
                )
            update_rows(batch.rule, tasks, groups, inputs, available, ready, rows_here, first, k)
        for other in range(len(groups.places) if here < left else 0):
            _update_arrivals(
                tasks, network, links, copies, transfers, groups, inputs, ready, rows_anywhere, first, other
            )
            update_rows(batch.rule, tasks, groups, inputs, available, ready, rows_anywhere, first, other)
        if full(links):
            return LINKS_FULL, -1
        if batch.rule >= CLUSTER_SUFFERAGE:
            update_gap_keys(batch.rule, batch.tolerance, groups, ready, left)
        row = _next_row(batch.tolerance, batch.seed, ready, ready.task[first:last], left)
        task = ready.task[first + row]
        if ready.best[row] == np.inf:
            return NO_ROUTE, task
        _remove_row(ready, task, row, left)
        host = _best_host(tasks, hosts, groups, inputs, available, ready, row, task)
        sent = transfers.used[0]
        _place(
            tasks, hosts, network, links, copies, transfers, placement, groups, inputs, available, task, host
        )
        k = groups.host_place[host]
    return (LINKS_FULL if full(links) else OK), -1


@inner
def _place_contended_level(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, first: int, last: int
) -> tuple[int, int]:
    """As `_place_level`, where transfers share links: rows are updated only where that can matter."""
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    groups, inputs, available, ready, rows = (
        batch.groups, batch.inputs, batch.available, batch.ready, batch.contended,
    )  # fmt: skip
    state = LinkState(network, links, copies, transfers)
    for row in range(last - first):
        restart_row(tasks, network, copies, groups, inputs, ready, rows, ready.task[first + row], row)
    wait, exact = 0, batch.exact[min(first, 1)]
    for left in range(last - first, 0, -1):
        if wait > 0:
            renew_first_rows(batch.rule, tasks, state, groups, inputs, available, ready, rows, first, left)
        else:
            wait = until_renewal(left, exact)
            update_stale_rows(batch.rule, tasks, state, groups, inputs, available, ready, rows, first, left)
            if batch.rule >= CLUSTER_SUFFERAGE:
                update_gap_keys(batch.rule, batch.tolerance, groups, ready, left)
        wait -= 1
        if full(links):
            return LINKS_FULL, -1
        row = _next_row(batch.tolerance, batch.seed, ready, ready.task[first:last], left)
        task = ready.task[first + row]
        update_row(batch.rule, tasks, state, groups, inputs, available, ready, rows, first, row, True)
        if ready.best[row] == np.inf:
            return NO_ROUTE, task
        _remove_row(ready, task, row, left)
        host = _best_host(tasks, hosts, groups, inputs, available, ready, row, task)
        sent = transfers.used[0]
        _place(
            tasks, hosts, network, links, copies, transfers, placement, groups, inputs, available, task, host
        )
        bits, low, high = new_bookings(network, transfers, sent)
        mark_stale_rows(ready, rows, left - 1, groups.host_place[host], bits, low, high)
        _restart_readers(tasks, network, copies, transfers, groups, inputs, ready, rows, sent)
    return (LINKS_FULL if full(links) else OK), -1


@leaf
def _restart_readers(
    tasks: TaskArrays,
    network: NetworkArrays,
    copies: Copies,
    transfers: Transfers,
    groups: HostGroups,
    inputs: TaskInputs,
    ready: ReadyTasks,
    rows: ContendedRows,
    sent: int,
) -> None:
    """Restart the rows of tasks that read an item moved by transfers from `sent` on: they have a new source for it."""
    for transfer in range(sent, transfers.used[0]):
        item = transfers.item[transfer]
        for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            reader = tasks.readers[i]
            row = ready.row[reader]
            if row >= 0 and ready.best[row] > -np.inf:
                restart_row(tasks, network, copies, groups, inputs, ready, rows, reader, row)


@inner
def _place_sweep(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, count: int
) -> tuple[int, int]:
    """As `_place_level`, for the first level of a STAR whose tasks get all inputs from the origin."""
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    groups, inputs, available, ready, sweep = (
        batch.groups, batch.inputs, batch.available, batch.ready, batch.sweep,
    )  # fmt: skip
    sweep.task[:count] = ready.task[:count]
    fill_matrix(tasks, groups, inputs, sweep, count)
    sweep.changed[:] = True
    wait = 0
    for left in range(count, 0, -1):
        if wait > 0:
            _renew_first_sweep_rows(batch.rule, groups, available, ready, sweep, links, left)
        else:
            wait = until_renewal(left, batch.exact[0])
            _renew_sweep(batch, links, left, wait > 1)
        wait -= 1
        row = _next_row(batch.tolerance, batch.seed, ready, sweep.task, left)
        renew_sweep_row(batch.rule, groups, available, ready, sweep, links, row)
        task = sweep.task[row]
        host = best_sweep_host(groups, available, ready, sweep, links, row)
        if host < 0:
            return NO_ROUTE, task
        _remove_row(ready, task, row, left)
        sent = transfers.used[0]
        _place(
            tasks, hosts, network, links, copies, transfers, placement, groups, inputs, available, task, host
        )
        if full(links):
            return LINKS_FULL, task
        remove_placed_rows(ready, sweep, left - 1)
        k = groups.host_place[host]
        note_arrivals(tasks, groups, inputs, ready, sweep, transfers, k, sent)
        sweep.changed[k] = True
    return OK, -1


@inner
def _renew_sweep(batch: Batch, links: Calendar, left: int, lasting: bool) -> None:
    """Update the columns of changed places, and the keys: all if they are `lasting`, or those that may be least."""
    groups, available, ready, sweep = batch.groups, batch.available, batch.ready, batch.sweep
    for k in range(len(groups.places)):
        if sweep.changed[k]:
            update_column(batch.rule, groups, available, ready, sweep, links, k)
    if batch.rule >= CLUSTER_SUFFERAGE and lasting:
        measure_all_rows(batch.rule, groups, ready, left)
    elif batch.rule >= CLUSTER_SUFFERAGE:
        update_gap_keys(batch.rule, batch.tolerance, groups, ready, left)


@inner
def _renew_first_sweep_rows(
    rule: int,
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    links: Calendar,
    left: int,
) -> None:
    """Renew the row with the least key until it is current, FIRST rows at most."""
    for _ in range(FIRST):
        row = least_key(ready, left)
        if ready.renewed[row] == ready.steps[0]:
            return
        renew_sweep_row(rule, groups, available, ready, sweep, links, row)


@inner
def _place_blocks(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, count: int
) -> tuple[int, int]:
    """As `_place_sweep`, under MINMIN and MAXMIN without draws."""
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    rule, groups, inputs, available, ready, sweep, blocks = (
        batch.rule, batch.groups, batch.inputs, batch.available, batch.ready, batch.sweep, batch.blocks,
    )  # fmt: skip
    for row in range(count):
        sweep.task[row] = ready.task[blocks.order[row]]
        ready.row[sweep.task[row]] = row
    fill_matrix(tasks, groups, inputs, sweep, count)
    start_blocks(rule, groups, available, sweep, blocks, links)
    for _ in range(count):
        if rule == MINMIN:
            row = earliest_row(groups, available, sweep, blocks, links)
        else:
            row = latest_row(groups, available, sweep, blocks, links)
        task = sweep.task[row]
        row_times(groups, available, ready, sweep, links, row)
        host = best_sweep_host(groups, available, ready, sweep, links, row)
        if host < 0:
            return NO_ROUTE, task
        ready.row[task] = -1
        sent = transfers.used[0]
        _place(
            tasks, hosts, network, links, copies, transfers, placement, groups, inputs, available, task, host
        )
        if full(links):
            return LINKS_FULL, task
        k = groups.host_place[host]
        note_arrivals(tasks, groups, inputs, ready, sweep, transfers, k, sent)
        _measure_readers(rule, tasks, ready, sweep, blocks, transfers, k, sent)
        remove_from_blocks(rule, groups, available, sweep, blocks, links, row, k)
    return OK, -1


@leaf
def _measure_readers(
    rule: int,
    tasks: TaskArrays,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    transfers: Transfers,
    k: int,
    sent: int,
) -> None:
    """Measure the blocks with readers of items sent to place k by transfers from number `sent` on."""
    for transfer in range(sent, transfers.used[0]):
        item = transfers.item[transfer]
        measured = -1
        for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            row = ready.row[tasks.readers[i]]
            if row >= 0 and blocks.block[row] != measured:
                measured = blocks.block[row]
                measure_block_at(rule, sweep, blocks, measured, k)


@leaf
def _update_arrivals(
    tasks: TaskArrays,
    network: NetworkArrays,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    groups: HostGroups,
    inputs: TaskInputs,
    ready: ReadyTasks,
    rows: Int64s,
    first: int,
    k: int,
) -> None:
    """When all inputs of these rows can be at place k."""
    for row in rows:
        ready.arrival[k, row] = arrival_at(
            tasks.size, network, links, copies, transfers, groups, inputs, ready.task[first + row], k
        )


@leaf
def _affected_rows(
    tasks: TaskArrays,
    origin: int,
    network: int,
    inputs: TaskInputs,
    ready: ReadyTasks,
    transfers: Transfers,
    first: int,
    left: int,
    k: int,
    sent: int,
) -> int:
    """Write rows that are affected only at place k to `rows_here`, the other affected rows to `rows_anywhere`.

    A task was placed at k with transfers from number `sent` on; k = -1: all rows are new. Tasks that read an item just
    sent have a new source for it. If links are shared, a transfer may delay transfers to any place, except on a STAR,
    where a transfer from the origin delays only those to the same place. Returns the number of rows in `rows_here`.
    """
    rows_here, rows_anywhere, unplaced = ready.rows_here, ready.rows_anywhere, ready.unplaced
    moved = transfers.used[0] > sent
    by_reader = moved and network <= OWN_LINKS
    all_from_origin = moved and network == STAR
    for transfer in range(sent, transfers.used[0]):
        all_from_origin = all_from_origin and transfers.source[transfer] == origin
    if by_reader:
        _mark_readers(tasks, ready, transfers, sent, 1)
    here, anywhere = 0, 0
    for i in range(left):
        row = unplaced[i]
        everywhere = k < 0 or moved
        if by_reader:
            everywhere = ready.reads_moved[row] > 0
        elif all_from_origin:
            everywhere = not inputs.from_origin[ready.task[first + row]]
        if everywhere:
            rows_anywhere[anywhere] = row
            anywhere += 1
        else:
            rows_here[here] = row
            here += 1
    if by_reader:
        _mark_readers(tasks, ready, transfers, sent, 0)
    return here


@leaf
def _mark_readers(tasks: TaskArrays, ready: ReadyTasks, transfers: Transfers, sent: int, value: int) -> None:
    """Mark the rows of tasks that read an item moved by transfers from `sent` on."""
    for transfer in range(sent, transfers.used[0]):
        item = transfers.item[transfer]
        for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            row = ready.row[tasks.readers[i]]
            if row >= 0:
                ready.reads_moved[row] = value


@leaf
def _next_row(tolerance: float, seed: int, ready: ReadyTasks, task_of: Int64s, count: int) -> int:
    """The row with the smallest key among the first `count` unplaced rows, or one drawn among those close to it."""
    rows, key, chosen = ready.unplaced, ready.key, least_key(ready, count)
    if tolerance < 0.0:
        return chosen
    limit = key[chosen] + tolerance * abs(key[chosen])
    least, drawn = np.uint64(0xFFFFFFFFFFFFFFFF), chosen
    for i in range(count):
        if key[rows[i]] <= limit:
            lot = _lot(seed, ready.steps[0], task_of[rows[i]])
            if lot < least:
                drawn, least = rows[i], lot
    return drawn


@leaf
def _lot(seed: int, step: int, task: int) -> np.uint64:
    """A hash of seed, step and task (splitmix64); choosing the smallest of several is a uniform draw."""
    x = np.uint64(seed)
    for part in (step, task):
        x = x + np.uint64(part) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


@leaf
def _remove_row(ready: ReadyTasks, task: int, row: int, left: int) -> None:
    """Remove the row of a placed task; the remaining rows stay in order."""
    low, high = 0, left
    while low < high:
        middle = (low + high) // 2
        if ready.unplaced[middle] < row:
            low = middle + 1
        else:
            high = middle
    for i in range(low, left - 1):
        ready.unplaced[i] = ready.unplaced[i + 1]
    ready.steps[0] += 1
    ready.row[task] = -1


@leaf
def _best_host(
    tasks: TaskArrays,
    hosts: HostArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    row: int,
    task: int,
) -> int:
    """The lowest-numbered host with the best completion time of the row: O(hosts)."""
    for host in range(len(hosts.place)):
        k = groups.host_place[host]
        if ready.time[k, row] == ready.best[row]:
            duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
            start = max(ready.arrival[k, row], available.host[inputs.cores_class[task], host])
            if start + duration + return_seconds(groups, inputs, task, k) == ready.best[row]:
                return host
    return -1


@leaf
def _place(
    tasks: TaskArrays,
    hosts: HostArrays,
    network: NetworkArrays,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    placement: Placement,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    task: int,
    host: int,
) -> None:
    """Book the input transfers of a task and append it to a core of a host; its results are sent later."""
    k, place = groups.host_place[host], hosts.place[host]
    first = transfers.used[0]
    items = inputs.item[inputs.ptr[task] : inputs.ptr[task + 1]]
    arrival = book_inputs(network, links, copies, transfers, items, tasks.size, place)
    arrival = max(arrival, inputs.released[task])
    _note_shared_copies(inputs, transfers, task, k, first)
    duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    core, start = take_cores(hosts, available, host, tasks.cores[task], arrival, duration)
    finish = start + duration
    placement.host[task], placement.core[task] = host, core - hosts.core_ptr[host]
    placement.start[task], placement.finish[task] = start, finish
    commit(tasks, network, copies, transfers, first, task, place, finish)
    update_availability(hosts, groups, available, host)
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        inputs.made[item] = finish
        for j in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            reader = tasks.readers[j]
            inputs.released[reader] = max(inputs.released[reader], finish)


@leaf
def _note_shared_copies(inputs: TaskInputs, transfers: Transfers, task: int, k: int, first: int) -> None:
    """STAR: record when the shared inputs just sent arrive at place k."""
    transfer = first
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        if transfer < transfers.used[0] and transfers.item[transfer] == inputs.item[i]:
            if inputs.column[i] >= 0:
                inputs.since[k, inputs.column[i]] = transfers.finish[transfer]
            transfer += 1
