"""`headrace simulate --runs N`: the same simulation with many seeds, and what its makespans are like."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.simulate import SimulateCase, Simulated, simulate_case
from headrace.experiment.repeat import Makespans, SimulateOnce, repeat
from headrace.model.errors import NoPlan, UsageError
from headrace.model.units import show_time
from headrace.report.distribution import makespans_json, makespans_rows, write_histogram

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.rules.tree import RuleSet
    from headrace.simulator.events.config import SimulationConfig


@dataclass(frozen=True)
class RunOnce:
    """The makespan of a run under a scheduler, with what a seed draws."""

    program: Program | Graph
    grid: Platform | GridScript
    scheduler: str
    config: SimulationConfig
    options: dict[str, Any] = field(default_factory=dict)
    rules: RuleSet | None = None

    def __call__(self, seed: int) -> float:
        from headrace.simulator.events.simulate import simulate_program

        run = simulate_program(
            *(self.program, self.grid, self.scheduler, self.config),
            rules=self.rules,
            seed=seed,
            **self.options,
        )
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


def simulate_runs(case: SimulateCase, runs: int, say: Callable[[str], None]) -> RepeatedSimulation:
    """Simulate with consecutive seeds. A plan from a file is replayed each time."""
    program, source = case.program, case.source
    plan, once = (None, _scheduled(case)) if source.plan is None else _replayed(case, runs)
    scheduler = source.scheduler if plan is None else plan.scheduler
    makespans = repeat(once, runs, source.seed, processes=plan is None, tell=_once_a_second(runs, say))
    if makespans.failed == runs:
        raise NoPlan(
            f"none of {runs} runs ends: every host is gone, or data is lost for good",
            where=program.name,
            hint=f"simulate one alone to see why, without --runs and with --seed {source.seed}",
        )
    return RepeatedSimulation(scheduler, makespans, plan)


def _scheduled(case: SimulateCase) -> SimulateOnce:
    from headrace.simulator.events.simulate import planned_makespan

    program, source, config = case.program, case.source, case.config
    planned = planned_makespan(program, case.grid, config.faults, source.scheduler, **source.for_planner)
    # Functions of a program in Python need not be picklable, and are not simulated.
    what = program.graph if program.reality is None else program
    fixed = replace(config, planned=planned)
    return RunOnce(what, case.grid, source.scheduler, fixed, source.for_planner, case.rules)


def _replayed(case: SimulateCase, runs: int) -> tuple[Plan, SimulateOnce]:
    from headrace.simulator.replay.plan_replay import PlanReplays

    if case.config.error == 0.0:
        raise UsageError(
            f"{runs} replays of one plan without --error are all the same", hint="add --error 0.2"
        )
    plan = case.plan()
    return plan, PlanReplays(plan, error=case.config.error)


def _once_a_second(runs: int, say: Callable[[str], None]) -> Callable[[int], None]:
    said = time.monotonic()

    def tell(done: int) -> None:
        nonlocal said
        if time.monotonic() - said >= 1.0:
            said = time.monotonic()
            say(f"{done:,} of {runs:,} runs")

    return tell


def median_run(case: SimulateCase, repeated: RepeatedSimulation) -> Simulated:
    """The run with the median makespan once more, to draw it."""
    seed = repeated.makespans.seed_at(0.5)
    if repeated.plan is None:
        return simulate_case(replace(case, source=replace(case.source, seed=seed)), lambda text: None)
    from headrace.simulator.replay.plan_replay import replay_plan

    return Simulated(replay_plan(repeated.plan, error=case.config.error, seed=seed).executed, {})
