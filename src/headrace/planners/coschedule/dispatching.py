"""List schedules that decide hosts as they go, with the prices and parameters that are tried one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler
from headrace.planners.coschedule.orders import topological
from headrace.planners.coschedule.relaxation import job_costs

_LEFT_OUT = 0.25
"""Share of the random tastes that leave out a host."""
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


@dataclass(frozen=True, slots=True)
class Taste:
    """What a host prefers: weights of disks and links against cores, of long jobs, and how many jobs come last."""

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


FIRST = (
    Taste(0.0, 0.3, 0.0, 2.0, whole=0.5),
    Taste(0.0, 0.3, 0.0, 2.0, whole=1.0, proven=0.7),
    Taste(0.0, 1.0, 0.0, 1.0),
    Taste(1.0, 0.3, 0.0, 1.0, whole=0.5, proven=0.5),
    Taste(1.0, 1.0, 0.0, 2.0),
    Taste(0.0, 0.3, 0.0, 2.0, proven=1.0),
    Taste(0.5, 0.0, 0.1, 1.0),
    Taste(0.0, 0.0, 0.0, 1.0),
    Taste(0.0, 0.3, 0.1, 2.0, whole=1.0),
)


def tastes(random: np.random.Generator) -> Iterator[Taste]:
    """The first ones, then random ones without end."""
    yield from FIRST
    while True:
        disk, link, long, last, noise, without, whole, proven = random.random(8).tolist()
        left_out = 4 * without if without < _LEFT_OUT else -1.0
        yield Taste(
            2 * disk * disk,
            1.5 * link,
            0.2 * long * long,
            0.5 + 3 * last,
            whole,
            0.1 * noise,
            left_out,
            proven,
        )


class Dispatcher:
    """Makes list schedules by tastes; every second one, after the first tastes, changes the prices of the best one.

    The sequence follows from the seed and from when the prices of the relaxation become known.
    """

    def __init__(self, scheduler: ListScheduler, seed: int) -> None:
        self.proven: Floats | None = None
        """Prices of the relaxation."""
        self._scheduler = scheduler
        self._random = np.random.default_rng([seed, 1])
        self._tastes = tastes(self._random)
        self._made = 0
        self._value = np.inf
        self._price: Floats | None = None
        self._taste = FIRST[0]
        n = scheduler.instance.n
        self.width = max(LEAST_WIDTH, min(MOST_WIDTH, MOST_LOOKS // max(1, n)))

    def next(self) -> tuple[float, Decisions]:
        """The value and the decisions of one more list schedule."""
        self._made += 1
        if self._price is not None and self._made > len(FIRST) and self._made % 2:
            price, taste = self._changed(self._price), self._taste
            taste = replace(taste, last=float(np.clip(taste.last + 0.3 * self._random.normal(), 0.3, 4.0)))
        else:
            taste = next(self._tastes)
            price = self._prices(taste)
        few = self._made == 1 and self._scheduler.instance.n > MANY
        width = FIRST_WIDTH if few else self.width
        value, decisions = self._dispatched(price, taste, width, width if few else PATIENCE * width)
        if value < self._value:
            self._value, self._price, self._taste = value, price, taste
        return value, decisions

    def _changed(self, price: Floats) -> Floats:
        """Some prices changed at random; those of 0 become positive with some chance."""
        random, count = self._random, len(price)
        scaled = price * np.exp(SPREAD * random.normal(size=count))
        added = np.where(random.random(count) < 0.3, random.exponential(NEW_PRICE * price.sum(), count), 0.0)
        changed: Floats = np.where(random.random(count) < CHANGED, scaled + added, price)
        return changed

    def _prices(self, taste: Taste) -> Floats:
        """Prices of hosts, links and disks, in cores."""
        instance = self._scheduler.instance
        hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
        price = np.zeros(hosts + links + len(instance.storage))
        price[:hosts] = instance.host_cores
        price[hosts : hosts + links] = taste.link * float(instance.host_cores.mean())
        at_site = instance.site[instance.host_place]
        price[hosts + links :] = taste.disk * np.bincount(at_site, instance.host_cores, len(instance.storage))
        if self.proven is None or not self.proven.sum() > 0:
            return price
        known = self.proven * (float(instance.host_cores.sum()) / float(self.proven.sum()))
        mixed: Floats = (1.0 - taste.proven) * price + taste.proven * known
        return mixed

    def _dispatched(self, price: Floats, taste: Taste, width: int, most: int) -> tuple[float, Decisions]:
        instance = self._scheduler.instance
        penalty = _penalties(instance, price, taste)
        shortest = instance.seconds.min(axis=1)
        if taste.noise > 0:
            penalty = penalty + self._random.normal(0.0, taste.noise * float(shortest.mean()), penalty.shape)
        if taste.without >= 0:
            at = int(taste.without * penalty.shape[1])
            if np.isfinite(np.delete(instance.seconds, at, axis=1)).any(axis=1).all():
                penalty[:, at] = np.inf
        last = max(1, round(taste.last * int(instance.host_cores.sum())))
        return self._scheduler.dispatched(topological(instance, -shortest), penalty, width, most, last)


def _penalties(instance: Instance, price: Floats, taste: Taste) -> Floats:
    """[jobs, hosts] what a job costs on a host beyond its best other host, in seconds of cores; less for long jobs."""
    cost = job_costs(instance, price, taste.whole)
    least = np.sort(cost, axis=1)[:, :2]
    other = np.where(cost == least[:, :1], least[:, -1:], least[:, :1])
    able = np.isfinite(cost)
    beyond = np.where(
        able & np.isfinite(other), np.where(able, cost, 0.0) - np.where(np.isfinite(other), other, 0.0), 0.0
    )
    # Rounding decides nothing: equal penalties are tied, and ties go by number.
    penalty: Floats = np.round(beyond, 6) - taste.long * instance.seconds.min(axis=1)[:, None]
    return penalty
