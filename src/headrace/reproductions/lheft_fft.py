"""Figure 13 of the macro-dataflow paper: the fast Fourier transform of 1,664 tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.experiment.dataflow import fft
from headrace.experiment.diagram import Diagram
from headrace.model.program import Program
from headrace.reproductions import DATAFLOW_PAPER, Ask, Claim, Reproduction
from headrace.reproductions.contributors import (
    CONTRIBUTORS,
    NAMES,
    Measured,
    idle_pcs,
    judged,
    mean,
    measure,
    shared_pcs,
    standard_error,
)

SEEDS = 3
RATIO = 3.0
POINTS = 2**24
BURST_IN_TASKS = 6.0
"""Length of an interval of use, in run times on an idle PC; about as for Jacobi."""


@dataclass(frozen=True)
class Cells:
    """The means of one row."""

    contributors: int
    used: bool
    """Whether the PCs are used by others."""
    makespan: dict[str, float]
    error: dict[str, float]
    """The standard error of each makespan."""
    gigabytes: dict[str, float]
    plans: float

    @property
    def slower(self) -> float:
        """L-HEFT's makespan divided by D-HEFT's."""
        return self.makespan["lheft"] / self.makespan["dheft"]


def reproduce(ask: Ask) -> Reproduction:
    """2^24 points in 64 pieces, ratio 3."""
    return transform(ask, CONTRIBUTORS, POINTS)


def transform(ask: Ask, contributors: Sequence[int], points: int) -> Reproduction:
    """The table for these numbers of contributors."""
    seeds = ask.seeds_or(SEEDS)
    program = fft(points, ratio=RATIO)
    burst = max(10.0, BURST_IN_TASKS * float(program.graph.work[0]))
    rows = [_row(ask, program, count, burst, seeds) for count in contributors]
    rows += [_row(ask, program, count, None, 1) for count in (contributors[0], contributors[-1])]
    used = [row for row in rows if row.used]
    return Reproduction(
        title=f"L-HEFT against D-HEFT, FFT of {program.graph.n_tasks} tasks",
        source=f"{DATAFLOW_PAPER}, figure 13",
        headers=[
            "contributors",
            "PCs",
            *(f"{label} s" for label in NAMES.values()),
            "L / D",
            *(f"{label} GB" for label in NAMES.values()),
            "plans of D-HEFT",
        ],
        rows=[
            [
                row.contributors,
                "in use" if row.used else "idle",
                *(row.makespan[name] for name in NAMES),
                row.slower,
                *(row.gigabytes[name] for name in NAMES),
                row.plans,
            ]
            for row in rows
        ],
        claims=claims(rows),
        pictures=[
            Diagram(
                title=f"FFT, {program.graph.n_tasks} tasks",
                x_label="contributors",
                y_label="makespan, s",
                x=[float(row.contributors) for row in used],
                curves={label: [row.makespan[name] for row in used] for name, label in NAMES.items()},
                errors={label: [row.error[name] for row in used] for name, label in NAMES.items()},
            )
        ],
        notes=[
            f"Means of {seeds} seeds. Ratio of computation to communication {RATIO:g}, so a task takes "
            f"{float(program.graph.work[0]):.2g} s on an idle PC; users come and go in stretches of {burst:g} s.",
        ],
    )


def _row(ask: Ask, program: Program, count: int, burst: float | None, seeds: int) -> Cells:
    ask.tell(f"{count} contributors" + (", idle" if burst is None else ""))
    runs: dict[str, list[Measured]] = {name: [] for name in NAMES}
    for seed in range(seeds):
        lab = idle_pcs(count) if burst is None else shared_pcs(count, seed, burst=burst)
        for name, made in runs.items():
            made.append(measure(program, lab, name, seed=seed))
    return Cells(
        count,
        burst is not None,
        {name: mean([run.makespan for run in made]) for name, made in runs.items()},
        {name: standard_error([run.makespan for run in made]) for name, made in runs.items()},
        {name: mean([run.gigabytes for run in made]) for name, made in runs.items()},
        mean([float(run.plans) for run in runs["dheft"]]),
    )


def claims(rows: Sequence[Cells]) -> list[Claim]:
    """The paper's statements about its figure 13, compared with the rows."""
    used, idle = [row for row in rows if row.used], [row for row in rows if not row.used]
    slower, undisturbed = mean([row.slower for row in used]), mean([row.slower for row in idle])
    floor = mean([row.makespan["lheft"] / row.makespan["workqueue"] for row in used])
    data = mean([row.gigabytes["lheft"] / row.gigabytes["workqueue"] for row in used])
    return [
        judged(
            "L-HEFT can compete with D-HEFT on the FFT, whose communication is more complex",
            f"L-HEFT takes {slower:.3f} times as long as D-HEFT (mean over contributors)",
            slower < 1.05,
            "most butterflies need only one piece. L-HEFT keeps them on the PC that has the piece, even while its "
            "user needs that PC, and D-HEFT moves them to others; on idle PCs L-HEFT takes "
            f"{undisturbed:.3f} times as long",
            rule="less than 1.05 times D-HEFT's makespan on average",
        ),
        judged(
            "L-HEFT moves less data than a scheduler that decides just in time",
            f"{data:.2f} times as much as the workqueue, in {floor:.3f} times its time",
            data < 1.0,
            rule="less data than the workqueue",
        ),
    ]  # fmt: skip
