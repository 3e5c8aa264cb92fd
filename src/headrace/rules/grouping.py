"""Groups of rows and aggregates over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.graph import Floats
from headrace.rules.frames import Frame
from headrace.rules.tree import Aggregate, AggregateName
from headrace.rules.vectors import Codes, Vector, codes, dense, numbers, paired


class Groups(NamedTuple):
    """Rows of a frame, divided into groups."""

    frame: Frame
    group: Codes
    """The group of each row."""
    number: int
    """Groups, with those that have no rows."""


def groups_of(frame: Frame, owner: Codes, keys: list[Vector]) -> tuple[Groups, Codes]:
    """Groups of equal owner and keys in the order of their first rows, and these rows: O(rows log rows)."""
    group = owner
    for done, key in enumerate(keys, start=1):
        combine = paired if done == len(keys) else dense
        group = combine(group, codes(key, frame.length))
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[by_first] = np.arange(len(first))
    return Groups(frame, place[number.reshape(-1)], len(first)), first[by_first]


def aggregate(call: Aggregate, groups: Groups, operand: Vector | None) -> Vector:
    """An aggregate over the known values of each group."""
    if operand is None:
        return numbers(np.bincount(groups.group, minlength=groups.number))
    operand = operand.spread(groups.frame.length)
    group, known = groups.group[operand.known], operand[operand.known]
    if call.distinct and call.name in ("count", "sum", "avg"):
        _, first = np.unique(paired(group, codes(known, len(group))), return_index=True)
        group, known = group[first], known[first]
    return _reduced(call.name, group, known, groups.number)


def _reduced(name: AggregateName, group: Codes, known: Vector, count: int) -> Vector:
    sizes = np.bincount(group, minlength=count)
    if name == "count":
        return numbers(sizes)
    if name in ("sum", "avg"):
        sums = _sums(group, known, count)
        if name == "sum":
            return numbers(sums)
        return numbers(sums / np.maximum(sizes, 1), sizes > 0)
    best = np.full(count, np.inf if name == "min" else -np.inf)
    if count == 1 and len(group):
        best[0] = known.values.min() if name == "min" else known.values.max()
    else:
        (np.minimum if name == "min" else np.maximum).at(best, group, known.values)
    return Vector(np.where(sizes > 0, best, 0.0), sizes > 0, known.words)


def _sums(group: Codes, known: Vector, count: int) -> Floats:
    if count == 1:
        return np.array([known.values.sum()], np.float64)  # pairwise: less rounding than one by one
    return np.bincount(group, known.values, minlength=count).astype(np.float64, copy=False)
