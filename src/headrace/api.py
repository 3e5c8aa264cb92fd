"""Public functions on programs: plan, simulate, replay and check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.given import (
    as_grid,
    as_plan,
    as_platform,
    as_program,
    as_rule_set,
    as_scheduler,
    load_plan,
    require_config,
    require_options,
    require_plan,
)
from headrace.model import check as model_check
from headrace.model.arguments import as_float, checked_seed, checked_whole, wrong_argument
from headrace.model.bound import Effort
from headrace.model.check import Violation, require_valid
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.registry import DEFAULT, make, registered_name

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.rules.given import Rules
    from headrace.simulator.events.config import SimulationConfig
    from headrace.simulator.events.run import SimulatedRun
    from headrace.simulator.replay.plan_replay import Simulation

_UNPLANNED = ("storage", "result", "release", "deadline", "cores", "bound", "more")
"""Rules that most planners ignore: breaking only these is a known limitation of the planner, not a bug. Such a plan may
also be shorter than the lower bound, which takes them into account."""


def plan(
    program: Program | Graph | str | Path,
    platform: Platform | str | Path = "local",
    scheduler: str | Planner | Scheduler = DEFAULT,
    *,
    rules: Rules | None = None,
    seed: int = 0,
    bound: Effort = "quick",
    **options: Any,
) -> Plan:
    """Plan a program on a platform and check the plan.

    Parameters
    ----------
    program, platform
        Objects, or the names of files, as for `headrace plan`. `file.py:name` is executed. The default platform is this
        machine.
    scheduler
        A name listed by `headrace schedulers`, `file.py:Class`, or an object. For an online scheduler, the plan
        is the schedule it produces on this platform when nothing changes.
    rules
        What the plan must and should be, in the rules language: a text, a file, the texts that the functions of
        `headrace.rules` return, or parsed rules. The plan keeps every requirement.
    seed
        Random seed for planners that make random choices.
    bound
        Effort for the plan's lower bound: `quick`, or `full` for a tighter one that takes up to 2 s.
    options
        Passed to the scheduler's constructor, such as `time=10`.

    Raises
    ------
    NoPlan
        If the scheduler finds no plan that is valid and keeps every requirement.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> hr.plan(program, lab).makespan
    2.0
    >>> hr.plan(program, lab, rules=hr.rules.avoid("h1")).makespan
    3.0
    """
    from headrace.online.adapter import is_scheduler, make_scheduler
    from headrace.planners.timed import plan_with_bound

    program, platform = as_program(program), as_platform(platform)
    graph = program.graph if isinstance(program, Program) else program
    scheduler = as_scheduler(scheduler, options)
    problem = Problem(graph, platform, seed=checked_seed(seed), rules=as_rule_set(rules))
    chosen = make(scheduler, **options) if isinstance(scheduler, str) else scheduler
    made = (
        _what_it_does(problem, make_scheduler(chosen), bound)
        if is_scheduler(chosen)
        else plan_with_bound(chosen, problem, bound)  # type: ignore[arg-type]
    )
    _require_plan(graph, platform, made, chosen.name)
    return made


def _what_it_does(problem: Problem, scheduler: Scheduler, effort: Effort) -> Plan:
    """The schedule an online scheduler produces when nothing changes, as a plan."""
    from headrace.planners.bounds import bound_of
    from headrace.simulator.events.backend import simulate_scheduler

    if problem.rules is not None:
        from headrace.simulator.events.ruled import plan_online

        return replace(plan_online(problem, scheduler), bound=bound_of(problem, effort))
    run = simulate_scheduler(problem.graph, problem.platform, scheduler)
    return replace(run.executed, bound=bound_of(problem, effort, run.executed.makespan))


def _require_plan(graph: Graph, platform: Platform, made: Plan, name: str) -> None:
    broken = model_check.check(graph, platform, made, limit=3)
    if not broken:
        return
    first = next((violation for violation in broken if violation.rule != "bound"), None)
    if first is None or any(violation.rule not in _UNPLANNED for violation in broken):
        require_valid(graph, platform, made)
        return
    other = "coschedule with more time" if name == DEFAULT else "coschedule"
    if first.rule == "storage":
        kept, hint = "fits the storage", f"give the site more storage, or use the scheduler {other}"
    else:
        kept = f"satisfies the rule {first.rule!r}"
        hint = f"use the scheduler {other}, or relax the requirement"
    raise NoPlan(f"{name} found no plan that {kept}: {first.message}", where=platform.name, hint=hint)


def simulate(
    program: Program | Graph | str | Path,
    grid: Platform | GridScript | str | Path = "local",
    scheduler: str | Planner | Scheduler = DEFAULT,
    config: SimulationConfig | None = None,
    *,
    rules: Rules | None = None,
    seed: int = 0,
    **options: Any,
) -> SimulatedRun:
    """Simulate a run in virtual time, with the scheduler making decisions as it would in a real run.

    With a planner, its plan is executed and the remaining tasks are replanned according to `config.policy`. To
    execute an existing plan, use `replay`.

    Parameters
    ----------
    program
        As for `plan`.
    grid
        A platform, or a grid description with scripted changes to its hosts and links; also the name of its file.
    scheduler
        A name listed by `headrace schedulers`, `file.py:Class`, or an object with `plan` or `react`.
    config
        When to replan, how queues are processed, faults, and estimation errors.
    rules
        As for `plan`. A planner's first plan keeps every requirement; later plans, and schedulers that decide while the
        program runs, obey the requirements on hosts, order and releases.
    options
        Passed to the scheduler's constructor, such as `time=10`.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> hr.simulate(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), "lheft").makespan
    2.0
    """
    from headrace.simulator.events.simulate import simulate_program

    asked, place = as_program(program), as_grid(grid)
    scheduler = as_scheduler(scheduler, options)
    if isinstance(scheduler, str):
        scheduler = registered_name(scheduler)
    require_options(scheduler, options)
    require_config(config)
    seed = checked_seed(seed)
    return simulate_program(asked, place, scheduler, config, rules=as_rule_set(rules), seed=seed, **options)


def check(
    program: Program | Graph | str | Path,
    platform: Platform | str | Path,
    plan: Plan | str | Path,
    *,
    limit: int = 1000,
) -> list[Violation]:
    """What is wrong with a plan for a program on a platform; files may be named instead of objects.

    At most `limit` violations are reported. The check shares no code with planners and simulators.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = program.task(None, work=1.0)
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth="1 MB/s")
    >>> hr.check(program, lab, hr.plan(program, lab))
    []
    """
    asked, place = as_program(program), as_platform(platform)
    return model_check.check(asked, place, as_plan(plan, asked, place), limit=checked_whole(limit, "limit"))


def replay(
    plan: Plan | str | Path,
    program: Program | Graph | str | Path | None = None,
    platform: Platform | str | Path | None = None,
    *,
    error: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Execute a fixed plan in virtual time, keeping its hosts, task order, sources and routes; only times change.

    Parameters
    ----------
    plan
        A plan, or the name of its file.
    program, platform
        What the plan of a file was made for, as for `plan`; by default the files that the plan names.
    error
        Each run time is multiplied by a factor drawn uniformly from 1 - error to 1 + error.
    seed
        Random seed for these factors.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6))
    >>> hr.replay(plan).makespan, hr.replay(plan, error=0.2, seed=1).makespan == plan.makespan
    (2.0, False)
    """
    from headrace.simulator.replay.plan_replay import replay_plan

    if isinstance(plan, str | Path):
        found = load_plan(plan, program, platform, hint="hr.replay(plan, program, platform)")
    else:
        found = require_plan(plan, "the plan comes first: give a Plan, or the name of its file")
        if program is not None or platform is not None:
            raise UsageError(
                "a Plan has its program and platform", hint="leave them out, or give the file of a plan"
            )
    share = as_float(error)
    if share is None:
        raise wrong_argument("error", error, "give a share of at least 0 and below 1, such as 0.2")
    return replay_plan(found, error=share, seed=checked_seed(seed))
