"""Lists of the hosts that are idle and of those with more tasks than cores, updated with every change of a load."""

from __future__ import annotations

from headrace.arrays.compiling import leaf
from headrace.core.state import BALANCED, CROWDED, CROWDED_HOSTS, IDLE, IDLE_HOSTS


@leaf
def cores_of(problem, host):
    return problem.core_ptr[host + 1] - problem.core_ptr[host]


@leaf
def meets_needs(problem, state, task, host):
    """Whether a host has the memory and resources free that a task needs."""
    count = problem.need_most.shape[1]
    for k in range(count):
        used = state.need_used[host * count + k] + problem.need_amount[task, k]
        if problem.need_amount[task, k] > 0.0 and used > problem.need_most[host, k]:
            return False
    return True


@leaf
def change_needs(problem, state, task, host, sign):
    """Count what a task that starts (1.0) or stops (-1.0) has of its host."""
    count = problem.need_most.shape[1]
    for k in range(count):
        state.need_used[host * count + k] += sign * problem.need_amount[task, k]
        if state.busy_cores[host] == 0:
            state.need_used[host * count + k] = 0.0  # what rounding has left


@leaf
def load_of(problem, state, host):
    """IDLE: an empty queue and a free core; CROWDED: more tasks than cores; BALANCED: neither, or the host is down."""
    queued, free = state.queue_length[host], cores_of(problem, host) - state.busy_cores[host]
    if not state.host_up[host]:
        return BALANCED
    if queued > free:
        return CROWDED
    return IDLE if queued == 0 and free > 0 else BALANCED


@leaf
def note_load(problem, state, host):
    """Move a host to the list that fits its load; to be called after every change of its queue or its cores: O(1)."""
    before, now = state.load[host], load_of(problem, state, host)
    if before == now:
        return
    state.load[host] = now
    if before == IDLE:
        leave_list(state, state.idle_hosts, IDLE_HOSTS, host)
    elif before == CROWDED:
        leave_list(state, state.crowded_hosts, CROWDED_HOSTS, host)
    if now == IDLE:
        join_list(state, state.idle_hosts, IDLE_HOSTS, host)
    elif now == CROWDED:
        join_list(state, state.crowded_hosts, CROWDED_HOSTS, host)


@leaf
def count_running(state, task, host, change):
    """Count a task, not a duplicate, that starts (1) or stops (-1) running on a host."""
    state.running[host] += change
    if state.running[host] == 0:
        state.start_sum[host] = 0.0  # what rounding has left
    else:
        state.start_sum[host] += change * state.run_start[task]


@leaf
def join_list(state, hosts, counter, host):
    state.load_position[host] = state.counters[counter]
    hosts[state.counters[counter]] = host
    state.counters[counter] += 1


@leaf
def leave_list(state, hosts, counter, host):
    """The last host of the list takes the place of the one that leaves."""
    state.counters[counter] -= 1
    last = hosts[state.counters[counter]]
    hosts[state.load_position[host]] = last
    state.load_position[last] = state.load_position[host]


@leaf
def is_imbalanced(state):
    """Whether a host is idle while another has more tasks than cores."""
    return state.counters[IDLE_HOSTS] > 0 and state.counters[CROWDED_HOSTS] > 0
