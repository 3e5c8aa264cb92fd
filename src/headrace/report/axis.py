"""Ticks of a time axis: round times, in a suitable unit."""

from __future__ import annotations

import math

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_SIXTIES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 2, 3, 6, 12)


def ticks(end: float, most: int) -> list[tuple[float, str]]:
    """At most `most` + 1 round times from 0 to `end`, with labels.

    >>> ticks(93.2, 6)
    [(0.0, '0 s'), (20.0, '20 s'), (40.0, '40 s'), (60.0, '60 s'), (80.0, '80 s')]
    >>> [label for _, label in ticks(7384, 5)]
    ['0 min', '30 min', '60 min', '90 min', '120 min']
    """
    size, unit = _unit(end)
    step = _step(end / size / max(most, 1), unit)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    count = math.floor(end / size / step * (1 + 1e-12))
    return [(i * step * size, f"{i * step:,.{places}f} {unit}") for i in range(count + 1)]


def _unit(end: float) -> tuple[float, str]:
    """The largest unit of which `end` has at least ten (for seconds and below: one)."""
    for size, unit in _UNITS:
        if end >= size * (10 if size > 1 else 1):
            return size, unit
    return _UNITS[-1]


def _step(least: float, unit: str) -> float:
    """The smallest round number that is at least `least`."""
    for step in _SIXTIES if unit == "min" else _HOURS if unit == "h" else ():
        if step >= least:
            return float(step)
    if unit in ("min", "h"):
        base = 60 if unit == "min" else 24
        return base * _step(least / base, "")
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-12))
