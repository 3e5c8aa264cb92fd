"""Figures 11 and 12 of the macro-dataflow paper: computation-to-communication ratio and data moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Scheduler
from headrace.experiment.dataflow import jacobi
from headrace.experiment.diagram import Diagram
from headrace.planners.list.heft import Heft
from headrace.reproductions import DATAFLOW_PAPER, Ask, Cell, Claim, Reproduction
from headrace.reproductions.contributors import (
    AS_PUBLISHED,
    FETCHING,
    NAMES,
    PLANNING,
    judged,
    mean,
    measure,
    shared_pcs,
    standard_error,
)

RATIOS = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
CONTRIBUTORS, ITERATIONS, SEEDS = 16, 10, 5
SLOWER = 1000
"""Factor by which planning is slower in extra runs."""
MIDDLE = 6.0
"""The ratio at which prefetching strategies are compared."""


def d_heft_that_keeps() -> Scheduler:
    """D-HEFT that does not reassign the next task of a contributor, whose inputs may be in transfer."""
    return Replan(Heft(), ReplanPolicy(events="once", keep=1, misprediction=2.0, planning=PLANNING))


@dataclass(frozen=True)
class Way:
    """When inputs are fetched, and which tasks D-HEFT may reassign."""

    label: str
    execution: ExecutionPolicy
    slower: int = 1
    """Planning time as a multiple of the measured one."""
    dheft: Callable[[], Scheduler | str] = lambda: "dheft"


BASE = Way("for the next task", FETCHING)
SLOW = Way("for the next task", FETCHING, SLOWER)
WAYS = (
    Way("for the next two tasks", replace(AS_PUBLISHED, prefetch_depth=2)),
    Way("for the next task, which stays", FETCHING, dheft=d_heft_that_keeps),
)


@dataclass(frozen=True)
class Cells:
    """The means of one row."""

    ratio: float
    way: Way
    makespan: dict[str, float]
    gigabytes: dict[str, float]
    makespan_error: dict[str, float]
    gigabytes_error: dict[str, float]

    @property
    def slower(self) -> float:
        """L-HEFT's makespan divided by D-HEFT's."""
        return self.makespan["lheft"] / self.makespan["dheft"]

    @property
    def moved(self) -> float:
        """Data moved by D-HEFT divided by data moved by L-HEFT."""
        return self.gigabytes["dheft"] / self.gigabytes["lheft"]


def reproduce(ask: Ask) -> Reproduction:
    """Jacobi of 10 iterations at ratios from 2 to 12, on 16 contributors."""
    return ratios(ask, RATIOS, ITERATIONS)


def ratios(ask: Ask, values: Sequence[float], iterations: int) -> Reproduction:
    """The table for these ratios."""
    rows = [_row(ask, ratio, iterations, BASE) for ratio in values]
    rows += [_row(ask, ratio, iterations, SLOW) for ratio in (values[0], values[-1])]
    rows += [_row(ask, min(values, key=lambda r: abs(r - MIDDLE)), iterations, way) for way in WAYS]
    base = [row for row in rows if row.way is BASE]
    return Reproduction(
        title="Ratio of computation to communication and data moved, Jacobi iteration",
        source=f"{DATAFLOW_PAPER}, figures 11 and 12",
        headers=[
            "ratio",
            "inputs fetched",
            "planning x",
            *(f"{label} s" for label in NAMES.values()),
            "L / D",
            *(f"{label} GB" for label in NAMES.values()),
        ],
        rows=[_cells(row) for row in rows],
        claims=claims(rows),
        pictures=[
            _picture(base, "Makespan", "makespan, s", lambda row: (row.makespan, row.makespan_error)),
            _picture(
                base,
                "Data moved between contributors",
                "GB",
                lambda row: (row.gigabytes, row.gigabytes_error),
            ),
        ],
        notes=[
            f"Means of {ask.seeds_or(SEEDS)} seeds; {iterations * 64} tasks on {CONTRIBUTORS} contributors. "
            "The ratio is a task's seconds on an idle PC over those that its inputs take on 1 Gbit/s.",
            "All pieces of all rounds together are "
            f"{(iterations - 1) * 64 * 16384 * 16384 * 8 / 64 / 1e9:.1f} GB: what a scheduler moves that moves each "
            "piece once.",
        ],
    )


def _row(ask: Ask, ratio: float, iterations: int, way: Way) -> Cells:
    ask.tell(f"ratio {ratio:g}, inputs fetched {way.label}")
    program = jacobi(iterations, ratio=ratio)
    makespan: dict[str, float] = {}
    gigabytes: dict[str, float] = {}
    errors: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for name in NAMES:
        runs = [
            measure(
                program,
                shared_pcs(CONTRIBUTORS, seed),
                way.dheft() if name == "dheft" else name,
                seed=seed,
                execution=way.execution,
                planning=way.slower * PLANNING,
            )
            for seed in range(ask.seeds_or(SEEDS))
        ]
        makespan[name] = mean([run.makespan for run in runs])
        gigabytes[name] = mean([run.gigabytes for run in runs])
        errors[0][name] = standard_error([run.makespan for run in runs])
        errors[1][name] = standard_error([run.gigabytes for run in runs])
    return Cells(ratio, way, makespan, gigabytes, *errors)


def _cells(row: Cells) -> list[Cell]:
    return [
        row.ratio,
        row.way.label,
        row.way.slower,
        *(row.makespan[name] for name in NAMES),
        row.slower,
        *(row.gigabytes[name] for name in NAMES),
    ]


def claims(rows: Sequence[Cells]) -> list[Claim]:
    """The paper's statements about its figures 11 and 12, compared with the rows."""
    base = [row for row in rows if row.way is BASE]
    few, many = (row for row in rows if row.way is SLOW)
    twice, kept = (next(row for row in rows if row.way is way) for way in WAYS)
    middle = next(row for row in base if row.ratio == kept.ratio)
    low, high = base[0], base[-1]
    moved = mean([row.moved for row in base])
    return [
        judged(
            "the advantage of D-HEFT over L-HEFT grows with the ratio",
            f"L-HEFT takes {low.slower:.3f} times as long as D-HEFT at {low.ratio:g} and {high.slower:.3f} times "
            f"at {high.ratio:g}",
            high.slower > max(1.0, low.slower),
            "according to the paper, the cost of planning matters less with larger tasks. Here a plan takes only "
            f"{PLANNING * 64 * ITERATIONS * CONTRIBUTORS:.0f} ms at most; with planning {SLOWER} times slower, "
            f"L-HEFT takes {few.slower:.3f} times as long at {few.ratio:g} and {many.slower:.3f} times at "
            f"{many.ratio:g}",
            rule="L-HEFT's makespan over D-HEFT's exceeds 1 at the largest ratio, and its value at the smallest",
        ),
        judged(
            "both move nearly the same amount of data",
            f"D-HEFT moves {moved:.2f} times as much; {kept.moved:.2f} times if the next task of a contributor "
            f"stays when a new plan is made, {twice.moved:.2f} times if inputs of two tasks are fetched",
            0.8 < moved < 1.25,
            "a new plan moves tasks whose inputs are already in transfer to other contributors; "
            f"without that the two are close (makespans of D-HEFT {middle.makespan['dheft']:.1f} and "
            f"{kept.makespan['dheft']:.1f} s)",
            rule="D-HEFT moves 0.8 to 1.25 times as much",
        ),
    ]  # fmt: skip


def _picture(
    rows: Sequence[Cells],
    title: str,
    label: str,
    pick: Callable[[Cells], tuple[dict[str, float], dict[str, float]]],
) -> Diagram:
    """`pick` gives the values and their standard errors."""
    return Diagram(
        title=f"{title}, Jacobi on {CONTRIBUTORS} contributors",
        x_label="computation to communication",
        y_label=label,
        x=[row.ratio for row in rows],
        curves={text: [pick(row)[0][name] for row in rows] for name, text in NAMES.items()},
        errors={text: [pick(row)[1][name] for row in rows] for name, text in NAMES.items()},
    )
