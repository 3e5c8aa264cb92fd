"""Quantities as people write them: "10 Gbit/s", "2 GB", "0.5 ms"."""

from __future__ import annotations

import math
import re

from headrace.model.arguments import as_float, short
from headrace.model.errors import HeadraceError

_NUMBER = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)\s*(.*?)\s*\Z", re.ASCII)
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIX |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_BYTES = {p + unit: f for p, f in _PREFIX.items() for unit in ("B", "byte", "bytes")}
_BITS = {p + unit: f / 8 for p, f in _PREFIX.items() for unit in ("bit", "b")}
_RATES = {f"{unit}{per}": f for unit, f in (_BYTES | _BITS).items() for per in ("/s", "ps")}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = {"size": _BYTES, "rate": _RATES, "time": _TIMES}
_EXAMPLE = {"size": '"2 GB"', "rate": '"10 Gbit/s"', "time": '"0.5 ms"'}


def quantity(value: object, what: str, where: str = "") -> float:
    """Read a size (bytes), rate (bytes/s) or time (seconds) from a number or text with a unit.

    >>> quantity("10 Mbit/s", "rate"), quantity("2 GB", "size"), quantity("0.5 ms", "time")
    (1250000.0, 2000000000.0, 0.0005)
    >>> quantity(12.5, "time")
    12.5
    """
    wanted = f"a {what} of 0 or more, as a plain number or as text such as {_EXAMPLE[what]}"
    if isinstance(value, str):
        match = _NUMBER.match(value)
        if match is None:
            raise HeadraceError(f"{value!r} is not a {what}", where=where, hint=wanted)
        number, unit = float(match[1].replace("_", "")), match[2]
        if unit and unit not in _UNITS[what]:
            raise HeadraceError(f"unknown unit {unit!r} in {value!r}", where=where, hint=wanted)
        result = number * (_UNITS[what][unit] if unit else 1.0)
    else:
        given = as_float(value)
        result = math.nan if given is None else given
    if not math.isfinite(result) or result < 0:
        raise HeadraceError(f"{short(value)} is not a {what}", where=where, hint=wanted)
    return result


def as_seconds(value: object) -> float | None:
    """Seconds from a number or text with a unit; None for all else.

    >>> as_seconds(3), as_seconds("2 min"), as_seconds("soon")
    (3.0, 120.0, None)
    """
    if not isinstance(value, str):
        return as_float(value)
    try:
        return quantity(value, "time")
    except HeadraceError:
        return None


def unit_factors(what: str) -> dict[str, float]:
    """The units of a size, rate or time with their factors.

    >>> unit_factors("time")["min"]
    60.0
    """
    return dict(_UNITS[what])


def show_size(size: float) -> str:
    """
    >>> show_size(22_700_000_000), show_size(512)
    ('22.7 GB', '512 B')
    """
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def show_time(seconds: float) -> str:
    """
    >>> show_time(0.0123), show_time(93.2), show_time(1984.2), show_time(73840)
    ('12.3 ms', '93.2 s', '1984 s', '20 h 31 min')
    """
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 999.5:
        return f"{seconds:.3g} s"
    if seconds < 36000:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> plural(1, "transfer"), plural(1200, "transfer"), plural(2, "copy")
    ('1 transfer', '1,200 transfers', '2 copies')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else several}"
