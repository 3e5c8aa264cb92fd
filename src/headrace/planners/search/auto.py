"""The default planner: runs several planners, compares the executed makespans of their plans, and keeps the best."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem, obeys
from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan

if TYPE_CHECKING:
    from headrace.planners.ruled import Judge, Key

TRIVIAL = ("single-host", "round-robin")
"""Always among the candidates, because they are hard to beat on slow links."""
_LARGE = 2e7
"""Tasks times hosts above which only one planner considers every host."""
REPAIR = 5.0
"""Seconds for repairing a plan that breaks a requirement, and again for the search over partial schedules."""
IMPROVE = 0.5
"""Seconds for improving the score of the preferences."""
CARE = 5.0
"""Seconds for a plan that obeys releases, deadlines, cores and storage, if the others do not."""
_PATIENCE = 10.0
"""The clock ends an improvement after so many times its length: on a busy machine it still does the same work."""
_MEDIUM = 2e6
"""Tasks times hosts up to which all suitable planners are tried."""


def candidates(problem: Problem) -> tuple[str, ...]:
    """The planners that suit a problem's kind and size; the first ones are always included.

    >>> from headrace.testing import random_platform, random_program
    >>> candidates(Problem(random_program(1).graph, random_platform(1)))[:4]
    ('heft', 'single-host', 'round-robin', 'subset')
    """
    graph = problem.graph
    size = graph.n_tasks * len(problem.platform.hosts)
    if size > _LARGE:
        return ("heft", *TRIVIAL)
    chosen: tuple[str, ...] = ("heft", *TRIVIAL, "subset")
    if problem.platform.contention != "none":
        chosen = (*chosen, "restarts")
    if size > _MEDIUM:
        return chosen
    if graph.level.max(initial=0) == 0:
        return (*chosen, "minmin", "sufferage", "xsufferage", "sufferage2")
    return (*chosen, "cpop", "peft", "wu-gajski", "locality")


def best_of_candidates(problem: Problem) -> Plan:
    """The plan with the smallest makespan under the platform's contention model; ties: the first.

    One that breaks requirements of the program or the platform is taken only if all do.
    """
    from headrace.planners.registry import make

    best: Plan | None = None
    least: tuple[bool, float] = (True, np.inf)
    refused: NoPlan | None = None
    for name in candidates(problem):
        try:
            plan = make(name).plan(problem)
        except NoPlan as error:
            refused = error
            continue
        key = breaks_requirements(problem, plan), plan.makespan
        if best is None or key < least:
            best, least = plan, (key[0], plan.makespan * (1 - 1e-12))
    if best is None:
        assert refused is not None
        raise refused
    return best


class Auto:
    """Runs the planners that suit the program's kind and size, and keeps the best plan.

    Under rules, candidates are compared by the score of the preferences and then by makespan, and a plan that breaks a
    requirement is repaired by local search, on small problems also by the search over partial schedules.

    Its planning time is the sum over its candidates: about ten times HEFT's for small problems, twice for large ones.

    >>> from headrace.testing import random_platform, random_program
    >>> Auto().plan(Problem(random_program(1).graph, random_platform(1))).makespan > 0
    True
    """

    name = "auto"
    takes_rules = True

    def plan(self, problem: Problem) -> Plan:
        return self._by_rules(problem) if problem.rules is not None else self._chosen(problem)

    @obeys
    def _chosen(self, problem: Problem) -> Plan:
        best = best_of_candidates(problem)
        if breaks_requirements(problem, best):
            best = with_care(problem, CARE) or best
        note = f"auto chose {best.scheduler}"
        return replace(best, scheduler=self.name, notes=(*best.notes, note))

    def _by_rules(self, problem: Problem) -> Plan:
        """The best candidate; if all break a requirement, it is repaired, at last by search over partial schedules."""
        from headrace.planners.ruled import Judge
        from headrace.planners.search.ruled_search import searched_best_first

        judge = Judge.of(problem)
        key, best, note = short_search(judge, REPAIR, IMPROVE)
        if key[0]:
            found = searched_best_first(judge, REPAIR)
            if found is not None and found[0][0] == 0:
                best, note = found[1], "auto chose search, after all others broke a requirement"
        return replace(best, scheduler=self.name, notes=(*best.notes, note))


def _needs_care(problem: Problem) -> bool:
    """Whether a program or platform has requirements that most planners do not look at."""
    graph = problem.graph
    return bool(
        (graph.cores > 1).any()
        or (graph.release > 0).any()
        or np.isfinite(graph.deadline).any()
        or np.isfinite(problem.platform.network.storage).any()
    )


def breaks_requirements(problem: Problem, plan: Plan) -> bool:
    """Whether a plan breaks requirements that most planners do not look at; constraints are another matter."""
    asked = problem.constraints is not None and problem.constraints.needs != "all"
    if asked or not _needs_care(problem):
        return False
    return bool(check(problem.graph, problem.platform, plan, limit=1))


def with_care(problem: Problem, seconds: float) -> Plan | None:
    """The plan of the planner that looks at all of them; None if it finds none that is valid."""
    from headrace.planners.registry import make

    try:
        plan = make("coschedule", time=seconds).plan(problem)
    except NoPlan:
        return None
    return None if check(problem.graph, problem.platform, plan, limit=1) else plan


def short_search(
    judge: Judge, seconds: float, improve: float, tried: list[str] | None = None
) -> tuple[Key, Plan, str]:
    """The best candidate under rules, repaired if it breaks a requirement, then improved; and a note.

    Args:
        judge: The problem and its rules.
        seconds: Time for the candidates, and for repairing the best one.
        improve: Time for improving it.
        tried: The names of the planners that there was time for are added to it.

    Raises:
        Clashing: The rules clash.
    """
    from headrace.planners.search.ruled_search import any_start, best_start, repaired, searched

    try:
        starts = best_start(judge, candidates(judge.problem), work_clock() + seconds, tried)
        key, best = repaired(judge, starts, 0.4 * seconds)
    except NoPlan:
        key, best = any_start(judge)
    note = f"auto chose {best.scheduler}"
    if key[0]:
        until = work_clock() + 1.5 * seconds
        key, best = searched(judge, (key, best), seconds, until, lambda plan, key: None, repair=True)
        note = f"{note} and repaired its plan by local search"
    if not key[0] and (key[1] > 0 or not judge.covered):
        until = work_clock() + _PATIENCE * improve
        key, best = searched(judge, (key, best), improve, until, lambda plan, key: None)
        told = f"score {key[1]:.6g}" if judge.rules.preferences else "improved"
        note = f"{note}; {told} after a short local search (best searches longer)"
    return key, best, note
