"""The event loop: orders are carried out, ends are noted, until something needs a decision."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.data import move_done
from headrace.core.kernels.desk import (
    CANCEL,
    CONTENTION,
    DELIVERED,
    DONE,
    DROP,
    FAIR,
    MOVE,
    MOVES,
    OFF,
    ORDERS,
    START,
    WAITING,
)
from headrace.core.kernels.dispatch import dispatch, is_uneven, task_done
from headrace.simulator.world.agenda import put, take_out
from headrace.simulator.world.flows import (
    advance_flows,
    alone_until,
    join_flow,
    latency_at,
    leave_flow,
    next_flow_end,
    sent_between,
    share,
)
from headrace.simulator.world.state import (
    COPY_DROPPED,
    FLOWING,
    LATENCY,
    MOVE_CUT,
    MOVE_ENDED,
    MOVE_STARTED,
    TASK_ENDED,
    TASK_STARTED,
    TASK_STOPPED,
)
from headrace.simulator.world.traces import done_between, finish

# Why the loop stopped.
FINISHED, TIME, WAKE, STUCK, LOG_FULL = 0, 1, 2, 3, 4


@inner
def write(world, kind, a, b, c):
    k = world.log_len[0]
    world.log_time[k] = world.now[0]
    world.log_kind[k] = kind
    world.log_a[k] = a
    world.log_b[k] = b
    world.log_c[k] = c
    world.log_len[0] = k + 1


@inner
def core_end(world, core, task):
    """When the work left on a core is done, at the speed its host has from now on."""
    host = world.core_host[core]
    left = world.core_left[core] / world.rate[world.kind[task], host]
    trace = world.host_trace[host]
    return world.now[0] + left if trace < 0 else finish(world.table, trace, world.now[0], left)


@inner
def start_move(case, desk, world, move, source, target):
    pair = source * len(desk.place_up) + target
    write(world, MOVE_STARTED, desk.mv_item[move], source, target)
    now = world.now[0]
    world.mv_left[move] = world.size[desk.mv_item[move]]
    cores = len(world.core_host)
    latency = latency_at(case, world, pair, now)
    if case.rule[CONTENTION] == FAIR and case.pair_ptr[pair + 1] > case.pair_ptr[pair]:
        world.mv_phase[move] = LATENCY
        put(world, cores + move, now + latency)
    else:
        world.mv_phase[move] = FLOWING
        world.mv_since[move] = now + latency
        put(world, cores + move, alone_until(case, world, pair, now + latency, world.mv_left[move]))


@inner
def carry_orders(case, desk, world):
    """Do what the desk ordered; whether shares of links change by it."""
    changed = False
    cores = len(world.core_host)
    for k in range(desk.count[ORDERS]):
        kind, a, b, c = desk.order_kind[k], desk.order_a[k], desk.order_b[k], desk.order_c[k]
        if kind == START:
            core = case.core_ptr[b] + c
            world.core_left[core] = world.work[a]
            world.core_since[core] = world.now[0]
            write(world, TASK_STARTED, a, b, c)
            put(world, core, core_end(world, core, a))
        elif kind == MOVE:
            start_move(case, desk, world, a, b, c)
        elif kind == CANCEL:
            take_out(world, case.core_ptr[b] + c)
            write(world, TASK_STOPPED, a, b, c)
        elif kind == DROP:
            write(world, COPY_DROPPED, a, b, -1)
        else:
            pair = b * len(desk.place_up) + c
            flowing = case.rule[CONTENTION] == FAIR and world.heap_at[cores + a] < 0
            if flowing:
                leave_flow(world, a, pair)
                changed = True
            take_out(world, cores + a)
            write(world, MOVE_CUT, desk.mv_item[a], b, c)
    desk.count[ORDERS] = 0
    return changed


@inner
def end_task(case, desk, world, core, off_by):
    task = desk.core_task[core]
    host = world.core_host[core]
    took = world.now[0] - (desk.run_start[task] if desk.run_host[task] == host else desk.dup_start[task])
    expected = desk.predicted[task]
    if off_by < np.inf and (took > off_by * expected or off_by * took < expected):
        desk.count[OFF] += 1
    write(world, TASK_ENDED, task, host, core - case.core_ptr[host])
    task_done(case, desk, task, host, world.now[0])


@inner
def finish_move(case, desk, world, move):
    write(world, MOVE_ENDED, desk.mv_item[move], desk.mv_source[move], desk.mv_target[move])
    move_done(case, desk, move)


@inner
def end_flows(case, desk, world):
    """Transfers that have got all they wanted, by now; how many.

    What a flow gets in the least time that can be told apart at this moment does not count as missing: else a
    small item on a quick link late in a run would never be there.
    """
    ended = 0
    k = 0
    while k < world.n_active[0]:
        pair = world.active[k]
        served = world.pair_served[pair]
        enough = served + 1e-9 * max(1.0, served) + world.pair_rate[pair] * world.now[0] * 1e-15
        if world.pair_first[pair] > enough:
            k += 1
            continue
        move = world.pair_head[pair]
        while move >= 0:
            following = world.mv_next[move]
            if world.mv_goal[move] <= enough:
                leave_flow(world, move, pair)
                finish_move(case, desk, world, move)
                ended += 1
            move = following
        if world.active_at[pair] == k:
            k += 1
    return ended


@inner
def soon_idle(case, desk, now, soon):
    """Whether a host with an empty queue has a free core, or will have one within `soon` seconds as predicted."""
    for host in range(len(desk.up)):
        if not desk.up[host] or desk.q_len[host] > 0:
            continue
        for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
            task = desk.core_task[core]
            if task < 0:
                return True
            began = desk.run_start[task] if desk.run_host[task] == host else desk.dup_start[task]
            if soon > 0.0 and began + desk.predicted[task] - now <= soon:
                return True
    return False


@inner
def asks_for_work(case, desk, now, ready, soon):
    """Ready tasks that nobody has: enough of them, or one and a host that has nothing to do (soon >= 0)."""
    waiting = desk.count[WAITING]
    if waiting == 0:
        return False
    return waiting >= ready or (soon >= 0.0 and soon_idle(case, desk, now, soon))


@entry
def settle(case, desk, world):
    """Carry out what a change ordered, before anything new is started."""
    if carry_orders(case, desk, world) and case.rule[CONTENTION] == FAIR:
        share(case, world, world.now[0])


@entry
def host_speed_changes(case, desk, world, host, trace):
    """From now on a host follows another trace; what it runs has done its part of the work."""
    now = world.now[0]
    old = world.host_trace[host]
    for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
        task = desk.core_task[core]
        if task >= 0 and world.heap_at[core] >= 0:
            passed = now - world.core_since[core]
            if old >= 0:
                passed = done_between(world.table, old, world.core_since[core], now)
            done = passed * world.rate[world.kind[task], host]
            world.core_left[core] = max(0.0, world.core_left[core] - done)
            world.core_since[core] = now
    world.host_trace[host] = trace
    for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
        task = desk.core_task[core]
        if task >= 0 and world.heap_at[core] >= 0:
            put(world, core, core_end(world, core, task))


@entry
def link_speed_changes(case, desk, world, link, trace, delay):
    """From now on a link follows another trace; transfers on it have sent their part."""
    now = world.now[0]
    cores = len(world.core_host)
    places = len(desk.place_up)
    fair = case.rule[CONTENTION] == FAIR
    for k in range(desk.count[MOVES]):
        move = desk.mv_live[k]
        pair = desk.mv_source[move] * places + desk.mv_target[move]
        if not fair and world.heap_at[cores + move] >= 0 and world.mv_since[move] < now:
            sent = sent_between(case, world, pair, world.mv_since[move], now)
            world.mv_left[move] = max(0.0, world.mv_left[move] - sent)
            world.mv_since[move] = now
    world.link_trace[link] = trace
    world.link_delay[link] = delay
    if fair:
        advance_flows(world, now)
        share(case, world, now)
        return
    for k in range(desk.count[MOVES]):
        move = desk.mv_live[k]
        pair = desk.mv_source[move] * places + desk.mv_target[move]
        if world.heap_at[cores + move] >= 0:
            begins = world.mv_since[move]
            put(world, cores + move, alone_until(case, world, pair, begins, world.mv_left[move]))


@entry
def advance(case, desk, world, until, results, ready, soon, uneven, off_by, muted):
    """Run until all is done, a time is reached, somebody asks for work, or nothing can happen any more.

    Work is asked for when `ready` tasks have no host, or after everything that happens for ready = -1; see
    core.online.Wake for `soon`, `uneven` and `off_by`. A scheduler that was just asked is not asked again before
    something has happened (`muted`).
    O(log of what is under way) for each end, plus O(hosts + links) to look what can start.
    """
    cores = len(world.core_host)
    fair = case.rule[CONTENTION] == FAIR
    tasks = len(desk.done)
    happened = False
    while True:
        dispatch(case, desk, world.now[0])
        room = len(world.log_time) - world.log_len[0]
        if room < desk.count[ORDERS] + world.heap_len[0] + 2 * desk.count[MOVES] + cores + 16:
            return LOG_FULL
        changed = carry_orders(case, desk, world)
        if fair and changed:
            share(case, world, world.now[0])
        if desk.count[DONE] == tasks and desk.count[DELIVERED] == results:
            return FINISHED
        if happened and (ready < 0 or desk.count[OFF] > 0):
            return WAKE
        if not muted and uneven and is_uneven(case, desk):
            return WAKE
        if not muted and ready > 0 and asks_for_work(case, desk, world.now[0], ready, soon):
            return WAKE
        following = world.heap_time[0] if world.heap_len[0] > 0 else np.inf
        if fair:
            following = min(following, min(next_flow_end(world), world.flow_time[1]))
        if following > until:
            if until < np.inf:
                if fair:
                    advance_flows(world, until)
                world.now[0] = until
                return TIME
            return STUCK
        if following == np.inf:
            return STUCK
        muted = False
        happened = True
        world.now[0] = max(world.now[0], following)
        changed = False
        if fair:
            advance_flows(world, world.now[0])
            changed = world.flow_time[1] <= world.now[0]
            if end_flows(case, desk, world) > 0:
                changed = True
        while world.heap_len[0] > 0 and world.heap_time[0] <= world.now[0]:
            id = world.heap_id[0]
            take_out(world, id)
            if id < cores:
                if desk.core_task[id] >= 0:  # not cancelled at this very moment
                    end_task(case, desk, world, id, off_by)
            else:
                move = id - cores
                if fair and world.mv_phase[move] == LATENCY and world.mv_left[move] > 0.0:
                    world.mv_phase[move] = FLOWING
                    pair = desk.mv_source[move] * len(desk.place_up) + desk.mv_target[move]
                    join_flow(case, desk, world, move, pair)
                    changed = True
                else:
                    finish_move(case, desk, world, move)
        if carry_orders(case, desk, world):
            changed = True
        if fair and changed:
            share(case, world, world.now[0])
