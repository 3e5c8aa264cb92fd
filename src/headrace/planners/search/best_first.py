"""Best-first search over partial schedules, directed by rules: the scheduler `search`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.planners.bounds import lower_bound
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.search.best_first_controls import controls
from headrace.planners.search.best_first_rules import (
    FAR_ABOVE,
    default_rules,
    split_progress,
    without_requirements,
)
from headrace.planners.search.best_first_states import OpenStates, Seen, State, signature
from headrace.rules.incremental import Batch, Judged, PartialRules, Placement
from headrace.rules.incremental_columns import unchanged
from headrace.rules.semi_active import ScheduleSpace, schedule_space, semi_active_plan
from headrace.rules.tree import RuleSet

Progress = Callable[[int, float, int], None]
"""Called with the number of states opened, the score of the best schedule (inf: none yet) and the depth."""
_TELL_EVERY = 0.2
"""Seconds between reports of progress."""
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found and how far it went."""

    opened: int
    created: int
    score: float
    """Sum of scaled preferences times priorities, over the sum of priorities; smaller is better."""
    proven: bool
    """No semi-active schedule has a smaller score."""


class BestFirst:
    """Searches partial schedules for one that keeps all requirements and fulfils the preferences.

    A state is a partial schedule. Its successors place any task whose predecessors are placed on any host: it starts
    when its inputs have arrived and a core is free. The state of least score is opened first; ties: more tasks placed,
    then order of creation. A successor from which no completion can keep the requirements is dropped; one that breaks a
    requirement now, but may still keep it, waits until nothing else is left. Equal schedules are merged.

    `hurry` is the priority of the preference for more placed tasks. Far above the other priorities, the search goes
    straight to a schedule; smaller values look at more states. With 0, states are opened by a lower bound of the score
    over all their completions, and the search goes on until no open state can be better: the answer is then *proven
    best* among semi-active schedules on free links (see `rules.semi_active`). Hurry may be changed while the search
    runs: assign `hurry`, press + or - on the terminal, or send SIGUSR1 (doubles it).

    Transfers do not wait for each other during the search, nor tasks for memory and resources. On platforms with
    contention, and where tasks can need more at once than a host has, the schedule found is booked in the order of its
    starts; if the rules then fail, the search goes on, and the answer is never proven.

    Args:
        hurry: Priority of the preference for more placed tasks; None: the one in the rules, or far above the others.
        time: Time limit in seconds; then the best schedule so far is returned, or the best open state is completed
            greedily.
        states: The most open states kept in memory; beyond it the worse half is dropped, and nothing is proven.
        rules: The rules; None: those of the problem, or the default rules. The default requirement of idle hosts is
            left out where no schedule can keep it.
        tell: Called now and then with states opened, best score and depth.

    Raises:
        UsageError: The time or the number of states is not positive, or hurry is negative.

    >>> from headrace.testing import random_platform, random_program
    >>> search = BestFirst(time=5.0)
    >>> plan = search.plan(Problem(random_program(1, tasks=6).graph, random_platform(1)))
    >>> plan.makespan > 0, search.outcome.opened >= 6
    (True, True)
    """

    name = "search"
    takes_rules = True

    def __init__(
        self,
        hurry: float | None = None,
        time: float = 60.0,
        states: int = 500_000,
        rules: RuleSet | None = None,
        tell: Progress = lambda opened, score, depth: None,
    ) -> None:
        if not 0 < time < 1e6:
            raise UsageError(f"time is {time}", hint="use a number of seconds above 0, such as 10")
        if hurry is not None and not 0 <= hurry < math.inf:
            raise UsageError(f"hurry is {hurry}", hint="use 0 for a proven answer, or a priority such as 100")
        if states < 2:
            raise UsageError(f"states is {states}", hint="use a number of states such as 500000")
        self.hurry = hurry
        self.time = time
        self.states = states
        self.rules = rules
        self.tell = tell
        self.outcome = Outcome(0, 0, math.inf, False)

    @obeys
    def plan(self, problem: Problem) -> Plan:
        space = schedule_space(
            problem.graph,
            problem.platform,
            holders=problem.holders,
            since=problem.since,
            free_at=problem.free_at,
        )
        rules = self.rules or problem.rules
        if rules is not None:
            return self._searched(problem, rules, space)
        try:
            return self._searched(problem, default_rules(), space)
        except NoPlan:
            # Nobody asked for idle hosts: busy ones are better than none.
            plan = self._searched(problem, without_requirements(default_rules()), space)
            note = "no schedule uses only hosts with at most 3 % load: the default rule `quiet` was left out"
            return replace(plan, notes=(*plan.notes, note))

    def _searched(self, problem: Problem, rules: RuleSet, space: ScheduleSpace) -> Plan:
        others, given = split_progress(rules)
        search = _Search(self, problem, PartialRules(others, space), given)
        with controls(search.turn) as read_keys:
            plan = search.run(read_keys)
        self.outcome = search.outcome
        proof = "proven best" if self.outcome.proven else "not proven best"
        note = f"{self.outcome.opened:,} states opened; score {self.outcome.score:.6g}, {proof}"
        return replace(plan, bound=lower_bound(problem), notes=(*plan.notes, note))


