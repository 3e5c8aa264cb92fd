"""Carry a fixed plan out in virtual time.

What is fixed: the host and core of each task, the order of tasks on each core, the source and target of each
transfer and, where a link carries one transfer at a time, the order on each link. What follows: the times. A
task starts when its core is free and its inputs are there; a transfer when its data is at the source and its
links are free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.errors import BadPlan
from headrace.model.graph import OUTSIDE, Floats, Graph, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.simulator.kernels import carry_out, carry_out_fair


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Tasks 0..n-1 and transfers n..n+k-1 with their successors (CSR) and numbers of predecessors."""

    ptr: Ints
    successors: Ints
    waits: Ints


def replay(
    plan: Plan,
    *,
    work: Floats | None = None,
    holders: Mapping[int, tuple[int, ...]] | None = None,
) -> Plan:
    """The plan with the times that follow when it is carried out; `work` replaces the estimated run times.

    O((tasks + transfers) log) to build, then linear, without contention or with fifo links; with fair links
    every start and end of a transfer shares the bandwidth anew.
    """
    graph, platform = plan.graph, plan.platform
    work = graph.work if work is None else work
    duration = work / platform.rates(graph.kinds)[graph.kind, plan.host]
    network = platform.network
    n, k = graph.n_tasks, len(plan.move_item)
    if not holders:
        holders = graph.homes.places_by_item(graph, platform)
    depends = dependencies(plan, holders)
    latency = network.route_latency[network.zone[plan.move_source], network.zone[plan.move_target]]
    size = graph.size[plan.move_item]
    route_ptr, route_links = _routes(plan)
    if platform.contention == "fair":
        start, finish, reached = carry_out_fair(
            depends.ptr, depends.successors, depends.waits.copy(), np.concatenate((duration, np.zeros(k))),
            latency, size, route_ptr, route_links, network.link_bandwidth,
        )  # fmt: skip
    else:
        bandwidth = np.minimum(
            np.minimum(network.port[plan.move_source], network.port[plan.move_target]),
            network.route_bandwidth[network.zone[plan.move_source], network.zone[plan.move_target]],
        )
        seconds = np.concatenate((duration, latency + size / bandwidth))
        start, finish, reached = carry_out(depends.ptr, depends.successors, depends.waits.copy(), seconds)
    if reached < n + k:
        raise BadPlan(
            f"only {reached} of {n + k} tasks and transfers can be carried out: the rest wait for each other",
            where=f"plan for {graph.name}",
            hint="run `headrace check` on the plan to see what it breaks",
        )
    return replace(plan, start=start[:n], finish=finish[:n], move_start=start[n:], move_finish=finish[n:])


def dependencies(plan: Plan, holders: Mapping[int, tuple[int, ...]]) -> Dependencies:
    """What must come before what, from the plan's decisions alone."""
    before, after = [], []
    for pairs in (_core_order(plan), _inputs(plan, holders), _sources(plan, holders), _link_order(plan)):
        before.append(pairs[0])
        after.append(pairs[1])
    total = plan.graph.n_tasks + len(plan.move_item)
    source = np.concatenate(before).astype(np.int32)
    target = np.concatenate(after).astype(np.int32)
    by_source = np.argsort(source, kind="stable")
    ptr = np.zeros(total + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=total), out=ptr[1:])
    waits = np.bincount(target, minlength=total).astype(np.int32)
    return Dependencies(ptr, target[by_source], waits)


def _core_order(plan: Plan) -> tuple[Ints, Ints]:
    position = np.empty(plan.graph.n_tasks, np.int64)
    position[plan.graph.order] = np.arange(plan.graph.n_tasks)
    by_time = np.lexsort((position, plan.finish, plan.start, plan.core, plan.host))
    same = (np.diff(plan.host[by_time]) == 0) & (np.diff(plan.core[by_time]) == 0)
    return by_time[:-1][same], by_time[1:][same]


class _Deliveries:
    """Which transfer brings an item to a place."""

    def __init__(self, plan: Plan) -> None:
        self.places = plan.platform.network.n_places
        keys = plan.move_item.astype(np.int64) * self.places + plan.move_target
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, item: Ints, place: Ints) -> Ints:
        """The transfer for each (item, place), or -1."""
        wanted = item.astype(np.int64) * self.places + place
        at = np.searchsorted(self.keys, wanted)
        found = np.full(len(wanted), -1, np.int64)
        inside = at < len(self.keys)
        hit = np.flatnonzero(inside)[self.keys[at[inside]] == wanted[inside]]
        found[hit] = self.order[at[hit]]
        return found.astype(np.int32)


