"""The sweep that SimGrid and the replay both simulate, and its plan: as a case file, and as a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.registry import make
from headrace.simulator.replay.dependencies import by_core

CLUSTERS = ((4, 1.0), (6, 0.7), (12, 0.3))
"""Hosts of each cluster, and the share of them that is available."""
UPLINK = 10_000.0
TASKS_IN_CHUNK = 50


def grid() -> Platform:
    """Three clusters with a file system each, behind uplinks of 10 KB/s that transfers share."""
    sites = [
        Site(f"c{c}", tuple(Host(f"c{c}h{i}", rate) for i in range(hosts)), uplink=UPLINK)
        for c, (hosts, rate) in enumerate(CLUSTERS)
    ]
    return Platform((*sites, Site("origin")), contention="fair", origin="origin", name="three-clusters")


def sweep(tasks: int, shared: int, seed: int = 0) -> Program:
    """Chunks of 50 tasks that share a file of so many bytes; two inputs and an output of each task's own.

    Sizes are whole bytes, since SimGrid's Python binding takes no others.
    """
    rng = np.random.default_rng([seed, 13])
    program = Program(f"sweep-{tasks}")
    own = rng.integers(8_000, 12_001, (tasks, 3))
    work = rng.uniform(90, 110, tasks)
    for t in range(tasks):
        if t % TASKS_IN_CHUNK == 0:
            file = program.input(f"shared{t // TASKS_IN_CHUNK}", size=float(shared))
        inputs = [program.input(f"in{t}.{i}", size=float(own[t, i])) for i in range(2)]
        program.task(
            name=f"t{t}",
            inputs=[file, *inputs],
            outputs={f"out{t}": float(own[t, 2])},
            work=float(work[t]),
        )
    return program


def planned(tasks: int, shared: int) -> Plan:
    """A plan for the grid; its decisions are what both sides carry out."""
    quick = replace(grid(), contention="none")
    plan = make("heft").plan(Problem(sweep(tasks, shared).graph, quick))
    return replace(plan, platform=grid())


def as_case(plan: Plan, ahead: int) -> dict[str, Any]:
    """The same for SimGrid: tasks of each host in order, what they read, how long they take."""
    graph = plan.graph
    ordered = by_core(plan)
    hosts = [(c, rate) for c, (count, rate) in enumerate(CLUSTERS) for _ in range(count)]
    return {
        "uplinks": [UPLINK] * len(CLUSTERS),
        "hosts": hosts,
        "order": [ordered[plan.host[ordered] == h].tolist() for h in range(len(hosts))],
        "ahead": ahead,
        "work": graph.work.tolist(),
        "inputs": [graph.reads_of(t).tolist() for t in range(graph.n_tasks)],
        "output": [float(graph.size[graph.writes_of(t)].sum()) for t in range(graph.n_tasks)],
        "size": graph.size.tolist(),
        "shared": np.flatnonzero(np.diff(graph.reader_ptr) > 1).tolist(),
    }
