"""The schedule of one site with a small disk, simulated from a list of its jobs.

At each moment the first jobs of the list with all inputs start, and idle links take the next input in the order of the
list if it fits on the disk, or the first result. A copy is only begun if all jobs with copies on the disk could still
end one after another in the order of the list (the banker's algorithm), so that the disk is not full of inputs that
wait for each other.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, leaf
from headrace.planners.coschedule.instance import EXCESS
from headrace.planners.coschedule.site_records import SiteArrays, SiteRun

ABSENT, COMING, HERE = 0, 1, 2
TIME, USED, HELD, RELEASE = 0, 1, 2, 3
LOW, HIGH, QUEUE_LOW, QUEUE_HIGH, MOVES, SENT, STEPS = 0, 1, 2, 3, 4, 5, 6


@leaf
def _begin(arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int) -> int:
    """Reset to an empty site; returns the number of results."""
    for k in range(count):
        for e in range(arrays.read_ptr[jobs[k]], arrays.read_ptr[jobs[k] + 1]):
            item = arrays.reads[e]
            run.state[item] = ABSENT
            run.users[item] = 0
            run.waiting[item] = 0
    results = 0
    for k in range(count):
        job = jobs[k]
        run.position[job] = k
        run.started[k] = False
        run.begun[k] = 0
        run.own[k] = 0.0
        run.missing[k] = 0.0
        run.leaves[k] = 0.0
        run.delivered[job] = 0.0
        for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
            run.missing[k] += arrays.size[arrays.reads[e]]
            run.users[arrays.reads[e]] += 1
            run.waiting[arrays.reads[e]] += 1
        for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
            run.leaves[k] += arrays.size[arrays.writes[e]]
            results += 1
    run.core_job[:] = -1
    run.core_end[:] = np.inf
    run.line_job[:] = -1
    run.line_end[:] = np.inf
    run.level[:] = 0.0
    for k in range(STEPS):
        run.counter[k] = 0
    return results


@leaf
def _is_safe(run: SiteRun, room: float) -> bool:
    """Whether all jobs with inputs can end one after another if `room` is what the disk has for their other files."""
    for k in range(run.counter[LOW], run.counter[HIGH]):
        if run.begun[k] > 0 and not run.started[k]:
            if run.missing[k] + run.leaves[k] > room:
                return False
            room += run.own[k]
    return True


@leaf
def _idle_core(arrays: SiteArrays, run: SiteRun, site: int) -> int:
    for core in range(arrays.cores[site]):
        if run.core_job[core] < 0:
            return core
    return -1


@leaf
def _are_here(arrays: SiteArrays, run: SiteRun, job: int) -> bool:
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):  # noqa: SIM110 - compiled
        if run.state[arrays.reads[e]] != HERE:
            return False
    return True


@leaf
def _start_job(arrays: SiteArrays, run: SiteRun, job: int, k: int, core: int, site: int, room: float) -> bool:
    """Start a job on a core if its results fit on the disk and no other job is blocked by them."""
    if run.level[USED] + run.leaves[k] > room:
        return False
    freed = 0.0
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        if run.waiting[arrays.reads[e]] == 1:
            freed += arrays.size[arrays.reads[e]]
    run.started[k] = True
    if not _is_safe(run, room - (run.level[HELD] - freed)):
        run.started[k] = False
        return False
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        run.waiting[arrays.reads[e]] -= 1
    run.level[HELD] -= freed
    run.level[USED] += run.leaves[k]
    run.start[job] = run.level[TIME]
    run.core_job[core] = k
    run.core_end[core] = run.level[TIME] + arrays.seconds[site, job]
    return True


@leaf
def _start_jobs(arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, site: int, room: float) -> int:
    """Start jobs on idle cores; returns how many others have all inputs, or will have."""
    while run.counter[LOW] < count and run.started[run.counter[LOW]]:
        run.counter[LOW] += 1
    high = run.counter[HIGH]
    while high < count and arrays.read_ptr[jobs[high]] == arrays.read_ptr[jobs[high] + 1]:
        high += 1
    run.counter[HIGH] = high
    core, ready = _idle_core(arrays, run, site), 0
    for k in range(run.counter[LOW], run.counter[HIGH]):
        job = jobs[k]
        run.counter[STEPS] += 1
        if run.started[k] or run.begun[k] < arrays.read_ptr[job + 1] - arrays.read_ptr[job]:
            continue
        if core >= 0 and _are_here(arrays, run, job) and _start_job(arrays, run, job, k, core, site, room):
            core = _idle_core(arrays, run, site)
        else:
            ready += 1
    return ready


@leaf
def _count_copy(arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, item: int, sign: int) -> None:
    """Note for all readers at the site that a copy is sent (1), or that it is not (-1)."""
    size, alone = arrays.size[item], run.waiting[item] == 1
    for i in range(arrays.reader_ptr[item], arrays.reader_ptr[item + 1]):
        job = arrays.readers[i]
        k = run.position[job]
        if k < count and jobs[k] == job:
            run.begun[k] += sign
            run.missing[k] -= sign * size
            if alone:
                run.own[k] += sign * size
            if sign > 0 and k + 1 > run.counter[HIGH]:
                run.counter[HIGH] = k + 1


@leaf
def _send(arrays: SiteArrays, run: SiteRun, item: int, arc: int, k: int) -> None:
    line, size = arrays.line[arc], arrays.size[item]
    run.line_job[line] = k
    run.line_item[line] = item
    run.line_arc[line] = arc
    run.line_end[line] = run.level[TIME] + (arrays.latency[arc] + size / arrays.bandwidth[arc])
    run.move_item[run.counter[MOVES]] = item
    run.move_arc[run.counter[MOVES]] = arc
    run.move_start[run.counter[MOVES]] = run.level[TIME]
    run.counter[MOVES] += 1


@leaf
def _may_come(
    arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, item: int, arc: int, room: float
) -> bool:
    """Whether an input can be sent now; if so, its readers know."""
    moment = arrays.released[arc, item]
    if moment > run.level[TIME]:
        run.level[RELEASE] = min(run.level[RELEASE], moment)
        return False
    size = arrays.size[item]
    if run.level[USED] + size > room:
        return False
    high = run.counter[HIGH]
    _count_copy(arrays, run, jobs, count, item, 1)
    if _is_safe(run, room - run.level[HELD] - size):
        return True
    _count_copy(arrays, run, jobs, count, item, -1)
    run.counter[HIGH] = high
    return False


@leaf
def _send_input(
    arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, site: int, line: int, room: float
) -> bool:
    """Send an input of the first job that lacks one over an idle link; returns whether that is possible."""
    for i in range(arrays.in_ptr[site], arrays.in_ptr[site + 1]):
        arc = arrays.in_arcs[i]
        if arrays.line[arc] != line:
            continue
        for k in range(run.counter[LOW], count):
            job = jobs[k]
            run.counter[STEPS] += 1
            if run.begun[k] == arrays.read_ptr[job + 1] - arrays.read_ptr[job]:
                continue
            for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
                item = arrays.reads[e]
                if run.state[item] == ABSENT and _may_come(arrays, run, jobs, count, item, arc, room):
                    run.state[item] = COMING
                    run.level[USED] += arrays.size[item]
                    run.level[HELD] += arrays.size[item]
                    _send(arrays, run, item, arc, k)
                    return True
            break
    return False


@leaf
def _send_result(arrays: SiteArrays, run: SiteRun, site: int, line: int) -> bool:
    """Send the first result that an idle link leads to its destination; returns whether there is one."""
    for i in range(arrays.out_ptr[site], arrays.out_ptr[site + 1]):
        arc = arrays.out_arcs[i]
        if arrays.line[arc] != line:
            continue
        for q in range(run.counter[QUEUE_LOW], run.counter[QUEUE_HIGH]):
            item = run.queue_item[q]
            if run.queue_sent[q] or arrays.onward[arc, item] == np.inf:
                continue
            run.queue_sent[q] = True
            while run.counter[QUEUE_LOW] < run.counter[QUEUE_HIGH] and run.queue_sent[run.counter[QUEUE_LOW]]:
                run.counter[QUEUE_LOW] += 1
            _send(arrays, run, item, arc, run.queue_job[q])
            return True
    return False


@leaf
def _feed_links(
    arrays: SiteArrays,
    run: SiteRun,
    jobs: Int64s,
    count: int,
    site: int,
    room: float,
    inputs_first: bool,
) -> bool:
    """Let idle links take transfers; returns whether there was one."""
    sent = False
    run.level[RELEASE] = np.inf
    for line in range(arrays.lines[site]):
        if run.line_job[line] >= 0:
            continue
        if inputs_first:
            taken = _send_input(arrays, run, jobs, count, site, line, room)
            taken = taken or _send_result(arrays, run, site, line)
        else:
            taken = _send_result(arrays, run, site, line)
            taken = taken or _send_input(arrays, run, jobs, count, site, line, room)
        sent = sent or taken
    return sent


@leaf
def _next_moment(arrays: SiteArrays, run: SiteRun, site: int) -> float:
    moment = run.level[RELEASE]
    for core in range(arrays.cores[site]):
        moment = min(moment, run.core_end[core])
    for line in range(arrays.lines[site]):
        moment = min(moment, run.line_end[line])
    return float(moment)


@leaf
def _end_job(arrays: SiteArrays, run: SiteRun, job: int, k: int) -> None:
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        item = arrays.reads[e]
        run.users[item] -= 1
        if run.users[item] == 0:
            run.level[USED] -= arrays.size[item]
    for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
        last = run.counter[QUEUE_HIGH]
        run.queue_item[last] = arrays.writes[e]
        run.queue_job[last] = k
        run.queue_sent[last] = False
        run.counter[QUEUE_HIGH] += 1
    run.delivered[job] = run.level[TIME]


@leaf
def _end_move(arrays: SiteArrays, run: SiteRun, job: int, item: int, arc: int) -> None:
    if arrays.onward[arc, item] < 0.0:  # an input
        run.state[item] = HERE
        return
    run.level[USED] -= arrays.size[item]
    run.delivered[job] = max(run.delivered[job], run.level[TIME] + arrays.onward[arc, item])
    run.counter[SENT] += 1


@leaf
def simulate_site(arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, site: int, keep: int) -> bool:
    """Simulate the first `count` jobs of a list at a site; False if some result never leaves it.

    That is so if shared files that are kept for jobs at the end of the list leave no room for the next one.

    Links send results first once `keep` jobs wait with all inputs. O(events * (jobs with inputs + links)).
    """
    results = _begin(arrays, run, jobs, count)
    room = arrays.disk[site] * (1.0 + EXCESS)
    while run.level[TIME] < np.inf:
        again = True
        while again:
            ready = _start_jobs(arrays, run, jobs, count, site, room)
            hungry = ready < keep or _idle_core(arrays, run, site) >= 0
            again = _feed_links(arrays, run, jobs, count, site, room, hungry)
        moment = _next_moment(arrays, run, site)
        if moment == np.inf:
            break
        run.level[TIME] = moment
        for core in range(arrays.cores[site]):
            if run.core_end[core] <= moment:
                k = run.core_job[core]
                run.core_job[core] = -1
                run.core_end[core] = np.inf
                _end_job(arrays, run, jobs[k], k)
        for line in range(arrays.lines[site]):
            if run.line_end[line] <= moment:
                job = jobs[run.line_job[line]]
                run.line_job[line] = -1
                run.line_end[line] = np.inf
                _end_move(arrays, run, job, run.line_item[line], run.line_arc[line])
    return bool(run.counter[SENT] == results)


@entry
def simulated(arrays: SiteArrays, run: SiteRun, jobs: Int64s, count: int, site: int, keep: int) -> bool:
    """`simulate_site`, called from Python."""
    return simulate_site(arrays, run, jobs, count, site, keep)
