"""Figures 14 and 15 of the macro-dataflow paper: contributors that join during a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.experiment.dataflow import fft, jacobi
from headrace.experiment.diagram import Diagram
from headrace.model.behaviour import Change, GridScript
from headrace.model.program import Program
from headrace.reproductions import DATAFLOW_PAPER, Ask, Cell, Claim, Reproduction
from headrace.reproductions.contributors import (
    MOMENTS,
    PLANNING,
    finished_over_time,
    finished_picture,
    judged,
    mean,
    measure,
    shared_pcs,
    with_changes,
)
from headrace.simulator.events.grid_state import HOST_JOINED, TASK_STARTED
from headrace.simulator.events.run import SimulatedRun

AT_FIRST, AT_LAST, A_MINUTE = 16, 32, 2
FROM = 180.0
"""Time in seconds from which two more contributors join every minute."""
SEEDS = 3
WORK = {"Jacobi": 16.0, "FFT": 6.0}
"""Run time of a task in seconds on an idle PC, chosen so that runs last about as long as the paper's."""
BURST_IN_TASKS = 6.0
SCHEDULERS = {
    "L-HEFT": ("lheft", 1),
    "D-HEFT": ("dheft", 1),
    "D-HEFT, planning x 100": ("dheft", 100),
    "workqueue": ("workqueue", 1),
}


@dataclass(frozen=True)
class Cells:
    """The means of one row."""

    program: str
    scheduler: str
    makespan: float
    alone: float
    """Makespan without joining contributors."""
    slope: tuple[float, float]
    """Tasks per minute before the first join, and in the second minute after the last one."""
    response: float
    """Seconds from a join to the first task that starts on the new contributor."""
    curve: list[float]
    """Tasks finished by each time, with the first seed."""


def reproduce(ask: Ask) -> Reproduction:
    """Jacobi of 10 iterations and the FFT: 16 contributors, two more every minute from minute 3 on."""
    return joining(ask, programs())


def programs(iterations: int = 10, points: int = 2**24) -> dict[str, Program]:
    """Both programs, with run times from WORK."""
    idle = {"Jacobi": jacobi(1, ratio=1.0), "FFT": fft(points, ratio=1.0)}
    ratio = {name: WORK[name] / float(program.graph.work[0]) for name, program in idle.items()}
    return {"Jacobi": jacobi(iterations, ratio=ratio["Jacobi"]), "FFT": fft(points, ratio=ratio["FFT"])}


