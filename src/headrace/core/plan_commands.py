"""Convert a plan made during a run to commands: ranked queues, transfers with sources, and predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.core.replan_interval import Moving, Running, SubTask
from headrace.core.scheduler import AssignMany, Deliver, DiskOrder, Fetch
from headrace.model.check import check
from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan

if TYPE_CHECKING:
    from headrace.core.view import RunView


def in_order_of_start(view: RunView, plan: Plan) -> Ints:
    """All tasks by planned start; at the same moment, those that take no time come first, by level."""
    if view.policy.task_order != "planned":
        return np.argsort(plan.start, kind="stable").astype(np.int32)
    takes_time = plan.finish > plan.start
    tie = np.zeros(len(plan.start), np.int32) if takes_time.all() else plan.graph.level
    return np.lexsort((np.arange(len(plan.start)), tie, takes_time, plan.start)).astype(np.int32)


def up_to(plan: Plan, order: Ints, limit: float) -> Ints:
    """From tasks in order of start, those that start by the limit, and one more for each core."""
    late = np.flatnonzero(plan.start[order] > limit)
    chosen = np.ones(len(order), np.bool_)
    cores = np.array([host.cores for host in plan.platform.hosts])
    hosts = plan.host[order[late]]
    by_host = np.argsort(hosts, kind="stable")
    counts = np.bincount(hosts, minlength=len(cores))
    place = np.arange(len(late)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen[late[by_host]] = place < cores[hosts[by_host]]
    return order[chosen]


def assignment(view: RunView, plan: Plan, order: Ints, kept: int) -> AssignMany:
    """Assign tasks with their planned starts as ranks, behind the tasks that stay in each queue."""
    hosts = np.array([view.host_number[host.name] for host in plan.platform.hosts], np.int32)
    base = np.full(len(hosts), view.time)
    for k, host in enumerate(hosts.tolist()) if kept else ():
        base[k] = max([view.time, *(float(view.state.rank[t]) for t in view.queue(host, kept))])
    ranks = base[plan.host[order]] + plan.start[order]
    if view.policy.task_order == "planned" and (plan.finish <= plan.start).any():
        ranks = _increasing(ranks)
    names = plan.graph.task_names
    tasks = np.array([view.task_number[names[t]] for t in order.tolist()], np.int32)
    return AssignMany(tasks, hosts[plan.host[order]], ranks, in_order=True)


def _increasing(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks made strictly increasing, so that ties keep their order."""
    made = ranks.tolist()
    last: dict[float, float] = {}
    for k, rank in enumerate(made):
        if rank in last:
            made[k] = float(np.nextafter(last[rank], np.inf))
        last[rank] = made[k]
    return np.array(made)


def transfers_for(view: RunView, plan: Plan, order: Ints) -> NDArray[np.int64]:
    """The transfers to request for the dispatched tasks, in planned order.

    If routes are not fixed, only fifo links have an order, and only transfers up to the last planned start are
    requested in advance.
    """
    planned = view.policy.routes == "planned"
    if not planned and view.platform.contention != "fifo":
        return np.empty(0, np.int64)
    handed = np.zeros(plan.graph.n_tasks, np.bool_)
    handed[order] = True
    producer = plan.graph.producer[plan.move_item]
    made = (producer < 0) | handed[producer]
    whole = planned and len(order) == plan.graph.n_tasks
    last = np.inf if whole else float(plan.start[order[-1]]) if len(order) else 0.0
    size = plan.graph.size[plan.move_item]
    moves = np.lexsort((np.arange(len(size)), plan.move_finish, size, plan.move_start))
    return moves[(plan.move_start[moves] <= last) & made[moves]]


def fetches(plan: Plan, moves: NDArray[np.int64], now: float, prefetch: bool) -> list[Fetch]:
    """Planned transfers as commands, ranked by planned start.

    `prefetch`: the plan assumes that inputs are sent for as many tasks ahead as the run prefetches.
    """
    places, items = plan.platform.network.place_names, plan.graph.item_names
    ahead = _towards_readers(plan) if prefetch else np.zeros(len(plan.move_item), np.bool_)
    return [
        Fetch(
            items[plan.move_item[k]],
            places[plan.move_source[k]],
            places[plan.move_target[k]],
            now + float(plan.move_start[k]),
            bool(ahead[k]),
            plan.in_turn,
        )
        for k in moves.tolist()
    ]


def _towards_readers(plan: Plan) -> Bools:
    """Which transfers bring an item to tasks that read it, or on its way there: O((reads + transfers) log * hops)."""
    graph, network = plan.graph, plan.platform.network
    source = plan.move_item.astype(np.int64) * network.n_places + plan.move_source
    target = plan.move_item.astype(np.int64) * network.n_places + plan.move_target
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    towards = np.isin(
        target, graph.reads.astype(np.int64) * network.n_places + network.host_place[plan.host[reader]]
    )
    while (onward := np.isin(target, source[towards]) & ~towards).any():
        towards |= onward
    return towards


