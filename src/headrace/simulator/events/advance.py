"""The event loop: execute commands and process completions until the scheduler must be called."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.arrays.fair_share import take_finished
from headrace.arrays.heap import NONE, contains
from headrace.core.state import (
    ABORT,
    COMMANDS,
    CONTENTION,
    COPIES,
    DELIVERED,
    DONE,
    DROP,
    FAIR,
    MISPREDICTED,
    RELAY,
    REQUESTS,
    RUNNING_WRITES,
    SEND,
    START,
    STOP,
    TRANSFERS,
)
from headrace.core.transitions.data import transfer_done
from headrace.core.transitions.dispatch import dispatch, task_done
from headrace.core.transitions.link_turns import release_link
from headrace.core.transitions.wake import asks_for_balance, wants_to_be_asked
from headrace.simulator.events.event_queue import first_end, put, take_due, take_out
from headrace.simulator.events.flows import (
    alone_until,
    carry_on,
    carry_so_far,
    change_trace,
    flows_change,
    join_flow,
    latency_at,
    leave_flow,
    leave_links,
    occupy_links,
    rest_links,
    sent_between,
    take_steps,
    take_turn,
    update_flows,
)
from headrace.simulator.events.grid_state import (
    COPY_DROPPED,
    FLOWING,
    HAPPENED,
    IN_VAIN,
    LATENCY,
    LOOK_AGAIN,
    MOVE_CUT,
    MOVE_ENDED,
    MOVE_STARTED,
    MUTED,
    QUIET,
    STOP_LENGTH,
    TASK_ENDED,
    TASK_STARTED,
    TASK_STOPPED,
)
from headrace.simulator.events.traces import done_between, finish

# Why the loop stopped.
FINISHED, TIME, WAKE, STUCK, LOG_FULL, NO_ROOM, GO_ON = 0, 1, 2, 3, 4, 5, 6


@leaf
def write(grid, kind, subject, origin, target):
    k = grid.log_length[0]
    grid.log_time[k] = grid.now[0]
    grid.log_kind[k] = kind
    grid.log_subject[k] = subject
    grid.log_from[k] = origin
    grid.log_to[k] = target
    grid.log_length[0] = k + 1


@leaf
def core_end(grid, core, task):
    """When the remaining work on a core will be done, given the speed of its host from now on."""
    host = grid.core_host[core]
    left = grid.core_work_left[core] / grid.rate[grid.speed_class[task], host]
    trace = grid.host_trace[host]
    return grid.now[0] + left if trace < 0 else finish(grid.table, trace, grid.now[0], left)


@leaf
def start_move(problem, state, grid, move, source, target):
    pair = source * len(state.place_up) + target
    write(grid, MOVE_STARTED, state.transfer_item[move], source, target)
    now = grid.now[0]
    grid.transfer_left[move] = grid.size[state.transfer_item[move]]
    cores = len(grid.core_host)
    latency = latency_at(problem, grid, pair, now)
    end = np.inf
    if problem.policy[CONTENTION] == FAIR and problem.route_ptr[pair + 1] > problem.route_ptr[pair]:
        grid.transfer_phase[move] = LATENCY
        grid.transfer_rest[move] = 0.0
        put(grid, cores + move, now + latency)
        if state.transfer_in_turn[move] and not problem.policy[RELAY]:
            take_turn(problem, grid, pair, move, latency)
    else:
        grid.transfer_phase[move] = FLOWING
        grid.transfer_since[move] = now + latency
        end = alone_until(problem, grid, pair, now + latency, grid.transfer_left[move])
        put(grid, cores + move, end)
        if state.transfer_in_turn[move] and not problem.policy[RELAY]:
            occupy_links(problem, grid, pair, move, end)


@leaf
def carry_out(problem, state, grid):
    """Execute the coordinator's commands; returns whether bandwidth shares have changed."""
    changed = False
    cores = len(grid.core_host)
    for k in range(state.counters[COMMANDS]):
        kind, subject = state.command_kind[k], state.command_subject[k]
        origin, target = state.command_from[k], state.command_to[k]
        if kind == START:
            core = problem.core_ptr[origin] + target
            grid.core_work_left[core] = grid.work[subject]
            grid.core_since[core] = grid.now[0]
            write(grid, TASK_STARTED, subject, origin, target)
            put(grid, core, core_end(grid, core, subject))
        elif kind == SEND:
            start_move(problem, state, grid, subject, origin, target)
        elif kind == STOP:
            take_out(grid, problem.core_ptr[origin] + target)
            write(grid, TASK_STOPPED, subject, origin, target)
        elif kind == DROP:
            write(grid, COPY_DROPPED, subject, origin, -1)
        elif kind == ABORT:
            pair = origin * len(state.place_up) + target
            if problem.policy[CONTENTION] == FAIR and not contains(grid.ending, cores + subject):
                leave_flow(grid, pair, subject)
                changed = True
            take_out(grid, cores + subject)
            leave_links(problem, grid, pair, subject)
            write(grid, MOVE_CUT, state.transfer_item[subject], origin, target)
    state.counters[COMMANDS] = 0
    return changed


