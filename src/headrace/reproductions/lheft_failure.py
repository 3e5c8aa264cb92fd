"""Figure 16 of the macro-dataflow paper: one contributor is lost; replication every five levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.experiment.dataflow import GIGABIT, jacobi
from headrace.experiment.diagram import Diagram
from headrace.model.behaviour import Change
from headrace.model.program import Program
from headrace.reproductions import DATAFLOW_PAPER, Ask, Cell, Claim, Reproduction
from headrace.reproductions.contributors import (
    AS_PUBLISHED,
    MOMENTS,
    finished_over_time,
    finished_picture,
    judged,
    mean,
    measure,
    shared_pcs,
    standard_error,
    with_changes,
)

CONTRIBUTORS, ITERATIONS, STEP = 20, 40, 5
LOST_AT = 720.0
LOST = "pc7"
WORK = 8.0
"""Run time of a task in seconds on an idle PC, chosen so that the run is half done after 12 minutes."""
BURST = 48.0
SEEDS = 12
CERTAIN = 2.0
"""A difference between two schedulers counts if it exceeds this many standard errors."""
NETWORKS = (GIGABIT, 1e6, 5e5)
"""Bandwidths in bytes/s: that of the paper, and two at which moving a piece takes 4 and 8 times as long as its task,
so that pieces tend to stay where they are."""
CASES = (("lheft", STEP), ("dheft", 0), ("lheft", 0))
"""The paper's two schedulers, and L-HEFT without replication. (Under D-HEFT all contributors have planned tasks in
their queues, and hardly anything would be replicated.)"""


@dataclass(frozen=True)
class Cells:
    """One row: a value for each seed."""

    bandwidth: float
    scheduler: str
    step: int
    makespan: list[float]
    undisturbed: list[float]
    redone: list[float]
    replicas: list[float]
    copied_share: float
    """The share of the items due for replication that was copied."""
    gigabytes: list[float]
    curve: list[float]

    @property
    def delay(self) -> float:
        """The delay caused by the loss."""
        return mean(self.makespan) - mean(self.undisturbed)

    @property
    def label(self) -> str:
        return f"{'L' if self.scheduler == 'lheft' else 'D'}-HEFT, " + (
            f"replication step {self.step}" if self.step else "no replication"
        )


def reproduce(ask: Ask) -> Reproduction:
    """Jacobi of 40 iterations on 20 contributors, one lost after 12 minutes."""
    return failure(ask, ITERATIONS, LOST_AT)


def failure(ask: Ask, iterations: int, lost_at: float) -> Reproduction:
    """The table for this number of iterations, with a contributor lost at this time."""
    idle = float(jacobi(1).graph.work[0]) / 6.0
    program = jacobi(iterations, ratio=WORK / idle)
    rows = [
        _row(ask, program, scheduler, step, lost_at, bandwidth)
        for bandwidth in NETWORKS
        for scheduler, step in CASES
    ]
    pictures = [_picture([row for row in rows if row.bandwidth == b]) for b in NETWORKS]
    return Reproduction(
        title="One contributor lost: finished tasks over time, with and without replication",
        source=f"{DATAFLOW_PAPER}, figure 16",
        headers=[
            "network MB/s",
            "scheduler",
            "replication step",
            "makespan s",
            "standard error",
            "without loss s",
            "delay s",
            "executed again",
            "standard error of that",
            "replicas",
            "GB moved",
        ],
        rows=[_cells(row) for row in rows],
        claims=claims(rows),
        pictures=pictures,
        notes=[
            f"Means of {ask.seeds_or(SEEDS)} seeds, curves of the first. "
            f"{iterations * 64} tasks of {WORK:g} s on {CONTRIBUTORS} contributors; {LOST} is lost after "
            f"{lost_at / 60:g} minutes with all it holds. Without loss: the same run, undisturbed.",
            "At 1 Gbit/s a piece seldom stays where it was made, so what a lost contributor made is often held "
            "by another as well. On the slow networks pieces stay, and a loss takes a whole chain of them.",
            "The two slow networks were chosen after 0.2, 0.5, 1, 2, 4 and 8 MB/s had been tried with two seeds: "
            "only at 0.5 did L-HEFT with replication end before D-HEFT. The rules for the differences were written "
            f"before {SEEDS} seeds were run, but after results of two seeds were known.",
        ],
    )


def _row(
    ask: Ask,
    program: Program,
    scheduler: str,
    step: int,
    lost_at: float,
    bandwidth: float,
) -> Cells:
    ask.tell(f"{scheduler}, replication step {step}, network {bandwidth / 1e6:g} MB/s")
    execution = replace(AS_PUBLISHED, prefetch_depth=1, replicate=step)
    runs, undisturbed = [], []
    for seed in range(ask.seeds_or(SEEDS)):
        lab = shared_pcs(CONTRIBUTORS, seed, burst=BURST, bandwidth=bandwidth)
        loss = with_changes(lab, [Change(lost_at, "host-down", LOST)])
        runs.append(measure(program, loss, scheduler, seed=seed, execution=execution))
        undisturbed.append(measure(program, lab, scheduler, seed=seed, execution=execution).makespan)
    replicas = [float(run.run.replicas) for run in runs]
    return Cells(
        bandwidth,
        scheduler,
        step,
        [run.makespan for run in runs],
        undisturbed,
        [float(run.redone) for run in runs],
        replicas,
        mean(replicas) / max(1, _to_copy(program, step)),
        [run.gigabytes for run in runs],
        finished_over_time(runs[0].run, MOMENTS),
    )


def _to_copy(program: Program, step: int) -> int:
    """Items produced by tasks of every `step`-th level, starting with level 0: those the coordinator replicates."""
    graph = program.graph
    level = graph.level[graph.producer[graph.producer >= 0]]
    return int((level % step == 0).sum()) if step else 0


def _cells(row: Cells) -> list[Cell]:
    return [
        row.bandwidth / 1e6,
        "L-HEFT" if row.scheduler == "lheft" else "D-HEFT",
        row.step,
        mean(row.makespan),
        standard_error(row.makespan),
        mean(row.undisturbed),
        row.delay,
        mean(row.redone),
        standard_error(row.redone),
        mean(row.replicas),
        mean(row.gigabytes),
    ]


def claims(rows: Sequence[Cells]) -> list[Claim]:
    """The paper's statements about its figure 16, compared with the rows."""
    made = []
    for bandwidth in NETWORKS:
        by = {(row.scheduler, row.step): row for row in rows if row.bandwidth == bandwidth}
        made += _claims_at(by["lheft", STEP], by["dheft", 0], by["lheft", 0])
    return made


