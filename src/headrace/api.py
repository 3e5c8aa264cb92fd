"""What a user of the library calls: plan, simulate, run."""

from __future__ import annotations

from typing import Any

from headrace.core.scheduler import Planner, Problem
from headrace.model.check import check, require_valid
from headrace.model.errors import NoPlan
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.registry import DEFAULT, make
from headrace.simulator.replay.plan_replay import Simulation, replay_plan

_UNPLANNED = ("storage", "result", "release", "deadline", "cores", "more")
"""Rules that most planners do not plan for: a plan that breaks only these is their limit, not a fault."""


def plan(
    program: Program | Graph,
    platform: Platform,
    scheduler: str | Planner = DEFAULT,
    *,
    seed: int = 0,
    **options: Any,
) -> Plan:
    """Plan a program on a platform and check the plan; options, such as `time=10`, go to the scheduler.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)).makespan
    2.0
    """
    graph = program.graph if isinstance(program, Program) else program
    planner = make(scheduler, **options) if isinstance(scheduler, str) else scheduler
    made = planner.plan(Problem(graph, platform, seed=seed))
    broken = check(graph, platform, made, limit=3)
    if broken and all(violation.rule in _UNPLANNED for violation in broken):
        storage = broken[0].rule == "storage"
        kept = "fits the storage" if storage else f"keeps the rule {broken[0].rule!r}"
        raise NoPlan(
            f"{planner.name} found no plan that {kept}: {broken[0].message}",
            where=platform.name,
            hint="give the site more storage, or try another scheduler"
            if storage
            else "the scheduler coschedule",
        )
    if broken:
        require_valid(graph, platform, made)
    return made


def simulate(
    program: Program | Graph,
    platform: Platform,
    scheduler: str | Planner = DEFAULT,
    *,
    plan: Plan | None = None,
    error: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Carry a plan out in virtual time; without one, the scheduler makes it first.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> hr.simulate(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)).makespan
    2.0
    """
    made = _plan(program, platform, scheduler, seed=seed) if plan is None else plan
    return replay_plan(made, error=error, seed=seed)


_plan = plan