@leaf
def end_task(problem, state, grid, core, factor):
    task = state.core_task[core]
    host = grid.core_host[core]
    took = grid.now[0] - (
        state.run_start[task] if state.run_host[task] == host else state.duplicate_start[task]
    )
    expected = state.predicted[task]
    if factor < np.inf and (took > factor * expected or factor * took < expected):
        state.counters[MISPREDICTED] += 1
    write(grid, TASK_ENDED, task, host, core - problem.core_ptr[host])
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        state.size[problem.writes[k]] = grid.size[problem.writes[k]]
    task_done(problem, state, task, host, grid.now[0])


@leaf
def finish_move(problem, state, grid, move):
    source, target = state.transfer_source[move], state.transfer_target[move]
    write(grid, MOVE_ENDED, state.transfer_item[move], source, target)
    leave_links(problem, grid, source * len(state.place_up) + target, move)
    transfer_done(problem, state, move)


@entry
def settle(problem, state, grid):
    """Execute the commands caused by a change before anything new starts."""
    if carry_out(problem, state, grid):
        update_flows(grid)


@entry
def host_speed_changes(problem, state, grid, host, trace):
    """Switch a host to another trace and update the remaining work of its running tasks."""
    now = grid.now[0]
    old = grid.host_trace[host]
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        task = state.core_task[core]
        if task >= 0 and contains(grid.ending, core):
            passed = now - grid.core_since[core]
            if old >= 0:
                passed = done_between(grid.table, old, grid.core_since[core], now)
            done = passed * grid.rate[grid.speed_class[task], host]
            grid.core_work_left[core] = max(0.0, grid.core_work_left[core] - done)
            grid.core_since[core] = now
    grid.host_trace[host] = trace
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        task = state.core_task[core]
        if task >= 0 and contains(grid.ending, core):
            put(grid, core, core_end(grid, core, task))


@entry
def link_speed_changes(problem, state, grid, link, trace, delay):
    """Switch a link to another trace and update the remaining bytes of its transfers."""
    now = grid.now[0]
    cores = len(grid.core_host)
    places = len(state.place_up)
    fair = problem.policy[CONTENTION] == FAIR
    for k in range(state.counters[TRANSFERS]):
        move = state.live_transfers[k]
        pair = state.transfer_source[move] * places + state.transfer_target[move]
        if not fair and contains(grid.ending, cores + move) and grid.transfer_since[move] < now:
            sent = sent_between(problem, grid, pair, grid.transfer_since[move], now)
            grid.transfer_left[move] = max(0.0, grid.transfer_left[move] - sent)
            grid.transfer_since[move] = now
    carry_so_far(grid, link)
    change_trace(grid, link, trace)
    grid.link_delay[link] = delay
    if state.link_holder[link] >= 0 and not problem.policy[RELAY]:
        carry_on(grid, link, fair)
    if fair:
        update_flows(grid)
        return
    for k in range(state.counters[TRANSFERS]):
        move = state.live_transfers[k]
        pair = state.transfer_source[move] * places + state.transfer_target[move]
        if contains(grid.ending, cores + move):
            begins = grid.transfer_since[move]
            put(grid, cores + move, alone_until(problem, grid, pair, begins, grid.transfer_left[move]))


@leaf
def log_is_full(state, grid):
    """Whether the next step could write more entries than the log has room for."""
    need = state.counters[COMMANDS] + 3 * state.counters[TRANSFERS] + 2 * len(grid.core_host) + 16
    return len(grid.log_time) - grid.log_length[0] < need


@leaf
def copies_are_full(state):
    """Whether the next step could add more copy records than there is room for."""
    need = 64 + state.counters[REQUESTS] + len(state.host_up) + 2 * state.counters[RUNNING_WRITES]
    return len(state.copy_item) - state.counters[COPIES] < need


@leaf
def end_flows(problem, state, grid):
    """Transfers on shared links that have all their bytes by now are over."""
    share = grid.share
    move = take_finished(share, grid.now[0])
    while move != NONE:
        pair = state.transfer_source[move] * len(state.place_up) + state.transfer_target[move]
        if grid.transfer_rest[move] > 0.0:
            end_turn(problem, state, grid, pair, move)
        else:
            rest_links(grid, pair)
            finish_move(problem, state, grid, move)
        move = take_finished(share, grid.now[0])


