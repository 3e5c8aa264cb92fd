"""Run times that a program gives for each architecture of a platform.

A task with times (600, 500, 600) has work 600 and the speeds (1.0, 1.2, 1.0): on each architecture, next to the first.
Tasks of one kind with the same speeds form a speed class; each class is a row of `Platform.rates`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.model.errors import BadProgram
from headrace.model.graph import SpeedClasses


def arch_speeds(times: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """Work and speeds of a task with these run times, one for each architecture.

    >>> arch_speeds([600, 500, 600]), arch_speeds([90.0])
    ((600.0, (1.0, 1.2, 1.0)), (90.0, (1.0,)))
    """
    if not all(math.isfinite(t) and t >= 0 for t in times) or not times:
        raise BadProgram(f"run times are {list(times)[:8]}", hint="give seconds of 0 or more, at least one")
    first = float(times[0])
    if any((t == 0) != (first == 0) for t in times):
        raise BadProgram(f"run times are {list(times)[:8]}", hint="give times above 0, or 0 for all of them")
    return first, tuple(first / t if t > 0 else 1.0 for t in times)


def speed_classes(kind: Sequence[int], speeds: Sequence[tuple[float, ...]]) -> SpeedClasses | None:
    """Tasks of one kind and with the same speeds form a class; None if no task has any: O(tasks * architectures).

    >>> speed_classes([0, 0, 1], [(1.0, 2.0), (), (1.0, 2.0)]).class_kind.tolist()
    [0, 0, 1]
    """
    width = max(map(len, speeds), default=0)
    if width == 0:
        return None
    classes: dict[tuple[int, tuple[float, ...]], int] = {}
    of_task = [classes.setdefault(pair, len(classes)) for pair in zip(kind, speeds, strict=True)]
    table = np.full((len(classes), width), np.nan)
    for row, (_, given) in enumerate(classes):
        table[row, : len(given)] = given
    return SpeedClasses(np.array(of_task, np.int32), np.array([k for k, _ in classes], np.int32), table)
