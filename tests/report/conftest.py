"""Plans made up for drawing: random but fixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headrace.model.graph import make_graph
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Host, Platform, Site


def made_up(
    hosts: int = 4,
    tasks: int = 100,
    *,
    cores: int = 1,
    kinds: tuple[str, ...] = ("cut", "filter", "stitch"),
    moves: int = 0,
    host_name: str = "node{}",
    task_name: str = "t{}",
    bound: float = 0.9,
) -> Plan:
    random = np.random.default_rng(1)
    lab = Site("lab", tuple(Host(host_name.format(i), cores=cores) for i in range(hosts)), bandwidth=1e6)
    row = random.integers(0, hosts * cores, tasks)
    length = random.lognormal(0, 0.8, tasks)
    start = np.zeros(tasks)
    for r in range(hosts * cores):
        there = np.flatnonzero(row == r)
        start[there] = np.concatenate(([0.0], np.cumsum(length[there])[:-1])) if len(there) else start[there]
    graph = make_graph(
        work=length,
        size=np.full(tasks, 1e6),
        producer=np.arange(tasks),
        read_ptr=np.zeros(tasks + 1),
        reads=[],
        kind=random.integers(0, len(kinds), tasks),
        kinds=kinds,
        task_names=[task_name.format(i) for i in range(tasks)],
        name="mosaic",
    )
    transfers = dict(NO_MOVES)
    if moves:
        item = random.integers(0, tasks, moves).astype(np.int32)
        begin = random.random(moves) * start.max()
        source = (row[item] // cores).astype(np.int32)
        target = ((source + 1) % hosts).astype(np.int32)
        transfers = {"move_item": item, "move_source": source, "move_target": target}
        transfers |= {"move_start": begin, "move_finish": begin + 0.3}
    finish = start + length
    return Plan(
        graph,
        Platform((lab,), name="lab"),
        "heft",
        host=(row // cores).astype(np.int32),
        core=(row % cores).astype(np.int32),
        start=start,
        finish=finish,
        bound=bound * float(finish.max(initial=0.0)),
        notes=("inputs are everywhere",),
        **transfers,
    )


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    return made_up