@leaf
def end_turn(problem, state, grid, pair, move):
    """The turn of a transfer on shared links is over; the rest of its bytes follow."""
    grid.transfer_left[move] = grid.transfer_rest[move]
    grid.transfer_rest[move] = 0.0
    join_flow(grid, pair, move)
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        if state.link_holder[link] == move:
            release_link(problem, state, link)


@leaf
def end_what_is_due(problem, state, grid, factor):
    """Process everything that finishes now; returns whether bandwidth shares change."""
    cores, links = len(grid.core_host), len(grid.ending) - len(grid.link_user)
    changed = flows_change(grid)
    happened = changed
    if changed:
        take_steps(grid)
        end_flows(problem, state, grid)
    number = take_due(grid)
    while number != NONE:
        happened = happened or number < links
        if number >= links:
            if state.link_holder[number - links] == grid.link_user[number - links]:  # not aborted just now
                release_link(problem, state, number - links)
        elif number >= cores:
            if end_delay(problem, state, grid, number - cores):
                changed = True
        elif state.core_task[number] >= 0:  # not stopped at the same time
            end_task(problem, state, grid, number, factor)
        number = take_due(grid)
    if happened:  # that a link is idle again is not news for the scheduler
        grid.flags[MUTED] = False
        grid.flags[HAPPENED] = True
    return changed


@leaf
def end_delay(problem, state, grid, move):
    """A transfer is over or, on shared links, its latency is; returns whether shares of links change."""
    fair = problem.policy[CONTENTION] == FAIR
    if fair and grid.transfer_phase[move] == LATENCY and grid.transfer_left[move] > 0.0:
        grid.transfer_phase[move] = FLOWING
        pair = state.transfer_source[move] * len(state.place_up) + state.transfer_target[move]
        join_flow(grid, pair, move)
        return True
    finish_move(problem, state, grid, move)
    return False


@leaf
def note_stop(grid, reason, script_over):
    """Note whether anything has started since the last stop for the scheduler, and whether it ever will."""
    same = grid.log_length[0] == grid.stops[STOP_LENGTH]
    for_ever = script_over and min(first_end(grid), grid.flow_change[0]) == np.inf
    stands = reason == TIME and grid.now[0] == grid.stopped_at[0]
    grid.flags[QUIET] = same and (for_ever or stands)
    grid.stopped_at[0] = grid.now[0]
    grid.stops[STOP_LENGTH] = grid.log_length[0]
    if not same:
        grid.stops[IN_VAIN] = 0


@leaf
def step(problem, state, grid, until, results, wake, script_over):
    """Start what can start, and process what finishes next; returns why the loop must stop, or GO_ON."""
    if copies_are_full(state):
        return NO_ROOM
    dispatch(problem, state, grid.now[0])
    if log_is_full(state, grid):
        return LOG_FULL
    if carry_out(problem, state, grid):
        update_flows(grid)
    if state.counters[DONE] == len(state.done) and state.counters[DELIVERED] == results:
        return FINISHED
    muted = grid.flags[MUTED] and not wake.every_event
    if wants_to_be_asked(problem, state, grid.now[0], wake, grid.flags[HAPPENED], muted):
        note_stop(grid, WAKE, script_over)
        return WAKE
    following = min(first_end(grid), grid.flow_change[0])
    limit = min(until, grid.now[0]) if grid.flags[LOOK_AGAIN] else until
    if following > limit:
        return reach(problem, state, grid, until, limit, wake, script_over)
    if following == np.inf:
        return STUCK
    grid.now[0] = max(grid.now[0], following)
    changed = end_what_is_due(problem, state, grid, wake.misprediction)
    if carry_out(problem, state, grid) or changed:
        update_flows(grid)
    return GO_ON


@leaf
def reach(problem, state, grid, until, limit, wake, script_over):
    """Nothing finishes by `limit`: stop there, unless it was only to check idle hosts again and none can be helped."""
    grid.now[0] = limit
    note_stop(grid, TIME, script_over)
    if not grid.flags[LOOK_AGAIN] or grid.flags[QUIET] or until <= limit:
        return TIME
    if asks_for_balance(problem, state, limit, wake):
        return TIME
    grid.flags[LOOK_AGAIN] = False
    grid.flags[MUTED] = True
    grid.flags[HAPPENED] = False
    return GO_ON


@entry
def advance(problem, state, grid, until, results, wake, script_over):
    """Run until all is done, a time is reached, the scheduler must be called, or nothing more can happen.

    See `core.transitions.wake` for `wake`, and `GridState.flags` for what else stops the loop. `script_over`: the grid
    will not change any more, and no task will be released. O(log of what is active) for each completion, plus the
    cost of what it changes.
    """
    reason = GO_ON
    while reason == GO_ON:
        reason = step(problem, state, grid, until, results, wake, script_over)
    return reason
