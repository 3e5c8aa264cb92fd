"""Prices of cores for the quick bound: with speeds per kind, the work of all kinds over hosts.

For prices y of cores, work of kind k costs at least min_h y_h / rate_kh per unit, so the sum over kinds divided by the
sum of all prices is a bound on the time that the work takes. The largest is the linear program that spreads each kind
over hosts; prices near it are found by raising them where work would go, without a solver.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.placed_bounds import may_run

_STEPS = 150
"""Changes of prices that are tried; each costs kinds * hosts."""
_MOST = 200_000
"""Kinds times hosts for which prices are searched."""


def kinds_of(problem: Problem) -> tuple[Floats, Numbers]:
    """[kinds, hosts] rates, 0 where tasks of the kind may not run, and the kind of each task."""
    graph = problem.graph
    row, may = may_run(problem)
    pairs, of_task = np.unique(graph.speed_class * np.int64(len(may)) + row, return_inverse=True)
    rates = np.where(may[pairs % len(may)], problem.platform.rates(graph)[pairs // len(may)], 1e-300)
    return rates, of_task


def priced_rates(rate: Floats, work: Floats, cores: Numbers, plain: Floats) -> Iterator[Floats]:
    """Prices of a core of each host, the best of some steps; none if plain speed is already best.

    Multiplicative weights: a host on which too much of the cheapest work would lie becomes dearer.
    """
    relative = rate / plain
    alike = np.allclose(relative, relative[:, :1], rtol=1e-9)
    if alike or rate.size > _MOST or not work.any():
        return
    _, first, number = np.unique(
        np.concatenate((rate, plain[None, :])), axis=1, return_index=True, return_inverse=True
    )
    rate, count = rate[:, first], np.bincount(number.reshape(-1), cores)
    price = plain[first].astype(np.float64)
    best, found = 0.0, price
    for step in range(_STEPS):
        cost = price[None, :] / rate
        least = cost.min(axis=1)
        value = float((work * least).sum() / (price * count).sum())
        if value > best * (1 + 1e-12):
            best, found = value, price
        sharp = 20.0 * (1 + step / 10)
        pull = np.exp(-sharp * (cost / least[:, None] - 1.0))
        share = pull / pull.sum(axis=1, keepdims=True) * work[:, None]
        load = (share / rate).sum(axis=0) / count
        mean = float((load * price * count).sum() / (price * count).sum())
        price = price * np.exp(np.clip(load / max(mean, 1e-300) - 1.0, -1.0, 1.0) * 0.5 / (1 + step / 5))
    yield found[number.reshape(-1)]
