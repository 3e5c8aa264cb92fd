"""Plan under rules: constraints for what planners obey directly, evaluation for everything else.

Requirements are compiled to constraints (`rules.compile`), which every planner obeys. Each plan is then judged by the
rules themselves. Planners with `takes_rules` (auto, best, search) get the rules and search for a plan that keeps them;
others make one plan. A plan that breaks a requirement is never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headrace.core.scheduler import Planner, Problem
from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan
from headrace.planners.clashing import Clashing, clash_of
from headrace.rules.compile import Compiled, compile_on
from headrace.rules.evaluate import Verdict, evaluate_on, score
from headrace.rules.relations import Placed, Relations
from headrace.rules.tree import RuleSet

_EQUAL = 1e-12

Key = tuple[int, float, float]
"""Failed tests of requirements, score of the preferences, makespan: smaller is better, in this order."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges plans of one problem by its rules."""

    problem: Problem
    rules: RuleSet

    @staticmethod
    def of(problem: Problem) -> Judge:
        assert problem.rules is not None
        return Judge(problem, problem.rules)

    @cached_property
    def relations(self) -> Relations:
        """Before there is a schedule."""
        return Relations(self.problem.graph, self.problem.platform)

    @cached_property
    def compiled(self) -> Compiled:
        return compile_on(self.rules, self.relations)

    @cached_property
    def covered(self) -> bool:
        """Whether constraints say all there is to say: plans that satisfy them need not be judged."""
        return self.compiled.complete and not self.rules.preferences

    def verdicts(self, plan: Placed) -> list[Verdict]:
        return evaluate_on(self.rules, self.relations.with_schedule(plan))

    def key(self, plan: Plan) -> Key:
        verdicts = self.verdicts(plan)
        failed = sum(verdict.failed for verdict in verdicts if verdict.importance == "requirement")
        return failed, score(verdicts), plan.makespan

    def bound_to(self, constraints: Constraints) -> Problem:
        """The problem for planners that know constraints only."""
        return replace(self.problem, rules=None, constraints=constraints if binds(constraints) else None)

    def problems(self) -> Iterator[Problem]:
        """The problem with constraints that suffice, then, if these ask for too much, with those that are implied."""
        yield self.bound_to(self.compiled.sufficient)
        if self.compiled.stronger:
            yield self.bound_to(self.compiled.implied)


def better(a: Key, b: Key) -> bool:
    """Whether a plan is better than another, beyond rounding.

    >>> better((0, 0.5, 9.0), (0, 0.5 + 1e-15, 9.5)), better((0, 0.5, 9.0), (0, 0.4, 9.5))
    (True, False)
    """
    if a[0] != b[0]:
        return a[0] < b[0]
    if abs(a[1] - b[1]) > _EQUAL:
        return a[1] < b[1]
    return a[2] < b[2] * (1 - _EQUAL)


def binds(constraints: Constraints) -> bool:
    """Whether there is a schedule that breaks the constraints."""
    return bool(
        not constraints.allowed.all()
        or len(constraints.before)
        or (constraints.together >= 0).any()
        or (constraints.together_at_site >= 0).any()
        or constraints.apart
        or constraints.limits
        or (constraints.release > 0).any()
        or np.isfinite(constraints.deadline).any()
    )


def plan_with_rules(planner: Planner, problem: Problem) -> Plan:
    """A plan that keeps all requirements of the problem's rules.

    Raises:
        NoPlan: The requirements cannot hold together (the error names a smallest clashing set), or this planner finds
            no plan that keeps them (the error names a rule that fails and its first miss).

    >>> import headrace as hr
    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.rules.parser import parse_rules
    >>> from headrace.testing import random_platform, random_program
    >>> rules = parse_rules('assert relationship requirement ((select task-assigned-proc-id from task) = 3)')
    >>> problem = Problem(random_program(1).graph, random_platform(1), rules=rules)
    >>> set(plan_with_rules(Heft(), problem).host.tolist())
    {3}
    """
    judge = Judge.of(problem)
    try:
        if getattr(planner, "takes_rules", False):
            made = planner.plan(problem)
        else:
            key, made = constrained_plan(planner.plan, judge, planner.name)
            if key[0] == 0:
                return made
    except Clashing:
        raise
    except NoPlan as error:
        raise clash_of(judge.problem, judge.rules) or error from None
    require_kept(judge, made, planner.name)
    return made


def require_kept(judge: Judge, plan: Plan, name: str) -> None:
    """
    Raises:
        NoPlan: The plan of the scheduler of this name breaks a requirement.
    """
    broken = [v for v in judge.verdicts(plan) if v.importance == "requirement" and not v.kept]
    if broken:
        raise clash_of(judge.problem, judge.rules) or _missed(judge, broken[0], name)


def constrained_plan(plan: Callable[[Problem], Plan], judge: Judge, name: str) -> tuple[Key, Plan]:
    """The plan of a planner that knows constraints only: the first that keeps all requirements, or the best.

    Raises:
        NoPlan: It finds none that satisfies the constraints.
    """
    from headrace.planners.obeying import plan_obeying

    best: tuple[Key, Plan] | None = None
    refused: NoPlan | None = None
    for problem in judge.problems():
        try:
            made = plan(problem) if problem.constraints is None else plan_obeying(plan, problem, name)
        except NoPlan as error:
            refused = refused or error
            continue
        key = judge.key(made)
        if best is None or better(key, best[0]):
            best = key, made
        if key[0] == 0:
            break
    if best is None:
        assert refused is not None
        raise refused
    return best


def _missed(judge: Judge, verdict: Verdict, name: str) -> NoPlan:
    kept = f"kept in {verdict.rows - verdict.failed:,} of {verdict.rows:,} rows, first miss: "
    told = verdict.first_miss if verdict.kind == "value" else f"{kept}{verdict.first_miss}"
    others = [other for other in ("best", "search") if other != name]
    return NoPlan(
        f"{name} found no plan that keeps {verdict.name} (line {verdict.line}): {told}",
        where=judge.rules.source,
        hint=f"use --scheduler {' or '.join(others)}, more time (--time), or relax the rule",
    )
