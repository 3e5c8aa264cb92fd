"""Checks of what users say about a task."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from headrace.model.errors import BadProgram


def checked_labels(labels: Mapping[str, str | float], where: str) -> dict[str, str | float]:
    for name, value in labels.items():
        if not isinstance(name, str) or not name:
            raise BadProgram(f"the name of a label is {name!r}", where=where, hint="give a text")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(value, str) and not (number and math.isfinite(value)):
            raise BadProgram(
                f"label {name!r} is {value!r}", where=where, hint="give a text or a finite number"
            )
    return dict(labels)


def checked_cores(cores: int, where: str) -> int:
    whole = isinstance(cores, int | np.integer) and not isinstance(cores, bool)
    if not whole or cores < 1:
        raise BadProgram(f"cores is {cores!r}", where=where, hint="give a whole number, 1 or more")
    return int(cores)


def checked_attempts(
    timeout: float | None, retries: int | None, where: str
) -> tuple[float | None, int | None]:
    if timeout is not None and not timeout > 0:
        raise BadProgram(f"timeout is {timeout}", where=where, hint="give a time above 0")
    if retries is not None and not (isinstance(retries, int) and retries >= 0):
        raise BadProgram(f"retries is {retries!r}", where=where, hint="give a whole number, 0 or more")
    return timeout, retries
