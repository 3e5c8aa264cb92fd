"""`headrace simulate`: carry a plan out, or run a program under an online scheduler on a grid that changes."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.console import (
    computing,
    file_rows,
    print_json,
    print_table,
    require_outputs,
    results_beside,
)
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption, OnOption, Pictures, ProgramArg, draw_plan, read_program
from headrace.commands.simulate_options import SimulateOptions, require_fitting, setting_of
from headrace.model.errors import UsageError
from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.simulator.events.run import SimulatedRun


Show = Callable[[bool], None]
"""Prints the outcome, as JSON if told so."""


@dataclass(frozen=True)
class SimulateOutput:
    """How often to simulate, and the files that only simulations write."""

    runs: int | None = option(
        None,
        "--runs",
        "Repeat with this many seeds and report the distribution of makespans.",
        min=1,
        default_text="one run",
    )
    plot: Path | None = option(None, "--plot", "With --runs: draw the makespans as SVG.", metavar="FILE")
    log: Path | None = option(None, "--log", "Write what happened, one line per event.", metavar="FILE")

    def __post_init__(self) -> None:
        if self.runs is not None and self.log is not None:
            raise UsageError("--log records a single run", hint="leave --runs out and pick a --seed")
        if self.runs is None and self.plot is not None:
            raise UsageError("--plot draws repeated runs", hint="add --runs 1000, or use --gantt")


def simulate(
    program: ProgramArg,
    options: SimulateOptions,
    output: SimulateOutput,
    pictures: Pictures,
    on: OnOption = "local",
    as_json: JsonOption = False,
) -> None:
    """Simulate once or with many seeds, write the files asked for, and print the outcome."""
    files = (output.plot, output.log, *pictures.files)
    require_outputs(*files)
    grid = grid_of(on)
    require_fitting(options, grid)
    source = read_program(program)
    if output.runs is not None:
        show = _simulate_repeatedly(source, grid, options, output, pictures)
    else:
        show = _simulate_once(source, grid, options, output.log, pictures)
    with results_beside(*files):
        show(as_json)


def _simulate_once(
    program: Program,
    grid: Platform | GridScript,
    options: SimulateOptions,
    log: Path | None,
    pictures: Pictures,
) -> Show:
    from headrace.formats.files import write_file
    from headrace.formats.plan_json import plan_to_dict

    if log is not None and not is_online(program, grid, options):
        raise UsageError(
            "a plan that is carried out has no log", where="--log", hint="add --events once, or see --json"
        )
    with computing(f"simulating {len(program.tasks):,} tasks") as say:
        outcome = simulate_program(program, grid, options, say)
    if log is not None and outcome.run is not None:
        write_file(log, ("\n".join(outcome.run.log_lines()) + "\n").encode())
    outcome.draw(pictures)

    def show(as_json: bool) -> None:
        if as_json:
            print_json(plan_to_dict(outcome.happened) | outcome.facts)
        else:
            print_table([], [*outcome.rows, *file_rows([*pictures.named, ("log", log)])])

    return show


def _simulate_repeatedly(
    program: Program,
    grid: Platform | GridScript,
    options: SimulateOptions,
    output: SimulateOutput,
    pictures: Pictures,
) -> Show:
    from headrace.commands.simulate_runs import median_run, simulate_runs

    runs = output.runs or 1
    with computing(f"simulating {len(program.tasks):,} tasks {runs:,} times") as say:
        repeated = simulate_runs(program, grid, options, runs, say)
    if output.plot is not None:
        repeated.plot(output.plot, f"{program.name} under {repeated.scheduler}")
    if pictures.gantt is not None or pictures.trace is not None:
        median_run(program, grid, options, repeated).draw(pictures)

    def show(as_json: bool) -> None:
        drawn = [(f"{name} of the median run", path) for name, path in pictures.named]
        if as_json:
            print_json(repeated.json())
        else:
            print_table([], [*repeated.rows(), *file_rows([("picture", output.plot), *drawn])])

    return show


@dataclass(frozen=True)
class Simulated:
    """What is printed, drawn and written."""

    happened: Plan
    facts: dict[str, Any]
    """For machines, beside the plan that happened."""
    rows: list[list[str]] = field(default_factory=list)
    run: SimulatedRun | None = None

    def gantt(self, path: Path) -> None:
        """Draw what happened."""
        drawn = self.happened if self.run is None else self.run
        drawn.gantt(path)

    def draw(self, pictures: Pictures) -> None:
        """Write the files that were asked for."""
        if pictures.gantt is not None:
            self.gantt(pictures.gantt)
        draw_plan(self.happened, replace(pictures, gantt=None))


def grid_of(spec: str) -> Platform | GridScript:
    """This machine, a platform, or a grid description with all that happens in it."""
    from headrace.formats.loading import load_grid

    return load_grid(spec)


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
    from headrace.simulator.events.simulate import rules_taken, simulate_program

    total = len(program.tasks)
    said = clock.monotonic()

    def tell(time: float, done: int) -> None:
        nonlocal said
        if clock.monotonic() - said >= 1.0:
            said = clock.monotonic()
            say(f"{done:,} of {total:,} tasks done at {show_time(time)}")

    setting = setting_of(options)
    run = simulate_program(
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
    from headrace.simulator.carry import simulate_plan

    made = made_or_read(program, grid, options)
    outcome = simulate_plan(made, error=options.error, seed=options.seed)
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
