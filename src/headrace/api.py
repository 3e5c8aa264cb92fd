"""What a user of the library calls: plan, simulate, replay, run, deploy, check."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.model.check import check, require_valid
from headrace.model.errors import NoPlan
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.registry import DEFAULT, make

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.simulator.events.config import SimulationConfig
    from headrace.simulator.events.run import SimulatedRun
    from headrace.simulator.replay.plan_replay import Simulation

_UNPLANNED = ("storage", "result", "release", "deadline", "cores", "more")
"""Rules that most planners do not plan for: a plan that breaks only these is their limit, not a fault."""


def plan(
    program: Program | Graph,
    platform: Platform,
    scheduler: str | Planner | Scheduler = DEFAULT,
    *,
    seed: int = 0,
    **options: Any,
) -> Plan:
    """Plan a program on a platform and check the plan.

    Parameters
    ----------
    scheduler
        A name that `headrace schedulers` lists, `file.py:Class`, or an object. For a scheduler that decides while
        a program runs, the plan is what it does on this platform when nothing changes.
    options
        Passed to the scheduler's constructor, such as `time=10`.

    Raises
    ------
    NoPlan
        If the scheduler finds no plan that keeps all rules.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)).makespan
    2.0
    """
    from headrace.online.adapter import is_scheduler, make_scheduler
    from headrace.planners.timed import plan_with_bound

    graph = program.graph if isinstance(program, Program) else program
    chosen = make(scheduler, **options) if isinstance(scheduler, str) else scheduler
    if is_scheduler(chosen):
        made = _what_it_does(graph, platform, make_scheduler(chosen))
    else:
        made = plan_with_bound(chosen, Problem(graph, platform, seed=seed))  # type: ignore[arg-type]
    _require_plan(graph, platform, made, chosen.name)
    return made


def _what_it_does(graph: Graph, platform: Platform, scheduler: Scheduler) -> Plan:
    """What a scheduler does when nothing changes, as a plan."""
    from headrace.planners.bounds import lower_bound
    from headrace.simulator.events.backend import simulate_scheduler

    run = simulate_scheduler(graph, platform, scheduler)
    return replace(run.executed, bound=lower_bound(Problem(graph, platform)))


def _require_plan(graph: Graph, platform: Platform, made: Plan, name: str) -> None:
    broken = check(graph, platform, made, limit=3)
    if broken and all(violation.rule in _UNPLANNED for violation in broken):
        storage = broken[0].rule == "storage"
        kept = "fits the storage" if storage else f"keeps the rule {broken[0].rule!r}"
        raise NoPlan(
            f"{name} found no plan that {kept}: {broken[0].message}",
            where=platform.name,
            hint="give the site more storage, or try another scheduler"
            if storage
            else "the scheduler coschedule",
        )
    if broken:
        require_valid(graph, platform, made)


def simulate(
    program: Program | Graph,
    grid: Platform | GridScript,
    scheduler: str | Planner | Scheduler = DEFAULT,
    config: SimulationConfig | None = None,
    *,
    seed: int = 0,
    **options: Any,
) -> SimulatedRun:
    """Run a program in virtual time: the scheduler decides, as it would in a real run.

    A planner's plan is carried out, and what is left is planned again as `config.policy` says. To repeat a plan
    that exists, see `replay`.

    Parameters
    ----------
    grid
        A platform, or a grid description with what happens to its hosts and links.
    scheduler
        A name that `headrace schedulers` lists, `file.py:Class`, or an object with `plan` or `react`.
    config
        When to plan again, how queues are worked off, faults, errors of estimates.
    options
        Passed to the scheduler's constructor, such as `time=10`.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> hr.simulate(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), "lheft").makespan
    2.0
    """
    from headrace.simulator.events.simulate import simulate_program

    return simulate_program(program, grid, scheduler, config, seed=seed, **options)


def replay(plan: Plan, *, error: float = 0.0, seed: int = 0) -> Simulation:
    """Carry a fixed plan out in virtual time: its hosts, orders, sources and routes; only times change.

    Parameters
    ----------
    error
        Each run time is multiplied by a factor drawn evenly from 1 - error to 1 + error.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6))
    >>> hr.replay(plan).makespan, hr.replay(plan, error=0.2, seed=1).makespan == plan.makespan
    (2.0, False)
    """
    from headrace.simulator.replay.plan_replay import replay_plan

    return replay_plan(plan, error=error, seed=seed)
