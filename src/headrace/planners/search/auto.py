"""The default planner: runs several planners, compares the executed makespans of their plans, and keeps the best."""

from __future__ import annotations

from dataclasses import replace

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan
from headrace.planners.obeying import obeys

TRIVIAL = ("single-host", "round-robin")
"""Always among the candidates, because they are hard to beat on slow links."""
_LARGE = 2e7
"""Tasks times hosts above which only one planner considers every host."""
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
    chosen = ("heft", *TRIVIAL, "subset")
    if size > _MEDIUM:
        return chosen
    if graph.level.max(initial=0) == 0:
        return (*chosen, "minmin", "sufferage", "xsufferage", "sufferage2")
    return (*chosen, "cpop", "peft", "locality")


def best_of_candidates(problem: Problem) -> Plan:
    """The plan with the smallest makespan under the platform's contention model; ties: the first."""
    from headrace.planners.registry import make

    best: Plan | None = None
    refused: NoPlan | None = None
    for name in candidates(problem):
        try:
            plan = make(name).plan(problem)
        except NoPlan as error:
            refused = error
            continue
        if best is None or plan.makespan < best.makespan * (1 - 1e-12):
            best = plan
    if best is None:
        assert refused is not None
        raise refused
    return best


class Auto:
    """Runs the planners that suit the program's kind and size, and keeps the best plan.

    Its planning time is the sum over its candidates: about ten times HEFT's for small problems, twice for large ones.

    >>> from headrace.testing import random_platform, random_program
    >>> Auto().plan(Problem(random_program(1).graph, random_platform(1))).makespan > 0
    True
    """

    name = "auto"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        best = best_of_candidates(problem)
        note = f"auto chose {best.scheduler}"
        return replace(best, scheduler=self.name, notes=(*best.notes, note))
