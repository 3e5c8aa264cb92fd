"""List schedules that decide hosts as they go: the host with the first free core takes the job that suits it best.

Where disks are small, hosts and an order that are fixed in advance leave cores idle: the next job waits for room
although another one would fit. Here both follow from the schedule itself. The last jobs go, the longest first, where
their results arrive first.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar, low_from, occupy
from headrace.arrays.compiling import entry, leaf
from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.job_placement import (
    MOST_TRIES,
    attempt,
    can_follow,
    claim_storage,
    place_job,
    reserve_storage,
    undo,
)
from headrace.planners.coschedule.records import (
    DecisionArrays,
    InstanceArrays,
    ItemCopies,
    JobSchedule,
    Preferences,
    Workspace,
)
from headrace.planners.coschedule.schedule_jobs import FAILED


@leaf
def _probe(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    job: int,
    host: int,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> tuple[float, float]:
    """When a job would start and deliver if it were placed next, or inf. Everything is left as it was."""
    work.not_before[:] = 0.0
    moves = schedule.state[0]
    for _ in range(MOST_TRIES):
        if not attempt(arrays, decisions, job, host, 0.0, links, usage, copies, schedule, work):
            return np.inf, np.inf
        start, done, claim, until = schedule.start[job], schedule.delivered[job], -1, 0.0
        if arrays.limited_storage:
            claim_storage(arrays, job, host, moves, copies, schedule, work)
            claim, until = reserve_storage(arrays, usage, work)
            if claim < 0:
                _free_storage(arrays, usage, work)
        undo(arrays, decisions, job, host, 0.0, moves, links, usage, copies, schedule, work)
        schedule.finish[job] = -1.0
        if claim < 0:
            return start, done
        op = work.claim_op[claim]
        if op < 0 or until == np.inf:
            return np.inf, np.inf
        work.not_before[op] = max(work.not_before[op], until)
    return np.inf, np.inf


@leaf
def _free_storage(arrays: InstanceArrays, usage: Calendar, work: Workspace) -> None:
    """Undo the reservations of an attempt."""
    hosts, places = len(arrays.host_place), len(arrays.site)
    for c in range(work.used[1]):
        site = arrays.site[work.claim_key[c] % places]
        if arrays.storage[site] < np.inf:
            size = arrays.size[work.claim_key[c] // places]
            occupy(usage, hosts + site, work.claim_start[c], work.claim_end[c], -size)


@leaf
def _next_host(
    arrays: InstanceArrays, usage: Calendar, closed: Ints, soonest: Floats
) -> tuple[int, float, float]:
    """The open host that can start a job first, when it has a free core, and when the next host can start one.

    Ties: the lowest number; -1 if all are closed.
    """
    best, best_time, free, other = -1, np.inf, np.inf, np.inf
    for host in range(len(arrays.host_place)):
        if closed[host] == 0:
            idle = max(low_from(usage, host, arrays.host_cores[host] - 1.0), arrays.host_free[host])
            time = max(idle, soonest[host])
            if time < best_time:
                other = best_time
                best, best_time, free = host, time, idle
            else:
                other = min(other, time)
    return best, free, other


@leaf
def _best_job(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    host: int,
    free: float,
    other: float,
    preferences: Preferences,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> tuple[int, float]:
    """Of the first jobs that this host prefers, the one with the least idle time plus penalty, and its start.

    It looks at more jobs while the best would start after `other`, when another host can start one. -1: none fits.
    """
    best, best_score, best_start, seen = -1, np.inf, np.inf, 0
    for k in range(len(arrays.seconds)):
        job = preferences.order[host, k]
        if schedule.finish[job] >= 0.0 or arrays.seconds[job, host] == np.inf:
            continue
        if not can_follow(arrays, job, schedule):
            continue
        start, _ = _probe(arrays, decisions, job, host, links, usage, copies, schedule, work)
        score = preferences.waiting[host] * max(0.0, start - free) + preferences.penalty[job, host]
        if score < best_score:
            best, best_score, best_start = job, score, start
        seen += 1
        if seen >= preferences.width and (best_start <= max(free, other) or seen >= preferences.most):
            break
    return best, best_start


@leaf
def _soonest_host(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    job: int,
    penalty: Floats,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> int:
    """The host on which the results of a job arrive first; -1 if it fits nowhere."""
    best, best_time = -1, np.inf
    for host in range(len(arrays.host_place)):
        if arrays.seconds[job, host] < np.inf and penalty[job, host] < np.inf:
            _, done = _probe(arrays, decisions, job, host, links, usage, copies, schedule, work)
            if done < best_time:
                best, best_time = host, done
    return best


@leaf
def _first_ready(arrays: InstanceArrays, order: Ints, schedule: JobSchedule) -> int:
    for job in order:
        if schedule.finish[job] < 0.0 and can_follow(arrays, job, schedule):
            return int(job)
    return -1


@leaf
def _prefer_readers(
    arrays: InstanceArrays, preferences: Preferences, job: int, host: int, schedule: JobSchedule
) -> None:
    """Lower the penalties of jobs that read a file which this job has brought: O(readers * jobs) for a new file."""
    place = arrays.host_place[host]
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        row = preferences.shared_row[arrays.reads[e]]
        if row < 0 or preferences.brought[row, place]:
            continue
        preferences.brought[row, place] = True
        for h in range(len(arrays.host_place)):
            if arrays.host_place[h] != place or not preferences.saved[row, h] > 0.0:
                continue
            for i in range(preferences.reader_ptr[row], preferences.reader_ptr[row + 1]):
                reader = preferences.readers[i]
                if schedule.finish[reader] < 0.0 and preferences.penalty[reader, h] < np.inf:
                    preferences.penalty[reader, h] -= preferences.saved[row, h]
                    _move_up(preferences, reader, h)


@leaf
def _move_up(preferences: Preferences, job: int, host: int) -> None:
    """Restore the order of a host's preferences after the penalty of a job has fallen."""
    order, at = preferences.order, 0
    while order[host, at] != job:
        at += 1
    penalty = preferences.penalty[job, host]
    while at > 0 and preferences.penalty[order[host, at - 1], host] > penalty:
        order[host, at] = order[host, at - 1]
        at -= 1
    order[host, at] = job


