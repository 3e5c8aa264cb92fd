"""Figure 6 of the macro-dataflow paper: speedup of matrix multiplication, and network overhead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.experiment.dataflow import matmul
from headrace.experiment.diagram import Diagram
from headrace.model.graph import Graph
from headrace.model.sited import SiteLists
from headrace.reproductions import DATAFLOW_PAPER, Ask, Cell, Claim, Reproduction
from headrace.reproductions.contributors import NAMES, idle_pcs, judged, mean, measure, standard_error
from headrace.simulator.events.run import SimulatedRun

COUNTS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
RATIO = 6.0
SEEDS = 3
LIMIT = 0.1
"""According to the paper, speedup falls below the ideal line when the network takes more than this share."""


@dataclass(frozen=True)
class Cells:
    """One number of contributors under one scheduler."""

    contributors: int
    scheduler: str
    makespan: float
    speedup: float
    overhead: float
    """Time during which contributors receive data, divided by the run time of all tasks."""
    gigabytes: float
    speedup_error: float
    overhead_error: float

    @property
    def efficiency(self) -> float:
        return self.speedup / self.contributors


def reproduce(ask: Ask) -> Reproduction:
    """Two matrices of 4,000 by 4,000 integers in 16 by 16 pieces, on 1 to 32 contributors."""
    return scalability(ask, COUNTS, 16)


def scalability(ask: Ask, counts: Sequence[int], blocks: int) -> Reproduction:
    """The table for these numbers of contributors; only the initial locations of pieces are random."""
    graph = matmul(blocks=blocks, ratio=RATIO).graph
    seeds = ask.seeds_or(SEEDS)
    rows: list[Cells] = []
    for scheduler in NAMES:
        for count in counts:
            ask.tell(f"{count} contributors under {NAMES[scheduler]}")
            rows.append(_row(graph, count, scheduler, seeds))
    return Reproduction(
        title="Speedup of matrix multiplication over contributors, and network overhead",
        source=f"{DATAFLOW_PAPER}, section 5.3 (figure 6)",
        headers=[
            "contributors",
            "scheduler",
            "makespan s",
            "speedup",
            "efficiency",
            "network overhead",
            "GB moved",
        ],
        rows=[_cells(row) for row in rows],
        claims=claims(rows),
        pictures=[
            _picture(rows, counts, "Speedup", "speedup", [float(c) for c in counts]),
            _picture(rows, counts, "Network overhead", "transfers / tasks, seconds", None),
        ],
        notes=[
            f"Means of {seeds} seeds. {graph.n_tasks} tasks of {float(graph.work[0]):.2f} s; initial pieces are "
            "distributed evenly over the contributors at random before the clock starts, and results stay "
            "where they are made: the paper leaves both out. PCs are idle and equal; transfers share ports of "
            "1 Gbit/s fairly. Overhead: seconds in which contributors receive data over seconds of tasks.",
        ],
    )


def spread_out(graph: Graph, count: int, seed: int) -> Graph:
    """The program with its initial items distributed evenly over the contributors.

    >>> dealt = spread_out(matmul(blocks=2).graph, 4, seed=0)
    >>> [sum(dealt.initial_locations.of(item) == (f"pc{i}",) for item in range(16)) for i in range(4)]
    [4, 4, 4, 4]
    """
    outside = np.random.default_rng([seed, 52]).permutation(np.flatnonzero(graph.producer < 0)).tolist()
    initial_locations = {item: (f"pc{k % count}",) for k, item in enumerate(outside)}
    return replace(graph, initial_locations=SiteLists.of_items(initial_locations, graph.n_items))


def _row(graph: Graph, count: int, scheduler: str, seeds: int) -> Cells:
    alone = float(graph.work.sum())
    runs = [
        measure(spread_out(graph, count, seed), idle_pcs(count, "fair"), scheduler, seed=seed)
        for seed in range(seeds)
    ]
    makespan = mean([run.makespan for run in runs])
    overheads = [_receiving(run.run) / alone for run in runs]
    return Cells(
        count,
        scheduler,
        makespan,
        alone / makespan,
        mean(overheads),
        mean([run.gigabytes for run in runs]),
        standard_error([alone / run.makespan for run in runs]),
        standard_error(overheads),
    )


def _receiving(run: SimulatedRun) -> float:
    """Time during which each contributor receives data, in seconds, summed over contributors."""
    plan = run.executed
    total = 0.0
    for place in np.unique(plan.move_target).tolist():
        mine = plan.move_target == place
        begin, end = plan.move_start[mine], plan.move_finish[mine]
        order = np.argsort(begin, kind="stable")
        reached = -np.inf
        for start, finish in zip(begin[order].tolist(), end[order].tolist(), strict=True):
            total += max(0.0, finish - max(start, reached))
            reached = max(reached, finish)
    return total


def _cells(row: Cells) -> list[Cell]:
    return [
        row.contributors,
        NAMES[row.scheduler],
        row.makespan,
        row.speedup,
        row.efficiency,
        row.overhead,
        row.gigabytes,
    ]


def claims(rows: Sequence[Cells]) -> list[Claim]:
    """The paper's statements in section 5.3, compared with the rows of L-HEFT."""
    ours = [row for row in rows if row.scheduler == "lheft"]
    first, last = ours[0], ours[-1]
    below = [row for row in ours if row.overhead <= LIMIT]
    above = [row for row in ours if row.overhead > LIMIT]
    near = min((row.efficiency for row in below), default=1.0)
    far = min((row.efficiency for row in above), default=1.0)
    turned = bool(above) and far < near
    return [
        judged(
            "with more contributors speedup grows, and network overhead as well, substantially",
            f"speedup {first.speedup:.1f} on {first.contributors} to {last.speedup:.1f} on {last.contributors}; "
            f"overhead {first.overhead:.1%} to {last.overhead:.1%}",
            last.speedup > first.speedup and last.overhead > first.overhead,
            rule="both are larger with most contributors than with one",
        ),
        judged(
            "speedup leaves the ideal line where the network takes more than 10 % of the time",
            f"at an overhead of up to 10 % ({', '.join(str(r.contributors) for r in below)} contributors) efficiency "
            f"is at least {near:.2f}, above that it falls to {far:.2f}",
            turned and near > 0.9,
            rule="efficiency above 0.9 wherever the overhead is at most 10 %, and lower somewhere above",
        ),
    ]  # fmt: skip


def _picture(
    rows: Sequence[Cells], counts: Sequence[int], title: str, label: str, ideal: list[float] | None
) -> Diagram:
    curves: dict[str, list[float | None]] = {} if ideal is None else {"ideal": list(ideal)}
    errors: dict[str, list[float | None]] = {}
    for scheduler, text in NAMES.items():
        mine = [row for row in rows if row.scheduler == scheduler]
        curves[text] = [row.overhead if ideal is None else row.speedup for row in mine]
        errors[text] = [row.overhead_error if ideal is None else row.speedup_error for row in mine]
    return Diagram(
        title=f"{title}, matrix multiplication",
        x_label="contributors",
        y_label=label,
        x=[float(c) for c in counts],
        curves=curves,
        errors=errors,
    )
