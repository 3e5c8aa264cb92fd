"""Measured host loads: lines `host,time,load`, or `host,load` for the current load."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

from headrace.formats.files import read_file
from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile

MAX_BYTES = 256_000_000
MAX_LINES = 5_000_000


def read_loads(path: str | Path) -> dict[str, list[tuple[float, float]]]:
    """Time and load of each host, by time; columns are separated by commas, semicolons or spaces.

    Lines that begin with `#` and a header line are skipped: O(lines log lines).
    """
    where = str(path)
    try:
        lines = read_file(path, limit=MAX_BYTES).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadFile("not UTF-8 text", where=where, hint="save it as UTF-8") from None
    if len(lines) > MAX_LINES:
        raise BadFile(f"{len(lines)} lines", where=where, hint=f"at most {MAX_LINES}")
    found: dict[str, list[tuple[float, float]]] = {}
    first = True
    for number, line in enumerate(lines, 1):
        cells = line.replace(",", " ").replace(";", " ").split()
        if not cells or cells[0].startswith("#"):
            continue
        if first and cells[0].lower() == "host":
            first = False
            continue
        first = False
        host, time, load = _entry(cells, f"{where}: line {number}")
        found.setdefault(host, []).append((time, load))
    if not found:
        raise BadFile("no loads", where=where, hint="give lines host,time,load")
    for host, series in found.items():
        series.sort(key=lambda entry: entry[0])
        for (a, _), (b, _) in pairwise(series):
            if a == b:
                raise BadFile(f"two loads of {host!r} at {a:g} s", where=where, hint="remove one of them")
    return found


def _entry(cells: list[str], where: str) -> tuple[str, float, float]:
    try:
        if len(cells) not in (2, 3):
            raise ValueError
        time = float(cells[1]) if len(cells) == 3 else 0.0
        load = float(cells[-1])
    except ValueError:
        raise BadFile(
            f"{shorten(' '.join(cells))} is not a load", where=where, hint="host,time,load"
        ) from None
    if not (math.isfinite(time) and 0 <= load < 1):
        raise BadFile(
            f"load {load:g} at {time:g} s", where=where, hint="give a fraction from 0 to below 1"
        ) from None
    return cells[0], time, load
