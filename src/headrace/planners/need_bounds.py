"""Lower bounds from memory and resources: what all tasks hold for as long as they run, spread over all hosts."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats
from headrace.model.needs import MEMORY, capacity


def need_areas(problem: Problem) -> list[tuple[str, Floats, float]]:
    """For each need and some prices of hosts: its name, what each task costs at least, and what all hosts are worth.

    While a task runs on a host it holds some of the need there, at the price of the host. Not for what some host has
    any amount of. O(tasks + hosts * kinds).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> tasks = [program.task(None, work=2.0, memory=3.0) for _ in range(4)]
    >>> [(name, float(area.sum()), most) for name, area, most in need_areas(
    ...     Problem(program.graph, hr.Platform.local(speeds=[2.0], cores=4, memory=6.0)))]
    [('memory over hosts', 12.0, 6.0), ('memory over hosts', 24.0, 12.0)]
    """
    graph, platform = problem.graph, problem.platform
    if not graph.needs.names:
        return []
    speed = np.array([host.speed * (1.0 - host.load) for host in platform.hosts])
    rate = platform.rates(graph)
    found = []
    for name, needed, has in zip(
        graph.needs.names, graph.needs.amount.T, capacity(platform, graph.needs.names).T, strict=True
    ):
        able = has > 0
        if not able.any() or np.isinf(has).any():
            continue
        what = "memory over hosts" if name == MEMORY else f"{name} over hosts"
        for price in (np.ones(len(speed)), speed):
            least = np.divide(price[able], rate[:, able]).min(axis=1)[graph.speed_class]
            found.append((what, needed * graph.work * least, float(has[able] @ price[able])))
    return found