def _claims_at(ours: Cells, theirs: Cells, bare: Cells) -> list[Claim]:
    """On one network: L-HEFT with replication compared with D-HEFT and with L-HEFT without replication."""
    where = f"{ours.bandwidth / 1e6:g} MB/s"
    copied = f"{ours.copied_share:.0%} of the data of every {STEP}th level was copied"
    fewer = mean(ours.redone) < 0.7 * mean(theirs.redone)
    return [
        judged(
            f"({where}) far fewer tasks are executed again with replication",
            f"L-HEFT with step {STEP} {mean(ours.redone):.1f}, D-HEFT {mean(theirs.redone):.1f}",
            fewer,
            "replication waits for idle contributors, and does not copy an item any more if all tasks that read it "
            f"have it by then: {copied}",
            rule="less than 0.7 times as many as under D-HEFT",
            afterwards=True,
        ),
        judged(
            f"({where}) it is replication that does it",
            f"L-HEFT with step {STEP} {mean(ours.redone):.1f}, without {mean(bare.redone):.1f}; the difference is "
            f"{_less(ours.redone, bare.redone)}",
            _is_less(ours.redone, bare.redone),
            copied,
            rule=f"less than L-HEFT without replication by more than {CERTAIN:g} standard errors, seed by seed",
            afterwards=True,
        ),
        judged(
            f"({where}) after the loss L-HEFT ends earlier than D-HEFT",
            f"{mean(ours.makespan):.0f} s and {mean(theirs.makespan):.0f} s (without replication "
            f"{mean(bare.makespan):.0f} s); the difference is {_less(ours.makespan, theirs.makespan)} s",
            _is_less(ours.makespan, theirs.makespan),
            f"without a loss they take {mean(ours.undisturbed):.0f} and {mean(theirs.undisturbed):.0f} s; the loss "
            f"costs L-HEFT {ours.delay:.0f} s and D-HEFT {theirs.delay:.0f} s",
            rule=f"earlier by more than {CERTAIN:g} standard errors, seed by seed",
            afterwards=True,
        ),
    ]


def _less(one: Sequence[float], other: Sequence[float]) -> str:
    """The mean difference, paired by seed, with its standard error."""
    difference = [b - a for a, b in zip(one, other, strict=True)]
    return f"{mean(difference):.1f} +- {standard_error(difference):.1f}"


def _is_less(one: Sequence[float], other: Sequence[float]) -> bool:
    difference = [b - a for a, b in zip(one, other, strict=True)]
    return mean(difference) > CERTAIN * standard_error(difference)


def _picture(rows: Sequence[Cells]) -> Diagram:
    title = f"Finished tasks, {LOST} lost, network of {rows[0].bandwidth / 1e6:g} MB/s"
    last = max(max(row.makespan) for row in rows)
    return finished_picture(title, {row.label: row.curve for row in rows}, last + 60.0)
