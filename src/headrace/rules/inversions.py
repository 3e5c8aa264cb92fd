"""Pairs of a sequence that are in the wrong order, counted without looking at every pair."""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.rules.tree import Comparison
from headrace.rules.vectors import Codes, Vector, compare, limits


def failed_pairs(test: Comparison, sequence: Vector, tolerant: bool) -> int:
    """How many elements and later ones, both known, fail the test between them: O(n log n).

    >>> from headrace.rules.vectors import numbers
    >>> failed_pairs("<=", numbers([3.0, 1.0, 2.0]), tolerant=True)
    2
    """
    x = sequence.values[sequence.known]
    low, high = limits(x, tolerant)
    if test == "<=":
        return _before_and_above(x, high)
    if test == ">=":
        return _before_and_above(-x, -low)
    if test == "<":
        return _before_and_above(x, low, ties=True)
    if test == ">":
        return _before_and_above(-x, -high, ties=True)
    unequal = _before_and_above(x, high) + _before_and_above(-x, -low)
    return unequal if test == "=" else len(x) * (len(x) - 1) // 2 - unequal


def _before_and_above(first: Floats, second: Floats, *, ties: bool = False) -> int:
    """Pairs i < j with first[i] > second[j] (with `ties`, >=).

    The values are ranked together, and ranks are compared bit by bit: two ranks differ first at one bit, so a pair is
    counted where the ranks agree in all higher bits. At each bit the elements are divided stably, as in radix sort.
    """
    n = len(first)
    if not ties and (first[:-1] <= np.minimum.accumulate(second[::-1])[::-1][1:]).all():
        return 0
    rank, is_first = _ranks(first, second, ties)
    total = 0
    for bit in reversed(range(int(rank.max(initial=0)).bit_length())):
        group, one = rank >> (bit + 1), (rank >> bit & 1).astype(np.bool_)
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        size = np.diff(begins, append=2 * n)
        ahead: Codes = np.cumsum(one & is_first, dtype=np.int64)
        ahead -= np.repeat(ahead[begins] - (one & is_first)[begins], size)
        total += int(ahead[~one & ~is_first].sum())
        order = _divided(one, begins, size)
        rank, is_first = rank[order], is_first[order]
    return total


def _ranks(first: Floats, second: Floats, ties: bool) -> tuple[Codes, Bools]:
    """Ranks of second[0], first[0], second[1], first[1], ... and which of them are of `first`.

    Equal values have equal ranks; with `ties`, those of `first` a higher one.
    """
    both = np.column_stack((second, first)).ravel()
    is_first = np.tile(np.array([False, True]), len(first))
    _, rank = np.unique(both, return_inverse=True)
    rank = rank.reshape(-1)
    return (2 * rank + is_first if ties else rank), is_first


def _divided(one: Bools, begins: Codes, size: Codes) -> Codes:
    """The order in which, within each group, elements without the bit come before those with it."""
    zeros_before: Codes = np.cumsum(~one, dtype=np.int64) - ~one
    zeros_before -= np.repeat(zeros_before[begins], size)
    start = np.repeat(begins, size)
    zeros = np.repeat(np.add.reduceat(~one, begins, dtype=np.int64), size)
    place = np.where(one, zeros + np.arange(len(one)) - start - zeros_before, zeros_before) + start
    order = np.empty(len(one), np.int64)
    order[place] = np.arange(len(one))
    return order


def first_failed_pair(test: Comparison, sequence: Vector, tolerant: bool) -> tuple[int, int]:
    """The earliest element that fails with a later one, and the first such: O(n log n). There must be one."""
    known = np.flatnonzero(sequence.known)
    x = sequence.values[known]
    low, high = limits(x, tolerant)
    least = np.minimum.accumulate(np.append(high, np.inf)[::-1])[::-1][1:]
    most = np.maximum.accumulate(np.append(low, -np.inf)[::-1])[::-1][1:]
    if test == "<=":
        wrong = x > least
    elif test == ">=":
        wrong = x < most
    elif test == "<":
        wrong = x >= np.minimum.accumulate(np.append(low, np.inf)[::-1])[::-1][1:]
    elif test == ">":
        wrong = x <= np.maximum.accumulate(np.append(high, -np.inf)[::-1])[::-1][1:]
    elif test == "=":
        wrong = (x > least) | (x < most)
    else:
        wrong = _repeated(x, low, high)
    i = int(np.argmax(wrong))
    element = Vector(x[i : i + 1], np.ones(1, np.bool_), sequence.words)
    later = Vector(x[i + 1 :], np.ones(len(x) - i - 1, np.bool_), sequence.words)
    j = i + 1 + int(np.argmax(compare(test, element, later, tolerant).false))
    return int(known[i]), int(known[j])


def _repeated(x: Floats, low: Floats, high: Floats) -> Bools:
    """Whether another element equals each one."""
    order = np.argsort(x, kind="stable")
    equal = (low[order][1:] <= x[order][:-1]) & (x[order][:-1] <= high[order][1:])
    wrong = np.zeros(len(x), np.bool_)
    wrong[order[1:][equal]] = True
    wrong[order[:-1][equal]] = True
    return wrong
