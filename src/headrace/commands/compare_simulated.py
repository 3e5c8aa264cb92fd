"""`headrace compare --simulate`: schedulers by simulated makespans, one by one or in pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.commands.console import print_json, print_table
from headrace.commands.dataclass_options import option
from headrace.commands.simulate_options import changed_options
from headrace.commands.simulate_runs import RunOnce
from headrace.experiment.paired import PairedRuns, compare_paired
from headrace.experiment.repeat import Makespans, repeat
from headrace.formats.loading import load_grid, load_program
from headrace.model.errors import UsageError
from headrace.model.units import show_time
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import planned_makespan


@dataclass(frozen=True)
class SimulatedComparison:
    """How to simulate instead of planning."""

    simulate: bool = option(
        False,
        "--simulate",
        "Compare simulated makespans instead of plans, with the same seeds for all schedulers.",
    )
    paired: bool = option(
        False,
        "--paired",
        "With --simulate and two schedulers: stop as soon as one is faster at --confidence.",
    )
    runs: int = option(
        100, "--runs", "With --simulate: runs of each scheduler, at most with --paired.", min=2
    )
    confidence: float = option(
        0.95, "--confidence", "With --paired: how sure to be, from 0 to 1.", metavar="SHARE"
    )
    error: float = option(0.2, "--error", "With --simulate: as for `headrace simulate`.", metavar="SHARE")
    faults: str = option("", "--faults", "With --simulate: as for `headrace simulate`.", metavar="LIST")

    def require_fitting(self, schedulers: Sequence[str], planning: bool) -> None:
        """Refuse options that have no effect; `planning`: whether there are options of plans alone."""
        if not self.simulate and self != SimulatedComparison():
            names = ", ".join(changed_options(self))
            raise UsageError(f"without --simulate, nothing is simulated: {names}", hint="add --simulate")
        if self.paired and len(schedulers) != 2:
            raise UsageError(
                f"--paired compares two schedulers, not {len(schedulers)}", hint="--schedulers heft,minmin"
            )
        if self.simulate and planning:
            raise UsageError("--rules, --bound and --plot are about plans", hint="leave --simulate out")


def compare_simulated(
    programs: Sequence[str],
    platforms: Sequence[str],
    schedulers: Sequence[str],
    asked: SimulatedComparison,
    seed: int,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for each program and platform."""
    rows: list[dict[str, Any]] = []
    for program in programs:
        for platform in platforms:
            once = _simulations(program, platform, schedulers, asked)
            where = {"program": program, "platform": platform}
            if asked.paired:
                first, second = once
                paired = compare_paired(
                    first,
                    second,
                    runs=asked.runs,
                    confidence=asked.confidence,
                    seed=seed,
                    tell=_told(program, tell),
                )
                rows.append(where | {"paired": paired})
            else:
                found = {
                    name: repeat(
                        each, asked.runs, seed, processes=True, tell=_told(f"{name}, {program}", tell)
                    )
                    for name, each in zip(schedulers, once, strict=True)
                }
                rows.append(where | {"makespans": found})
    return rows


def _simulations(
    program: str, platform: str, schedulers: Sequence[str], asked: SimulatedComparison
) -> list[RunOnce]:
    """One for each scheduler; faults at percentages refer to the first scheduler's plan, so that all meet the same."""
    read, grid = load_program(program), load_grid(platform)
    planned = planned_makespan(read, grid, asked.faults, schedulers[0])
    config = SimulationConfig(error=asked.error, faults=asked.faults, planned=planned or None)
    what = read.graph if read.reality is None else read
    return [RunOnce(what, grid, name, config) for name in schedulers]


def _told(what: str, tell: Callable[[str], None]) -> Callable[[int], None]:
    def told(done: int) -> None:
        if done % 50 == 0:
            tell(f"{what}: {done} runs")

    return told


def show_simulated(
    rows: Sequence[dict[str, Any]], schedulers: Sequence[str], asked: SimulatedComparison, as_json: bool
) -> None:
    """Print the comparison."""
    if as_json:
        print_json({"rows": [_facts(row, schedulers) for row in rows], "confidence": asked.confidence})
    elif asked.paired:
        a, b = schedulers
        headers = ["program", "platform", "pairs", f"mean of {a}", f"mean of {b}", f"{b} / {a}", "faster"]
        print_table(headers, [_paired_cells(row, schedulers, asked.confidence) for row in rows])
    else:
        cells = [
            [row["program"], row["platform"], *(_mean_cell(row["makespans"][name]) for name in schedulers)]
            for row in rows
        ]
        print_table(
            ["program", "platform", *(f"{name}, mean with 95 % confidence" for name in schedulers)], cells
        )


def _paired_cells(row: dict[str, Any], schedulers: Sequence[str], confidence: float) -> list[str]:
    found: PairedRuns = row["paired"]
    low, high = found.interval
    faster = "not decided" if found.faster is None else f"{schedulers[found.faster]} ({confidence:.0%} sure)"
    return [
        row["program"],
        row["platform"],
        f"{found.pairs}" + (f", {found.unfinished} never ended" if found.unfinished else ""),
        *map(show_time, found.means),
        f"{found.ratio:.3f} ({low:.3f} to {high:.3f})",
        faster,
    ]


def _mean_cell(found: Makespans) -> str:
    low, high = found.interval
    if found.failed:
        return f"{found.failed} of {found.runs} never ended"
    return f"{show_time(found.mean)} ({show_time(low)} to {show_time(high)})"


def _facts(row: dict[str, Any], schedulers: Sequence[str]) -> dict[str, Any]:
    where = {"program": row["program"], "platform": row["platform"]}
    if "paired" in row:
        found: PairedRuns = row["paired"]
        return where | {
            "pairs": found.pairs,
            "unfinished": found.unfinished,
            "means": dict(zip(schedulers, found.means, strict=True)),
            "ratio": found.ratio,
            "interval": list(found.interval),
            "faster": None if found.faster is None else schedulers[found.faster],
        }
    from headrace.report.distribution import makespans_json

    return where | {"schedulers": {name: makespans_json(found) for name, found in row["makespans"].items()}}
