"""List schedules that decide hosts as they go: the host with the first free core takes the job that suits it best.

Where disks are small, hosts and an order that are fixed in advance leave cores idle: the next job waits for room
although another one would fit. Here both follow from the schedule itself. The last jobs go, the longest first, where
their results arrive first.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar, low_from, occupy
from headrace.arrays.compiling import entry, inner
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
    Workspace,
)
from headrace.planners.coschedule.schedule_jobs import FAILED


@inner
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


@inner
def _free_storage(arrays: InstanceArrays, usage: Calendar, work: Workspace) -> None:
    """Undo the reservations of an attempt."""
    hosts, places = len(arrays.host_place), len(arrays.site)
    for c in range(work.used[1]):
        site = arrays.site[work.claim_key[c] % places]
        if arrays.storage[site] < np.inf:
            size = arrays.size[work.claim_key[c] // places]
            occupy(usage, hosts + site, work.claim_start[c], work.claim_end[c], -size)


@inner
def _next_host(arrays: InstanceArrays, usage: Calendar, closed: Ints) -> tuple[int, float]:
    """The open host on which a core is free first, and when; ties: the lowest number. -1 if all are closed."""
    best, best_time = -1, np.inf
    for host in range(len(arrays.host_place)):
        if closed[host] == 0:
            time = max(low_from(usage, host, arrays.host_cores[host] - 1.0), arrays.host_free[host])
            if time < best_time:
                best, best_time = host, time
    return best, best_time


@inner
def _best_job(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    host: int,
    free: float,
    preferred: Ints,
    penalty: Floats,
    width: int,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> int:
    """Of the `width` jobs that this host prefers, the one with the least idle time plus penalty; -1 if none fits."""
    best, best_score, seen = -1, np.inf, 0
    for k in range(len(preferred)):
        job = preferred[k]
        if schedule.finish[job] >= 0.0 or arrays.seconds[job, host] == np.inf:
            continue
        if not can_follow(arrays, job, schedule):
            continue
        start, _ = _probe(arrays, decisions, job, host, links, usage, copies, schedule, work)
        score = max(0.0, start - free) + penalty[job, host]
        if score < best_score:
            best, best_score = job, score
        seen += 1
        if seen == width:
            break
    return best


@inner
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


@inner
def _first_ready(arrays: InstanceArrays, order: Ints, schedule: JobSchedule) -> int:
    for job in order:
        if schedule.finish[job] < 0.0 and can_follow(arrays, job, schedule):
            return int(job)
    return -1


@entry
def dispatch_jobs(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    preferred: Ints,
    penalty: Floats,
    width: int,
    last: int,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
    placed_order: Ints,
) -> float:
    """Place all jobs from an empty schedule, deciding hosts; returns the latest end, FAILED or more if one is left.

    `preferred` [hosts, jobs] lists the jobs by preference of each host and `penalty` [jobs, hosts] is added to idle
    seconds; inf: not there. The last `last` jobs of the order of the decisions are placed by the time at which they
    deliver. Hosts are written to the decisions. O(jobs * width) placements.
    """
    hosts, n = len(arrays.host_place), len(decisions.order)
    closed = np.zeros(hosts, np.int32)
    end = 0.0
    for placed in range(n):
        job, host = -1, -1
        closed[:] = 0
        while job < 0 and n - placed > last:
            host, free = _next_host(arrays, usage, closed)
            if host < 0:
                break
            closed[host] = 1
            job = _best_job(
                arrays,
                decisions,
                host,
                free,
                preferred[host],
                penalty,
                width,
                links,
                usage,
                copies,
                schedule,
                work,
            )
        if job < 0:
            job = _first_ready(arrays, decisions.order, schedule)
            host = (
                _soonest_host(arrays, decisions, job, penalty, links, usage, copies, schedule, work)
                if job >= 0
                else -1
            )
        if host < 0 or links.used[1] or usage.used[1]:
            schedule.state[1] = max(0, job)
            return FAILED * (1.0 + (n - placed) / n)
        decisions.host[job] = host
        if not place_job(arrays, decisions, job, host, 0.0, links, usage, copies, schedule, work):
            schedule.state[1] = job
            return FAILED * (1.0 + (n - placed) / n)
        placed_order[placed] = job
        end = max(end, schedule.delivered[job])
    return end
