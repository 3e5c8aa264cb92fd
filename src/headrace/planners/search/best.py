"""The best plan that can be found in a given time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.clock import work_clock
from headrace.arrays.problem import ProblemArrays, problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import Ints
from headrace.model.plan import Plan
from headrace.planners.bounds import FULL_SECONDS, full_bound, lower_bound
from headrace.planners.constraint_failures import lateness
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import ListScheduler
from headrace.planners.ruled import Judge, Key, better
from headrace.planners.search.annealing_search import annealed, can_anneal, order_of
from headrace.planners.search.auto import (
    IMPROVE,
    REPAIR,
    best_of_candidates,
    breaks_requirements,
    candidates,
    short_search,
    with_care,
)
from headrace.planners.search.contended import contended
from headrace.planners.search.critical_chain import critical_tasks
from headrace.planners.search.exact import can_solve, solved_exactly
from headrace.planners.search.restarts import can_restart, carried_out_in_turn, taking_turns
from headrace.planners.search.ruled_search import best_start, repaired, searched, searched_best_first, solved

Report = Callable[[float, float, float], None]
"""Called with elapsed seconds, makespan and bound, which has a name, whenever one of the two improves."""
_SHARE = 0.85
"""Share of the time for local search; its work is counted as on a machine of ordinary speed."""
_SHARE_BEFORE_EXACT, _EXACT = 0.35, 0.5
"""The same for small problems, and the share of the time for the exact model of them that follows."""
_LEAST_FOR_EXACT = 0.5
"""Seconds; less is not enough for the exact model to prove anything."""
_BOUND_FIRST, _BOUND_LAST = 0.05, 0.1
"""Shares of the time for a better bound, before the search and after it."""
_LEAST_FOR_BOUND = 0.1
"""Seconds; loading the solvers takes longer than that."""
_OPTIMAL = 1.0 + 1e-9
_STARTS, _SOLVER, _SEARCH, _SHORTEN = 0.3, 0.25, 0.45, 0.6
"""Under rules: shares of the time for plans of further planners as starts, for the exact solver, for the local search,
and for shortening the makespan where constraints keep all rules. They do not depend on the clock."""
_OTHERS = ("peft", "cpop", "wu-gajski", "locality")
"""Under rules: planners tried besides the candidates of `auto`,"""
_BATCH = ("sufferage", "minmin", "maxmin", "xsufferage", "sufferage2")
"""and, where they are fast, these."""
_BATCH_TASKS = 500
"""Batch planners take seconds for larger programs on contended links,"""
_BATCH_SECONDS = 4e-8
"""and about this many times tasks squared times hosts without contention."""
_PROVEN = 1e-6
"""A score within this of a proven bound is the best."""


class Best:
    """The best candidate of `auto`, improved by local search within a time limit.

    Without contention: a list schedule whose choices of hosts are judged by what follows them (`rollouts`), then
    simulated annealing of order and hosts, with moves on the critical path. With contention: list schedules from
    perturbed ranks and prices of links and cores, then annealing of order and hosts, with moves on the critical chain
    through cores and links, judged by list passes; on fair links transfers take turns. Under constraints with
    contention: hill climbing by single tasks. Small problems without constraints are then solved as a whole by a
    constraint program that starts from the plan and also raises the bound. The length of the search is counted work,
    not measured time, and moves depend only on the seed, so the same call gives the same plan. On a slow machine the
    clock ends the search soon after the time limit. Where the plans of all candidates break a requirement of the
    program or platform, such as the storage of a site, the plan is that of `coschedule`.

    Under rules it starts from the plan of `auto` or of another planner, by failed tests of requirements, score of the
    preferences and makespan in this order, and moves are accepted by the same. Small problems without contention are
    also given to an exact solver. Without preferences the makespan alone is improved, under constraints that keep the
    requirements.

    Args:
        time: Time limit in seconds.
        tell: Called with elapsed seconds, makespan and bound whenever one of the two improves.
        stop: Asked now and then, from the thread that plans, whether the plan found so far is good enough.

    Raises:
        UsageError: The time is not positive.

    >>> Best(time=2.0).name
    'best'
    """

    name = "best"
    takes_rules = True

    def __init__(
        self,
        time: float = 10.0,
        tell: Report = lambda seconds, makespan, bound: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        if not 0 < time < 1e6:
            raise UsageError(f"time is {time}", hint="use a number of seconds above 0, such as 10")
        self.time = time
        self.tell = tell
        self.stop = stop

    def plan(self, problem: Problem) -> Plan:
        return self._by_rules(problem) if problem.rules is not None else self._improved(problem)

    @obeys
    def _improved(self, problem: Problem) -> Plan:
        began = work_clock()
        plan = best_of_candidates(problem)
        first = plan.scheduler
        bound = lower_bound(problem)
        if breaks_requirements(problem, plan):
            careful = with_care(problem, self.time)
            if careful is not None:  # the search below does not look at what it keeps
                self.tell(work_clock() - began, careful.makespan, max(bound, careful.bound))
                note = f"the plan of {careful.scheduler}"
                return replace(
                    careful,
                    scheduler=self.name,
                    bound=max(bound, careful.bound),
                    notes=(*careful.notes, note),
                )

        def tell(makespan: float) -> None:
            self.tell(work_clock() - began, makespan, bound)

        def raise_bound(seconds: float) -> None:
            nonlocal bound
            if seconds < _LEAST_FOR_BOUND:
                return
            found = full_bound(problem, most=plan.makespan, seconds=seconds, best=bound)
            if found > bound:
                bound = found
                tell(plan.makespan)

        tell(plan.makespan)
        raise_bound(min(FULL_SECONDS, _BOUND_FIRST * self.time))
        if plan.makespan > bound * _OPTIMAL and problem.graph.n_tasks > 1:
            until = began + 1.25 * self.time + 2
            whole = self.time >= _LEAST_FOR_EXACT and can_solve(problem, self.time)
            share = _SHARE_BEFORE_EXACT if whole else _SHARE
            found = _improve(problem, plan, self.time * share, until, tell, self.stop)
            plan = plan if breaks_requirements(problem, found) else found
            if not self.stop():
                raise_bound(_BOUND_LAST * self.time)
            if whole and not self.stop() and not breaks_requirements(problem, plan):
                found, bound = solved_exactly(problem, plan, bound, _EXACT * self.time, until, self.stop)
                plan = plan if breaks_requirements(problem, found) else found
                tell(plan.makespan)
        note = f"improved from the plan of {first}"
        return replace(plan, scheduler=self.name, bound=bound, notes=(*plan.notes, note))

    def _by_rules(self, problem: Problem) -> Plan:
        judge = Judge.of(problem)
        began = work_clock()
        bound = lower_bound(problem)
        key, plan = self._start(judge)
        notes = [f"improved from the plan of {plan.scheduler}"]
        self.tell(work_clock() - began, plan.makespan, bound)

        proven = False
        if judge.covered and key[0] == 0:
            key, plan = self._shortened(judge, key, plan, _SHORTEN * self.time)
        elif (found := solved(judge, _SOLVER * self.time)) is not None and found[0][0] == 0:
            proven = found[2] >= found[0][1] - _PROVEN
            key, plan = found[:2] if better(found[0], key) else (key, plan)
        if not proven and (not judge.covered or judge.compiled.stronger):
            until = began + 1.25 * self.time + 2
            key, plan = searched(
                judge, (key, plan), _SEARCH * self.time, until,
                lambda made, _: self.tell(work_clock() - began, made.makespan, bound), stop=self.stop,
            )  # fmt: skip
        if problem.rules is not None and problem.rules.preferences:
            proven = proven or key[1] <= _PROVEN  # no score is below 0
            notes.append(f"score {key[1]:.6g}, {'proven best' if proven else 'not proven best'}")
        return replace(plan, scheduler=self.name, bound=bound, notes=(*plan.notes, *notes))

    def _start(self, judge: Judge) -> tuple[Key, Plan]:
        """The best of what `auto` finds and of the plans of further planners."""
        problem = judge.problem
        tried: list[str] = []
        seconds, improve = min(REPAIR, 0.5 * self.time), min(IMPROVE, 0.4 * self.time)
        key, plan, _ = short_search(judge, seconds, improve, tried)
        if key[0] and (found := searched_best_first(judge, min(REPAIR, _STARTS * self.time))) is not None:
            key, plan = found if better(found[0], key) else (key, plan)
        fast = _batch_is_fast(problem, _STARTS * self.time)
        others = dict.fromkeys((*candidates(problem), *_OTHERS, *(_BATCH if fast else ())))
        names = [name for name in others if name not in tried]
        try:
            starts = best_start(judge, names, work_clock() + _STARTS * self.time)
            other = repaired(judge, starts, 0.5 * _STARTS * self.time)
        except NoPlan:
            return key, plan
        return other if better(other[0], key) else (key, plan)

    def _shortened(self, judge: Judge, key: Key, plan: Plan, seconds: float) -> tuple[Key, Plan]:
        """The same search as without rules, under constraints that keep all requirements."""
        problem = judge.bound_to(judge.compiled.sufficient)
        try:
            made = Best(seconds, self.tell, self.stop).plan(problem)
        except NoPlan:
            return key, plan
        found = judge.key(made)
        return (found, replace(made, notes=plan.notes)) if better(found, key) else (key, plan)


def _improve(
    problem: Problem,
    plan: Plan,
    seconds: float,
    until: float,
    tell: Callable[[float], None],
    stop: Callable[[], bool],
) -> Plan:
    """The plan improved by the search that suits the problem; on fair links, by plans whose transfers take turns."""
    if can_anneal(problem):
        return annealed(problem, plan, seconds, problem.seed, until, tell, stop)
    if not can_restart(problem):
        return _hill_climbed(problem, plan, seconds, problem.seed, until, tell, stop)
    judged = taking_turns(problem)
    start = plan if judged is problem else best_of_candidates(judged)

    def tell_better(makespan: float) -> None:
        if makespan < plan.makespan:
            tell(makespan)

    fair = judged is not problem and can_solve(judged, seconds)
    share = _SHARE_BEFORE_EXACT if fair else 1.0
    found = contended(judged, start, share * seconds, problem.seed, until, tell_better, stop)
    if fair and not stop():  # under fifo, its bound is not one for fair links
        found, _ = solved_exactly(judged, found, lower_bound(judged), _EXACT * seconds, until, stop)
        tell_better(found.makespan)
    found = carried_out_in_turn(found, problem)
    return replace(found, notes=plan.notes) if found.makespan < plan.makespan else plan


def _hill_climbed(
    problem: Problem,
    plan: Plan,
    seconds: float,
    seed: int,
    until: float,
    tell: Callable[[float], None],
    stop: Callable[[], bool],
) -> Plan:
    """Hill climbing: move single tasks to other hosts and earlier positions, accepting plans that are not worse."""
    random = np.random.default_rng(seed)
    steps = max(1, int(seconds / (1e-3 + 1.5e-6 * (problem.graph.n_tasks + len(problem.graph.reads)))))
    arrays, graph = problem_arrays(problem), problem.graph
    n, hosts = graph.n_tasks, len(problem.platform.hosts)
    best, order, host = plan, order_of(plan), plan.host.copy()
    waits = _results_should_wait(problem, order, host, arrays)
    critical = critical_tasks(plan, problem.holders)
    moving = _moving_together(problem)
    for _ in range(steps):
        if work_clock() > until or stop():
            break
        task = int(random.choice(critical) if random.random() < 0.8 else random.integers(n))
        new_host, new_order = host.copy(), order
        if random.random() < 0.7:
            near = _neighbours(problem, task)
            use_near = len(near) > 0 and random.random() < 0.5
            new_host[moving(task)] = host[random.choice(near)] if use_near else random.integers(hosts)
        else:
            new_order = _earlier(problem, order, task, random)
        try:
            trial = _decoded(problem, plan.scheduler, new_order, new_host, arrays, waits)
        except NoPlan:
            continue
        if problem.constraints is not None and lateness(trial) > 0:
            continue
        if trial.makespan <= best.makespan:
            if trial.makespan < best.makespan * (1 - 1e-12):
                tell(trial.makespan)
            # Under constraints, a task that may not run on its new host is placed elsewhere.
            best, order, host = trial, new_order, trial.host if problem.constraints is not None else new_host
            critical = critical_tasks(best, problem.holders)
    return replace(best, notes=plan.notes)


def _moving_together(problem: Problem) -> Callable[[int], Ints | int]:
    """The tasks that must move with a task to another host, by task."""
    if problem.constraints is None:
        return lambda task: task
    group = problem.constraints.together
    return lambda task: task if group[task] < 0 else np.flatnonzero(group == group[task]).astype(np.int32)


def _results_should_wait(problem: Problem, order: Int64s, host: Ints, arrays: ProblemArrays) -> bool:
    """Whether these decisions give a shorter plan if results are returned after all inputs are booked."""
    at_once, later = (_decoded(problem, "", order, host, arrays, waits).makespan for waits in (False, True))
    return later < at_once


def _decoded(
    problem: Problem, name: str, order: Int64s, host: Ints, arrays: ProblemArrays, results_wait: bool
) -> Plan:
    scheduler = ListScheduler(problem, arrays)
    scheduler.place(order, host_constraints(arrays, fixed=host), results_wait=results_wait)
    if results_wait:
        scheduler.return_results()
    return scheduler.plan(name)


def _neighbours(problem: Problem, task: int) -> Ints:
    graph = problem.graph
    makers = graph.producer[graph.reads_of(task)]
    readers = [graph.readers_of(item) for item in graph.writes_of(task).tolist()]
    return np.concatenate([makers[makers >= 0], *readers]).astype(np.int32)


def _earlier(
    problem: Problem,
    order: Int64s,
    task: int,
    random: np.random.Generator,
) -> Int64s:
    """The order with a task moved to a random earlier position after its predecessors."""
    makers = problem.graph.producer[problem.graph.reads_of(task)]
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    low = int(position[makers[makers >= 0]].max(initial=-1)) + 1
    at = int(position[task])
    target = int(random.integers(low, at + 1))
    moved = order.copy()
    moved[target + 1 : at + 1] = order[target:at]
    moved[target] = task
    return moved


def _batch_is_fast(problem: Problem, seconds: float) -> bool:
    """Whether a batch planner is expected to plan in this time."""
    tasks, hosts = problem.graph.n_tasks, len(problem.platform.hosts)
    if problem.platform.contention != "none" and tasks > _BATCH_TASKS:
        return False
    return _BATCH_SECONDS * tasks * tasks * hosts <= seconds
