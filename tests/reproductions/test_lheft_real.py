"""The experiments on real workers in small, and what they are made of."""

from dataclasses import replace

import pytest

from headrace.experiment.dataflow import fft, jacobi
from headrace.model.events import DataMoved, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.platform import Platform
from headrace.reproductions import FIGURES, Ask
from headrace.reproductions.contributors import measure
from headrace.reproductions.lheft_real import STEP, Size, lheft_real
from headrace.reproductions.lheft_real_claims import Case, claims
from headrace.reproductions.real_workers import Course, course_of, simulate_same, simulated_course
from headrace.runtime.emulate import emulate

from .test_figures_online import column, sound

SMALL = Size(
    counts=(1, 2),
    blocks=2,
    points=4,
    scalability_work=0.05,
    pieces=4,
    iterations=5,
    at_first=1,
    joins=(0.2,),
    joining_work=0.25,
    failure_workers=3,
    failure_pieces=4,
    failure_iterations=6,
    failure_work=0.05,
)


def test_the_course_of_a_real_run_is_read_from_its_events() -> None:
    course = course_of(
        [
            Started(0.0),
            TaskFinished(1.0, "a", "w0", 0.0),
            DataMoved(1.4, "x", "w0", "w1", 1.0, 8.0),
            DataMoved(1.5, "y", "w0", "w1", 1.1, 8.0),
            HostLeft(2.0, "w0"),
            HostJoined(2.5, "new"),
            HostJoined(2.6, "new"),
            TaskFinished(4.0, "a", "new", 3.0),
            TaskFinished(5.0, "b", "w1", 4.0),
        ]
    )
    assert (course.makespan, course.redone, course.losses, course.joins) == (
        5.0,
        1,
        [(2.0, "w0")],
        [(2.5, "new")],
    )
    assert course.receiving == pytest.approx(0.5)
    assert course.overhead == pytest.approx(0.5 / 3)
    assert course.response() == 0.5
    assert course.finished([1.0, 2.0, 4.0, 5.0]) == [1.0, 0.0, 1.0, 2.0]


def test_the_course_of_a_simulated_run_is_that_of_its_log() -> None:
    program = emulate(jacobi(3, 4, 100), time_scale=1e4)
    run = measure(program, Platform.local(2), "lheft").run
    course = simulated_course(run)
    assert course.makespan == run.makespan
    assert sorted(task for _, _, task, _ in course.executions) == sorted(program.tasks)
    work = float(program.graph.work[0])
    assert [end - start for end, start, _, _ in course.executions] == pytest.approx([work] * 12)
    assert course.redone == run.redone == 0
    assert course.receiving > 0


def test_a_simulation_has_the_joins_and_losses_of_the_real_run() -> None:
    program = emulate(fft(64, 8), time_scale=1e4)
    alone = simulate_same(Platform.local(2), program, "lheft", Course(1.0, [], [], [], 0.0))
    half = alone.makespan / 2
    joined = simulate_same(Platform.local(2), program, "lheft", Course(1.0, [], [], [(half, "new0")], 0.0))
    assert joined.joins == [(half, "new0")]
    assert joined.response() is not None
    assert joined.makespan < alone.makespan
    lost = simulate_same(Platform.local(2), program, "lheft", Course(1.0, [], [(half, "w1")], [], 0.0))
    assert lost.losses == [(half, "w1")]
    early = simulate_same(
        Platform.local(2), program, "lheft", Course(1.0, [], [(half, "w1")], [], 0.0), pace=0.5
    )
    assert early.losses == [(half / 2, "w1")]
    assert lost.redone > 0
    assert lost.makespan > alone.makespan


def cases(*, again: float, speedup: float, late: float) -> list[Case]:
    """What claims are judged by, for made-up figures."""
    first = Case(
        "scalability",
        "one",
        "FFT",
        "lheft",
        1.0,
        1.0,
        {"speedup": (1.0, 1.0), "network overhead": (0.0, 0.0)},
        1,
    )
    many = {"speedup": (speedup, 4.0), "network overhead": (0.05, 0.0)}
    rates = {"tasks/s before": (1.0, 1.0), "tasks/s after all joined": (2.0, 2.0), "response s": (late, 0.1)}
    ours = Case("joining", "L", "FFT, workers join", "lheft", 1.0, 1.0, rates)
    theirs = replace(ours, scheduler="dheft", measures={**rates, "response s": (0.5, 0.1)})
    lost = Case(
        "failure",
        "r",
        "",
        "lheft",
        again,
        1.0,
        {"executed again": (again, 1.0), "delay s": (0.1, 0.1)},
        step=STEP,
    )
    others = {"executed again": (10.0, 1.0), "delay s": (0.1, 0.1)}
    bare = replace(lost, label="l", step=0, makespan=10.0, measures=others)
    return [
        first,
        replace(first, count=4, measures=many),
        ours,
        theirs,
        lost,
        bare,
        replace(bare, label="d", scheduler="dheft"),
    ]  # fmt: skip


def test_claims_follow_their_rules() -> None:
    good = claims(cases(again=5.0, speedup=3.9, late=0.2), STEP)
    assert [claim.agrees for claim in good] == [True] * 7
    bad = claims(cases(again=11.0, speedup=3.0, late=0.9), STEP)
    assert [claim.agrees for claim in bad] == [True, False, True, False, False, False, False]
    assert all(claim.agrees == (not claim.why) for claim in [*good, *bad])


def test_it_is_listed() -> None:
    assert FIGURES["lheft-real"][0] == "lheft_real"


@pytest.mark.slow
def test_all_experiments_on_real_workers() -> None:
    said: list[str] = []
    made = sound(lheft_real(Ask(seeds=1, tell=said.append), SMALL))
    assert len(said) == 4 + 4 + 3
    assert [row[0] for row in made.rows] == ["scalability"] * 8 + ["joining"] * 12 + ["failure"] * 6
    ratios = [cell for cell in column(made, "real / simulated") if cell is not None]
    assert len(ratios) == 4 + 4 + 3
    assert all(ratio > 0.9 for ratio in ratios)  # tasks sleep at least as long as they should
    assert len(made.pictures) == 2 + 2 + 1
    curves = made.pictures[-1].curves
    assert {max(value for value in curve if value is not None) for curve in curves.values()} == {24.0}
