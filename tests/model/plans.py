"""Plans for tests: written down by hand, or so simple that they must be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.model.check import check
from headrace.model.graph import Graph
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program


def plan_of(
    program: Program | Graph,
    platform: Platform,
    tasks: Sequence[tuple[int, int, float, float]],
    moves: Sequence[tuple[int, int, int, float, float]] = (),
    **more: Any,
) -> Plan:
    """Rows of (host, core, start, finish) and of (item, source, target, start, finish)."""
    graph = program.graph if isinstance(program, Program) else program
    host, core, start, finish = zip(*tasks, strict=True) if tasks else ((),) * 4
    item, source, target, begin, end = zip(*moves, strict=True) if moves else ((),) * 5
    return Plan(
        graph=graph,
        platform=platform,
        scheduler="by hand",
        host=np.array(host, np.int32),
        core=np.array(core, np.int32),
        start=np.array(start, np.float64),
        finish=np.array(finish, np.float64),
        move_item=np.array(item, np.int32),
        move_source=np.array(source, np.int32),
        move_target=np.array(target, np.int32),
        move_start=np.array(begin, np.float64),
        move_finish=np.array(end, np.float64),
        **more,
    )


def changed(plan: Plan, array: str, index: int, value: float) -> Plan:
    """The same plan with one entry of one array changed."""
    values = getattr(plan, array).copy()
    values[index] = value
    return replace(plan, **{array: values})


def without_move(plan: Plan, index: int) -> Plan:
    names = ("move_item", "move_source", "move_target", "move_start", "move_finish")
    return replace(plan, **{name: np.delete(getattr(plan, name), index) for name in names})


def rules(plan: Plan) -> list[str]:
    """The rules that a plan breaks, each once, in order of name."""
    return sorted({v.rule for v in check(plan.graph, plan.platform, plan)})


def serial_plan(graph: Graph, platform: Platform, host: int, core: int = 0) -> Plan:
    """Inputs come one after another, then all tasks run on one core, then results return one by one."""
    network = platform.network
    place, origin = int(network.host_place[host]), network.origin
    rate = platform.rates(graph)[:, host]
    clock = 0.0
    moves: list[tuple[int, int, int, float, float]] = []

    def move(items: list[int], source: int, target: int) -> None:
        nonlocal clock
        for item in items:
            end = clock + network.seconds(source, target, float(graph.size[item]))
            moves.append((item, source, target, clock, end))
            clock = end

    away = origin not in (EVERYWHERE, place)
    read = np.unique(graph.reads).tolist()
    if away:
        move([i for i in read if graph.producer[i] < 0 and graph.size[i] > 0], origin, place)
    start, finish = np.empty(graph.n_tasks), np.empty(graph.n_tasks)
    for t in graph.order.tolist():
        start[t], clock = clock, clock + graph.work[t] / rate[graph.speed_class[t]]
        finish[t] = clock
    if away:
        wanted = graph.result & (graph.producer >= 0) & (graph.size > 0)
        move(np.flatnonzero(wanted).tolist(), place, origin)
    tasks = [(host, core, float(start[t]), float(finish[t])) for t in range(graph.n_tasks)]
    return plan_of(graph, platform, tasks, moves)


def eager_plan(graph: Graph, platform: Platform, seed: int) -> Plan:
    """Tasks on hosts by chance, each as soon as its inputs and a core are there.

    Items come from any place that has them; under fifo each waits for its links, under fair for all
    transfers before it, so that nothing is shared.
    """
    rng = np.random.default_rng(seed)
    network = platform.network
    rates = platform.rates(graph)
    copies: dict[int, dict[int, float]] = {i: {} for i in range(graph.n_items)}
    for item in np.flatnonzero(graph.producer < 0).tolist():
        everywhere = range(network.n_places) if network.origin == EVERYWHERE else [network.origin]
        copies[item] = dict.fromkeys(everywhere, 0.0)
    free_link = np.zeros(network.n_links)
    free_core = [[0.0] * host.cores for host in platform.hosts]
    moves: list[tuple[int, int, int, float, float]] = []

    def bring(item: int, place: int) -> float:
        if place not in copies[item]:
            source = int(rng.choice(sorted(copies[item])))
            links = network.route(source, place)
            start = copies[item][source]
            if platform.contention == "fifo":
                start = max(start, float(free_link[links].max(initial=0.0)))
            elif platform.contention == "fair":
                start = max([start, *(end for *_, end in moves)])
            end = start + network.seconds(source, place, float(graph.size[item]))
            for link in links:
                free_link[link] = start + network.busy_seconds(source, place, float(graph.size[item]), link)
            moves.append((item, source, place, start, end))
            copies[item][place] = end
        return copies[item][place]

    rows: dict[int, tuple[int, int, float, float]] = {}
    for t in graph.order.tolist():
        host = int(rng.integers(len(platform.hosts)))
        place = int(network.host_place[host])
        ready = [0.0]
        for item in graph.reads_of(t).tolist():
            maker = int(graph.producer[item])
            if graph.size[item] > 0:
                ready.append(bring(item, place))
            elif maker >= 0:
                ready.append(rows[maker][3])
        core = free_core[host].index(min(free_core[host]))
        start = max(*ready, free_core[host][core])
        end = start + float(graph.work[t] / rates[graph.speed_class[t], host])
        free_core[host][core] = end
        rows[t] = (host, core, start, end)
        for item in graph.writes_of(t).tolist():
            copies[item][place] = end
    if network.origin != EVERYWHERE:
        for item in np.flatnonzero(graph.result & (graph.producer >= 0) & (graph.size > 0)).tolist():
            bring(item, network.origin)
    return plan_of(graph, platform, [rows[t] for t in range(graph.n_tasks)], moves)
