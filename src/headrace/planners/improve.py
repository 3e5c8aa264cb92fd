"""Improve a plan by simulated annealing on its order and its hosts, where links are not limited."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.planners.booking import booked_plan
from headrace.planners.kernels.annealing import anneal, restart
from headrace.planners.kernels.search_arrays import BLOCK, Fixed, Solution, Trial
from headrace.planners.priorities import from_ready_queue
from headrace.planners.problem_arrays import arrays_of, choice_of

Order: TypeAlias = NDArray[np.int64]
_WARMEST, _LEAST_WARM, _COLD = 0.01, 1e-4, 1e-6
"""Temperatures as shares of the makespan,"""
_WARMEST_TASK = 3.0
"""and of the makespan over the number of tasks: with few of them each counts for more."""
_SWEEPS = 5000
"""Moves for each task that allow the warmest start; with fewer there is no time to cool down from it."""
_MOST_ROUNDS = 4
"""With time for several searches from the warmest start, so many are made, all from the first plan."""
_CHUNKS = 100
"""Calls of the compiled loop: between them the clock is read and progress is told."""
_MOST_ENTRIES = 50_000_000
"""Largest table (tasks x places, places x places) the search may make."""


def can_anneal(problem: Problem) -> bool:
    """Whether transfers do not wait for each other, and the tables of the search are not too large."""
    places, n = problem.platform.network.n_places, problem.graph.n_tasks
    return problem.platform.contention == "none" and n > 1 and max(places, n) * places <= _MOST_ENTRIES


def annealed(
    problem: Problem, plan: Plan, seconds: float, seed: int, until: float, tell: Callable[[float], None]
) -> Plan:
    """The best plan found from `plan` by `seconds` of moves, or until the clock says `until`; never a worse one.

    The seconds are counted, not measured (see kernels.search_arrays), and moves depend on the seed alone: the
    same call gives the same plan, unless the clock cuts it short.
    """
    search = _Search(problem, plan, seed)
    sweeps = seconds / _seconds_a_move(problem) / problem.graph.n_tasks
    rounds = min(_MOST_ROUNDS, max(1, int(sweeps / _SWEEPS / 2)))
    warmest = min(0.3, max(_WARMEST, _WARMEST_TASK / problem.graph.n_tasks))
    start = min(warmest, max(_LEAST_WARM, warmest * (sweeps / _SWEEPS) ** 2))
    chunks = _CHUNKS // rounds
    for number in range(rounds):
        search.begin(plan)
        for chunk in range(chunks):
            warm, cold = (start * (_COLD / start) ** ((chunk + end) / chunks) for end in (0, 1))
            if search.run(seconds * (number + (chunk + 1) / chunks) / rounds, warm, cold):
                tell(search.best)
            if work_clock() > until:
                break
    better = search.plan(plan.scheduler)
    return better if better.makespan < plan.makespan else plan


def _seconds_a_move(problem: Problem) -> float:
    """Roughly, to know how many moves there will be."""
    return 1.5e-6 + 0.5e-7 * float(np.sqrt(problem.graph.n_tasks + len(problem.graph.reads)))


class _Search:
    def __init__(self, problem: Problem, plan: Plan, seed: int) -> None:
        n = problem.graph.n_tasks
        cores = sum(h.cores for h in problem.platform.hosts)
        self.problem = problem
        self.fixed = _fixed(problem)
        self.best_finish = plan.finish.copy()
        self.best_host = plan.host.astype(np.int64)
        self.trial = Trial(
            finish=np.zeros(n),
            core=np.zeros(n, np.int64),
            inside=np.full(cores, -1),
            choice=np.zeros(2, np.int64),
            marked=np.zeros(n, np.bool_),
            path=np.zeros(n, np.int64),
            work=np.zeros(1),
        )
        self.solution = Solution(
            order=order_of(plan),
            position=np.zeros(n, np.int64),
            host=self.best_host.copy(),
            core=np.zeros(n, np.int64),
            before=np.full(n, -1),
            next=np.full(n, -1),
            first=np.full(cores, -1),
            last=np.full(((n - 1) // BLOCK + 1, cores), -1),
            finish=np.zeros(n),
            over=np.zeros(n),
            cause=np.full(n, -1),
            rest=np.zeros(n),
        )
        self.state = np.array([0x9E3779B97F4A7C15 ^ (seed + 1)], np.uint64)
        self.makespan = self.best = float("inf")

    def begin(self, plan: Plan) -> None:
        """Search from the decisions of a plan; the best solution so far is kept."""
        self.solution.order[:] = order_of(plan)
        self.solution.host[:] = plan.host
        self.makespan = float(restart(self.fixed, self.solution, self.trial))
        if self.makespan < self.best:
            self.best = self.makespan
            self.best_finish[:], self.best_host[:] = self.solution.finish, self.solution.host

    def run(self, until: float, warm: float, cold: float) -> bool:
        """Moves at these temperatures until so much work is done; True if a better solution was found."""
        before = self.best
        self.makespan, self.best = anneal(
            self.fixed,
            self.solution,
            self.trial,
            self.best_finish,
            self.best_host,
            self.state,
            until,
            warm * self.best,
            cold * self.best,
            self.makespan,
            self.best,
        )
        return self.best < before

    def plan(self, name: str) -> Plan:
        """The best solution as a plan: tasks placed in the order of their starts, in gaps where they fit."""
        seconds = self.fixed.seconds[np.arange(len(self.best_host)), self.fixed.speed_of[self.best_host]]
        order = from_ready_queue(self.problem.graph, seconds - self.best_finish)
        choice = choice_of(self.problem, forced=self.best_host.astype(np.int32))
        return booked_plan(self.problem, name, lambda board: board.place(order, choice))


def order_of(plan: Plan) -> Order:
    """Tasks by start; ties as the program orders them."""
    position = np.empty(plan.graph.n_tasks, np.int64)
    position[plan.graph.order] = np.arange(plan.graph.n_tasks)
    return np.lexsort((position, plan.start)).astype(np.int64)


def _fixed(problem: Problem) -> Fixed:
    graph, platform, network = problem.graph, problem.platform, problem.platform.network
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    maker = graph.producer[graph.reads]
    inside = maker != OUTSIDE
    read_ptr = np.concatenate(([0], np.cumsum(np.bincount(reader[inside], minlength=graph.n_tasks))))
    by_maker = np.argsort(maker[inside], kind="stable")
    after_ptr = np.concatenate(([0], np.cumsum(np.bincount(maker[inside], minlength=graph.n_tasks))))
    speeds, speed_of = np.unique(platform.rates(graph.kinds), axis=1, return_inverse=True)
    latency, per_byte = _between_places(problem)
    cores = [h.cores for h in platform.hosts]
    return Fixed(
        seconds=graph.work[:, None] / speeds[graph.kind],
        speed_of=speed_of.astype(np.int64).ravel(),
        place_of=network.host_place.astype(np.int64),
        core_ptr=np.concatenate(([0], np.cumsum(cores))),
        free_at=np.repeat([float(problem.free_at.get(h, 0.0)) for h in range(len(cores))], cores),
        latency=latency,
        per_byte=per_byte,
        read_ptr=read_ptr,
        maker=maker[inside].astype(np.int64),
        size=graph.size[graph.reads[inside]],
        outside=_from_outside(problem, latency, per_byte),
        back=_way_back(problem, latency, per_byte),
        after_ptr=after_ptr,
        after=reader[inside][by_maker],
        after_size=graph.size[graph.reads[inside]][by_maker],
    )


def _between_places(problem: Problem) -> tuple[Floats, Floats]:
    """Latency and seconds per byte between every two places."""
    network = problem.platform.network
    zone = network.zone
    with np.errstate(divide="ignore"):
        per_byte = 1.0 / network.route_bandwidth[np.ix_(zone, zone)]
        ports = 1.0 / network.port
    per_byte = np.maximum(per_byte, np.maximum(ports[:, None], ports[None, :]))
    latency = network.route_latency[np.ix_(zone, zone)].copy()
    latency[~np.isfinite(per_byte)] = np.inf
    per_byte[~np.isfinite(per_byte)] = 0.0
    np.fill_diagonal(per_byte, 0.0)
    np.fill_diagonal(latency, 0.0)
    return latency, per_byte


def _from_outside(problem: Problem, latency: Floats, per_byte: Floats) -> Floats:
    """When what each task reads from outside can be at each place; one row if that is always at once."""
    tasks = arrays_of(problem).tasks
    ready = np.zeros((problem.graph.n_tasks, len(latency)))
    held = np.diff(tasks.held_ptr) > 0
    for item in np.flatnonzero(held & (tasks.size > 0)).tolist():
        places = tasks.held[tasks.held_ptr[item] : tasks.held_ptr[item + 1]]
        since = (latency[places] + tasks.size[item] * per_byte[places]).min(axis=0)
        readers = problem.graph.readers_of(item)
        ready[readers] = np.maximum(ready[readers], since)
    return ready if ready.any() else ready[:1]


def _way_back(problem: Problem, latency: Floats, per_byte: Floats) -> Floats:
    """How long results take to return to the origin; one row if they need not."""
    graph, origin = problem.graph, problem.platform.network.origin
    back = np.zeros((graph.n_tasks, len(latency)))
    if origin == EVERYWHERE:
        return back[:1]
    for item in np.flatnonzero(graph.result & (graph.producer != OUTSIDE) & (graph.size > 0)).tolist():
        maker = graph.producer[item]
        back[maker] = np.maximum(back[maker], latency[:, origin] + graph.size[item] * per_byte[:, origin])
    return back
