"""Local search for a plan that keeps rules: every trial is decoded and judged by evaluating the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.clock import work_clock
from headrace.arrays.problem import ProblemArrays, problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import Ints
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import ListScheduler
from headrace.planners.obeying import bound_problem
from headrace.planners.ruled import Judge, Key, better, constrained_plan
from headrace.planners.search.annealing_search import order_of
from headrace.planners.search.critical_chain import critical_tasks

Tell = Callable[[Plan, Key], None]
"""Called with every plan that is better than all before."""
_HOT, _COLD = 0.02, 0.0002
"""Temperatures at the start and at the end: a plan worse by this much, in score, is accepted with probability 1/e."""
_ANNEALED = 20
"""Steps for each task below which there is no time to recover from worse plans: the search stays cold."""
_MAKESPAN_WEIGHT = 0.02
"""Weight of the makespan, relative to the start's, beside a score."""
_MOST_TASKS, _MOST_HOSTS = 60, 32
"""The best-first search over partial schedules is tried on programs and platforms up to this size."""


class Starts(NamedTuple):
    """Plans of several planners, of which a search starts."""

    best: tuple[Key, Plan]
    broken: tuple[Key, Plan] | None
    """The best plan that breaks a requirement, if it would else be better than `best`."""


def best_start(judge: Judge, names: Sequence[str], until: float, tried: list[str] | None = None) -> Starts:
    """The best plans of several planners under the rules; after `until` none is asked if there is a plan.

    The names of those that were asked are added to `tried`.

    Raises:
        NoPlan: None of them finds a plan that satisfies the constraints.
    """
    from headrace.planners.registry import make

    found: list[tuple[Key, Plan]] = []
    refused: NoPlan | None = None
    for name in names:
        if found and work_clock() > until:
            break
        if tried is not None:
            tried.append(name)
        try:
            found.append(constrained_plan(make(name).plan, judge, name))
        except NoPlan as error:
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    best, broken = found[0], None
    for key, plan in found:
        best = (key, plan) if better(key, best[0]) else best
    for key, plan in found:
        if key[0] and better((best[0][0], *key[1:]), best[0]) and (broken is None or better(key, broken[0])):
            broken = key, plan
    return Starts(best, broken)


def repaired(judge: Judge, starts: Starts, seconds: float) -> tuple[Key, Plan]:
    """The best plan, or a better one that broke a requirement and could be repaired in this time."""
    if starts.broken is None:
        return starts.best
    until = work_clock() + 1.5 * seconds
    found = searched(judge, starts.broken, seconds, until, lambda plan, key: None, repair=True)
    return found if better(found[0], starts.best[0]) else starts.best


def any_start(judge: Judge) -> tuple[Key, Plan]:
    """A plan for a search that repairs it: without regard to deadlines or, if there is none, to all rules.

    Raises:
        Clashing: No search can.
    """
    from headrace.planners.clashing import clash_of
    from headrace.planners.list.heft import Heft

    clash = clash_of(judge.problem, judge.rules)
    if clash is not None:
        raise clash
    implied = judge.compiled.implied
    late = judge.bound_to(replace(implied, deadline=np.full(len(implied.deadline), np.inf)))
    try:
        plan = Heft().plan(late)
    except NoPlan:
        plan = Heft().plan(replace(judge.problem, rules=None, constraints=None))
    return judge.key(plan), plan


def searched(
    judge: Judge,
    start: tuple[Key, Plan],
    seconds: float,
    until: float,
    tell: Tell,
    *,
    repair: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Key, Plan]:
    """Simulated annealing over hosts and order: fewer failed tests, then a better score, then a shorter makespan.

    A move that fails more tests is never accepted; one with a worse score or makespan sometimes is, at first more often
    than later. The length of the search is counted work, so that the same call gives the same plan unless the clock
    ends it.

    Args:
        judge: The problem and its rules.
        start: The plan to improve.
        seconds: Length of the search.
        until: When the clock ends it.
        tell: Called with every better plan.
        repair: End as soon as all requirements are kept.
        stop: Whether to end now.
    """
    best_key, best = start
    problem = _searchable(judge, best)
    arrays = problem_arrays(problem)
    random = np.random.default_rng(problem.seed)
    key, order, host = best_key, order_of(best), best.host.copy()
    moves = _Moves(problem, random)
    moves.look_at(best)
    steps = _steps(judge, seconds)
    accepts = _Acceptance(judge, best_key, random, steps)
    for step in range(steps):
        if work_clock() > until or (repair and best_key[0] == 0) or stop():
            break
        new_order, new_host = moves.next(order, host)
        trial = _decoded(problem, arrays, new_order, new_host, best.scheduler)
        if trial is None:
            continue
        trial = replace(trial, graph=judge.problem.graph)
        new_key = judge.key(trial)
        if not accepts(key, new_key, step / steps):
            continue
        key, order, host = new_key, new_order, trial.host.copy()
        if better(key, best_key):
            best_key, best = key, trial
            tell(best, best_key)
        moves.look_at(trial)
    return best_key, replace(best, notes=start[1].notes)


def _decoded(problem: Problem, arrays: ProblemArrays, order: Int64s, host: Ints, name: str) -> Plan | None:
    """The plan of an order and hosts; None if constraints leave no host for a task."""
    try:
        scheduler = ListScheduler(problem, arrays)
        scheduler.place(order, host_constraints(arrays, fixed=host))
        return scheduler.plan(name)
    except NoPlan:
        return None


