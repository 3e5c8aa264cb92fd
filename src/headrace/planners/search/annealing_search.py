"""Improve a plan by simulated annealing of its order and hosts, for platforms without limited links."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import ProblemArrays, TaskArrays, problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.planners.constraint_failures import failures
from headrace.planners.constraint_state import constraint_state, no_constraints
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import ready_queue_order
from headrace.planners.search.annealing import anneal, meets_deadlines, restart, take_all
from headrace.planners.search.random_numbers import random_state
from headrace.planners.search.records import BLOCK, SearchTables, Solution, Trial
from headrace.planners.search.rollouts import rolled_out
from headrace.planners.side_by_side import Ends, searches_side_by_side

_WARMEST, _LEAST_WARM, _COLD = 0.01, 1e-4, 1e-6
"""Temperatures as shares of the makespan,"""
_WARMEST_TASK = 3.0
"""and as shares of the makespan over the number of tasks: with few tasks each has more weight."""
_ROLLED, _ROLLED_TASK = 0.6, 2e-3
"""Share of the time, and at most so many seconds per task, for a better plan to start from: that of `rollouts`."""
_CLEARLY_SHORTER = 0.98
"""A plan of rollouts that is not shorter than this share of the given one is kept, but not searched from."""
_SWEEPS = 5000
"""Number of moves per task that allows the highest initial temperature; fewer leave no time to cool down from it."""
_MOST_ROUNDS = 4
"""Maximum number of successive searches, all from the first plan, if there is time for several."""
_CHUNKS, _CHUNK = 100, 0.5
"""Least number and greatest length of calls of the compiled loop; between calls the clock is read and progress is
reported."""
_MOST_ENTRIES = 50_000_000
"""Maximum number of entries of a table (tasks x places, places x places)."""


def can_anneal(problem: Problem) -> bool:
    """Whether the search applies: transfers do not contend for links, and the tables are not too large.

    It does not know limits on tasks at once, nor tasks that hold several cores.
    """
    if (problem.graph.cores > 1).any():
        return False
    limits = () if problem.constraints is None else problem.constraints.limits
    if any(np.isfinite(limit.at_once) for limit in limits):
        return False
    places, n = problem.platform.network.n_places, problem.graph.n_tasks
    return problem.platform.contention == "none" and n > 1 and max(places, n) * places <= _MOST_ENTRIES


def annealed(
    problem: Problem,
    plan: Plan,
    seconds: float,
    seed: int,
    until: float,
    tell: Callable[[float], None],
    stop: Callable[[], bool] = lambda: False,
) -> Plan:
    """The best plan found from `plan` in `seconds` of moves, or until the clock reaches `until` or `stop` says so;
    never a worse one.

    If there are two cores, one search starts from a plan of rollouts and one from the given plan. The seconds are
    counted for each of them, not measured (see `records`), and moves depend only on the seed: the same call gives the
    same plan, unless the clock ends it early.
    """
    ends = Ends(until, stop)
    first = _Descent(problem, plan, seed, tell, rolls=problem.constraints is None)
    descents = [
        first,
        *(_Descent(problem, plan, seed + k, _untold) for k in range(1, searches_side_by_side())),
    ]
    ends.side_by_side([partial(descent.run, seconds) for descent in descents])
    found = min((descent.result() for descent in descents), key=lambda made: made.makespan)
    if found.makespan < first.kept.makespan * (1 - 1e-12):
        tell(found.makespan)
    return found


def _untold(makespan: float) -> None:
    """Searches in other threads tell nothing."""


class _Descent:
    """Simulated annealing from a plan, or from that of rollouts if it is clearly shorter."""

    def __init__(
        self, problem: Problem, plan: Plan, seed: int, tell: Callable[[float], None], *, rolls: bool = False
    ) -> None:
        self.problem, self.plan, self.seed, self.tell, self.rolls = problem, plan, seed, tell, rolls
        self.search = _Search(problem, plan, seed)
        self.kept = plan
        """The best plan before annealing."""

    def run(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Search for this much counted time, or until `stop` says so."""
        plan = self.plan
        if self.rolls:
            plan, spent = self._rolled(plan, seconds, stop)
            seconds = max(seconds - spent, 0.1 * seconds)
        n = self.problem.graph.n_tasks
        sweeps = seconds / _seconds_a_move(self.problem) / n
        rounds = min(_MOST_ROUNDS, max(1, int(sweeps / _SWEEPS / 2)))
        warmest = min(0.3, max(_WARMEST, _WARMEST_TASK / n))
        start = min(warmest, max(_LEAST_WARM, warmest * (sweeps / _SWEEPS) ** 2))
        chunks = max(_CHUNKS // rounds, math.ceil(seconds / rounds / _CHUNK))
        for number in range(rounds):
            if stop():
                break
            self.search.begin(plan)
            for chunk in range(chunks):
                warm, cold = (start * (_COLD / start) ** ((chunk + end) / chunks) for end in (0, 1))
                if self.search.run(seconds * (number + (chunk + 1) / chunks) / rounds, warm, cold):
                    self.tell(min(self.search.best, self.kept.makespan))
                if stop():
                    break

    def _rolled(self, plan: Plan, seconds: float, stop: Callable[[], bool]) -> tuple[Plan, float]:
        """The plan to start from, and counted seconds."""
        share = min(_ROLLED, _ROLLED_TASK * self.problem.graph.n_tasks / seconds)
        rolled, spent = self.search.rolled(plan, self.seed, share * seconds, stop)
        if rolled.makespan < plan.makespan * (1 - 1e-12):
            self.kept = rolled
            self.tell(rolled.makespan)
        return (rolled if rolled.makespan < plan.makespan * _CLEARLY_SHORTER else plan), spent

    def result(self) -> Plan:
        """The best plan found."""
        if not np.isfinite(self.search.best):
            return self.kept
        better = self.search.plan(self.plan.scheduler)
        if self.problem.constraints is not None and next(failures(self.problem, better), None) is not None:
            return self.kept  # tasks inserted into gaps can delay others past a deadline
        return better if better.makespan < self.kept.makespan else self.kept


def _seconds_a_move(problem: Problem) -> float:
    """Estimated seconds per move, to predict the number of moves."""
    return 1.5e-6 + 0.5e-7 * float(np.sqrt(problem.graph.n_tasks + len(problem.graph.reads)))


class _Search:
    def __init__(self, problem: Problem, plan: Plan, seed: int) -> None:
        self.problem = problem
        self.arrays = problem_arrays(problem)
        self.tables = search_tables(
            self.arrays, None if problem.constraints is None else problem.graph.release
        )
        self.best_finish = plan.finish.copy()
        self.best_host = plan.host.astype(np.int64)
        n, cores = problem.graph.n_tasks, int(self.arrays.hosts.core_ptr[-1])
        self.trial = _room_for_trial(n, cores)
        self.solution = _room_for_solution(n, cores)
        self.random_state = random_state(seed)
        self.makespan = self.best = float("inf")
        self.constraints = no_constraints() if problem.constraints is None else constraint_state(problem)

    def rolled(self, plan: Plan, seed: int, seconds: float, stop: Callable[[], bool]) -> tuple[Plan, float]:
        """A list schedule with hosts chosen by rollouts, or the given plan if there are none; and counted seconds."""
        order, host, spent = rolled_out(self.arrays, self.tables, seed, seconds, stop)
        if (host < 0).any():
            return plan, spent
        fixed = host_constraints(self.arrays, fixed=host.astype(np.int32))
        made = list_plan(self.problem, order.astype(np.int32), plan.scheduler, fixed, self.arrays)
        return replace(made, notes=plan.notes), spent

    def begin(self, plan: Plan) -> None:
        """Start from the decisions of a plan; the best solution so far is kept."""
        self.solution.order[:] = order_of(plan)
        self.solution.host[:] = plan.host
        self.makespan = float(restart(self.tables, self.solution, self.trial))
        if self.constraints.active:
            take_all(self.constraints, self.arrays.tasks, self.arrays.hosts, self.solution.host)
        if self.makespan < self.best and meets_deadlines(self.constraints, self.solution.finish):
            self.best = self.makespan
            self.best_finish[:], self.best_host[:] = self.solution.finish, self.solution.host

    def run(self, until: float, warm: float, cold: float) -> bool:
        """Make moves at these temperatures until this much work is done; returns whether the best improved."""
        before = self.best
        self.makespan, self.best = anneal(
            self.tables,
            self.solution,
            self.trial,
            self.best_finish,
            self.best_host,
            self.random_state,
            until,
            warm * self.best,
            cold * self.best,
            self.makespan,
            self.best,
            self.constraints,
            self.arrays.tasks,
            self.arrays.hosts,
        )
        return self.best < before

    def plan(self, name: str) -> Plan:
        """The best solution as a plan: tasks placed in order of start, inserted into gaps if they fit."""
        tables = self.tables
        seconds = tables.run_seconds[np.arange(len(self.best_host)), tables.speed_class[self.best_host]]
        order = ready_queue_order(self.arrays.tasks, seconds - self.best_finish)
        constraints = host_constraints(self.arrays, fixed=self.best_host.astype(np.int32))
        return list_plan(self.problem, order, name, constraints, self.arrays)


def _room_for_trial(n: int, cores: int) -> Trial:
    return Trial(
        finish=np.zeros(n),
        core=np.zeros(n, np.int64),
        last=np.full(cores, -1),
        insertion=np.zeros(2, np.int64),
        marked=np.zeros(n, np.bool_),
        path=np.zeros(n, np.int64),
        work=np.zeros(1),
    )


def _room_for_solution(n: int, cores: int) -> Solution:
    return Solution(
        order=np.zeros(n, np.int64),
        position=np.zeros(n, np.int64),
        host=np.zeros(n, np.int64),
        core=np.zeros(n, np.int64),
        before=np.full(n, -1),
        next=np.full(n, -1),
        first=np.full(cores, -1),
        last=np.full(((n - 1) // BLOCK + 1, cores), -1),
        finish=np.zeros(n),
        returned=np.zeros(n),
        cause=np.full(n, -1),
        tail=np.zeros(n),
    )


def order_of(plan: Plan) -> Int64s:
    """Tasks by start; ties in topological order."""
    position = np.empty(plan.graph.n_tasks, np.int64)
    position[plan.graph.order] = np.arange(plan.graph.n_tasks)
    return np.lexsort((position, plan.start)).astype(np.int64)


def search_tables(arrays: ProblemArrays, release: Floats | None = None) -> SearchTables:
    """The tables of a problem: O(tasks * (places + speed classes) + reads log reads + places^2).

    With `release`, no task starts before its release.
    """
    tasks, hosts = arrays.tasks, arrays.hosts
    n = len(tasks.work)
    reader = np.repeat(np.arange(n), np.diff(tasks.read_ptr))
    maker = tasks.producer[tasks.reads]
    inside = maker != OUTSIDE
    by_maker = np.argsort(maker[inside], kind="stable")
    speeds, speed_class = np.unique(hosts.rate, axis=1, return_inverse=True)
    latency, seconds_per_byte = between_places(arrays)
    return SearchTables(
        run_seconds=tasks.work[:, None] / speeds[tasks.speed_class],
        speed_class=speed_class.astype(np.int64).ravel(),
        host_place=hosts.place,
        core_ptr=hosts.core_ptr,
        core_free_at=np.repeat(hosts.free_at, np.diff(hosts.core_ptr)),
        latency=latency,
        seconds_per_byte=seconds_per_byte,
        predecessor_ptr=_offsets(reader[inside], n),
        predecessor=maker[inside].astype(np.int64),
        read_bytes=tasks.size[tasks.reads[inside]],
        successor_ptr=_offsets(maker[inside], n),
        successor=reader[inside][by_maker],
        sent_bytes=tasks.size[tasks.reads[inside]][by_maker],
        outside_arrival=_outside_arrival(arrays, latency, seconds_per_byte, release),
        return_seconds=_return_seconds(tasks, arrays.network.origin, latency, seconds_per_byte),
    )


def _offsets(owner: Int64s, n: int) -> Int64s:
    """Where the entries of each of n owners begin, once they are grouped by owner."""
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=n))))


