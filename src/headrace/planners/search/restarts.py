"""Many list schedules from perturbed ranks, with prices of busy links and of contended cores; the best is kept.

HEFT sends data over a link that others wait for if a task finishes a little sooner by that, and takes a core that is
good at one kind of task for another kind. Prices are added to its cost: seconds of transfers times the share of time
for which the links were busy in the best plan so far; and seconds of cores, at the prices of the quick bound, beyond
those on the task's cheapest host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import ProblemArrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.fair_times import as_executed
from headrace.planners.list.heft import Heft
from headrace.planners.list.host_choice import HostConstraints, host_constraints
from headrace.planners.list.ranks import MeanCosts, mean_costs, ready_queue_order, upward_rank
from headrace.planners.search.annealing_search import between_places
from headrace.planners.search.contended_state import Passes, link_use
from headrace.planners.search.subset import host_subsets
from headrace.planners.work_prices import kinds_of, priced_rates

SECONDS = 0.25
"""Counted time of all passes of the planner,"""
PASSES = 64
"""and their maximum number: small problems need few."""
LINKS, CORES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0), (0.0, 0.5, 1.0, 2.0)
"""Factors of the prices that are drawn,"""
NOISE, GROUPS = (0.0, 0.02, 0.05, 0.1, 0.3), (0.0, 0.1, 0.3, 1.0)
"""and deviations of the ranks, of single tasks and of groups of tasks that share an input."""
_MOST_ENTRIES = 20_000_000
"""Maximum of tasks times places for which prices are used."""
_AGAIN = 0.5
"""Share of passes that vary the best one so far."""


@dataclass(frozen=True)
class Style:
    """How one pass orders tasks and chooses hosts."""

    key: Floats
    """Tasks with larger keys come first, after their predecessors."""
    links: float = 0.0
    cores: float = 0.0
    hosts: Ints | None = None
    earliest_start: bool = False


class Restarts:
    """HEFT with perturbed ranks, prices and subsets of hosts, 64 times if that fits into a quarter of a second.

    The time is counted, not measured, so that the same problem has the same plan.

    >>> from headrace.testing import random_platform, random_program
    >>> problem = Problem(random_program(1).graph, random_platform(1, contention="fifo"))
    >>> Restarts().plan(problem).makespan <= Heft().plan(problem).makespan
    True
    """

    name = "restarts"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        plan = Heft().plan(problem)
        if can_restart(problem):
            judged = taking_turns(problem)
            restarted = Restarted(judged, Heft().plan(judged), problem.seed)
            restarted.run(SECONDS, lambda: restarted.count >= PASSES)
            found = carried_out_in_turn(restarted.plan, problem)
            plan = found if found.makespan < plan.makespan else plan
        return replace(plan, scheduler=self.name)


def can_restart(problem: Problem) -> bool:
    """Whether list passes judge plans: transfers can take turns on links, and there are no constraints."""
    limited = problem.platform.contention != "none"
    return limited and problem.constraints is None and problem.graph.n_tasks > 1


def taking_turns(problem: Problem) -> Problem:
    """The same problem with transfers that take turns on links."""
    if problem.platform.contention == "fifo":
        return problem
    return replace(problem, platform=replace(problem.platform, contention="fifo"))


def carried_out_in_turn(plan: Plan, problem: Problem) -> Plan:
    """A plan of `taking_turns(problem)` as a plan of the problem: on fair links, its transfers take turns.

    A flow that is alone on the slow links of its route keeps its times. Others share links, so the plan may become a
    little longer or shorter.
    """
    if problem.platform.contention == "fifo":
        return plan
    return as_executed(replace(plan, platform=problem.platform, in_turn=True), problem)


class Restarted:
    """Passes of random styles, each varied if it gives the best plan so far."""

    def __init__(self, problem: Problem, plan: Plan, seed: int) -> None:
        self.problem, self.plan = problem, plan
        self.random, self.noise = Random(seed), np.random.default_rng([seed, 5])
        self.passes = [Passes(problem, results_wait=waits) for waits in (False, True)]
        self.arrays = self.passes[0].arrays
        self.ranks = _ranks(self.arrays)
        self.groups = shared_inputs(problem)[1]
        self.subsets = list(host_subsets(problem))
        self.prices = _Prices(problem, self.arrays)
        self.use = link_use(plan)
        self.best = Style(self.ranks[0])
        self.order: Int64s | None = None
        """The order of the pass that gave the plan; None while it is the given one."""
        self.waits = 0
        self.count = 0
        """Passes so far."""

    @property
    def seconds(self) -> float:
        """Counted time so far."""
        return sum(passes.seconds for passes in self.passes)

    def run(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Make passes until this much time is counted, or until `stop` says so; at least one."""
        first = self._first_styles()
        while True:
            if first:
                self._try(first.pop(0))
            else:
                self._try(self._varied() if self.random.random() < _AGAIN else self._drawn())
            if self.seconds >= seconds or stop():
                return

    def _first_styles(self) -> list[Style]:
        rank = self.ranks[0]
        return [Style(rank, links, cores) for links, cores in ((1.0, 0.0), (0.0, 1.0), (2.0, 1.0))]

    def _drawn(self) -> Style:
        """A style with all its parts drawn anew."""
        random = self.random
        key = random.choice(self.ranks)
        return Style(
            key=self._perturbed(key, random.choice(NOISE), random.choice(GROUPS)),
            links=random.choice(LINKS),
            cores=random.choice(CORES),
            hosts=None if random.random() < 0.6 else random.choice(self.subsets),
            earliest_start=random.random() < 0.15,
        )

    def _varied(self) -> Style:
        """The best style with another key, and sometimes another price."""
        random, best = self.random, self.best
        return Style(
            key=self._perturbed(best.key, random.choice(NOISE[1:]), random.choice(GROUPS[:-1])),
            links=random.choice(LINKS) if random.random() < 0.2 else best.links,
            cores=random.choice(CORES) if random.random() < 0.2 else best.cores,
            hosts=best.hosts,
            earliest_start=best.earliest_start,
        )

    def _perturbed(self, key: Floats, single: float, together: float) -> Floats:
        """A key with noise of these deviations, of single tasks and of groups together."""
        noise = single * self.noise.standard_normal(len(key)) if single else np.zeros(len(key))
        if together:
            noise = noise + together * self.noise.standard_normal(self.groups.max() + 1)[self.groups]
        return key * np.exp(noise)

    def _try(self, style: Style) -> None:
        """Make a pass of this style; keep it if its plan is shorter."""
        if self.random.random() < 0.3:
            self.waits = 1 - self.waits
        self.count += 1
        passes = self.passes[self.waits]
        order = ready_queue_order(self.arrays.tasks, style.key).astype(np.int64)
        anywhere = np.full(passes.n, -1, np.int32)
        limit = self.plan.makespan * (1 + 1e-12 if self.order is None else 1 - 1e-12)
        if passes.trial(order, anywhere, 0, limit, self.prices.choice(style, self.use)) <= limit:
            self.plan, self.best, self.order = passes.plan(Restarts.name), style, order
            self.use = link_use(self.plan)


