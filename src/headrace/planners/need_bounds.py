"""Lower bounds from memory and resources: what all tasks hold for as long as they run, spread over all hosts."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats
from headrace.model.needs import MEMORY, capacity


def need_areas(problem: Problem) -> list[tuple[str, Floats, float]]:
    """For each need: its name, amount times least run time of each task, and how much all hosts have.

    Not for what some host has any amount of. O(tasks + hosts * kinds).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> tasks = [program.task(None, work=2.0, memory=3.0) for _ in range(4)]
    >>> [(name, area.sum(), most) for name, area, most in need_areas(
    ...     Problem(program.graph, hr.Platform.local(1, cores=4, memory=6.0)))]
    [('memory over hosts', np.float64(24.0), 6.0)]
    """
    graph, platform = problem.graph, problem.platform
    if not graph.needs.names:
        return []
    has = capacity(platform, graph.needs.names).sum(axis=0)
    shortest = graph.work / platform.rates(graph).max(axis=1)[graph.speed_class]
    return [
        (
            "memory over hosts" if name == MEMORY else f"{name} over hosts",
            graph.needs.amount[:, k] * shortest,
            most,
        )
        for k, (name, most) in enumerate(zip(graph.needs.names, has.tolist(), strict=True))
        if 0 < most < np.inf
    ]
