"""Behaviour files: the availability of a host, or the latency and bandwidth of a link, over time.

There are two layouts. PST: the number of rows, then one row for every 5 seconds, repeated cyclically; a row is a
percentage (host), or milliseconds and bytes/s (link). Headrace's own, with a time in each row:
`HeadraceTrace 1 hold` or `HeadraceTrace 1 repeat SECONDS`, then rows of seconds and value (a fraction from 0
to 1, or bytes/s and seconds of latency).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.pst import TRACE, Line, pst_kind, read_lines, written
from headrace.formats.shapes import shorten
from headrace.model.behaviour import Behaviour, LinkTrace, Trace
from headrace.model.errors import BadFile, BadPlatform, HeadraceError
from headrace.model.graph import Floats

INTERVAL = 5.0
"""Seconds between the values of a behaviour file that states no interval."""
MAX_BYTES = 16_000_000
MAX_VALUES = 500_000


def read_behaviour(path: str | Path) -> Behaviour:
    """Read either layout: O(bytes). A host has a Trace of fractions, a link a LinkTrace."""
    lines = list(read_lines(path, MAX_BYTES))
    if not lines:
        raise BadFile("is empty", where=str(path), hint="begin with the number of values")
    first, rows = lines[0], lines[1:]
    if len(rows) > MAX_VALUES:
        raise first.wrong(
            f"{len(rows)} values, more than {MAX_VALUES}", "use fewer values at a longer interval"
        )
    words = first.text.split()
    try:
        return _own(first, words, rows) if words[0] == TRACE else _classic(first, words, rows)
    except BadPlatform as error:
        raise BadFile(error.problem, where=str(path), hint=error.hint) from None


def write_behaviour(behaviour: Behaviour, path: str | Path) -> None:
    """Write the PST layout if the series is periodic with even steps, and Headrace's own otherwise.

    Headrace's layout is exact; numbers in the PST layout have 15 digits.
    """
    interval = _interval(behaviour)
    lines = _own_lines(behaviour) if interval is None else _classic_lines(behaviour, interval)
    write_file(path, encode_text("\n".join(lines) + "\n", str(path)))


def write_trace(behaviour: Behaviour, path: str | Path) -> None:
    """Write Headrace's own layout, which is exact."""
    write_file(path, encode_text("\n".join(_own_lines(behaviour)) + "\n", str(path)))


def _classic(first: Line, words: list[str], rows: list[Line]) -> Behaviour:
    if len(words) > 2:
        raise first.wrong(
            f"begins with {shorten(first.text, 40)}",
            "begin with the number of values and, optionally, the interval",
        )
    count = first.whole(words[0], "the number of values", MAX_VALUES)
    interval = first.number_in(words[1], "the interval", 1e9) if len(words) == 2 else INTERVAL
    if len(rows) != count or count == 0:
        raise first.wrong(
            f"declares {count} values and has {len(rows)}", "give as many values as declared, at least one"
        )
    if not interval > 0:
        raise first.wrong("the interval is 0", "give a positive number of seconds")
    table = _numbers(rows, (1, 2))
    if table.shape[1] == 1:
        _at_most(rows, table[:, 0], 100.0, "an availability in percent")
        return Trace.steps(table[:, 0] / 100.0, interval)
    return LinkTrace(Trace.steps(table[:, 1], interval), Trace.steps(table[:, 0] / 1000.0, interval))


def _own(first: Line, words: list[str], rows: list[Line]) -> Behaviour:
    length, offset = math.inf, 0.0
    form = f"begin with {TRACE} 1 hold, or {TRACE} 1 repeat SECONDS; offset SECONDS may follow"
    if len(words) < 3 or words[1] != "1" or words[2] not in ("hold", "repeat"):
        raise first.wrong(f"begins with {shorten(first.text, 60)}", form)
    rest = words[3:]
    if words[2] == "repeat":
        length = first.number_in(rest.pop(0) if rest else "", "the length")
    if rest[:1] == ["offset"] and len(rest) == 2:
        sign = -1.0 if rest[1].startswith("-") else 1.0
        offset = sign * first.number_in(rest[1].removeprefix("-"), "the offset")
        rest = []
    if rest:
        raise first.wrong(f"ends with {shorten(' '.join(rest), 40)}", form)
    if not rows:
        raise first.wrong("has no rows", "give at least one: time 0 and a value")
    table = _numbers(rows, (2, 3))
    series = [Trace(table[:, 0].copy(), table[:, k].copy(), length, offset) for k in range(1, table.shape[1])]
    return series[0] if len(series) == 1 else LinkTrace(*series)


