"""What is kept of an answer, and when two answers are the same: names exactly, numbers to 1e-9."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = tuple[str, tuple[float, ...]]
"""What happens, with all names, and when."""
Answer: TypeAlias = dict[str, Any]

FEW = 150
"""Answers with at most this many rows are kept whole."""
TOLERANCE = 1e-9


def answer(numbers: dict[str, float], rows: Sequence[Row]) -> Answer:
    """The compact form: numbers, and the rows or (if there are many) a digest that tolerates rounding."""
    ordered = sorted(rows)
    kept: Answer = {"numbers": {k: _short(v) for k, v in numbers.items()}, **_digest(ordered)}
    kept["spread"] = _spread(ordered)
    if len(ordered) <= FEW:
        kept["rows"] = [[what, *map(_short, times)] for what, times in ordered]
    return kept


def failure(error: Exception) -> Answer:
    """The answer that there is none, by the kind of error."""
    return {"error": type(error).__name__}


def _digest(rows: Sequence[Row]) -> Answer:
    """The names by a hash; the times by sums in which every name has a weight of its own."""
    names = hashlib.sha256("\n".join(what for what, _ in rows).encode()).hexdigest()[:16]
    sums = [0.0, 0.0]
    for what, times in rows:
        for k, time in enumerate(times):
            for turn in (0, 1):
                weight = zlib.crc32(f"{turn}{k}{what}".encode()) / 2**32
                sums[turn] += (0.5 + weight) * time
    return {"count": len(rows), "names": names, "sums": [_short(s) for s in sums]}


def _spread(rows: Sequence[Row]) -> int:
    """How many items were sent to more than one place: only these can come from one copy or another."""
    targets: dict[str, set[str]] = {}
    for what, _ in rows:
        if what.startswith("send "):
            item, _, target = what.removeprefix("send ").rsplit(" ", 2)
            targets.setdefault(item, set()).add(target)
    return sum(len(places) > 1 for places in targets.values())


def _short(value: float) -> float:
    return float(f"{value:.12g}") if math.isfinite(value) else value


def differences(old: Answer, new: Answer) -> Iterator[str]:
    """What is not the same, in words."""
    if "error" in old or "error" in new:
        if old.get("error") != new.get("error"):
            yield f"error {old.get('error')} -> {new.get('error')}"
        return
    for key, value in old["numbers"].items():
        if key not in new["numbers"] or not same(value, new["numbers"][key]):
            yield f"{key} {value} -> {new['numbers'].get(key)}"
    if "rows" in old and "rows" in new:
        yield from _row_differences(old["rows"], new["rows"])
    elif old["names"] != new["names"]:
        yield f"other tasks, hosts, items or places ({old['count']} -> {new['count']} rows)"
    elif not all(map(same, old["sums"], new["sums"])):
        yield f"other times: weighted sums {old['sums']} -> {new['sums']}"


def _row_differences(old: list[list[Any]], new: list[list[Any]]) -> Iterator[str]:
    if [row[0] for row in old] != [row[0] for row in new]:
        gone, come = {r[0] for r in old} - {r[0] for r in new}, {r[0] for r in new} - {r[0] for r in old}
        yield f"rows: without {sorted(gone)[:4]}, with {sorted(come)[:4]}, {len(old)} -> {len(new)}"
        return
    for a, b in zip(old, new, strict=True):
        if not all(map(same, a[1:], b[1:])):
            yield f"{a[0]}: {a[1:]} -> {b[1:]}"


def same(a: float, b: float) -> bool:
    """
    >>> same(1.0, 1.0 + 1e-11), same(1.0, 1.00001), same(float("inf"), float("inf"))
    (True, False, True)
    """
    return a == b or abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))