class _Search:
    """One run of the search."""

    def __init__(
        self, planner: BestFirst, problem: Problem, rules: PartialRules, given: float | None
    ) -> None:
        self.planner, self.problem, self.rules = planner, problem, rules
        self.space: ScheduleSpace = rules.space
        self.tasks = problem.graph.n_tasks
        self.root = State(unchanged(rules.empty()), 0, 0, 0, 0.0, 0.0, False, 0)
        bound = rules.completed(self.root.batch)
        self.possible, self.root_bound = bool(bound.allowed[0]), float(bound.score[0])
        self.default = given if given is not None else FAR_ABOVE * max(1.0, float(bound.weight[0]))
        self.exact = self.hurry == 0
        self.has_requirements = bool(rules.rules.requirements)
        self.open = OpenStates(self.tasks, self.hurry)
        self.seen = Seen(self.space)
        self.best: tuple[float, float, Plan] | None = None
        self.opened, self.created, self.depth = 0, 1, 0
        self.dropped = False
        limits = () if problem.constraints is None else problem.constraints.limits
        self.booked = problem.platform.contention != "none" or any(limit.need for limit in limits)
        """Whether schedules are booked on links, memory and resources, which the search does not know."""

    @property
    def hurry(self) -> float:
        return self.default if self.planner.hurry is None else self.planner.hurry

    def turn(self, factor: float) -> None:
        """More or less hurry; from 0, more means the default."""
        before = self.hurry
        self.planner.hurry = (
            before * factor if before > 0 else (self.default or FAR_ABOVE) if factor > 1 else 0.0
        )

    @property
    def outcome(self) -> Outcome:
        score = math.inf if self.best is None else self.best[0]
        return Outcome(self.opened, self.created, score, self._proven())

    def _proven(self) -> bool:
        if self.best is None or self.dropped or self.booked:
            return False
        return self.best[0] <= self.root_bound + _EQUAL or (self.exact and self._closed())

    def _closed(self) -> bool:
        """Whether no open state can be better than the best schedule."""
        return self.best is not None and all(not self._promising(s.cost, s.weight) for s in self.open)

    def run(self, read_keys: Callable[[], None]) -> Plan:
        until = work_clock() + self.planner.time
        told = -math.inf
        if self.possible:
            self.open.push(self.root)
        while len(self.open) and not self._finished():
            read_keys()
            self.open.turn(self.hurry)
            now = work_clock()
            if now > until:
                self._complete_greedily()
                break
            if now - told > _TELL_EVERY:
                told = now
                self.planner.tell(self.opened, self.outcome_score, self.depth)
            self._open(self.open.pop())
        self.planner.tell(self.opened, self.outcome_score, self.depth)
        if self.best is None:
            raise self._no_plan(work_clock() > until)
        return self.best[2]

    @property
    def outcome_score(self) -> float:
        return math.inf if self.best is None else self.best[0]

    def _finished(self) -> bool:
        """With hurry, the first schedule is the answer; without, when no open state is better."""
        if self.best is None:
            return False
        return self.hurry > 0 or not self.exact or self.best[0] <= self.root_bound + _EQUAL

    def _no_plan(self, late: bool) -> NoPlan:
        if late or self.dropped:
            return NoPlan(
                f"no schedule that keeps all requirements was found ({self.opened:,} states opened)",
                hint="allow more time (--time), more hurry (--hurry), or fewer requirements",
            )
        return NoPlan(
            "no schedule keeps all requirements: every partial schedule was ruled out",
            where=self.rules.rules.source,
            hint="leave out a requirement",
        )

    # Opening states.

    def _open(self, state: State) -> None:
        if state.complete:
            self._goal(state.placement(self.space))
            return
        if self.exact and not self._promising(state.cost, state.weight):
            return
        self.opened += 1
        self.depth = state.placed
        for child in self._successors(state):
            if child.complete and self.exact:
                self._goal(child.placement(self.space))
            elif self.seen.new(child):
                self.open.push(child)
        if len(self.open) > self.planner.states:
            self.open.keep_best(self.planner.states // 2)
            self.seen.forget()
            self.dropped = True

    def _promising(self, cost: float, weight: float) -> bool:
        """Whether a bound on the score is below the best score."""
        return self.best is None or cost / (weight or 1.0) < self.best[0] - _EQUAL

    def _successors(self, state: State) -> list[State]:
        placement = state.placement(self.space)
        places = self._places(placement)
        if not places:
            return []
        batch = self.rules.successors(placement, places)
        keep = np.isfinite(batch.finish) & (batch.finish <= self._deadlines[batch.task])
        since: Floats = np.zeros(1)
        if self.exact:
            # Every semi-active schedule can be made in the order of its starts: other orders lead to the same ones.
            since = batch.start
            keep &= batch.start >= placement.start[placement.host >= 0].max(initial=0.0)
        chosen = np.flatnonzero(keep)
        batch = Batch(
            placement,
            batch.task[chosen],
            batch.at[chosen],
            batch.start[chosen],
            batch.finish[chosen],
            since[chosen] if self.exact else since,
        )
        return self._judged(state, batch) if len(batch) else []

    @property
    def _deadlines(self) -> Floats:
        deadline = self.space.graph.deadline
        return deadline + 1e-9 * (1.0 + np.where(np.isfinite(deadline), np.abs(deadline), 0.0))

    def _places(self, placement: Placement) -> list[tuple[int, int]]:
        """The tasks whose predecessors are placed, on every host where they can run."""
        placed = placement.host >= 0
        runs = np.isfinite(self.space.run)
        return [
            (task, host)
            for task in np.flatnonzero(~placed).tolist()
            if all(placed[maker] for maker, _ in self.space.inputs[task])
            for host in np.flatnonzero(runs[task]).tolist()
        ]

    def _judged(self, state: State, batch: Batch) -> list[State]:
        placed = state.placed + 1
        whole = placed == self.tasks
        possible = np.ones(len(batch), np.bool_)
        deferred = np.zeros(len(batch), np.bool_)
        judged: Judged
        if self.exact and not whole:
            judged = self.rules.completed(batch)
            possible = judged.allowed
        else:
            judged = self.rules.as_they_are(batch)
            if whole:
                possible = judged.allowed
            elif self.has_requirements:
                deferred = ~judged.allowed
                possible = self.rules.completed(batch).allowed
        children = []
        for i in np.flatnonzero(possible).tolist():
            cost, weight = float(judged.cost[i]), float(judged.weight[i])
            if self.exact and not self._promising(cost, weight):
                continue
            sign = signature(state.signature, int(batch.task[i]), int(batch.at[i]), float(batch.start[i]))
            children.append(State(batch, i, self.created, placed, cost, weight, bool(deferred[i]), sign))
            self.created += 1
        return children

    # Schedules.

    def _goal(self, placement: Placement) -> None:
        """A complete schedule: keep it if the rules hold for its plan and it is the best so far."""
        plan = self._plan(placement)
        if plan is None:
            return
        judged = self.rules.judge(Placement(plan.host, plan.start, plan.finish, placement.free))
        if not judged.allowed[0]:
            return
        score = float(judged.score[0])
        if (
            self.best is None
            or (score, plan.makespan) < (self.best[0] - _EQUAL, 0.0)
            or (abs(score - self.best[0]) <= _EQUAL and plan.makespan < self.best[1])
        ):
            self.best = score, plan.makespan, plan

    def _plan(self, placement: Placement) -> Plan | None:
        name = self.planner.name
        if not self.booked:
            return semi_active_plan(self.space, placement.host, placement.start, name)
        from headrace.arrays.problem import problem_arrays

        arrays = problem_arrays(self.problem)
        position = np.empty(self.tasks, np.int64)
        position[self.problem.graph.order] = np.arange(self.tasks)
        order = np.lexsort((position, placement.start))
        try:
            return list_plan(
                self.problem, order, name, host_constraints(arrays, fixed=placement.host), arrays
            )
        except NoPlan:
            return None

    def _complete_greedily(self) -> None:
        """From the best open states down: always the best successor. At most as many tries as there are tasks."""
        if self.best is not None:
            return
        for _ in range(max(10, self.tasks)):
            if not len(self.open) or self.best is not None:
                return
            state: State | None = self.open.pop()
            while state is not None and not state.complete:
                self.opened += 1
                children = self._successors(state)
                state = min(children, key=lambda s: s.key(self.hurry, self.tasks), default=None)
            if state is not None:
                self._goal(state.placement(self.space))
