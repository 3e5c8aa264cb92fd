"""Memory that tasks of a real run need, against what its hosts have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.model.units import show_size


def needs_memory(program: Program) -> bool:
    """Whether any task says how much memory it needs."""
    return any(task.memory > 0 for task in program.tasks.values())


def described_memory(platform: Platform) -> tuple[tuple[str, float], ...]:
    """The hosts whose memory is described, with it."""
    return tuple((host.name, host.memory) for host in platform.hosts if host.memory < math.inf)


def host_memory(client: Any, platform: Platform) -> dict[str, float]:
    """Bytes that each host has for tasks: as described, and no more than its worker may use."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = {str(about["name"]): about.get("memory_limit") or math.inf for about in workers}
    return {host.name: min(host.memory, limits.get(host.name, math.inf)) for host in platform.hosts}


def require_memory(program: Program, memory: Mapping[str, float], where: str) -> None:
    """Refuse tasks that no host has enough memory for.

    >>> program = Program()
    >>> _ = program.task(abs, name="large", memory="3 GB")
    >>> require_memory(program, {"a": 2e9, "b": 1e9}, "lab")
    Traceback (most recent call last):
        ...
    headrace.model.errors.NoPlan: lab: task 'large' needs 3 GB of memory, but no host has more than 2 GB (try: use...
    """
    most = max(memory.values(), default=math.inf)
    for task in program.tasks.values():
        if task.memory > most:
            raise NoPlan(
                f"task {task.name!r} needs {show_size(task.memory)} of memory,"
                f" but no host has more than {show_size(most)}",
                where=where,
                hint="use hosts with more memory, or fewer workers on a machine",
            )


def memory_constraints(
    program: Program, platform: Platform, memory: Mapping[str, float]
) -> Constraints | None:
    """Tasks run only on hosts that have enough memory for them; None if all have.

    >>> program = Program()
    >>> _ = program.task(abs, name="small"), program.task(abs, name="large", memory=9.0)
    >>> lab = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    >>> found = memory_constraints(program, lab, {"h0": 10.0, "h1": 5.0})
    >>> found.allowed[found.allowed_class].tolist()
    [[True, True], [True, False]]
    """
    has = np.array([memory[host.name] for host in platform.hosts])
    needs = np.array([task.memory for task in program.tasks.values()])
    if not len(needs) or needs.max() <= has.min():
        return None
    classes, of_task = np.unique(needs, return_inverse=True)
    return replace(
        Constraints.none(len(needs), len(has)),
        allowed_class=of_task.astype(np.int32),
        allowed=classes[:, None] <= has[None, :],
    )
