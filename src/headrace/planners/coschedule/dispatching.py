"""List schedules that decide hosts as they go, with the prices and parameters that are tried one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.coschedule.inflows import Inflows
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler
from headrace.planners.coschedule.orders import topological
from headrace.planners.coschedule.relaxation import job_costs, shared_input_costs

if TYPE_CHECKING:
    from headrace.planners.coschedule.lp import Relaxer

_LEFT_OUT = 0.25
"""Share of the random weights that leave out a host."""
MOST_LOOKS = 4000
"""A host looks at this many jobs divided by the number of all jobs, but at least and at most at these:"""
LEAST_WIDTH, MOST_WIDTH = 4, 20
PATIENCE = 4
"""How many times its width a host looks at if it would have to wait."""
MANY = 2000
"""Number of jobs above which hosts look at few jobs in the very first list schedule."""
FIRST_WIDTH = 3
SPREAD, NEW_PRICE, CHANGED = 0.5, 0.02, 0.4
"""Changes of prices: the deviation of their logarithms, the mean of a new price, the share of prices that change."""
HOSTS_UNUSED, LINKS_UNUSED, DISKS_UNUSED = (0.02, 0.02), (0.0, 0.3), (0.25, 0.6)
"""Shares of the time (of the byte-seconds) that the relaxation leaves hosts, links and disks unused: least and most."""
UNUSED_SPREAD, UNUSED_CHANGED, MOST_UNUSED = 0.15, 0.5, 0.9
"""Changes of these shares: the deviation of their logarithms, how many of them change, the largest."""
SAME_PRICES = 0.6
"""Share of these changes that leave the prices as they are, since solving the relaxation takes longer than the rest."""
LEAST_WAITING = 0.05
"""The least price of a waiting core."""


@dataclass(frozen=True, slots=True)
class DispatchWeights:
    """By which a host chooses a job: disks and links against cores, long jobs, and how many jobs come last."""

    disk: float
    link: float
    long: float
    last: float
    """Number of last jobs, as a multiple of all cores."""
    whole: float = 0.0
    """How much of a file with several readers each of them pays, beyond its part."""
    noise: float = 0.0
    """Random share of the mean run time that is added to penalties."""
    without: float = -1.0
    """A host that is left out, as a share of all hosts; below 0: none."""
    proven: float = 0.0
    """Weight of the prices of the relaxation, once they are known."""
    priced: bool = False
    """Whether a waiting core costs what the relaxation pays for it; else 1."""


FIRST = (
    DispatchWeights(0.0, 0.3, 0.0, 2.0, whole=0.5),
    DispatchWeights(0.0, 0.3, 0.0, 2.0, whole=1.0, proven=0.7),
    DispatchWeights(0.0, 1.0, 0.0, 1.0),
    DispatchWeights(1.0, 0.3, 0.0, 1.0, whole=0.5, proven=0.5),
    DispatchWeights(1.0, 1.0, 0.0, 2.0),
    DispatchWeights(0.0, 0.3, 0.0, 2.0, proven=1.0),
    DispatchWeights(0.5, 0.0, 0.1, 1.0),
    DispatchWeights(0.0, 0.0, 0.0, 1.0),
    DispatchWeights(0.0, 0.3, 0.1, 2.0, whole=1.0),
)


def dispatch_weights(
    random: np.random.Generator, first: Sequence[DispatchWeights]
) -> Iterator[DispatchWeights]:
    """The first ones, then random ones without end."""
    yield from first
    while True:
        disk, link, long, last, noise, without, whole, proven = random.random(8).tolist()
        left_out = 4 * without if without < _LEFT_OUT else -1.0
        yield DispatchWeights(
            2 * disk * disk,
            1.5 * link,
            0.2 * long * long,
            0.5 + 3 * last,
            whole,
            0.1 * noise,
            left_out,
            proven,
        )


@dataclass(frozen=True, eq=False)
class _Choice:
    """What a list schedule is made from: prices in cores, and from which unused shares they follow, if they do."""

    weights: DispatchWeights
    price: Floats
    inflows: Inflows | None = None
    unused: Floats | None = None


class Dispatcher:
    """Makes list schedules by weights; after the first weights, in turn by new prices and by changes of the best ones.

    Prices are random, or those of the relaxation if a share of each resource cannot be used: without that, it leaves
    small disks and slow links without a price as long as a perfect packing would fit. The sequence follows from the
    seed and from when the relaxation becomes known.
    """

    def __init__(self, scheduler: ListScheduler, seed: int, worker: int = 0, workers: int = 1) -> None:
        """That of one of several workers, which divide the first weights among them."""
        self._relaxer: Relaxer | None = None
        self._proven: Floats | None = None
        self._scheduler = scheduler
        self._random = np.random.default_rng([seed, 1, worker] if worker else [seed, 1])
        first = FIRST[worker::workers]
        self._first = len(first)
        self._weights = dispatch_weights(self._random, first)
        self._made = 0
        self.solved = 0
        """Variables of the linear program that the latest list schedule needed; 0 if none."""
        self._value = np.inf
        self._best: _Choice | None = None
        n = scheduler.instance.n
        self.width = max(LEAST_WIDTH, min(MOST_WIDTH, MOST_LOOKS // max(1, n)))

    def know(self, relaxer: Relaxer) -> None:
        """Use the prices of a relaxation that was solved without assumptions."""
        if self._relaxer is None:
            self._relaxer, self._proven = relaxer, relaxer.price

    @property
    def informed(self) -> bool:
        return self._relaxer is not None

    @property
    def costs(self) -> Floats | None:
        """[jobs, hosts] costs at the prices of the best list schedule so far; None before the first."""
        best = self._best
        if best is None:
            return None
        return job_costs(self._scheduler.instance, best.price, best.weights.whole, best.inflows)

    def next(self) -> tuple[float, Decisions]:
        """The value and the decisions of one more list schedule."""
        self._made += 1
        self.solved = 0
        choice = self._choice()
        few = self._made == 1 and self._scheduler.instance.n > MANY
        width = FIRST_WIDTH if few else self.width
        value, decisions = self._dispatched(choice, width, width if few else PATIENCE * width)
        if value < self._value:
            self._value, self._best = value, choice
        return value, decisions

    def _choice(self) -> _Choice:
        turn = (self._made - self._first) % 4
        if self._best is None or self._made <= self._first or turn == 0:
            weights = next(self._weights)
            return _Choice(weights, self._prices(weights))
        if turn == 1 and self._relaxer is not None:
            return self._solved(self._new_weights(), self._new_unused())
        return self._changed(self._best)

    def _new_weights(self) -> DispatchWeights:
        whole, last, long, priced = self._random.random(4).tolist()
        return DispatchWeights(
            0.0, 0.0, 0.1 * max(0.0, 2 * long - 1), 0.4 + 2 * last, whole * whole, priced=priced < 0.5
        )

    def _new_unused(self) -> Floats:
        """The same share for all hosts, for all links and for all disks."""
        instance = self._scheduler.instance
        links = instance.problem.platform.network.n_links
        counts = (len(instance.host_place), links, len(instance.storage))
        shares = [self._random.uniform(*limits) for limits in (HOSTS_UNUSED, LINKS_UNUSED, DISKS_UNUSED)]
        unused: Floats = np.repeat(shares, counts)
        return unused

    def _solved(self, weights: DispatchWeights, unused: Floats) -> _Choice:
        """Prices of the relaxation if this share of each resource is not used."""
        assert self._relaxer is not None
        relaxer, cores = self._relaxer, float(self._scheduler.instance.host_cores.sum())
        relaxer.solve_with_unused(unused)
        self.solved = relaxer.size
        total = float(relaxer.price.sum())
        if not total > 0:
            return _Choice(weights, self._prices(weights))
        factor = cores / total
        inflows = None if relaxer.inflows is None else relaxer.inflows.scaled(factor)
        return _Choice(weights, relaxer.price * factor, inflows, unused)

    def _changed(self, best: _Choice) -> _Choice:
        """The best choice with some of its prices, or of the unused shares that they follow from, changed at random."""
        random, weights, count = self._random, best.weights, len(best.price)
        weights = replace(weights, last=float(np.clip(weights.last + 0.3 * random.normal(), 0.3, 4.0)))
        if best.unused is not None:
            weights = replace(
                weights,
                whole=float(np.clip(weights.whole + 0.1 * random.normal(), 0.0, 1.0)),
                long=float(np.clip(weights.long + 0.02 * random.normal(), -0.1, 0.3)),
            )
            if random.random() < SAME_PRICES:
                return replace(best, weights=weights)
            factor = np.exp(UNUSED_SPREAD * random.normal(size=count))
            some = random.random(count) < UNUSED_CHANGED
            return self._solved(weights, np.minimum(MOST_UNUSED, best.unused * np.where(some, factor, 1.0)))
        price = best.price
        scaled = price * np.exp(SPREAD * random.normal(size=count))
        added = np.where(random.random(count) < 0.3, random.exponential(NEW_PRICE * price.sum(), count), 0.0)
        return _Choice(weights, np.where(random.random(count) < CHANGED, scaled + added, price))

    def _prices(self, weights: DispatchWeights) -> Floats:
        """Prices of hosts, links and disks, in cores."""
        instance = self._scheduler.instance
        hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
        price = np.zeros(hosts + links + len(instance.storage))
        price[:hosts] = instance.host_cores
        price[hosts : hosts + links] = weights.link * float(instance.host_cores.mean())
        at_site = instance.site[instance.host_place]
        price[hosts + links :] = weights.disk * np.bincount(
            at_site, instance.host_cores, len(instance.storage)
        )
        if self._proven is None or not self._proven.sum() > 0:
            return price
        known = self._proven * (float(instance.host_cores.sum()) / float(self._proven.sum()))
        mixed: Floats = (1.0 - weights.proven) * price + weights.proven * known
        return mixed

    def _dispatched(self, choice: _Choice, width: int, most: int) -> tuple[float, Decisions]:
        instance, weights = self._scheduler.instance, choice.weights
        penalty = _penalties(instance, choice)
        shortest = instance.seconds.min(axis=1)
        if weights.noise > 0:
            penalty = penalty + self._random.normal(
                0.0, weights.noise * float(shortest.mean()), penalty.shape
            )
        if weights.without >= 0:
            at = int(weights.without * penalty.shape[1])
            if np.isfinite(np.delete(instance.seconds, at, axis=1)).any(axis=1).all():
                penalty[:, at] = np.inf
        waiting = np.ones(penalty.shape[1])
        if weights.priced:
            waiting = np.maximum(LEAST_WAITING, choice.price[: len(waiting)] / instance.host_cores)
        last = max(1, round(weights.last * int(instance.host_cores.sum())))
        shared = shared_input_costs(instance, choice.price, weights.whole)
        return self._scheduler.dispatched(
            topological(instance, -shortest), penalty, waiting, width, most, last, shared
        )


def _penalties(instance: Instance, choice: _Choice) -> Floats:
    """[jobs, hosts] what a job costs on a host beyond its best other host, in seconds of cores; less for long jobs."""
    cost = job_costs(instance, choice.price, choice.weights.whole, choice.inflows)
    least = np.sort(cost, axis=1)[:, :2]
    other = np.where(cost == least[:, :1], least[:, -1:], least[:, :1])
    able = np.isfinite(cost)
    beyond = np.where(
        able & np.isfinite(other), np.where(able, cost, 0.0) - np.where(np.isfinite(other), other, 0.0), 0.0
    )
    # Rounding decides nothing: equal penalties are tied, and ties go by number.
    penalty: Floats = np.round(beyond, 6) - choice.weights.long * instance.seconds.min(axis=1)[:, None]
    return penalty