class _Acceptance:
    """Whether a trial replaces the current plan."""

    def __init__(self, judge: Judge, start: Key, random: np.random.Generator, steps: int) -> None:
        self.random = random
        self.hot = _HOT if steps >= _ANNEALED * judge.problem.graph.n_tasks else _COLD
        self.makespan = max(start[2], 1e-300)
        self.weight = _MAKESPAN_WEIGHT if judge.rules.preferences else 1.0

    def __call__(self, current: Key, trial: Key, passed: float) -> bool:
        if trial[0] != current[0]:
            return trial[0] < current[0]
        worse = trial[1] - current[1] + self.weight * (trial[2] - current[2]) / self.makespan
        if worse <= 0:
            return True
        heat = self.hot * (_COLD / self.hot) ** passed
        return bool(self.random.random() < np.exp(-worse / heat))


def _steps(judge: Judge, seconds: float) -> int:
    graph = judge.problem.graph
    decode = 1e-3 + 1.5e-6 * (graph.n_tasks + len(graph.reads))
    evaluate = len(judge.rules) * (3e-4 + 2e-7 * graph.n_tasks)
    return max(1, int(seconds / (decode + evaluate)))


def _searchable(judge: Judge, plan: Plan) -> Problem:
    """The problem with the constraints that every good plan satisfies, if the plan satisfies those on hosts."""
    from headrace.planners.constraint_failures import failures

    problem = judge.bound_to(judge.compiled.implied)
    if problem.constraints is None:
        return problem
    try:
        bound = bound_problem(problem)
    except NoPlan:
        return replace(problem, constraints=None)
    free = replace(bound, graph=replace(bound.graph, deadline=np.full(bound.graph.n_tasks, np.inf)))
    return bound if not list(failures(free, plan)) else replace(problem, constraints=None)


class _Moves:
    """Random changes of a host or a position in the order; ties and choices depend on the seed only."""

    def __init__(self, problem: Problem, random: np.random.Generator) -> None:
        self.problem, self.random = problem, random
        self.critical: Ints = np.empty(0, np.int32)
        constraints = problem.constraints
        self.group = None if constraints is None else constraints.together

    def look_at(self, plan: Plan) -> None:
        self.critical = critical_tasks(plan, self.problem.holders)

    def next(self, order: Int64s, host: Ints) -> tuple[Int64s, Ints]:
        random, graph = self.random, self.problem.graph
        chosen = random.choice(self.critical) if random.random() < 0.4 else random.integers(graph.n_tasks)
        task = int(chosen)
        kind = random.random()
        if kind < 0.5:
            return order, self._moved(host, task, int(random.integers(len(self.problem.platform.hosts))))
        other = int(random.integers(graph.n_tasks))
        if kind < 0.6:
            return order, self._moved(host, task, int(host[other]))
        if kind < 0.7:
            return order, self._moved(self._moved(host, task, int(host[other])), other, int(host[task]))
        return self._shifted(order, task, later=kind < 0.85), host

    def _moved(self, host: Ints, task: int, to: int) -> Ints:
        """A task on another host, with those that must be together with it."""
        new = host.copy()
        if self.group is None or self.group[task] < 0:
            new[task] = to
        else:
            new[self.group == self.group[task]] = to
        return new

    def _shifted(self, order: Int64s, task: int, *, later: bool) -> Int64s:
        """A task at another position between its predecessors and its successors."""
        graph = self.problem.graph
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        at = int(position[task])
        if later:
            readers = [graph.readers_of(item) for item in graph.writes_of(task).tolist()]
            after = np.concatenate([np.empty(0, np.int32), *readers])
            high = int(position[after].min(initial=len(order)))
            target = int(self.random.integers(at, high))
        else:
            makers = graph.producer[graph.reads_of(task)]
            low = int(position[makers[makers >= 0]].max(initial=-1)) + 1
            target = int(self.random.integers(low, at + 1))
        rest = np.delete(order, at)
        return np.insert(rest, target, task)


def searched_best_first(judge: Judge, seconds: float) -> tuple[Key, Plan] | None:
    """The plan of the search over partial schedules; None on large problems, or if it finds none."""
    from headrace.planners.search.best_first import BestFirst

    problem = judge.problem
    if problem.graph.n_tasks > _MOST_TASKS or len(problem.platform.hosts) > _MOST_HOSTS:
        return None
    try:
        plan = BestFirst(time=seconds).plan(problem)
    except NoPlan:
        return None
    return judge.key(plan), plan


def solved(judge: Judge, seconds: float) -> tuple[Key, Plan, float] | None:
    """The plan of the exact model and a proven bound on the score; None where the model does not apply."""
    from headrace.rules.cpsat import solve
    from headrace.rules.cpsat_terms import CannotExpress
    from headrace.rules.semi_active import schedule_space

    problem = judge.problem
    small = problem.graph.n_tasks <= 20 and len(problem.platform.hosts) <= 10
    if not small or problem.platform.contention != "none" or problem.constraints is not None:
        return None  # the model does not know what tasks need besides cores
    space = schedule_space(
        problem.graph, problem.platform, holders=problem.holders, since=problem.since, free_at=problem.free_at
    )
    try:
        found = solve(judge.rules, space, time=seconds)
    except CannotExpress:
        return None
    return None if found.plan is None else (judge.key(found.plan), found.plan, found.bound)
