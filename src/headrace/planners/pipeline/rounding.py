"""Whole hosts from the linear relaxation: decide most hosts, and leave the others to a small mixed-integer program.

In the relaxation nearly every host runs one filter or none; those hosts are decided, and form one block for each zone
and filter. Free are the hosts that the relaxation divides among filters, and those whose choice it barely prefers to
the next best. The program has blocks and free hosts only, so its size does not depend on the number of hosts. Further
rounds free more hosts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.column_generation import Relaxed
from headrace.planners.pipeline.compact import Compact, build_compact
from headrace.planners.pipeline.groups import Groups, Partition, partition_groups
from headrace.planners.pipeline.linear import Linear, solve
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights

ROUNDS = (40, 150, 500, 1500)
"""Numbers of free hosts in successive rounds, besides those that the relaxation divides."""
MOST_INTEGERS = 2000
"""Maximum number of integer columns of a round."""
ROUND_SECONDS = 8.0
"""Maximum time of a round; the next one has more freedom."""
UNFIXED = 2
"""Hosts of a class that a round frees for each filter, where a class has many hosts."""
EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class Whole:
    """A solution with whole hosts, by groups."""

    objective: float
    throughput: float
    counts: Numbers
    """[filters, groups]"""
    work: Floats
    """[filters, groups]"""
    zone_flow: Floats
    """[streams, zones, zones]"""


def round_relaxed(
    rates: Rates,
    groups: Groups,
    weights: Weights,
    relaxed: Relaxed,
    *,
    end: float,
    gap: float,
    tell: Callable[[float], None] = lambda objective: None,
) -> Whole | None:
    """The best solution of all rounds; stops within the relative gap of the bound, or when rounds bring nothing."""
    left = end - time.monotonic()
    counts = purify(rates, groups, weights, relaxed, seconds=max(0.3 * left, 0.05))
    best = decide(rates, groups, weights, round_up(groups, counts), end=end)
    if best is not None:
        counts = best.counts.astype(np.float64)
        tell(best.objective)
    idle_rounds = 0
    for number in ROUNDS:
        if best is not None and relaxed.bound - best.objective <= gap * abs(relaxed.bound):
            break
        if time.monotonic() > end or idle_rounds == 2:
            break
        part = _partition(groups, counts, relaxed.value, number)
        found = solve_partition(
            rates,
            groups,
            weights,
            part,
            end=min(end, time.monotonic() + ROUND_SECONDS),
            gap=gap / 4,
            start=None if best is None else best.counts,
        )
        better = found is not None and (
            best is None or found.objective > best.objective + gap / 10 * abs(best.objective)
        )
        idle_rounds = 0 if better else idle_rounds + (best is not None)
        if found is not None and (best is None or found.objective > best.objective):
            best = found
            counts = best.counts.astype(np.float64)
            tell(best.objective)
        if number >= int(groups.size.sum()):
            break
    return best


def purify(rates: Rates, groups: Groups, weights: Weights, relaxed: Relaxed, *, seconds: float) -> Floats:
    """Counts of a relaxed solution with few divided hosts.

    Column generation mixes assignments, which divides many hosts among filters. A basic solution of the linear program
    over these hosts alone, as good or better, divides about as many as there are capacities and links.
    """
    fixed = np.floor(relaxed.counts + EXACT).astype(np.int64)
    divided = np.any(relaxed.counts - fixed > EXACT, axis=0)
    fixed[0] = 0
    free = np.where(divided & (groups.share == 0), groups.size - fixed.sum(axis=0), 0)
    reduced, _, which = partition_groups(groups, Partition(fixed, free))
    program = build_compact(rates, reduced, replace(weights, least=np.zeros_like(weights.least)))
    linear = program.linear if weights.spare > 0 else _without_counts(program, reduced)
    answer = solve(linear, whole=False, seconds=seconds)
    if answer.x is None:
        return relaxed.counts
    counts = fixed.astype(np.float64)
    last = slice(reduced.n - len(which), reduced.n)
    if weights.spare > 0:
        counts[:, which] += answer.x[program.count[:, last]]
    else:
        limit = np.maximum(reduced.limit[1:, last], 1e-300)
        counts[1:, which] += answer.x[program.work[1:, last]] / limit
    return counts


def _without_counts(program: Compact, groups: Groups) -> Linear:
    """The linear relaxation with the number of units replaced by what the work needs, and without 7."""
    linear = program.linear
    n = len(linear.cost)
    into, factor = np.arange(n), np.ones(n)
    count, work = program.count[1:].ravel(), program.work[1:].ravel()
    able = groups.limit[1:].ravel() > 0
    count, work = count[able], work[able]
    factor[count] = 1.0 / groups.limit[1:].ravel()[able]
    into[count] = work
    cost, high, row_low = linear.cost.copy(), linear.high.copy(), linear.row_low.copy()
    cost[work] += linear.cost[count] * factor[count]
    cost[count] = high[count] = 0.0
    row_low[program.copy_rows] = -np.inf
    key, inverse = np.unique(linear.row * n + into[linear.column], return_inverse=True)
    value = np.bincount(inverse.ravel(), linear.value * factor[linear.column], len(key)).astype(np.float64)
    keep = np.abs(value) > 1e-12
    key, value = key[keep], value[keep]
    return Linear(cost, linear.low, high, linear.whole, key // n, key % n, value, row_low, linear.row_high)


def round_up(groups: Groups, counts: Floats) -> Numbers:
    """Whole hosts with at least the capacity of a relaxed solution in every zone, as far as the zone has hosts.

    A divided host goes to the filter with its largest part; what then lacks is covered by idle hosts of the zone, the
    weakest that suffices or else the strongest. O(filters * groups + divided hosts * hosts of a zone).
    """
    whole = np.floor(counts + EXACT).astype(np.int64)
    whole[0] = 0
    part = counts - whole
    idle = np.where(groups.share == 0, groups.size - whole.sum(axis=0), 0)
    n_zones = int(groups.zone.max()) + 1
    lacking = np.array([np.bincount(groups.zone, row, n_zones) for row in part * groups.limit])
    divided = np.flatnonzero(np.any(part[1:] > EXACT, axis=0) & (idle > 0))
    for g in divided[np.argsort(-part[:, divided].max(axis=0), kind="stable")].tolist():
        z = groups.zone[g]
        k = int(np.argmax(np.where(lacking[:, z] > 0, part[:, g], 0.0)))
        if part[k, g] > EXACT:
            whole[k, g] += 1
            idle[g] -= 1
            lacking[k, z] -= groups.limit[k, g]
    smallest = EXACT * float(groups.limit.max())
    for k, z in np.argwhere(lacking > smallest).tolist():
        here = np.flatnonzero((groups.zone == z) & (idle > 0) & (groups.limit[k] > 0))
        here = here[np.argsort(groups.limit[k, here], kind="stable")]
        while lacking[k, z] > smallest and len(here):
            at = min(int(np.searchsorted(groups.limit[k, here], lacking[k, z])), len(here) - 1)
            g = here[at]
            whole[k, g] += 1
            idle[g] -= 1
            lacking[k, z] -= groups.limit[k, g]
            if idle[g] == 0:
                here = np.delete(here, at)
    return whole


def _partition(groups: Groups, counts: Floats, value: Floats, number: int) -> Partition:
    """Hosts with a whole filter are decided, except the `number` whose choice matters least, and a few strong ones."""
    fixed = np.floor(counts + EXACT).astype(np.int64)
    fixed[0] = 0
    divided = np.any(counts - fixed > EXACT, axis=0)
    offers = np.where(groups.share == 0, np.vstack([value[1:], np.zeros(groups.n)]), -np.inf)
    offers = -np.sort(-offers, axis=0)
    with np.errstate(invalid="ignore"):
        margin = np.where(groups.share == 0, offers[0] - offers[1], np.inf)
    chosen = np.zeros(groups.n, bool)
    chosen[np.argsort(margin, kind="stable")[:number]] = True
    for k in range(1, len(value)):  # so that every filter has somewhere to run
        chosen[np.argsort(-groups.limit[k] * (groups.share == 0), kind="stable")[:3]] = True
    most = MOST_INTEGERS // len(value)
    chosen[np.flatnonzero(divided)[:most]] = True
    for g in np.flatnonzero(divided)[most:].tolist():  # too many to leave open: the largest part decides
        fixed[np.argmax(counts[:, g] - fixed[:, g]), g] += 1
    chosen &= groups.share == 0
    fixed[:, chosen] = np.maximum(fixed[:, chosen] - UNFIXED, 0)
    free = np.where(chosen, groups.size - fixed.sum(axis=0), 0)
    return Partition(fixed, np.maximum(free, 0))


def decide(rates: Rates, groups: Groups, weights: Weights, counts: Numbers, *, end: float) -> Whole | None:
    """The best flows with these hosts, without those that are then idle; None if W_MIN cannot be kept."""
    free = np.zeros(groups.n, np.int64)
    loose = replace(weights, least=np.zeros_like(weights.least))
    whole = _all_on(rates, groups, loose, Partition(counts, free))
    if whole is None:
        return None
    trimmed = _trim(groups, weights, whole)
    if np.any(weights.least > 0):
        return solve_partition(rates, groups, weights, Partition(trimmed, free), end=end, gap=EXACT)
    again = _all_on(rates, groups, loose, Partition(trimmed, free))
    return again if again is not None and again.objective > whole.objective else whole


def _all_on(rates: Rates, groups: Groups, weights: Weights, part: Partition) -> Whole | None:
    """The best flows with all decided hosts in use: a linear program."""
    reduced, block_of, free = partition_groups(groups, part)
    program = build_compact(rates, reduced, weights)
    low, high = program.linear.low.copy(), program.linear.high
    low[program.count] = high[program.count]
    x = solve(program.linear.with_bounds(low, high), whole=False).x
    if x is None or float(x[program.read[0]]) <= 0:
        return None
    return _expand(program, groups, weights, part, block_of, free, x)


def _trim(groups: Groups, weights: Weights, whole: Whole) -> Numbers:
    """Counts without the hosts whose work the others of their zone and filter could do, the weakest first."""
    counts = whole.counts.copy()
    for k in range(1, len(counts)):
        need = (1 + weights.spare) * whole.throughput
        reserve = float((groups.reserve[k] * counts[k]).sum())
        for z in np.unique(groups.zone[counts[k] > 0]).tolist():
            here = np.flatnonzero((groups.zone == z) & (counts[k] > 0))
            slack = float((groups.limit[k, here] * counts[k, here] - whole.work[k, here]).sum())
            for g in here[np.argsort(groups.limit[k, here], kind="stable")].tolist():
                n = min(
                    int(slack * (1 + 1e-9) / groups.limit[k, g]), int(counts[k, g]), int(counts[k].sum()) - 1
                )
                if weights.spare > 0:
                    n = min(n, max(int((reserve - need) / groups.reserve[k, g]), 0))
                if n <= 0:
                    break
                counts[k, g] -= n
                slack -= n * groups.limit[k, g]
                reserve -= n * groups.reserve[k, g]
    return counts


def solve_partition(
    rates: Rates,
    groups: Groups,
    weights: Weights,
    part: Partition,
    *,
    end: float,
    gap: float,
    start: Numbers | None = None,
) -> Whole | None:
    """The best solution in which decided blocks run their filter or are idle; `start` has counts to begin with."""
    reduced, block_of, free = partition_groups(groups, part)
    program = build_compact(rates, reduced, weights)
    left = end - time.monotonic()
    if left <= 0:
        return None
    hint = None
    if start is not None:
        first = np.zeros(len(program.linear.cost))
        last = slice(reduced.n - len(free), reduced.n)
        first[program.count[:, : last.start]] = program.linear.high[program.count[:, : last.start]]
        first[program.count[:, last]] = (start - part.fixed)[:, free]
        hint = exact(program.linear, first)
    answer = solve(program.linear, seconds=left, gap=gap, start=hint)
    if answer.x is None:
        return None
    x = exact(program.linear, answer.x)
    if float(x[program.read[0]]) <= 0:
        return None
    return _expand(program, groups, weights, part, block_of, free, x)


def exact(linear: Linear, x: Floats) -> Floats:
    """The solution with integer columns rounded to exact integers and the other columns optimised for them."""
    low, high = linear.low.copy(), linear.high.copy()
    low[linear.whole] = high[linear.whole] = np.rint(x[linear.whole])
    again = solve(linear.with_bounds(low, high), whole=False)
    return again.x if again.x is not None else np.where(linear.whole, np.rint(x), x)


def _expand(
    program: Compact,
    groups: Groups,
    weights: Weights,
    part: Partition,
    block_of: Numbers,
    free: Numbers,
    x: Floats,
) -> Whole:
    """Counts and work of the original groups; a block's work is divided so that every host keeps its limits."""
    n_filters = len(groups.limit)
    counts = np.zeros((n_filters, groups.n), np.int64)
    work = np.zeros((n_filters, groups.n))
    n_blocks = int(block_of.max(initial=-1)) + 1
    first = len(program.zone) - n_blocks - len(free)
    at, g = np.nonzero(block_of >= 0)
    runs = x[program.count[at, first + block_of[at, g]]] > 0.5
    at, g = at[runs], g[runs]
    number, block = part.fixed[at, g], block_of[at, g]
    counts[at, g] += number
    total = np.zeros(n_blocks)
    total[block] = np.maximum(x[program.work[at, first + block]], 0.0)
    least = weights.least[at] * groups.power[at, g] * number
    work[at, g] += divide(total, least, groups.limit[at, g] * number, block)
    last = slice(first + n_blocks, len(program.zone))
    counts[:, free] += np.rint(x[program.count[:, last]]).astype(np.int64)
    work[:, free] += np.maximum(x[program.work[:, last]], 0.0)
    counts[0], work[0] = 0, 0.0
    value = float(program.linear.cost @ x) + program.constant
    return Whole(value, float(x[program.read[0]]), counts, work, flow_matrix(program, x))


def flow_matrix(program: Compact, x: Floats) -> Floats:
    """[streams, zones, zones] flows of a solution."""
    rates = program.rates
    n_zones = len(rates.weight)
    flow = np.zeros((len(rates.stream_rate), n_zones, n_zones))
    pairs = program.pairs
    flow[program.streams[:, None], pairs[:, 0][None, :], pairs[:, 1][None, :]] = np.maximum(
        x[program.between], 0.0
    )
    return flow


def divide(total: Floats, least: Floats, most: Floats, block: Numbers) -> Floats:
    """Divide the total of each block into parts between `least` and `most`, in proportion to the room between them.

    >>> divide(np.array([5.0]), np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.array([0, 0]))
    array([2.33333333, 2.66666667])
    """
    least = np.minimum(least, most)
    n = len(total)
    floor, top = np.bincount(block, least, n), np.bincount(block, most, n)
    above = total >= floor  # else the only host of its filter
    scale = np.where(
        above, (total - floor) / np.maximum(top - floor, 1e-300), total / np.maximum(top, 1e-300)
    )
    scale = np.minimum(scale, 1.0)[block]
    parts: Floats = np.where(above[block], least + (most - least) * scale, most * scale)
    return parts
