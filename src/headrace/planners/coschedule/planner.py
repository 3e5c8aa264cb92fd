"""The planner `coschedule`: relaxation, list schedules, local search, and an exact solver for small problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem, obeys
from headrace.model.check import check
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import NO_MOVES, Plan
from headrace.planners.coschedule.dispatching import dispatched, tastes
from headrace.planners.coschedule.instance import Instance, instance_of
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler, undecided_paths
from headrace.planners.coschedule.local_search import Search
from headrace.planners.coschedule.lp import Relaxer, rounded
from headrace.planners.coschedule.orders import mixed, rules, topological
from headrace.planners.coschedule.relaxation import least_times
from headrace.planners.coschedule.schedule_jobs import FAILED
from headrace.planners.fair_times import as_executed
from headrace.planners.obeying import with_groups_placed

Tell = Callable[[float, float, float], None]
"""Called with elapsed seconds, makespan and bound whenever the makespan or the bound improves."""
ROUNDS = 6
"""Number of rounds in which the relaxation learns from the idle times of the best list schedule."""
LARGE = 20_000
"""Number of jobs above which jobs are planned in chunks by default."""
FIRST_DISPATCHES = 8
"""Number of list schedules that decide hosts as they go, before the relaxation is solved."""
DISPATCH = 5e-4
"""Seconds for each job of such a list schedule."""
FIRST_SEARCH = 0.3
"""Seconds of search before the exact model is tried."""
MOST_SOLVING = 60.0
"""Seconds of work for the exact model; the search continues after it."""
_OPTIMAL = 1.0 + 1e-9


class Coschedule:
    """Plans job placement, file transfers and their times together.

    A linear program over shares of jobs and flows of files gives a bound and a first plan; list schedules of it show
    how long resources stay idle, and the program is solved again with these idle times. A late-acceptance search
    follows, and an exact model if the problem is small. The sequence of steps depends only on the problem and its seed,
    and `time` only limits their number: more time never gives a worse plan. On a very slow machine it stops after twice
    the time. Under constraints, tasks in groups and limits get their hosts, and tasks of limits on tasks at once their
    turns, from the shortest plan of some list planners first.

    Args:
        time: Seconds of work, as estimated for a machine of ordinary speed.
        chunk: Number of jobs that are planned at a time.
        tell: Called with elapsed seconds, makespan and bound whenever the makespan or the bound improves.

    Raises:
        UsageError: The time or the chunk is not positive.

    >>> Coschedule(time=5.0, chunk=200).name
    'coschedule'
    """

    name = "coschedule"

    def __init__(
        self,
        time: float = 20.0,
        chunk: int | None = None,
        tell: Tell = lambda seconds, makespan, bound: None,
    ) -> None:
        if not 0 < time < 1e6:
            raise UsageError(f"time is {time}", hint="use a number of seconds above 0, such as 20")
        if chunk is not None and chunk < 1:
            raise UsageError(f"chunk is {chunk}", hint="use a number of jobs, such as 200")
        self.time = time
        self.chunk = chunk
        self.tell = tell

    @obeys
    def plan(self, problem: Problem) -> Plan:
        began = work_clock()
        if not problem.graph.n_tasks:
            return empty_plan(problem, self.name)
        chosen = problem if problem.constraints is None else with_groups_placed(problem)
        instance = instance_of(chosen)
        improving = Improving(instance, began, self.time, self.tell)
        chunk = self.chunk or (LARGE if instance.n > LARGE else None)
        if chunk is not None and chunk < instance.n:
            from headrace.planners.coschedule.chunks import chunked

            relaxer = Relaxer(instance)
            relaxer.solve()
            improving.prove(relaxer.bound)
            decisions = chunked(improving, chunk)
            improving.offer(improving.scheduler.value(decisions), decisions)
        else:
            improving.run()
        plan = improving.finished(self.name)
        if chosen is problem:
            return plan
        return replace(plan, graph=problem.graph, bound=0.0)  # the bound is proven for the chosen hosts alone


class Improving:
    """The best plan so far, the proven bound, and the remaining time, which is counted work, not measured seconds."""

    def __init__(self, instance: Instance, began: float, seconds: float, tell: Tell) -> None:
        self.instance = instance
        self.scheduler = ListScheduler(instance)
        self.began = began
        self.seconds = seconds
        self.tell = tell
        self.bound = 0.0
        self.value = np.inf
        self.decisions: Decisions | None = None
        self.exact: Plan | None = None
        self._random = np.random.default_rng([instance.problem.seed, 1])
        self._tastes = tastes(self._random)
        self.left = 0.85 * seconds
        """Remaining seconds of work, as estimated for a machine of ordinary speed."""

    def cost(self, count: int = 1) -> float:
        """Seconds that `count` list schedules take."""
        instance = self.instance
        files = len(instance.reads) + len(instance.writes)
        return count * (2.5e-4 + 2.0e-6 * instance.n + 1.2e-6 * files)

    @property
    def overdue(self) -> bool:
        return work_clock() - self.began > 1.25 * self.seconds + 2

    @property
    def optimal(self) -> bool:
        return self.value <= self.bound * _OPTIMAL

    def prove(self, bound: float) -> None:
        if bound > self.bound:
            self.bound = bound
            self._say()

    def offer(self, value: float, decisions: Decisions | None = None, exact: Plan | None = None) -> bool:
        """Keep decisions (or a plan) if they are better; returns whether they are."""
        if value >= self.value * (1 - 1e-12):
            return False
        self.value = value
        self.decisions = None if decisions is None else decisions.copy()
        self.exact = exact
        self._say()
        return True

    def _say(self) -> None:
        if self.value < FAILED:
            self.tell(work_clock() - self.began, self.value, self.bound)

    def run(self) -> None:
        """Run all steps in turn while there is time and the plan is not proven optimal."""
        self._simple()
        if not self.optimal and self.left > 0:
            self._dispatch(FIRST_DISPATCHES)
        if not self.optimal and self.left > 0:
            self._relaxed()
        if self.optimal or self.left <= 0 or self.overdue:
            return
        search = None
        if self.decisions is not None and self.value < FAILED:
            search = Search(self.scheduler, self.decisions, self.instance.problem.seed)
            self._search(search, min(self.left, FIRST_SEARCH))
        if not self.optimal and self.left > 0:
            self._solved()
        if search is not None:
            self._search(search, self.left)

    def _simple(self) -> None:
        """Get a first plan quickly, from list schedules of simple decisions."""
        for decisions in simple_starts(self.instance):
            self.left -= self.cost()
            self.offer(self.scheduler.value(decisions), decisions)
            if self.left < 0 and self.value < FAILED:
                return

    def _dispatch(self, count: int) -> None:
        """Make list schedules that decide hosts as they go."""
        for _ in range(count):
            if self.left < 0 or self.optimal or self.overdue:
                return
            self.left -= self.cost() + DISPATCH * self.instance.n
            self.offer(*dispatched(self.scheduler, next(self._tastes), self._random))

    def _relaxed(self) -> None:
        """Make list schedules of the relaxation, which learns from them: first with queues, then only idle times."""
        relaxer = Relaxer(self.instance)
        for queues in (True, False) if relaxer.has_queues else (False,):
            learned = None
            for _ in range(ROUNDS):
                here = self._round(relaxer, learned, queues)
                if self.left < 0 or self.optimal or self.overdue or here is None:
                    break
                learned = here if learned is None else 0.5 * (learned + here)

    def _round(self, relaxer: Relaxer, learned: Floats | None, queues: bool) -> Floats | None:
        """Solve the relaxation and make list schedules by all rules; returns what is learned from the best one."""
        plain = np.arange(self.instance.n, dtype=np.int32)
        first = rounded(self.instance, relaxer.solve(learned), plain)
        self.prove(relaxer.bound)
        here, value, least = None, np.inf, np.full(len(self.instance.host_place), np.inf)
        for decisions in self._ordered(first):
            trial = self.scheduler.value(decisions)
            self.offer(trial, decisions)
            if trial < FAILED:
                seen = relaxer.learned(self.scheduler, decisions, trial, queues)
                least = np.minimum(least, seen[: len(least)])
                here, value = (seen, trial) if trial < value else (here, value)
        self.left -= self.cost(13) + 2e-6 * relaxer.size + 0.01
        if here is not None:
            here[: len(least)] = least  # each host can use its best rule
        return here

    def _ordered(self, first: Decisions) -> Iterator[Decisions]:
        """The same hosts and paths in the order of each rule, and of the best rule per host."""
        orders, ends = [], []
        for _, order in rules(self.instance, first.host):
            yield replace(first, order=order)
            orders.append(order)
            ends.append(self.scheduler.ends(order))
        yield replace(first, order=mixed(self.instance, first.host, orders, ends))

    def _solved(self) -> None:
        """Solve the exact model if it is not too large."""
        from headrace.planners.coschedule.cp import fits, solve

        if not fits(self.instance):
            return
        limit = min(self.left, MOST_SOLVING)
        start = None if self.value >= FAILED else self._plan("")
        answer = solve(self.instance, start, self.bound, limit)
        self.left -= answer.work
        if answer.plan is not None:
            self.offer(answer.plan.makespan, None, answer.plan)
        self.prove(min(answer.bound, self.value))
        if answer.impossible and self.value >= FAILED:
            raise NoPlan(
                "no plan satisfies the storage limits and deadlines: the exact model is infeasible",
                where=f"{self.instance.problem.graph.name} on {self.instance.problem.platform.name}",
                hint="increase storage or use later deadlines",
            )

    def _search(self, search: Search, seconds: float) -> None:
        block = max(1, int(0.25 / self.cost()))
        trials = int(seconds / self.cost())
        while trials > 0 and not self.overdue and not self.optimal:
            search.run(min(block, trials))
            trials -= block
            self.left -= self.cost(block)
            self.offer(search.value, search.best)

    def _plan(self, name: str) -> Plan:
        if self.exact is not None:
            return self.exact
        assert self.decisions is not None
        return self.scheduler.plan(self.decisions, name)

    def finished(self, name: str) -> Plan:
        """The plan with its bound; raises NoPlan if none satisfies storage limits and deadlines."""
        if self.value >= FAILED:
            raise no_room(self.instance, int(self.scheduler.schedule.state[1]))
        plan = self._plan(name)
        if self.value > plan.makespan * (1 + 1e-9) + 1e-6:
            raise too_late(self.instance, plan)
        plan = with_executed_times(plan, self.instance.problem)
        bound = min(self.bound, plan.makespan)
        return replace(plan, scheduler=name, bound=bound, notes=notes_of(self.instance.problem))


def simple_starts(instance: Instance) -> Iterator[Decisions]:
    """Simple decisions: each job where it finishes first on its own, equal loads, pulled jobs, all on one host."""
    before, after = least_times(instance)
    own = (before + instance.seconds + after).argmin(axis=1).astype(np.int32)
    for _, order in rules(instance, own):
        yield Decisions(order, own, **undecided_paths(instance))
    given = topological(instance, np.zeros(instance.n))
    yield Decisions(given, equal_hosts(instance), **undecided_paths(instance))
    yield Decisions(given, own, **undecided_paths(instance), pull=True)
    whole = np.flatnonzero(instance.can_run.all(axis=0))
    power = instance.host_cores[whole] / np.maximum(instance.seconds[:, whole].sum(axis=0), 1e-300)
    for h in whole[np.argsort(-power, kind="stable")][:8].tolist():
        host = np.full(instance.n, h, np.int32)
        longest = topological(instance, -instance.seconds[:, h])
        for order in (longest, given):
            yield Decisions(order, host, **undecided_paths(instance))


def equal_hosts(instance: Instance) -> Ints:
    """Assign each job, in the given order, to the host with the least work per core: O(jobs * hosts)."""
    load = instance.host_free.copy()
    host = np.zeros(instance.n, np.int32)
    cores = instance.problem.graph.cores
    for j in topological(instance, np.zeros(instance.n)).tolist():
        after = load + instance.seconds[j] * cores[j] / instance.host_cores
        host[j] = int(np.argmin(after))
        load[host[j]] = after[host[j]]
    return host


def with_executed_times(plan: Plan, problem: Problem) -> Plan:
    """The plan with the times of its execution if links are shared fairly and transfers start as early as possible.

    If these times would violate a constraint, the plan is unchanged, with one transfer at a time on each link.
    """
    eager = as_executed(plan, problem)
    if eager is plan:
        return plan
    return plan if check(plan.graph, plan.platform, eager, limit=1) and not problem.holders else eager


def no_room(instance: Instance, job: int) -> NoPlan:
    graph, platform = instance.problem.graph, instance.problem.platform
    small = [s.name for s in platform.sites if np.isfinite(s.storage)]
    return NoPlan(
        f"found no plan in which the files of all jobs fit on the disks: no room for {graph.task_names[job]!r}",
        where=f"{graph.name} on {platform.name}",
        hint=f"increase the storage of {', '.join(small[:6])}, or --time",
    )


def too_late(instance: Instance, plan: Plan) -> NoPlan:
    graph = instance.problem.graph
    ends = plan.finish.copy()
    made = graph.producer[plan.move_item]
    np.maximum.at(ends, made[made >= 0], plan.move_finish[made >= 0])
    job = int(np.argmax(ends - graph.deadline))
    return NoPlan(
        f"found no plan that meets all deadlines: {graph.task_names[job]!r} is due at "
        f"{float(graph.deadline[job]):.6g} s but finishes at {float(ends[job]):.6g} s",
        where=f"{graph.name} on {instance.problem.platform.name}",
        hint="use later deadlines, or increase --time",
    )


def notes_of(problem: Problem) -> tuple[str, ...]:
    """Notes on the plan for its reader."""
    graph, network = problem.graph, problem.platform.network
    lying = (graph.producer == OUTSIDE) & (graph.size > 0)
    lying[list(problem.holders)] = False
    if network.origin == EVERYWHERE and lying.any():
        return ("inputs from outside are assumed to be everywhere",)
    return ()


def empty_plan(problem: Problem, name: str) -> Plan:
    """The plan of a program without tasks."""
    none, moments = np.zeros(0, np.int32), np.zeros(0)
    return Plan(problem.graph, problem.platform, name, none, none, moments, moments, **NO_MOVES)