def _numbers(rows: list[Line], widths: tuple[int, int]) -> Floats:
    """All rows as a table; every row has as many numbers as the first one."""
    width = len(rows[0].text.split())
    if width not in widths:
        raise rows[0].wrong(f"has {width} numbers", f"give {widths[0]} for a host or {widths[1]} for a link")
    table = np.empty((len(rows), width))
    for i, row in enumerate(rows):
        cells = row.text.split()
        if len(cells) != width:
            raise row.wrong(f"has {len(cells)} numbers", f"give {width}, as in the rows before")
        table[i] = [row.number_in(cell, "a value") for cell in cells]
    return table


def _at_most(rows: list[Line], values: Floats, top: float, what: str) -> None:
    over = np.flatnonzero(values > top)
    if len(over):
        raise rows[int(over[0])].wrong(
            f"{values[over[0]]:g} is not {what}", f"give a number from 0 to {top:g}"
        )


def _interval(behaviour: Behaviour) -> float | None:
    """The time between values, if the PST layout can express the series."""
    series = (behaviour,) if isinstance(behaviour, Trace) else behaviour
    first = series[0]
    interval = first.length / len(first)
    even = all(
        s.repeats
        and s.offset == 0.0
        and len(s) == len(first)
        and s.length == first.length
        and np.array_equal(s.time, np.arange(len(s)) * interval)
        for s in series
    )
    return interval if even else None


def _classic_lines(behaviour: Behaviour, interval: float) -> list[str]:
    series = behaviour if isinstance(behaviour, Trace) else behaviour.bandwidth
    first = str(len(series)) if interval == INTERVAL else f"{len(series)} {written(interval)}"
    if isinstance(behaviour, Trace):
        return [first, *(written(v * 100.0) for v in behaviour.value.tolist())]
    pairs = zip(behaviour.latency.value.tolist(), behaviour.bandwidth.value.tolist(), strict=True)
    return [first, *(f"{written(latency * 1000.0)} {written(rate)}" for latency, rate in pairs)]


def _own_lines(behaviour: Behaviour) -> list[str]:
    series = (behaviour,) if isinstance(behaviour, Trace) else _together(behaviour)
    first = series[0]
    head = f"{TRACE} 1 " + (f"repeat {first.length!r}" if first.repeats else "hold")
    if first.offset != 0.0:
        head += f" offset {first.offset!r}"
    columns = [first.time.tolist(), *(s.value.tolist() for s in series)]
    return [head, *(" ".join(map(repr, row)) for row in zip(*columns, strict=True))]


def _together(link: LinkTrace) -> tuple[Trace, Trace]:
    """Both series of a link at the same steps; a constant series takes the steps of the other."""
    rate, latency = link
    if len(latency) == 1:
        latency = Trace(rate.time, np.full(len(rate), latency.value[0]), rate.length, rate.offset)
    elif len(rate) == 1:
        rate = Trace(latency.time, np.full(len(latency), rate.value[0]), latency.length, latency.offset)
    same = (rate.length, rate.offset) == (latency.length, latency.offset)
    if not (same and np.array_equal(rate.time, latency.time)):
        raise HeadraceError(
            "bandwidth and latency change at different times",
            where="trace of a link",
            hint="give both a value at each step",
        )
    return rate, latency


def _is_behaviour(head: bytes) -> bool:
    return pst_kind(head) == "behaviour"


FORMATS = (
    Format(
        "pst",
        "behaviour",
        "values at fixed intervals",
        suffixes=(".pst",),
        sniff=_is_behaviour,
        read=read_behaviour,
        write=write_behaviour,
    ),
    Format("trace", "behaviour", "times and values", suffixes=(".trace",), write=write_trace),
)