class _Prices:
    """Costs of tasks at places, for prices of links and cores."""

    def __init__(self, problem: Problem, arrays: ProblemArrays) -> None:
        self.arrays = arrays
        places, n = problem.platform.network.n_places, problem.graph.n_tasks
        self.small = n * places <= _MOST_ENTRIES
        self.regret = _regret(problem, places) if self.small else np.zeros((1, places))
        self.returns = _return_seconds(problem, arrays) if self.small else np.zeros((1, places))

    def choice(self, style: Style, use: Floats) -> HostConstraints:
        """How tasks choose their hosts in a pass of this style."""
        zone, origin = self.arrays.network.zone, self.arrays.network.origin
        extra = style.cores * self.regret
        if style.links > 0 and origin >= 0:
            extra = extra + style.links * use[zone, zone[origin]] * self.returns
        return host_constraints(
            self.arrays,
            hosts=style.hosts,
            extra=extra,
            link_price=style.links * use,
            earliest_start=style.earliest_start,
        )


def _ranks(arrays: ProblemArrays) -> list[Floats]:
    """Upward ranks with mean transfers, without transfers, and with slow ones."""
    costs = mean_costs(arrays)
    some = [
        MeanCosts(costs.run_seconds, factor * costs.latency, factor * costs.seconds_per_byte)
        for factor in (1.0, 0.0, 4.0)
    ]
    return [upward_rank(arrays.tasks, cost) for cost in some]


def _regret(problem: Problem, places: int) -> Floats:
    """[tasks, places] seconds at the prices of cores beyond those on the cheapest host; zeros if speeds are alike."""
    graph, hosts = problem.graph, problem.platform.hosts
    rate, of_task = kinds_of(problem)
    cores = np.array([host.cores for host in hosts])
    plain = np.array([host.speed * (1.0 - host.load) for host in hosts])
    work = np.bincount(of_task, graph.work * graph.cores, len(rate)).astype(np.float64)
    found = list(priced_rates(rate, work, cores, plain))
    if not found:
        return np.zeros((1, places))
    price = found[-1] * cores.sum() / float((found[-1] * cores).sum())
    cost = price[None, :] / rate
    at_place = np.full((len(rate), places), np.inf)
    for host, place in enumerate(problem.platform.network.host_place.tolist()):
        at_place[:, place] = np.minimum(at_place[:, place], cost[:, host])
    at_place[~np.isfinite(at_place)] = 0.0
    excess = np.maximum(0.0, at_place - cost.min(axis=1)[:, None])
    regret: Floats = graph.work[:, None] * excess[of_task]
    return regret


def _return_seconds(problem: Problem, arrays: ProblemArrays) -> Floats:
    """[tasks, places] seconds for which the results of each task occupy links on their way to the origin."""
    graph, origin = problem.graph, arrays.network.origin
    seconds = np.zeros((graph.n_tasks, problem.platform.network.n_places))
    if origin < 0:
        return seconds[:1]
    latency, per_byte = between_places(arrays)
    items = np.flatnonzero(graph.result & (graph.producer != OUTSIDE) & (graph.size > 0))
    way = latency[:, origin][None, :] + graph.size[items, None] * per_byte[:, origin][None, :]
    way[~np.isfinite(way)] = 0.0
    np.add.at(seconds, graph.producer[items], way)
    return seconds


def shared_inputs(problem: Problem) -> tuple[Int64s, Int64s]:
    """The largest input of each task that other tasks read, too, or -1; and groups of tasks with the same one.

    A task without such an input is a group of its own. O(reads).
    """
    graph = problem.graph
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    shared = (np.diff(graph.reader_ptr)[graph.reads] > 1) & (graph.size[graph.reads] > 0)
    reader, items = reader[shared], graph.reads[shared].astype(np.int64)
    by_size = np.lexsort((-items, graph.size[items], reader))
    largest = np.full(graph.n_tasks, -1, np.int64)
    largest[reader[by_size]] = items[by_size]
    alone = largest < 0
    label = np.where(alone, graph.n_items + np.arange(graph.n_tasks), largest)
    return largest, np.unique(label, return_inverse=True)[1].astype(np.int64).ravel()