@entry(nogil=True)
def dispatch_jobs(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    preferences: Preferences,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
    placed_order: Ints,
) -> float:
    """Place all jobs from an empty schedule, deciding hosts; returns the latest end, FAILED or more if one is left.

    The last jobs of the order of the decisions are placed by the time at which they deliver. Hosts are written to the
    decisions. O(jobs * jobs looked at) placements.
    """
    hosts, n = len(arrays.host_place), len(decisions.order)
    closed, deferred = np.zeros(hosts, np.int32), np.zeros(hosts, np.int32)
    soonest = np.zeros(hosts)
    end = 0.0
    for placed in range(n):
        job, host = -1, -1
        closed[:] = 0
        deferred[:] = 0
        while job < 0 and n - placed > preferences.last:
            host, free, other = _next_host(arrays, usage, closed, soonest)
            if host < 0:
                break
            job, start = _best_job(
                arrays, decisions, host, free, other, preferences, links, usage, copies, schedule, work
            )
            if job < 0:
                closed[host] = 1
            elif start > other and deferred[host] == 0:
                # It has a free core but waits for a disk or a link: another host comes first.
                soonest[host] = start
                deferred[host] = 1
                job = -1
        if job < 0:
            job, host = _first_ready(arrays, decisions.order, schedule), -1
            if job >= 0:
                host = _soonest_host(
                    arrays, decisions, job, preferences.penalty, links, usage, copies, schedule, work
                )
        if host < 0 or links.used[1] or usage.used[1]:
            schedule.state[1] = max(0, job)
            return FAILED * (1.0 + (n - placed) / n)
        decisions.host[job] = host
        if not place_job(arrays, decisions, job, host, 0.0, links, usage, copies, schedule, work):
            schedule.state[1] = job
            return FAILED * (1.0 + (n - placed) / n)
        placed_order[placed] = job
        _prefer_readers(arrays, preferences, job, host, schedule)
        end = max(end, schedule.delivered[job])
    return end
