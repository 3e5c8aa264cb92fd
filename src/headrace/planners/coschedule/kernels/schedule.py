"""A whole list schedule: an empty board, and jobs placed one after another."""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import clear as clear_calendar
from headrace.arrays.calendar import last_end, low_from, occupy
from headrace.arrays.compiling import entry, inner
from headrace.planners.coschedule.kernels.placing import place_job

FAILED = 1e300
LATE = 1e3
"""A second after a deadline counts as so many seconds of makespan."""


@entry
def clear(case, choices, calendar, steps, copies, outcome):
    """An empty board: only what lies at its sources takes room. O(items * places + reads)."""
    places, hosts = len(case.site), len(case.host_place)
    clear_calendar(calendar)
    clear_calendar(steps)
    copies.ready[:] = np.inf
    outcome.finish[:] = -1.0
    outcome.count[0] = 0
    outcome.count[1] = -1
    if case.stored:
        copies.until[:] = 0.0
        copies.since[:] = 0.0
        copies.last_use[:] = 0.0
        copies.users[:] = 0
        _count_users(case, choices, copies)
    for item in range(len(case.size)):
        if case.source[item] >= 0:
            for i in range(case.set_ptr[case.source[item]], case.set_ptr[case.source[item] + 1]):
                key = item * places + case.sets[i]
                copies.ready[key] = 0.0
                if case.stored and copies.users[key] > 0:
                    copies.until[key] = np.inf
                    site = case.site[case.sets[i]]
                    if case.storage[site] < np.inf:
                        occupy(steps, hosts + site, 0.0, np.inf, case.size[item])


@inner
def _count_users(case, choices, copies):
    """How many jobs will read each item at each place; all its readers at its sources and where it is made."""
    places = len(case.site)
    for job in range(len(case.seconds)):
        for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
            item = case.reads[e]
            home = False
            here = case.host_place[choices.host[job]]
            if case.maker[item] >= 0:
                at = case.host_place[choices.host[case.maker[item]]]
                copies.users[item * places + at] += 1
                home = at == here
            else:
                for i in range(case.set_ptr[case.source[item]], case.set_ptr[case.source[item] + 1]):
                    copies.users[item * places + case.sets[i]] += 1
                    home = home or case.sets[i] == here
            if not home and not choices.pull:
                copies.users[item * places + here] += 1


@inner
def _puller(case, steps, job):
    """The host that is idle first and can run the job, and since when; ties: the first."""
    best, best_time = -1, np.inf
    for host in range(len(case.host_place)):
        if case.seconds[job, host] < np.inf:
            idle_from = low_from(steps, host, case.host_cores[host] - case.cores[job])
            time = max(idle_from, case.host_free[host], case.release[job])
            if time < best_time:
                best, best_time = host, time
    return best, best_time


@entry
def place_some(case, choices, first, last, last_end, late, calendar, steps, copies, outcome, scratch):
    """Place the jobs order[first:last] after others; returns the latest end and the sum of lateness.

    If a job cannot be placed the end is FAILED or more, less so the later that happens. One job costs
    O(hops * log bookings) where disks are ample.
    """
    for position in range(first, last):
        job = choices.order[position]
        host, free = choices.host[job], 0.0
        if choices.pull:
            host, free = _puller(case, steps, job)
        placed = place_job(case, choices, job, host, free, calendar, steps, copies, outcome, scratch)
        if not placed or calendar.used[1] or steps.used[1]:
            outcome.count[1] = job
            return FAILED * (1.0 + (len(choices.order) - position) / len(choices.order)), late
        last_end = max(last_end, outcome.done[job])
        late += max(0.0, outcome.done[job] - case.deadline[job])
    return last_end, late


@entry
def spread(case, steps, calendar, outcome):
    """Mean over pools and links of when they are last busy: less is better among plans of one makespan."""
    total = 0.0
    count = 0
    for host in range(len(case.host_place)):
        total += last_end(steps, host)
        count += 1
    for link in range(len(calendar.length)):
        if calendar.length[link] > 0:
            total += last_end(calendar, link)
            count += 1
    return total / max(1, count)
