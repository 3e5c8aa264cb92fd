"""Load balancing: backlogs, arrival times of inputs, and queued tasks that would finish sooner on an idle host."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import CROWDED_HOSTS, IDLE_HOSTS, PRESENT, RELAY
from headrace.core.transitions.copies import is_present
from headrace.core.transitions.dispatch import may_move
from headrace.core.transitions.load import cores_of, meets_needs

BUSY_ROUTE = 2.0
"""A task is moved from the tail of a queue only if it still finishes sooner when its transfers take this many times as
long as over idle links."""
ROUNDING = 1e-9
"""An upper bound of the relative error of a sum of times."""


@leaf
def seconds_to_send(problem, state, item, source, target, places):
    """Expected seconds for an item between two places, over idle links."""
    at = source * places + target
    if problem.policy[RELAY] and not problem.route_seconds_per_byte[at] < np.inf:
        return problem.relay_cost[at] * state.size[item] * 1e-6
    return problem.route_latency[at] + state.size[item] * problem.route_seconds_per_byte[at]


@leaf
def arrivals(problem, state, task, seconds, kept):
    """Seconds to transfer the missing inputs of a task to each place, one after another, from their present places.

    O(reads * places). `kept` is scratch space.
    """
    seconds[:] = 0.0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if problem.no_transfer[item] or state.holder[item] < 0:
            continue
        record = state.item_copies[item]
        while record >= 0:
            kept[state.copy_place[record]] = seconds[state.copy_place[record]]
            record = state.copy_next[record]
        add_seconds(problem, state, item, seconds)
        record = state.item_copies[item]
        while record >= 0:
            if state.copy_status[record] == PRESENT:
                seconds[state.copy_place[record]] = kept[state.copy_place[record]]
            record = state.copy_next[record]


@leaf
def add_seconds(problem, state, item, seconds):
    """Add the seconds that an item takes to each place; without branches, so that the loop is vectorized."""
    places, size = len(seconds), state.size[item]
    first = state.holder[item] * places
    if problem.policy[RELAY]:
        for place in range(places):
            seconds[place] += seconds_to_send(problem, state, item, state.holder[item], place, places)
        return
    latency = problem.route_latency[first : first + places]
    per_byte = problem.route_seconds_per_byte[first : first + places]
    for place in range(places):
        seconds[place] += latency[place] + size * per_byte[place]


@leaf
def arrival_at(problem, state, task, place):
    """As `arrivals`, for one place: O(reads)."""
    seconds = 0.0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        source = state.holder[item]
        if not problem.no_transfer[item] and source >= 0 and not is_present(state, item, place):
            seconds += seconds_to_send(problem, state, item, source, place, len(state.place_up))
    return seconds


@leaf
def queue_left(problem, state, host, now, starts_known, late_weight):
    """Seconds until a host has worked off its backlog: predicted run times less the elapsed time of running tasks.

    An overdue task is expected to need another `late_weight` times its delay so far. If starts are unknown, as with
    workers that report only completions, the first task is assumed to have started at the last completion there.
    """
    had = 0.0
    if starts_known:
        for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
            task = state.core_task[core]
            if task >= 0 and state.run_host[task] == host:
                spent, expected = now - state.run_start[task], state.predicted[task]
                late = max(0.0, spent - expected)
                had += (min(spent, expected) - late_weight * late) / problem.cores[task]
    elif state.queue_length[host] > 0:
        had = min(state.predicted[state.queue_head[host]], now - state.last_completion[host])
    return max(0.0, state.backlog[host] - had) / cores_of(problem, host)


@leaf
def least_queues_left(problem, state, now, least):
    """A lower bound of `queue_left` for each host, from sums over its tasks: O(hosts).

    It holds if starts are known. Unless a task is overdue, it differs from `queue_left` only by rounding.
    """
    for host in range(len(least)):
        started = state.start_sum[host] - state.running[host] * now
        left = state.backlog[host] + started
        rounding = ROUNDING * (state.backlog[host] + abs(state.start_sum[host]) + state.running[host] * now)
        least[host] = (left - rounding) / cores_of(problem, host)


@leaf
def queues_left(problem, state, now, starts_known, late_weight, left):
    """As `queue_left`, for all hosts: O(hosts + cores)."""
    for host in range(len(state.host_up)):
        left[host] = queue_left(problem, state, host, now, starts_known, late_weight)


@leaf
def longest_queue(problem, state, waiting, left):
    """The host with the largest backlog among those with more tasks than cores; -1: none."""
    longest = -1
    for host in range(len(state.host_up)):
        more = waiting[host] + state.busy_cores[host] > cores_of(problem, host)
        if state.host_up[host] and waiting[host] > 0 and more and (longest < 0 or left[host] > left[longest]):
            longest = host
    return longest


@leaf
def most_crowded(problem, state, now, late_weight):
    """The host with the largest backlog among those with more tasks than cores, and its seconds; -1: none."""
    longest, most = -1, 0.0
    for k in range(state.counters[CROWDED_HOSTS]):
        host = state.crowded_hosts[k]
        left = queue_left(problem, state, host, now, True, late_weight)
        if longest < 0 or left > most or (left == most and host < longest):
            longest, most = host, left
    return longest, most


@leaf
def a_move_pays(problem, state, work, speed_class, rates, now, late_weight):
    """Whether `moves_from_tails` would move anything: O(crowded hosts + idle hosts * reads)."""
    longest, most = most_crowded(problem, state, now, late_weight)
    if longest < 0:
        return False
    task = state.queue_tail[longest]
    for k in range(state.counters[IDLE_HOSTS]):
        host = state.idle_hosts[k]
        runs = work[task] / rates[speed_class[task], host]
        fits = cores_of(problem, host) - state.busy_cores[host] >= problem.cores[task]
        fits = fits and meets_needs(problem, state, task, host)
        if runs < most and fits and may_move(problem, task, host):
            sent = BUSY_ROUTE * arrival_at(problem, state, task, problem.host_place[host])
            if sent + runs < most:
                return True
    return False


@entry
def moves_from_tails(problem, state, work, speed_class, rates, now, starts_known, late_weight):
    """Tasks from the tail of the longest queue that would finish sooner on an idle core, and their new hosts.

    An overdue task lengthens the backlog of its host, which may have slowed down. Each move shortens the queue it takes
    a task from, so the next move may use another queue: O(idle hosts + moves * (hosts + reads * places)).
    """
    room, places = len(state.core_task), len(state.place_up)
    tasks, hosts = np.empty(room, np.int32), np.empty(room, np.int32)
    moved = 0
    left = np.empty(len(state.host_up))
    queues_left(problem, state, now, starts_known, late_weight, left)
    waiting, tail = state.queue_length.copy(), state.queue_tail.copy()
    arrive, kept, known = np.empty(places), np.empty(places), -1
    longest = longest_queue(problem, state, waiting, left)
    for host in range(len(state.host_up)):
        if not state.host_up[host] or state.queue_length[host] > 0:
            continue
        free = cores_of(problem, host) - state.busy_cores[host]
        while free > 0:
            if longest < 0:
                return tasks[:moved], hosts[:moved]
            task = tail[longest]
            if task != known:
                arrivals(problem, state, task, arrive, kept)
                known = task
            sent = BUSY_ROUTE * arrive[problem.host_place[host]]
            if (
                problem.cores[task] > free
                or not meets_needs(problem, state, task, host)
                or not may_move(problem, task, host)
                or not sent + work[task] / rates[speed_class[task], host] < left[longest]
            ):
                break
            tasks[moved], hosts[moved] = task, host
            moved += 1
            free -= problem.cores[task]
            tail[longest] = state.queue_previous[task]
            waiting[longest] -= 1
            left[longest] -= state.predicted[task] / cores_of(problem, longest)
            longest = longest_queue(problem, state, waiting, left)
    return tasks[:moved], hosts[:moved]
