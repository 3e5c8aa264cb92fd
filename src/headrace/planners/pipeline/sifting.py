"""The linear relaxation with shared hosts: of any number of different hosts, only those worth using have columns.

The program is solved with some of the hosts. Its prices tell what each of the others could add at most; those that
could add something join, and it is solved again. When none is left the solution is that of all hosts. At any time, the
optimum with some hosts plus what the others could add is a bound for all deployments with this source.

The first prices come from a program in which similar hosts of a zone are merged into one class of average hosts.

What a host could add at most: it works on *runs* of consecutive filters, handing over data in between without its port.
A run needs cores, and its first and last stream need the port. Given a price of the port, the host takes the run that
is worth most for its cores; the price that makes this smallest gives the least upper bound. All hosts are priced at
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.linear import Answer, solve
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.shared import build_shared
from headrace.planners.pipeline.weights import Weights

BUCKETS = 12
"""Classes of average hosts in each zone."""
MOST_ROUNDS = 12
LARGEST_STEP = 600
"""Hosts that join in a round, at least; or half of those that are there, if that is more."""
STEPS = 24
"""Steps of the search for the price of a port."""
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Sifted:
    """The relaxation of a case with shared hosts."""

    bound: float
    """No deployment with this source has a larger objective; inf: not known yet."""
    classes: Classes
    """Those that have columns."""
    program: Compact | None
    """The program over them."""
    x: Floats | None
    """Its solution."""


def can_sift(rates: Rates, classes: Classes) -> bool:
    """Whether runs of filters describe all that a host can do: filters form a chain, and all take time."""
    order = np.argsort(rates.stream_source, kind="stable")
    chain = np.array_equal(rates.stream_source[order], np.arange(rates.n_filters - 1)) and np.array_equal(
        rates.stream_target[order], np.arange(1, rates.n_filters)
    )
    return chain and bool(np.isfinite(classes.core[1:]).all())


def sift(rates: Rates, classes: Classes, weights: Weights, *, end: float, gap: float) -> Sifted:
    """Solve until the bound is within a relative gap, or as far as the time allows; `end` is on the monotonic clock."""
    reads = classes.share[0] > 0
    inside = reads | (_first_values(rates, classes, weights, end) > 0)
    best = Sifted(np.inf, classes, None, None)
    for _ in range(MOST_ROUNDS):
        left = end - time.monotonic()
        if left <= 0:
            break
        some = classes.some(np.flatnonzero(inside))
        program = build_shared(rates, some, weights)
        answer = solve(program.linear, whole=False, seconds=left, primal=True)
        if answer.status != "optimal" or answer.x is None or answer.dual is None:
            break
        value = worth(rates, classes, weights, program, answer)
        value[inside] = 0.0
        more = np.maximum(value, 0.0) * classes.size
        bound = answer.objective + program.constant + float(more.sum())
        best = Sifted(min(best.bound, bound), some, program, answer.x)
        if float(more.sum()) <= 0.25 * gap * abs(bound):
            break
        step = max(LARGEST_STEP, int(inside.sum()) // 2)
        order = np.argsort(-more, kind="stable")[:step]
        inside[order[more[order] > 0]] = True
    return best


def _first_values(rates: Rates, classes: Classes, weights: Weights, end: float) -> Floats:
    """What hosts could add at the prices of the program with average hosts; without a solution, all could."""
    free = np.flatnonzero(classes.share[0] == 0)
    speed = classes.cores[free] / (1.0 / classes.core[1:, free]).sum(axis=0)
    order = free[np.lexsort((speed, classes.zone[free]))]
    zone = classes.zone[order]
    rank = np.arange(len(order)) - np.searchsorted(zone, zone)
    here = np.bincount(zone, minlength=int(classes.zone.max()) + 1)[zone]
    bucket = zone * BUCKETS + rank * BUCKETS // here
    _, member = np.unique(bucket, return_inverse=True)
    merged = _merged(classes, order, member.ravel())
    program = build_shared(rates, merged, weights)
    left = end - time.monotonic()
    if left <= 0:
        return np.zeros(classes.n)
    answer = solve(program.linear, whole=False, seconds=left, primal=True)
    if answer.status != "optimal" or answer.dual is None:
        return np.ones(classes.n)
    return worth(rates, classes, weights, program, answer)


def _merged(classes: Classes, order: Numbers, member: Numbers) -> Classes:
    """Reading classes as they are, then classes of average hosts."""
    reading = np.flatnonzero(classes.share[0] > 0)
    n = int(member.max(initial=-1)) + 1
    number = classes.size[order].astype(np.float64)
    size = np.bincount(member, number, n)

    def mean(values: Floats) -> Floats:
        return np.bincount(member, values[order] * number, n) / size

    first = np.full(n, -1, np.int64)
    first[member[::-1]] = order[::-1]
    table = {
        name: np.concatenate(
            [getattr(classes, name)[:, reading], np.array([mean(row) for row in getattr(classes, name)])],
            axis=1,
        )
        for name in ("core", "power", "limit", "extra_cost")
    }
    return Classes(
        of_host=np.full(len(classes.of_host), -1, np.int64),
        first=np.concatenate([classes.first[reading], classes.first[first]]),
        size=np.concatenate([classes.size[reading], size.astype(np.int64)]),
        cores=np.concatenate([classes.cores[reading], mean(classes.cores)]),
        port=np.concatenate([classes.port[reading], classes.port[first]]),
        zone=np.concatenate([classes.zone[reading], classes.zone[first]]),
        share=np.concatenate([classes.share[:, reading], np.zeros((len(classes.share), n))], axis=1),
        core=table["core"],
        power=table["power"],
        limit=table["limit"],
        extra_cost=table["extra_cost"],
    )


def worth(rates: Rates, classes: Classes, weights: Weights, program: Compact, answer: Answer) -> Floats:
    """An upper bound of what each host could add at the prices of a solution, net of its cost; below 0: nothing."""
    assert answer.dual is not None
    value, cores, leaves, enters = _runs(rates, classes, weights, program, answer.dual)
    port = np.where(np.isfinite(classes.port), classes.port, 0.0)
    limited = np.isfinite(classes.port)

    def most(out: Floats, into: Floats) -> Floats:
        """The bound for prices of the port in both directions."""
        rest = value - out * leaves[:, None] - into * enters[:, None]
        best: Floats = np.maximum((rest / cores).max(axis=0), 0.0) * classes.cores + port * (out + into)
        return best

    rates_through = np.concatenate([leaves, enters])
    smallest = float(rates_through[rates_through > 0].min(initial=1.0))
    top = np.where(limited, np.maximum(value.max(axis=0), 0.0) / smallest, 0.0)
    both = _smallest(lambda price: most(price, price), top)
    found = [most(np.zeros(classes.n), np.zeros(classes.n)), most(both, both)]
    out = into = both
    for _ in range(2):
        out = _smallest(partial(most, into=into), top)
        into = _smallest(partial(most, out), top)
        found.append(most(out, into))
    best = np.minimum.reduce(found)
    cost: Floats = weights.host_cost + classes.extra_cost[1]
    result: Floats = best - cost
    return result


def _smallest(function: Callable[[Floats], Floats], top: Floats) -> Floats:
    """Where a convex function of one number, for each host, is smallest between 0 and `top`: golden section."""
    low, high = np.zeros_like(top), top.copy()
    for _ in range(STEPS):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = function(a) <= function(b)
        high, low = np.where(left, b, high), np.where(left, low, a)
    middle: Floats = np.where(function(low) <= function(high), low, high)
    return middle


def _runs(
    rates: Rates, classes: Classes, weights: Weights, program: Compact, dual: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """[runs, classes] value and cores of a unit of work on each run of filters; [runs] its use of ports."""
    k = rates.n_filters
    zone = classes.zone
    rate = np.zeros(k + 1)  # of the stream into each filter
    rate[rates.stream_target] = rates.stream_rate
    leaving, entering = np.zeros((k + 1, len(rates.weight))), np.zeros((k + 1, len(rates.weight)))
    for j, e in enumerate(program.net.streams.tolist()):
        leaving[rates.stream_target[e]] = dual[program.balance_rows[j, 0]]
        entering[rates.stream_target[e]] = dual[program.balance_rows[j, 1]]
    one = np.zeros((k, len(rates.weight)))
    for f in range(1, k):
        one[f] = -dual[program.total_rows[f - 1]] + rate[f] * entering[f] + rate[f + 1] * leaving[f + 1]
    handed = rate[:, None] * (np.diag(rates.weight)[None, :] - leaving - entering)
    busy = (1.0 + weights.spare) / classes.core
    value, cores, leaves, enters = [], [], [], []
    for first in range(1, k):
        for last in range(first, k):
            total = one[first : last + 1].sum(axis=0) + handed[first + 1 : last + 1].sum(axis=0)
            value.append(total[zone])
            cores.append(busy[first : last + 1].sum(axis=0))
            leaves.append(rate[last + 1])
            enters.append(rate[first])
    return np.array(value), np.array(cores), np.array(leaves), np.array(enters)


def rounded_up(sifted: Sifted, *, seconds: float) -> Floats | None:
    """A solution with whole hosts: those that the relaxation uses in part are used."""
    program, x = sifted.program, sifted.x
    assert program is not None
    assert x is not None
    linear = program.linear
    used = np.ceil(x[program.count[0]] - 1e-7)
    low, high = linear.low.copy(), linear.high.copy()
    low[program.count[0]] = high[program.count[0]] = used
    answer = solve(linear.with_bounds(low, high), whole=False, seconds=seconds, primal=True)
    if answer.x is None:
        return None
    whole = answer.x.copy()
    whole[program.count[0]] = used
    return whole
