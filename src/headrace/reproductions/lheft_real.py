"""The macro-dataflow paper's experiments on real workers, in small: scalability, joining, failure with replication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.experiment.dataflow import fft, jacobi, matmul
from headrace.experiment.diagram import Diagram
from headrace.model.program import Program
from headrace.reproductions import DATAFLOW_PAPER, Ask, Cell, Reproduction
from headrace.reproductions.contributors import NAMES, mean
from headrace.reproductions.lheft_real_claims import Case, claims
from headrace.reproductions.real_workers import Course, Disturbance, run_real, simulate_same
from headrace.runtime.cluster import open_local
from headrace.runtime.emulate import emulate

STEP = 5
"""Levels between replications, as in the paper."""
LOSSES = (("w1", 0.5), ("w3", 0.4), ("w2", 0.6))
"""Worker that is killed, and the share of the tasks that have finished by then: one for each seed, in turn."""
SEEDS = 3
FAILURES = (("lheft", STEP), ("lheft", 0), ("dheft", 0))
_BYTES = 20_000
"""The size of a piece, about: pieces move, as they do in the paper, but on this network that takes no time."""


@dataclass(frozen=True)
class Size:
    """How large the experiments are."""

    counts: Sequence[int] = (1, 2, 4, 8)
    blocks: int = 8
    """Of the matrices, along a side."""
    points: int = 2**4
    """Of the FFT there; each level has a task per piece."""
    scalability_work: float = 0.15
    """Seconds that a task sleeps."""
    pieces: int = 16
    iterations: int = 12
    at_first: int = 2
    joins: Sequence[float] = (2.0, 2.0, 3.5, 3.5)
    """When new workers are started."""
    joining_work: float = 0.25
    failure_workers: int = 4
    failure_pieces: int = 8
    failure_iterations: int = 20
    failure_work: float = 0.15


def reproduce(ask: Ask) -> Reproduction:
    """All three experiments, each beside its simulation."""
    return lheft_real(ask, Size())


def lheft_real(ask: Ask, size: Size) -> Reproduction:
    """The experiments at this size."""
    scaling = _scalability(ask, size)
    joining = _joining(ask, size)
    failing = _failure(ask, size)
    cases = [*scaling, *joining, *failing]
    ratios = [case.slower for case in cases]
    return Reproduction(
        title="Scalability, joining and failure on real workers, beside simulations of the same cases",
        source=f"{DATAFLOW_PAPER}, sections 5.3, 5.5 and 5.6 (figures 6, 14, 15 and 16)",
        headers=[
            "experiment",
            "case",
            "makespan s",
            "simulated s",
            "real / simulated",
            "measure",
            "real",
            "simulated",
        ],
        rows=[row for case in cases for row in _rows(case)],
        claims=claims(cases, STEP),
        pictures=[*_speedups(scaling), *_curves(joining), *_curves(failing)],
        notes=_notes(ask, size, ratios),
    )


def _notes(ask: Ask, size: Size, ratios: Sequence[float]) -> list[str]:
    return [
        "Local workers, one process each; tasks sleep. All figures depend on the machine and on what else it does. The "
        "paper prints no numbers for these figures; it had 1 to 32 PCs and tasks of seconds. Sizes, and the "
        "moments of losses, were changed between four earlier runs. Everything takes less than four minutes.",
        f"Real makespans are {min(ratios):.2f} to {max(ratios):.2f} times the simulated ones. In a simulation hosts "
        "join at the same second as in the real run, and leave at the same share of an undisturbed run. It knows "
        "nothing of the engine's overhead, and has initial pieces everywhere, which real workers must fetch.",
        f"Joining: {size.at_first} workers, and from second {size.joins[0]:g} on {len(size.joins)} more are started; a "
        "process takes a second or two to join. Response: from joining to the first task that begins there.",
        f"Failure: {size.failure_iterations} iterations of {size.failure_pieces} pieces on {size.failure_workers} "
        "workers; one is killed when 50, 40 or 60 % of the tasks are done. Means of "
        f"{ask.seeds_or(SEEDS)} losses, curves of the first; delay: the first, against an undisturbed run on the same "
        "workers. Real runs copy to the least busy worker; simulated ones to a host that is idle, over idle links.",
    ]  # fmt: skip


def _rows(case: Case) -> list[list[Cell]]:
    """One row per measure; makespans are in the first."""
    rows: list[list[Cell]] = []
    for measure, (real, simulated) in case.measures.items():
        times: list[Cell] = [case.makespan, case.simulated, case.slower] if not rows else [None, None, None]
        rows.append([case.experiment, case.label, *times, measure, real, simulated])
    return rows


def _emulated(program: Program, work: float) -> Program:
    """The program with tasks that sleep this long."""
    return emulate(program, time_scale=work / float(program.graph.work[0]), size_scale=1.0)


# Section 5.3.


def _scalability(ask: Ask, size: Size) -> list[Case]:
    """Matrix multiplication, as in figure 6, and an FFT, on each number of workers."""
    side = 50  # integers: 10 kB a piece
    programs = {
        "matrix multiplication": matmul(side * size.blocks, size.blocks, streams=1),
        "FFT": fft(size.points, size.pieces),
    }
    cases = []
    for count in size.counts:
        with open_local(count, restart=False) as cluster:
            for name, program in programs.items():
                ask.tell(f"{name} on {count} workers")
                emulated = _emulated(program, size.scalability_work)
                real = run_real(cluster, emulated, "lheft")
                same = simulate_same(cluster.platform, emulated, "lheft", real)
                cases.append(_scaled(name, count, emulated, real, same))
    return cases


def _scaled(name: str, count: int, program: Program, real: Course, same: Course) -> Case:
    alone = float(program.graph.work.sum())
    return Case(
        "scalability",
        f"{name}, {count} workers" if count > 1 else f"{name}, 1 worker",
        name,
        "lheft",
        real.makespan,
        same.makespan,
        {
            "speedup": (alone / real.makespan, alone / same.makespan),
            "network overhead": (real.overhead, same.overhead),
        },
        count=count,
    )


def _speedups(cases: Sequence[Case]) -> list[Diagram]:
    """One plot per program."""
    made = []
    for program in dict.fromkeys(case.program for case in cases):
        mine = [case for case in cases if case.program == program]
        made.append(
            Diagram(
                title=f"Speedup, {program}",
                x_label="workers",
                y_label="speedup",
                x=[float(case.count) for case in mine],
                curves={
                    "ideal": [float(case.count) for case in mine],
                    "L-HEFT, real": [case.measures["speedup"][0] for case in mine],
                    "L-HEFT, simulated": [case.measures["speedup"][1] for case in mine],
                },
            )
        )
    return made


# Section 5.5.


def _joining(ask: Ask, size: Size) -> list[Case]:
    """Jacobi and the FFT, on workers that become more."""
    order = int((_BYTES / 8 * size.pieces) ** 0.5)
    points = size.pieces * 2 ** (size.iterations - 2 - (size.pieces - 1).bit_length())
    programs = {"Jacobi": jacobi(size.iterations, size.pieces, order), "FFT": fft(points, size.pieces)}
    joins = Disturbance(join=[(when, f"new{k}") for k, when in enumerate(size.joins)])
    cases = []
    for name, program in programs.items():
        emulated = _emulated(program, size.joining_work)
        for scheduler in ("lheft", "dheft"):
            ask.tell(f"{name} under {NAMES[scheduler]}, workers join")
            with open_local(size.at_first, restart=False) as cluster:
                real = run_real(cluster, emulated, scheduler, joins)
                same = simulate_same(cluster.platform, emulated, scheduler, real)
            cases.append(_joined(name, scheduler, real, same))
    return cases


def _joined(name: str, scheduler: str, real: Course, same: Course) -> Case:
    before, after = _rates(real)
    simulated_before, simulated_after = _rates(same)
    return Case(
        "joining",
        f"{name}, {NAMES[scheduler]}",
        f"{name}, workers join",
        scheduler,
        real.makespan,
        same.makespan,
        {
            "tasks/s before": (before, simulated_before),
            "tasks/s after all joined": (after, simulated_after),
            "response s": (real.response(), same.response()),
        },
        curves=_both(real, same),
    )


def _rates(course: Course) -> tuple[float | None, float | None]:
    """Tasks per second before the first join, and after the last one until nine tenths of the run are over.

    None if nobody joined, or the last one too late.
    """
    if not course.joins:
        return None, None
    first, last, end = course.joins[0][0], course.joins[-1][0], 0.9 * course.makespan
    done = course.finished([first, last, end])
    return done[0] / first, (done[2] - done[1]) / (end - last) if end > last else None


# Section 5.6.


def _failure(ask: Ask, size: Size) -> list[Case]:
    """Jacobi, with one worker lost about halfway, with and without replication."""
    order = int((_BYTES / 8 * size.failure_pieces) ** 0.5)
    program = jacobi(size.failure_iterations, size.failure_pieces, order)
    emulated = _emulated(program, size.failure_work)
    return [_failed(ask, size, emulated, scheduler, step) for scheduler, step in FAILURES]


def _failed(ask: Ask, size: Size, program: Program, scheduler: str, step: int) -> Case:
    label = f"{NAMES[scheduler]}, " + (f"replication step {step}" if step else "no replication")
    real, same, alone = list[Course](), list[Course](), list[tuple[float, float]]()
    for seed in range(ask.seeds_or(SEEDS)):
        ask.tell(f"Jacobi under {label}, loss {seed + 1}")
        with open_local(size.failure_workers, restart=False) as cluster:
            platform = cluster.platform
            if not alone:
                quiet = run_real(cluster, program, scheduler, replicate=step)
                undisturbed = simulate_same(platform, program, scheduler, quiet, step)
                alone.append((quiet.makespan, undisturbed.makespan))
            worker, share = LOSSES[seed % len(LOSSES)]
            loss = Disturbance(kill=worker, after=int(share * len(program.tasks)))
            real.append(run_real(cluster, program, scheduler, loss, step))
        pace = alone[0][1] / alone[0][0]
        same.append(simulate_same(platform, program, scheduler, real[-1], step, pace))
    return Case(
        "failure",
        label,
        "one worker lost",
        scheduler,
        mean([course.makespan for course in real]),
        mean([course.makespan for course in same]),
        {
            "executed again": (mean([course.redone for course in real]), mean([c.redone for c in same])),
            "delay s": (real[0].makespan - alone[0][0], same[0].makespan - alone[0][1]),
        },
        curves=_both(real[0], same[0]),
        step=step,
    )


# Plots of finished tasks.


def _both(real: Course, same: Course) -> dict[str, Course]:
    return {"real": real, "simulated": same}


def _curves(cases: Sequence[Case]) -> list[Diagram]:
    """Finished tasks over time: one plot per program."""
    made = []
    for program in dict.fromkeys(case.program for case in cases):
        mine = [case for case in cases if case.program == program]
        last = max(course.makespan for case in mine for course in case.curves.values())
        moments = [0.25 * k for k in range(int(4 * last) + 2)]
        labels = {case.label: case.label.removeprefix(f"{program.split(',')[0]}, ") for case in mine}
        made.append(
            Diagram(
                title=f"Finished tasks, {program}",
                x_label="seconds",
                y_label="tasks",
                x=moments,
                curves={
                    f"{labels[case.label]}, {kind}": list(course.finished(moments))
                    for case in mine
                    for kind, course in case.curves.items()
                },
            )
        )
    return made
