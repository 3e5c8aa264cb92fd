"""Run times that a program gives for each architecture of a grid, as kinds of tasks.

A task with times (600, 500, 600) has work 600 and the kind `arch:1.0,1.2,1.0`: its speed on each
architecture, next to the first. The name says it all, so it survives every format that knows kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.model.errors import BadPlatform, BadProgram

PREFIX = "arch:"


def arch_kind(times: Sequence[float]) -> tuple[float, str]:
    """Work and kind of a task with these run times, one for each architecture.

    >>> arch_kind([600, 500, 600]), arch_kind([90.0])
    ((600.0, 'arch:1.0,1.2,1.0'), (90.0, 'arch:1.0'))
    """
    if not all(math.isfinite(t) and t >= 0 for t in times) or not times:
        raise BadProgram(f"run times are {list(times)[:8]}", hint="give seconds of 0 or more, at least one")
    first = float(times[0])
    if any((t == 0) != (first == 0) for t in times):
        raise BadProgram(f"run times are {list(times)[:8]}", hint="give times above 0, or 0 for all of them")
    return first, PREFIX + ",".join(repr(first / t if t > 0 else 1.0) for t in times)


def arch_speeds(kind: str) -> tuple[float, ...] | None:
    """The speed on each architecture; None for a kind that does not name any.

    >>> arch_speeds("arch:1.0,1.2"), arch_speeds("fft")
    ((1.0, 1.2), None)
    """
    if not kind.startswith(PREFIX):
        return None
    try:
        speeds = tuple(float(part) for part in kind[len(PREFIX) :].split(","))
    except ValueError:
        return None
    return speeds if all(math.isfinite(s) and s > 0 for s in speeds) else None


def arch_speed(kind: str, arch: int) -> float:
    """Speed of a host of architecture `arch` for a kind, next to architecture 0; 1 if the kind names none.

    >>> arch_speed("arch:1.0,1.2", 1), arch_speed("fft", 1)
    (1.2, 1.0)
    """
    speeds = arch_speeds(kind)
    if speeds is None:
        return 1.0
    if arch >= len(speeds):
        raise BadPlatform(
            f"there is a host of architecture {arch}, and the program has run times for 0 to {len(speeds) - 1}",
            hint="give a run time for each architecture of the platform",
        )
    return speeds[arch]