def between_places(arrays: ProblemArrays) -> tuple[Floats, Floats]:
    """Latency and seconds per byte between all pairs of places."""
    network = arrays.network
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


def _outside_arrival(
    arrays: ProblemArrays, latency: Floats, per_byte: Floats, release: Floats | None
) -> Floats:
    """When each task's inputs from outside can be at each place; a single row if that is always time 0."""
    tasks, initial = arrays.tasks, arrays.initial
    ready = np.zeros((len(tasks.work), len(latency)))
    if release is not None:
        ready += release[:, None]
    held = np.diff(initial.ptr) > 0
    for item in np.flatnonzero(held & (tasks.size > 0)).tolist():
        places = initial.place[initial.ptr[item] : initial.ptr[item + 1]]
        since = (latency[places] + tasks.size[item] * per_byte[places]).min(axis=0)
        readers = tasks.readers[tasks.reader_ptr[item] : tasks.reader_ptr[item + 1]]
        ready[readers] = np.maximum(ready[readers], since)
    return ready if ready.any() else ready[:1]


def _return_seconds(tasks: TaskArrays, origin: int, latency: Floats, per_byte: Floats) -> Floats:
    """Seconds to return each task's results to the origin; a single row if none need to return."""
    seconds = np.zeros((len(tasks.work), len(latency)))
    if origin == EVERYWHERE:
        return seconds[:1]
    for item in np.flatnonzero(tasks.result & (tasks.producer != OUTSIDE) & (tasks.size > 0)).tolist():
        maker = tasks.producer[item]
        way = latency[:, origin] + tasks.size[item] * per_byte[:, origin]
        seconds[maker] = np.maximum(seconds[maker], way)
    return seconds
