"""A whole list schedule: jobs placed one after another, from an empty schedule."""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar, book, clear, last_end, occupy
from headrace.arrays.compiling import entry, leaf
from headrace.planners.coschedule.job_placement import place_job
from headrace.planners.coschedule.records import (
    DecisionArrays,
    InstanceArrays,
    ItemCopies,
    JobSchedule,
    Workspace,
)
from headrace.planners.coschedule.room import idle_for

FAILED = 1e300
LATE = 1e3
"""Penalty for each second after a deadline, in seconds of makespan."""


@entry
def clear_schedule(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
) -> None:
    """Reset to an empty schedule: only items at their sources occupy storage. O(items * places + reads)."""
    places, hosts = len(arrays.site), len(arrays.host_place)
    clear(links)
    clear(usage)
    if arrays.exclusive_links:
        for link in range(len(arrays.link_free)):
            if arrays.link_free[link] > 0.0:
                book(links, link, 0.0, arrays.link_free[link])
    copies.ready[:] = np.inf
    schedule.finish[:] = -1.0
    schedule.state[0] = 0
    schedule.state[1] = -1
    if arrays.limited_storage:
        copies.until[:] = 0.0
        copies.since[:] = 0.0
        copies.last_use[:] = 0.0
        copies.users[:] = 0
        _count_users(arrays, decisions, copies)
    for item in range(len(arrays.size)):
        if arrays.source[item] >= 0:
            for i in range(arrays.set_ptr[arrays.source[item]], arrays.set_ptr[arrays.source[item] + 1]):
                key = item * places + arrays.sets[i]
                copies.ready[key] = arrays.arrival[key] if len(arrays.arrival) > 0 else 0.0
                if arrays.limited_storage and copies.users[key] > 0:
                    copies.until[key] = np.inf
                    site = arrays.site[arrays.sets[i]]
                    if arrays.storage[site] < np.inf:
                        occupy(usage, hosts + site, 0.0, np.inf, arrays.size[item])


@leaf
def _count_users(arrays: InstanceArrays, decisions: DecisionArrays, copies: ItemCopies) -> None:
    """Count the jobs that will read each item at each place; at sources and at the producer's place, all readers."""
    places = len(arrays.site)
    for job in range(len(arrays.seconds)):
        for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
            item = arrays.reads[e]
            home = False
            here = arrays.host_place[decisions.host[job]]
            if arrays.producer[item] >= 0:
                at = arrays.host_place[decisions.host[arrays.producer[item]]]
                copies.users[item * places + at] += 1
                home = at == here
            else:
                for i in range(arrays.set_ptr[arrays.source[item]], arrays.set_ptr[arrays.source[item] + 1]):
                    copies.users[item * places + arrays.sets[i]] += 1
                    home = home or arrays.sets[i] == here
            if not home and not decisions.open_ended:
                copies.users[item * places + here] += 1


@leaf
def _first_idle_host(arrays: InstanceArrays, usage: Calendar, job: int) -> tuple[int, float]:
    """The first host to become idle that can run the job, and when; ties: the lowest number."""
    best, best_time = -1, np.inf
    for host in range(len(arrays.host_place)):
        if arrays.seconds[job, host] < np.inf:
            time = max(idle_for(arrays, usage, job, host), arrays.host_free[host], arrays.release[job])
            if time < best_time:
                best, best_time = host, time
    return best, best_time


@entry(nogil=True)
def place_jobs(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    first: int,
    last: int,
    last_end: float,
    late: float,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> tuple[float, float]:
    """Place the jobs order[first:last] after others; returns the latest end and the sum of lateness.

    If a job cannot be placed, the end is FAILED or more, and smaller the later that happens. One job costs
    O(hops * log bookings) if disks are unlimited.
    """
    for position in range(first, last):
        job = decisions.order[position]
        host, free = decisions.host[job], 0.0
        if decisions.pull:
            host, free = _first_idle_host(arrays, usage, job)
        placed = place_job(arrays, decisions, job, host, free, links, usage, copies, schedule, work)
        if not placed or links.used[1] or usage.used[1]:
            schedule.state[1] = job
            return FAILED * (1.0 + (len(decisions.order) - position) / len(decisions.order)), late
        last_end = max(last_end, schedule.delivered[job])
        late += max(0.0, schedule.delivered[job] - arrays.deadline[job])
    return last_end, late


@entry
def mean_last_use(arrays: InstanceArrays, usage: Calendar, links: Calendar) -> float:
    """Mean time of last use over hosts and links; smaller is better among plans with the same makespan."""
    total = 0.0
    count = 0
    for host in range(len(arrays.host_place)):
        total += last_end(usage, host)
        count += 1
    for link in range(len(links.length)):
        if links.length[link] > 0:
            total += last_end(links, link)
            count += 1
    return total / max(1, count)
