"""Consistency check of the coordinator's state; tests run it after every event."""

from __future__ import annotations

from collections import Counter

import numpy as np

from headrace.core import state as s
from headrace.core.state import CoordinatorState, StaticProblem
from headrace.model.graph import Ints


def validate(problem: StaticProblem, state: CoordinatorState) -> None:
    """Raise AssertionError, naming the first inconsistency found: O(tasks + copies + requests)."""
    _tasks(problem, state)
    _queues(problem, state)
    _loads(problem, state)
    _copies(problem, state)
    _transfers(problem, state)
    _requests(problem, state)


def _require(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(f"coordinator state: {message}")


def chain(following: Ints, first: int) -> list[int]:
    """The entries of a linked list; raises AssertionError for a cycle."""
    found: list[int] = []
    while first >= 0:
        found.append(first)
        _require(len(found) <= len(following), "a list has a cycle")
        first = int(following[first])
    return found


def _tasks(problem: StaticProblem, state: CoordinatorState) -> None:
    done, running, queued = state.done == 1, state.run_host >= 0, state.assigned >= 0
    _require(not (done & running).any(), "a task is both done and running")
    _require(not (running & queued).any(), "a task is both running and queued")
    _require(int(done.sum()) == int(state.counters[s.DONE]), "wrong count of finished tasks")
    reader = np.repeat(np.arange(len(done)), np.diff(problem.read_ptr))
    absent = np.bincount(reader[state.exists[problem.reads] == 0], minlength=len(done))
    waits = ~done & ~running
    _require((state.missing_inputs[waits] >= absent[waits]).all(), "wrong count of missing inputs")
    busy = np.zeros(len(state.host_up), np.int64)
    for host in range(len(busy)):
        busy[host] = int((state.core_task[problem.core_ptr[host] : problem.core_ptr[host + 1]] >= 0).sum())
    _require((busy == state.busy_cores).all(), "wrong count of busy cores")
    _require((state.busy_cores[state.host_up == 0] == 0).all(), "a host that is down is running a task")


def _queues(problem: StaticProblem, state: CoordinatorState) -> None:
    hosts = len(state.host_up)
    for host in range(hosts):
        tasks = chain(state.queue_next, int(state.queue_head[host]))
        _require(len(tasks) == state.queue_length[host], f"wrong length of the queue of host {host}")
        _require(
            all(state.assigned[t] == host for t in tasks), f"an unassigned task in the queue of host {host}"
        )
        startable = chain(state.startable_next, int(state.startable_head[host]))
        ready = {t for t in tasks if state.missing_inputs[t] == 0 and state.absent_inputs[t] == 0}
        _require(set(startable) == ready, f"wrong list of startable tasks on host {host}")
        if not state.host_up[host]:
            _require(not tasks, f"host {host} is down and has a queue")
    pool = chain(state.queue_next, int(state.queue_head[hosts]))
    free = (state.done == 0) & (state.run_host < 0) & (state.assigned < 0) & (state.missing_inputs == 0)
    _require(sorted(pool) == np.flatnonzero(free).tolist(), "wrong pool of ready tasks without a host")
    _require(len(pool) == state.counters[s.READY], "wrong count of ready tasks")


def _loads(problem: StaticProblem, state: CoordinatorState) -> None:
    up, queued = state.host_up == 1, state.queue_length[:-1]
    free = np.diff(problem.core_ptr) - state.busy_cores
    running = state.run_host[state.run_host >= 0]
    _require((np.bincount(running, minlength=len(up)) == state.running).all(), "wrong count of running tasks")
    starts = np.bincount(running, state.run_start[state.run_host >= 0], len(up))
    _require(np.allclose(starts, state.start_sum, 1e-9, 1e-9), "wrong sum of starts")
    _require(int(up.sum()) == state.counters[s.HOSTS_UP], "wrong count of hosts that are up")
    for hosts, counter, mask, what in (
        (state.idle_hosts, s.IDLE_HOSTS, up & (queued == 0) & (free > 0), "idle"),
        (state.crowded_hosts, s.CROWDED_HOSTS, up & (queued > free), "crowded"),
    ):
        listed = hosts[: int(state.counters[counter])]
        _require(sorted(listed.tolist()) == np.flatnonzero(mask).tolist(), f"wrong list of {what} hosts")
        _require(
            (state.load_position[listed] == np.arange(len(listed))).all(), f"wrong position of {what} hosts"
        )


def _copies(problem: StaticProblem, state: CoordinatorState) -> None:
    used = int(state.counters[s.COPIES])
    pairs = list(zip(state.copy_item[:used].tolist(), state.copy_place[:used].tolist(), strict=True))
    _require(len(set(pairs)) == used, "two copy records for one item and place")
    present = (state.copy_status[:used] == s.PRESENT) & (state.place_up[state.copy_place[:used]] == 1)
    count = np.bincount(state.copy_item[:used][present], minlength=len(state.exists))
    _require((count == state.copy_count).all(), "wrong count of copies")
    _require((state.copy_count[state.exists == 0] == 0).all(), "an item that does not exist has a copy")
    needed: Counter[tuple[int, int]] = Counter()
    for task in range(len(state.done)):
        hosts = [int(h[task]) for h in (state.assigned, state.run_host, state.duplicate_host) if h[task] >= 0]
        for host in hosts:
            for item in problem.reads[problem.read_ptr[task] : problem.read_ptr[task + 1]].tolist():
                if not problem.no_transfer[item]:
                    needed[item, int(problem.host_place[host])] += 1
    for record, pair in enumerate(pairs):
        _require(state.copy_needed[record] == needed[pair], f"wrong count of readers of (item, place) {pair}")


def _transfers(problem: StaticProblem, state: CoordinatorState) -> None:
    places = len(state.place_up)
    busy = np.zeros(len(state.link_up), np.int64)
    for transfer in state.live_transfers[: int(state.counters[s.TRANSFERS])].tolist():
        at = int(state.transfer_source[transfer]) * places + int(state.transfer_target[transfer])
        links = problem.route_links[problem.route_ptr[at] : problem.route_ptr[at + 1]]
        in_use = links[state.link_holder[links] == transfer] if state.transfer_in_turn[transfer] else links
        np.add.at(busy, in_use, 1)
    live = set(state.live_transfers[: int(state.counters[s.TRANSFERS])].tolist()) | {-1}
    _require(set(state.link_holder.tolist()) <= live, "a link is busy with a transfer that has ended")
    _require((busy == state.link_busy).all(), "wrong count of transfers on a link")
    if problem.policy[s.CONTENTION] == s.FIFO:
        _require((busy <= 1).all(), "a fifo link is busy with two transfers")


def _requests(problem: StaticProblem, state: CoordinatorState) -> None:
    queued = [
        r
        for q in range(len(state.request_head))
        for r in chain(state.request_next, int(state.request_head[q]))
    ]
    planned = state.copy_request[: int(state.counters[s.COPIES])]
    _require(
        int((planned >= 0).sum()) == state.counters[s.PLANNED_REQUESTS], "wrong count of planned requests"
    )
    waiting = [
        r for r in planned[planned >= 0].tolist() if state.request_mode[r] in (s.WAITING, s.ORDERED, s.HELD)
    ]
    _require(len(set(queued) | set(waiting)) == state.counters[s.REQUESTS], "wrong count of requests")
    _require(not set(queued) & set(waiting), "a request is both queued and in a planned order")
    for request in planned[planned >= 0].tolist():
        status = [
            int(state.copy_status[r])
            for r in range(int(state.counters[s.COPIES]))
            if state.copy_item[r] == state.request_item[request]
            and state.copy_place[r] == state.request_target[request]
        ]
        _require(status == [s.REQUESTED], f"wrong copy status at the target of planned request {request}")
    ordered = {r for r in waiting if state.request_mode[r] == s.ORDERED}
    listed = set()
    for link in range(len(state.link_up)):
        entries = chain(state.order_next, int(state.order_head[link]))
        ranks = [float(state.request_rank[e // problem.longest_route]) for e in entries]
        _require(ranks == sorted(ranks), f"the planned order on link {link} is not sorted by rank")
        listed |= {e // problem.longest_route for e in entries}
    _require(listed == ordered, "a request is missing from the planned order of a link")
