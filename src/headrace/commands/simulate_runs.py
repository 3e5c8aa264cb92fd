"""`headrace simulate --runs N`: the same simulation with many seeds, and what its makespans are like."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.simulate import Simulated, is_online, made_or_read, simulate_program
from headrace.commands.simulate_options import SimulateOptions, setting_of
from headrace.experiment.repeat import Makespans, SimulateOnce, repeat
from headrace.model.errors import NoPlan, UsageError
from headrace.model.units import show_time
from headrace.report.distribution import makespans_json, makespans_rows, write_histogram

if TYPE_CHECKING:
    from headrace.experiment.online import Setting
    from headrace.model.behaviour import GridScript
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program


@dataclass(frozen=True)
class OnlineOnce:
    """The makespan of a run under an online scheduler, with what a seed draws."""

    program: Program | Graph
    grid: Platform | GridScript
    scheduler: str
    setting: Setting
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, seed: int) -> float:
        from headrace.experiment.online import simulate_grid

        run = simulate_grid(self.program, self.grid, self.scheduler, self.setting, seed=seed, **self.options)
        return run.makespan


@dataclass(frozen=True)
class RepeatedSimulation:
    """What is printed and drawn of many runs."""

    scheduler: str
    makespans: Makespans
    plan: Plan | None
    """The plan that was carried out each time, if it was one and the same."""

    def json(self) -> dict[str, Any]:
        """One object for machines."""
        planned = {} if self.plan is None else {"planned": self.plan.makespan, "bound": self.plan.bound}
        return {"scheduler": self.scheduler, **planned, **makespans_json(self.makespans)}

    def rows(self) -> list[list[str]]:
        """Names and values for a table."""
        planned = [] if self.plan is None else [["planned", show_time(self.plan.makespan)]]
        return [["scheduler", self.scheduler], *planned, *makespans_rows(self.makespans)]

    def plot(self, path: Path, title: str) -> None:
        """Draw the histogram."""
        write_histogram(
            path, self.makespans, title, {} if self.plan is None else {"planned": self.plan.makespan}
        )


def simulate_runs(
    program: Program,
    grid: Platform | GridScript,
    options: SimulateOptions,
    runs: int,
    say: Callable[[str], None],
) -> RepeatedSimulation:
    """Simulate with the seeds from `options.seed` on. A plan is made once and carried out each time."""
    once: SimulateOnce
    if is_online(program, grid, options):
        from headrace.experiment.online import planned_makespan

        setting = setting_of(options)
        planned = planned_makespan(program, grid, setting.faults, options.name, **options.for_planner)
        setting = replace(setting, planned=planned)
        # Functions of a program in Python need not be picklable, and are not simulated.
        what = program.graph if program.reality is None else program
        once, plan, scheduler = (
            OnlineOnce(what, grid, options.name, setting, options.for_planner),
            None,
            options.name,
        )
    else:
        from headrace.simulator.replay.plan_replay import PlanReplays

        if options.error == 0.0:
            raise UsageError(
                f"{runs} runs of one plan without --error are all the same",
                hint="add --error 0.2, or --faults to let a scheduler react",
            )
        plan = made_or_read(program, grid, options)
        once, scheduler = PlanReplays(plan, error=options.error), plan.scheduler
    makespans = repeat(once, runs, options.seed, processes=plan is None, tell=_once_a_second(runs, say))
    if makespans.failed == runs:
        raise NoPlan(
            f"none of {runs} runs ends: every host is gone, or data is lost for good",
            where=program.name,
            hint=f"simulate one alone to see why, without --runs and with --seed {options.seed}",
        )
    return RepeatedSimulation(scheduler, makespans, plan)


def _once_a_second(runs: int, say: Callable[[str], None]) -> Callable[[int], None]:
    said = time.monotonic()

    def tell(done: int) -> None:
        nonlocal said
        if time.monotonic() - said >= 1.0:
            said = time.monotonic()
            say(f"{done:,} of {runs:,} runs")

    return tell


def median_run(
    program: Program, grid: Platform | GridScript, options: SimulateOptions, repeated: RepeatedSimulation
) -> Simulated:
    """The run with the median makespan once more, to draw it."""
    seed = repeated.makespans.seed_at(0.5)
    if repeated.plan is None:
        return simulate_program(program, grid, replace(options, seed=seed), lambda text: None)
    from headrace.simulator.replay.plan_replay import replay_plan

    return Simulated(replay_plan(repeated.plan, error=options.error, seed=seed).happened, {})
