"""Solving the compact program: a bound from its linear relaxation, rounding, then branch and bound.

Without integrality a class uses exactly as many hosts as its work needs, so the number of hosts is a multiple of the
work, and half of the columns and most rows can be eliminated: the bound for 10,000 different hosts takes seconds
instead of a minute. Rounding is a small mixed-integer program around that solution. Each source option is solved
separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.linear import Answer, Linear, solve

DIRECT = 400
"""Up to this many integer columns, branch and bound is used alone."""
ROUNDING_SHARE = 0.6
"""Share of the time that rounding may take."""
MORE_HOSTS = 2
"""Number of idle hosts per filter and zone that rounding may use in addition to those of the relaxation."""
MOST_OPTIONS = 12
"""Maximum number of source options that are rounded; if there are more, the best ones of the joint relaxation."""
WHOLE = 1e-6

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Found:
    """The best solution, with exactly integer values in integer columns; x is None if there is none."""

    x: Floats | None
    objective: float
    bound: float
    proven: bool
    """Whether it is proven optimal within the requested gap, or proven that none exists."""


def search(program: Compact, *, seconds: float, gap: float, tell: Tell | None = None) -> Found:
    """The best solution within a time limit and a relative gap."""
    end = time.monotonic() + seconds
    linear = program.linear
    if int(linear.whole.sum()) <= DIRECT:
        answer = solve(linear, seconds=seconds, gap=gap)
        return _clean(linear, answer, answer.bound, gap)
    best = _round_options(program, end=time.monotonic() + ROUNDING_SHARE * seconds, gap=gap, tell=tell)
    left = end - time.monotonic()
    if best.proven or left < 0.1 * seconds:
        return best
    answer = solve(linear, seconds=left, gap=gap, start=best.x)
    if answer.status == "infeasible":
        return Found(None, -np.inf, -np.inf, True)
    bound = min(best.bound, answer.bound)
    found = _clean(linear, answer, bound, gap)
    return found if found.objective > best.objective else _with_bound(best, bound, gap)


def relax(program: Compact) -> Linear:
    """The linear relaxation, with the number of hosts replaced by what the work needs.

    Every solution of the program gives a solution of the relaxation with at least the same objective. The constraint
    that every filter has a copy is omitted.
    """
    linear = program.linear
    if len(program.local):
        return linear
    n = len(linear.cost)
    into, factor = np.arange(n), np.ones(n)
    count, work = program.count[1:].ravel(), program.work[1:].ravel()
    factor[count] = 1.0 / np.maximum(program.limit[1:].ravel(), 1e-300)
    into[count] = work
    cost = linear.cost.copy()
    cost[work] += linear.cost[count] * factor[count]
    cost[count] = 0.0
    high = linear.high.copy()
    high[count] = 0.0
    key = linear.row * n + into[linear.column]
    key, inverse = np.unique(key, return_inverse=True)
    value = np.bincount(inverse.ravel(), linear.value * factor[linear.column], len(key)).astype(np.float64)
    row_low = linear.row_low.copy()
    row_low[program.copy_rows] = -np.inf
    return Linear(cost, linear.low, high, linear.whole, key // n, key % n, value, row_low, linear.row_high)


def _round_options(program: Compact, *, end: float, gap: float, tell: Tell | None) -> Found:
    """Bound options one by one, then round them, the most promising first, while they can still be the best."""
    relaxed = relax(program) if program.spare == 0 else program.linear
    options = list(range(len(program.option)))
    bounds: list[tuple[float, int, Floats | None]] = []
    top: float = -np.inf
    if len(options) > MOST_OPTIONS:
        together = solve(relaxed, whole=False, seconds=max(end - time.monotonic(), 1.0))
        top = -np.inf if together.status == "infeasible" else together.bound
        part = np.zeros(len(options)) if together.x is None else together.x[program.option]
        order = np.lexsort((-program.rates.readable, -part))
        options = order[:MOST_OPTIONS].tolist() if together.status != "infeasible" else []
    for i in options:
        low, high = _only_option(program, relaxed, i)
        left = end - time.monotonic()
        answer = solve(relaxed.with_bounds(low, high), whole=False, seconds=max(left, 1.0))
        if answer.status != "infeasible":
            bounds.append((answer.bound if answer.x is not None else np.inf, i, answer.x))
    bounds.sort(key=lambda entry: (-entry[0], entry[1]))
    best = Found(
        None, -np.inf, max(top, bounds[0][0] if bounds else -np.inf), not bounds and bool(top == -np.inf)
    )
    for bound, i, x in bounds:
        if x is None or best.objective >= bound - gap * abs(bound) or time.monotonic() > end:
            continue
        found = _round(program, i, x, end=end, gap=gap)
        if tell is not None and found.x is not None:
            tell(f"objective {found.objective:.6g}, bound {best.bound:.6g}")
        if found.objective > best.objective:
            best = _with_bound(found, best.bound, gap)
    return best


def _only_option(program: Compact, linear: Linear, i: int) -> tuple[Floats, Floats]:
    low, high = linear.low.copy(), linear.high.copy()
    high[program.option] = 0.0
    low[program.option[i]] = high[program.option[i]] = program.linear.high[program.option[i]]
    return low, high


def _round(program: Compact, i: int, x: Floats, *, end: float, gap: float) -> Found:
    """Branch and bound over numbers of hosts close to those of the relaxation, then over a wider range.

    If the reader must not be throttled, those numbers rarely suffice; the wider range is then the best solution with a
    throttled reader plus idle hosts.
    """
    low, high = _only_option(program, program.linear, i)
    count = program.count
    hosts = _hosts_of(program, x)
    near_low, near_high = low.copy(), high.copy()
    near_low[count] = np.minimum(np.floor(hosts + WHOLE), high[count])
    near_high[count] = np.minimum(np.ceil(hosts - WHOLE), high[count])
    best = _solve_within(program, program.linear, near_low, near_high, end=end, gap=gap)
    if best.x is not None and best.objective >= float(program.linear.cost @ x) * (1 - gap):
        return best
    wide_low, taken = near_low, near_high[count]
    if program.strict and best.x is None:
        slow = _solve_within(program, held_back(program), near_low, near_high, end=end, gap=gap)
        if slow.x is not None:
            taken = slow.x[count]
            wide_low = near_low.copy()
            wide_low[count] = taken
    wide_high = high.copy()
    wide_high[count] = np.minimum(taken + _idle_hosts(program, i, taken), high[count])
    found = _solve_within(program, program.linear, wide_low, wide_high, end=end, gap=gap)
    return found if found.objective > best.objective else best


def _solve_within(
    program: Compact, linear: Linear, low: Floats, high: Floats, *, end: float, gap: float
) -> Found:
    left = end - time.monotonic()
    if left <= 0:
        return Found(None, -np.inf, np.inf, False)
    answer = solve(linear.with_bounds(low, high), seconds=left, gap=gap)
    return _clean(linear, answer, np.inf, gap)


def held_back(program: Compact) -> Linear:
    """The program of the first relaxation, in the same columns and rows."""
    row_low = program.linear.row_low.copy()
    row_low[program.full_rows] = -np.inf
    return replace(program.linear, row_low=row_low)


def _hosts_of(program: Compact, x: Floats) -> Floats:
    if len(program.local):
        return x[program.count]
    hosts: Floats = np.zeros(program.count.shape)
    hosts[1:] = x[program.work[1:]] / np.maximum(program.limit[1:], 1e-300)
    return hosts


def _idle_hosts(program: Compact, i: int, most: Floats) -> Floats:
    """[filters, classes] idle hosts, the powerful first, a few for each filter and zone at work."""
    classes = program.classes
    more = np.zeros(program.count.shape)
    taken = most[0] if len(program.local) else most.sum(axis=0)
    idle = np.maximum(classes.size - taken - (classes.share[i] > 0) * classes.size, 0)
    for zone in np.unique(classes.zone).tolist():
        here = np.flatnonzero((classes.zone == zone) & (idle > 0))
        here = here[np.argsort(-classes.core[-1, here], kind="stable")][: 2 * MORE_HOSTS * len(most)]
        for k in range(1, len(most)):
            if most[k, classes.zone == zone].any():
                more[k, here] = np.minimum(idle[here], MORE_HOSTS)
    return more


def _clean(linear: Linear, answer: Answer, bound: float, gap: float) -> Found:
    """The solution with integer columns rounded to exact integers and the other columns optimised for them."""
    if answer.x is None:
        return Found(None, -np.inf, bound, answer.status == "infeasible")
    low, high = linear.low.copy(), linear.high.copy()
    whole = np.rint(answer.x[linear.whole])
    low[linear.whole] = high[linear.whole] = whole
    exact = solve(linear.with_bounds(low, high), whole=False)
    x = exact.x if exact.x is not None else np.where(linear.whole, np.rint(answer.x), answer.x)
    return _with_bound(Found(x, float(linear.cost @ x), bound, False), bound, gap)


def _with_bound(found: Found, bound: float, gap: float) -> Found:
    bound = max(bound, found.objective)
    proven = found.x is not None and bound - found.objective <= gap * abs(bound) + 1e-9
    return Found(found.x, found.objective, bound, proven)