def deliveries(view: RunView, plan: Plan) -> list[Deliver]:
    """Where the plan delivers results that may go to one of several places: O(items + transfers) if there are any."""
    graph = plan.graph
    several = np.flatnonzero(np.diff(graph.destinations.ptr) > 1)
    if not len(several):
        return []
    allowed = graph.destinations.places_by_item(graph, plan.platform)
    names, host_place = plan.platform.network.place_names, plan.platform.network.host_place
    chosen: dict[int, int] = {}
    for item in several.tolist():
        maker = int(graph.producer[item])
        made = int(host_place[plan.host[maker]]) if maker >= 0 else -1
        if made in allowed[item]:
            chosen[item] = made
    for k in np.lexsort((np.arange(len(plan.move_item)), plan.move_finish)).tolist():
        item, target = int(plan.move_item[k]), int(plan.move_target[k])
        if target in allowed.get(item, ()):
            chosen.setdefault(item, target)
    found = [item for item in several.tolist() if item in chosen]
    items = np.array([view.item_number[graph.item_names[item]] for item in found], np.int32)
    places = np.array([view.place_number[names[chosen[item]]] for item in found], np.int32)
    return [Deliver(items, places)] if len(items) else []


def disk_order(view: RunView, plan: Plan, order: Ints, moves: NDArray[np.int64]) -> list[DiskOrder]:
    """The planned order in which tasks and transfers take up storage that could fill up, if all tasks of the run are
    planned and the plan keeps the limits. O(n log n) in tasks and transfers, and a check of the plan."""
    # A site that has room for a copy of every item at each of its places cannot fill up.
    copies = np.bincount(view.static.place_site, minlength=len(view.static.storage))
    limited = view.static.storage < copies * float(plan.graph.size.sum())
    whole = len(order) == plan.graph.n_tasks == view.graph.n_tasks and view.policy.task_order == "planned"
    if not limited.any() or not whole:
        return []
    found = check(plan.graph, plan.platform, plan)
    if any(v.rule == "storage" for v in found):
        return []
    hosts = np.array([view.host_number[host.name] for host in plan.platform.hosts], np.int32)
    tasks = np.array([view.task_number[plan.graph.task_names[t]] for t in order.tolist()], np.int32)
    items = np.array([view.item_number[name] for name in plan.graph.item_names], np.int32)[plan.move_item]
    sent = moves[~view.static.no_transfer[items[moves]]]
    names = plan.platform.network.place_names
    targets = [view.place_number[names[place]] for place in plan.move_target[sent].tolist()]
    place = np.concatenate((view.static.host_place[hosts[plan.host[order]]], np.array(targets, np.int32)))
    task = np.concatenate((tasks, np.full(len(sent), -1, np.int32)))
    item = np.concatenate((np.full(len(tasks), -1, np.int32), items[sent]))
    start = np.concatenate((plan.start[order], plan.move_start[sent]))
    # At the same moment as in the queues of hosts and links: another order than theirs would stop the run.
    later = np.concatenate((2 * (plan.finish > plan.start)[order], np.ones(len(sent), np.int64)))
    by_time = np.lexsort((np.arange(len(task)), later, start))
    by_time = by_time[limited[view.static.place_site[place[by_time]]]]
    return [DiskOrder(task[by_time], item[by_time], place[by_time])]


def under_way_then(view: RunView, kept: int, moment: float) -> list[SubTask]:
    """Running and queued sub-tasks that are predicted to be active `moment` seconds from now."""
    found: list[SubTask] = [
        Running(slot.task, slot.host)
        for slot in view.timetable(kept).slots
        if slot.start <= moment < slot.end
    ]
    if view.platform.contention == "fifo":
        carried = view.in_flight(kept).carried
        found += [Moving(row.item, row.target, row.link) for row in carried if row.start <= moment < row.end]
    return found


def planned_then(
    view: RunView, plan: Plan, order: Ints, moves: NDArray[np.int64], moment: float
) -> list[SubTask]:
    """Newly planned sub-tasks that are predicted to be active `moment` seconds from now."""
    hosts, names = plan.platform.hosts, plan.platform.network.place_names
    found: list[SubTask] = [
        Running(view.task_number[plan.graph.task_names[t]], view.host_number[hosts[plan.host[t]].name])
        for t in order[_during(plan.start[order], plan.finish[order], moment)].tolist()
    ]
    if view.platform.contention != "fifo":
        return found
    for k in moves[_during(plan.move_start[moves], plan.move_finish[moves], moment)].tolist():
        source = view.place_number[names[plan.move_source[k]]]
        target = view.place_number[names[plan.move_target[k]]]
        link = int(view.static.route_bottleneck[source * len(view.place_number) + target])
        found.append(Moving(int(plan.move_item[k]), target, link))
    return found


def _during(start: NDArray[np.float64], finish: NDArray[np.float64], moment: float) -> Bools:
    return np.asarray((start <= moment) & (moment < finish))


def on_wide_hosts(plan: Plan) -> Plan:
    """The plan with multi-core tasks moved to hosts with enough cores, because most planners ignore cores.

    Each goes to the host where it would finish first after the tasks planned there; at run time it waits for free
    cores.
    """
    cores = np.array([host.cores for host in plan.platform.hosts])
    graph = plan.graph
    narrow = np.flatnonzero(graph.cores > cores[plan.host])
    if not len(narrow):
        return plan
    rates, host = plan.platform.rates(graph), plan.host.copy()
    ends = np.zeros(len(cores))
    np.maximum.at(ends, plan.host, plan.finish)
    for task in narrow[np.argsort(plan.start[narrow], kind="stable")].tolist():
        wide = np.flatnonzero(cores >= graph.cores[task])
        after = ends[wide] + graph.work[task] / rates[graph.speed_class[task], wide]
        if len(wide):
            host[task] = wide[np.argmin(after)]
            ends[host[task]] = after.min()
    return replace(plan, host=host)
