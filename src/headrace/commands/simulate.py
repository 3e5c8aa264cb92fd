"""`headrace simulate`: carry a plan out, or run a program under an online scheduler on a grid that changes."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.simulate_options import SimulateOptions, setting_of
from headrace.model.errors import UsageError
from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.simulator.grid_run import GridRun


@dataclass(frozen=True)
class Simulated:
    """What is printed, drawn and written."""

    happened: Plan
    facts: dict[str, Any]
    """For machines, beside the plan that happened."""
    rows: list[list[str]] = field(default_factory=list)
    run: GridRun | None = None

    def gantt(self, path: Path) -> None:
        """Draw what happened."""
        drawn = self.happened if self.run is None else self.run
        drawn.gantt(path)


def grid_of(spec: str) -> Platform | GridScript:
    """This machine, a platform, or a grid description with all that happens in it."""
    from headrace.formats.reading import read_grid_or_platform
    from headrace.model.platform import Platform

    return Platform.local() if spec == "local" else read_grid_or_platform(spec)


def changes_by_itself(grid: Platform | GridScript) -> bool:
    """Whether hosts or links follow traces, or come and go."""
    from headrace.model.behaviour import GridScript

    platform, later = (grid.platform, grid.changes) if isinstance(grid, GridScript) else (grid, ())
    later = tuple(change for change in later if change.time > 0)
    return bool(
        later
        or any(len(h.trace) > 1 for h in platform.hosts if h.trace is not None)
        or any(len(s.uplink_trace.bandwidth) > 1 for s in platform.sites if s.uplink_trace is not None)
        or any(len(link.trace.bandwidth) > 1 for link in platform.links if link.trace is not None)
    )


def simulate_program(
    program: Program, grid: Platform | GridScript, options: SimulateOptions, say: Callable[[str], None]
) -> Simulated:
    """Decide which way to simulate, and do it."""
    if is_online(program, grid, options):
        return _run_online(program, grid, options, say)
    return _carry_plan(program, grid, options)


def is_online(program: Program, grid: Platform | GridScript, options: SimulateOptions) -> bool:
    """Whether a scheduler decides during the run; else a plan is carried out as it is."""
    what = "the program has real figures beside its estimates" if program.reality is not None else ""
    what = "the grid changes as time goes by" if changes_by_itself(grid) else what
    if options.plan is not None and what:
        raise UsageError(
            f"{what}; --plan carries a plan out where all is as planned",
            hint="in place of --plan give --scheduler NAME --events once --replan neither",
        )
    return options.plan is None and (options.online or bool(what))


def _run_online(
    program: Program, grid: Platform | GridScript, options: SimulateOptions, say: Callable[[str], None]
) -> Simulated:
    from headrace.experiment.online import rules_taken, simulate_grid

    total = len(program.tasks)
    said = clock.monotonic()

    def tell(time: float, done: int) -> None:
        nonlocal said
        if clock.monotonic() - said >= 1.0:
            said = clock.monotonic()
            say(f"{done:,} of {total:,} tasks done at {show_time(time)}")

    setting = setting_of(options)
    run = simulate_grid(
        program, grid, options.name, setting, seed=options.seed, tell=tell, **options.for_planner
    )
    facts = {
        "events": run.events,
        "seconds": run.seconds,
        "asked": run.asked,
        "plans": run.plans,
        "redone": run.redone,
        "replicas": run.replicas,
        "stolen": run.stolen,
        "duplicates": run.copied,
        "bytes_moved": run.bytes_moved,
    }
    plans = f", {run.plans:,} plans" if rules_taken(options.name) else ""
    rows = [
        ["scheduler", run.scheduler],
        ["makespan", show_time(run.makespan)],
        ["lower bound", show_time(run.bound)],
        ["scheduler asked", f"{run.asked:,} times{plans}"],
        ["moved", f"{run.bytes_moved / 1e6:,.1f} MB"],
        *([["made again", f"{run.redone:,} tasks, because their data was lost"]] if run.redone else []),
        *([["replicas", f"{run.replicas:,}"]] if run.replicas else []),
        *([["stolen", f"{run.stolen:,}"]] if run.stolen else []),
        *([["duplicates", f"{run.copied:,}"]] if run.copied else []),
        ["events", f"{run.events:,} in {show_time(run.seconds)}"],
    ]
    return Simulated(run.happened, facts, rows, run)


def _carry_plan(program: Program, grid: Platform | GridScript, options: SimulateOptions) -> Simulated:
    from headrace.simulator.replay.plan_replay import replay_plan

    made = made_or_read(program, grid, options)
    outcome = replay_plan(made, error=options.error, seed=options.seed)
    facts = {"planned": made.makespan, "events": outcome.events, "seconds": outcome.seconds}
    rows = [
        ["scheduler", made.scheduler],
        ["makespan", show_time(outcome.makespan)],
        ["planned", show_time(made.makespan)],
        ["lower bound", show_time(made.bound)],
        ["events", f"{outcome.events:,} in {show_time(outcome.seconds)}"],
    ]
    return Simulated(outcome.happened, facts, rows)


def made_or_read(program: Program, grid: Platform | GridScript, options: SimulateOptions) -> Plan:
    """The plan to carry out: the one in the file, which must be valid, or else the scheduler's."""
    from headrace.api import plan as make_plan
    from headrace.formats.plan_json import read_plan
    from headrace.model.behaviour import GridScript
    from headrace.model.check import require_valid

    platform = grid.start() if isinstance(grid, GridScript) else grid
    if options.plan is None:
        return make_plan(program, platform, options.name, seed=options.seed, **options.for_planner)
    made = read_plan(options.plan, program.graph, platform)
    require_valid(program, platform, made)
    return made