def _suppliers(
    plan: Plan, item: Ints, place: Ints, holders: Mapping[int, tuple[int, ...]], what: str
) -> tuple[Ints, Ints]:
    """For each (item, place) the node after which the item is there: (index, node) of those that have one."""
    graph, network = plan.graph, plan.platform.network
    maker = graph.producer[item]
    made_here = maker != OUTSIDE
    made_here[made_here] = (network.host_place[plan.host[maker[made_here]]] == place[made_here]) | (
        graph.size[item[made_here]] == 0
    )
    there = (maker == OUTSIDE) & (
        (network.origin == EVERYWHERE) | (place == network.origin) | (graph.size[item] == 0)
    )
    if holders:
        held = {(i, p) for i, places in holders.items() for p in places}
        for at in np.flatnonzero((maker == OUTSIDE) & (graph.size[item] > 0)).tolist():
            i, p = int(item[at]), int(place[at])
            there[at] = (i, p) in held if holders.get(i) else there[at]
    delivery = _Deliveries(plan).find(item, place)
    lacking = ~made_here & ~there & (delivery < 0)
    if lacking.any():
        at = int(np.flatnonzero(lacking)[0])
        raise BadPlan(
            f"item {graph.item_names[item[at]]!r} is needed at {network.place_names[place[at]]!r} {what}, "
            "but no transfer brings it",
            where=f"plan for {graph.name}",
            hint="run `headrace check` on the plan",
        )
    node = np.where(made_here, maker, np.where(there, -1, delivery + graph.n_tasks))
    index = np.flatnonzero(node >= 0)
    return index.astype(np.int32), node[index].astype(np.int32)


def _inputs(plan: Plan, holders: Mapping[int, tuple[int, ...]]) -> tuple[Ints, Ints]:
    graph: Graph = plan.graph
    reader = np.repeat(np.arange(graph.n_tasks, dtype=np.int32), np.diff(graph.read_ptr))
    place = plan.platform.network.host_place[plan.host[reader]]
    index, node = _suppliers(plan, graph.reads, place, holders, "by a task")
    return node, reader[index]


def _sources(plan: Plan, holders: Mapping[int, tuple[int, ...]]) -> tuple[Ints, Ints]:
    index, node = _suppliers(plan, plan.move_item, plan.move_source, holders, "for a transfer")
    return node, index + np.int32(plan.graph.n_tasks)


def _link_order(plan: Plan) -> tuple[Ints, Ints]:
    """Transfers that follow each other on a link that carries one at a time."""
    if plan.platform.contention != "fifo":
        return np.empty(0, np.int32), np.empty(0, np.int32)
    ptr, links = _routes(plan)
    move = np.repeat(np.arange(len(plan.move_item)), np.diff(ptr))
    by_time = np.lexsort((move, plan.move_finish[move], plan.move_start[move], links))
    same = np.diff(links[by_time]) == 0
    first, second = move[by_time][:-1][same], move[by_time][1:][same]
    return (first + plan.graph.n_tasks).astype(np.int32), (second + plan.graph.n_tasks).astype(np.int32)


def _routes(plan: Plan) -> tuple[Ints, Ints]:
    """The links of every transfer, as CSR."""
    network = plan.platform.network
    zones = len(network.route_bandwidth)
    at = network.zone[plan.move_source].astype(np.int64) * zones + network.zone[plan.move_target]
    first, count = network.route_ptr[at], network.route_ptr[at + 1] - network.route_ptr[at]
    move = np.repeat(np.arange(len(at)), count)
    inner = (
        network.route_links[
            np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(len(move))
        ]
        if len(move)
        else np.empty(0, np.int32)
    )
    out, into = network.out_port[plan.move_source], network.in_port[plan.move_target]
    everyone = np.arange(len(at))
    moves = np.concatenate((everyone[out >= 0], move, everyone[into >= 0]))
    links = np.concatenate((out[out >= 0], inner, into[into >= 0]))
    by_move = np.argsort(moves, kind="stable")
    ptr = np.zeros(len(at) + 1, np.int32)
    np.cumsum(np.bincount(moves, minlength=len(at)), out=ptr[1:])
    return ptr, links[by_move].astype(np.int32)
