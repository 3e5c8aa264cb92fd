"""Which parameters the dispatcher is tried with: what hosts prefer, how many jobs they look at, how many come last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler
from headrace.planners.coschedule.orders import topological
from headrace.planners.coschedule.relaxation import job_costs

_LEFT_OUT = 0.25
"""Share of the random tastes that leave out a host."""
WIDTH = 20
"""Number of jobs that a host looks at."""


@dataclass(frozen=True, slots=True)
class Taste:
    """What a host prefers: weights of disks and links against cores, of long jobs, and how many jobs come last."""

    disk: float
    link: float
    long: float
    last: float
    """Number of last jobs, as a multiple of all cores."""
    noise: float = 0.0
    """Random share of the mean run time that is added to penalties."""
    without: float = -1.0
    """A host that is left out, as a share of all hosts; below 0: none."""


FIRST = (
    Taste(0.0, 1.0, 0.0, 1.0),
    Taste(0.0, 0.3, 0.0, 2.0),
    Taste(1.0, 1.0, 0.0, 2.0),
    Taste(0.5, 0.0, 0.1, 1.0),
    Taste(1.0, 0.0, 0.0, 2.0),
    Taste(0.0, 0.0, 0.0, 1.0),
    Taste(1.0, 0.3, 0.0, 1.0),
    Taste(0.0, 0.3, 0.1, 2.0),
)


def tastes(random: np.random.Generator) -> Iterator[Taste]:
    """The first ones, then random ones without end."""
    yield from FIRST
    while True:
        disk, link, long, last, noise, without = random.random(6).tolist()
        left_out = 4 * without if without < _LEFT_OUT else -1.0
        yield Taste(2 * disk * disk, 1.5 * link, 0.2 * long * long, 0.5 + 3 * last, 0.1 * noise, left_out)


def dispatched(
    scheduler: ListScheduler, taste: Taste, random: np.random.Generator
) -> tuple[float, Decisions]:
    """The value and the decisions of one list schedule that decides hosts as it goes."""
    instance = scheduler.instance
    penalty = _penalties(instance, taste)
    shortest = instance.seconds.min(axis=1)
    if taste.noise > 0:
        penalty = penalty + random.normal(0.0, taste.noise * float(shortest.mean()), penalty.shape)
    if taste.without >= 0:
        at = int(taste.without * penalty.shape[1])
        if np.isfinite(np.delete(instance.seconds, at, axis=1)).any(axis=1).all():
            penalty[:, at] = np.inf
    last = max(1, round(taste.last * int(instance.host_cores.sum())))
    return scheduler.dispatched(topological(instance, -shortest), penalty, WIDTH, last)


def _penalties(instance: Instance, taste: Taste) -> Floats:
    """[jobs, hosts] what a job costs on a host beyond its best other host, in seconds of cores; less for long jobs."""
    hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
    price = np.zeros(hosts + links + len(instance.storage))
    price[:hosts] = instance.host_cores
    price[hosts : hosts + links] = taste.link * float(instance.host_cores.mean())
    at_site = instance.site[instance.host_place]
    price[hosts + links :] = taste.disk * np.bincount(at_site, instance.host_cores, len(instance.storage))
    cost = job_costs(instance, price)
    least = np.sort(cost, axis=1)[:, :2]
    other = np.where(cost == least[:, :1], least[:, -1:], least[:, :1])
    able = np.isfinite(cost)
    beyond = np.where(
        able & np.isfinite(other), np.where(able, cost, 0.0) - np.where(np.isfinite(other), other, 0.0), 0.0
    )
    penalty: Floats = beyond - taste.long * instance.seconds.min(axis=1)[:, None]
    return penalty