def growing_grid(seed: int, burst: float) -> GridScript:
    """16 PCs, and from minute 3 on two more every minute.

    >>> script = growing_grid(0, 60.0)
    >>> [(c.time, c.name) for c in script.changes][:3]
    [(180.0, 'pc16'), (180.0, 'pc17'), (240.0, 'pc18')]
    """
    platform = shared_pcs(AT_LAST, seed, burst=burst)
    joins = [
        Change(FROM + 60.0 * (k // A_MINUTE), "host-up", host.name, host.trace)
        for k, host in enumerate(platform.hosts[AT_FIRST:])
    ]
    return with_changes(platform, joins)


def joining(ask: Ask, chosen: dict[str, Program]) -> Reproduction:
    """The curves of these programs."""
    rows = [_row(ask, name, program, label) for name, program in chosen.items() for label in SCHEDULERS]
    return Reproduction(
        title="Contributors that join: finished tasks over time",
        source=f"{DATAFLOW_PAPER}, figures 14 and 15",
        headers=[
            "program",
            "scheduler",
            "makespan s",
            "without joins s",
            "tasks/min before",
            "tasks/min after all joined",
            "response s",
        ],
        rows=[_cells(row) for row in rows],
        claims=claims(rows),
        pictures=[_picture(name, [row for row in rows if row.program == name]) for name in chosen],
        notes=[
            f"Means of {ask.seeds_or(SEEDS)} seeds, curves of the first. Tasks take {WORK['Jacobi']:g} s (Jacobi) "
            f"and {WORK['FFT']:g} s (FFT) on an idle PC: at 1 Gbit/s and the ratios of figure 11 all 640 tasks would "
            "be done before the first contributor joins. Users come and go in stretches of six run times.",
            "Response: from joining to the first task that begins there. Planning takes D-HEFT "
            f"{PLANNING * 1e3:g} ms for each thousand tasks times contributors, and a hundred times that in its "
            "second row.",
        ],
    )  # fmt: skip


def _picture(name: str, rows: Sequence[Cells]) -> Diagram:
    last = max(row.makespan for row in rows)
    return finished_picture(f"Finished tasks, {name}", {r.scheduler: r.curve for r in rows}, last + 15.0)


def _row(ask: Ask, name: str, program: Program, label: str) -> Cells:
    ask.tell(f"{name} under {label}")
    scheduler, slower = SCHEDULERS[label]
    burst = BURST_IN_TASKS * float(program.graph.work[0])
    runs, alone = [], []
    for seed in range(ask.seeds_or(SEEDS)):
        grid = growing_grid(seed, burst)
        runs.append(measure(program, grid, scheduler, seed=seed, planning=slower * PLANNING).run)
        few = shared_pcs(AT_FIRST, seed, burst=burst)
        alone.append(measure(program, few, scheduler, seed=seed, planning=slower * PLANNING).makespan)
    return Cells(
        name,
        label,
        mean([run.makespan for run in runs]),
        mean(alone),
        _slopes(runs),
        mean([_response(run) for run in runs]),
        finished_over_time(runs[0], MOMENTS),
    )


def _slopes(runs: Sequence[SimulatedRun]) -> tuple[float, float]:
    """Tasks per minute up to the first join, and from a minute after the last join (or halfway to the end)."""
    before, after = [], []
    for run in runs:
        joined = run.log_time[run.log_kind == HOST_JOINED]
        first = float(joined[0]) if len(joined) else FROM
        begin = min(float(joined[-1]) + 60.0 if len(joined) else FROM, 0.75 * run.makespan)
        end = min(begin + 120.0, 0.9 * run.makespan)
        done = finished_over_time(run, [min(first, run.makespan), begin, end])
        before.append(done[0] / min(first, run.makespan) * 60.0)
        after.append((done[2] - done[1]) / (end - begin) * 60.0 if end > begin else 0.0)
    return mean(before), mean(after)


def _response(run: SimulatedRun) -> float:
    """Mean over contributors that joined and were used."""
    times, kinds, a, b = run.log_time, run.log_kind, run.log_subject, run.log_from
    waits = []
    for k in np.flatnonzero(kinds == HOST_JOINED).tolist():
        used = times[(kinds == TASK_STARTED) & (b == a[k]) & (times >= times[k])]
        if len(used):
            waits.append(float(used[0] - times[k]))
    return mean(waits) if waits else 0.0


def _cells(row: Cells) -> list[Cell]:
    return [row.program, row.scheduler, row.makespan, row.alone, *row.slope, row.response]


def claims(rows: Sequence[Cells]) -> list[Claim]:
    """The paper's statements about its figures 14 and 15, compared with the rows."""
    made = []
    for program in dict.fromkeys(row.program for row in rows):
        by = {row.scheduler: row for row in rows if row.program == program}
        ours, theirs, slow = by["L-HEFT"], by["D-HEFT"], by["D-HEFT, planning x 100"]
        steeper = min(ours.slope[1] / ours.slope[0], theirs.slope[1] / theirs.slope[0])
        quicker = ours.response <= theirs.response
        made += [
            judged(
                f"{program}: finished tasks rise more steeply as contributors join",
                f"tasks a minute: L-HEFT {ours.slope[0]:.0f} before, {ours.slope[1]:.0f} after; "
                f"D-HEFT {theirs.slope[0]:.0f} and {theirs.slope[1]:.0f}",
                steeper > 1.2,
                rule="more than 1.2 times as many tasks a minute under both schedulers",
            ),
            judged(
                f"{program}: L-HEFT responds to new contributors a bit faster, since it costs less",
                f"first task after {ours.response:.1f} s, D-HEFT {theirs.response:.1f} s, "
                f"with planning x 100 {slow.response:.1f} s; makespans {ours.makespan:.0f}, {theirs.makespan:.0f}, "
                f"{slow.makespan:.0f} s",
                quicker,
                _WHY[program],
                rule="L-HEFT's first task on a new contributor begins no later than D-HEFT's, on average",
            ),
        ]
    return made


_WHY = {
    "Jacobi": "both react as soon as a task is ready, and a plan takes milliseconds: even a hundred "
    "times that is not noticeable",
    "FFT": "tasks that need no transfers stay where their data is, and most tasks of an FFT need none. A host that "
    "joins therefore waits for one that does. Jacobi, where every task needs its neighbours' rows, has no such wait",
}
