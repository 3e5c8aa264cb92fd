"""Tasks that hold several cores of one host at once: cases computed by hand, and tasks that fit on no host."""

from __future__ import annotations

import pytest

from headrace.core.scheduler import Problem
from headrace.model.check import require_valid
from headrace.model.errors import NoPlan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.registry import make

NAMES = ("heft", "cpop", "peft", "locality", "wu-gajski", "single-host", "round-robin", "minmin", "sufferage")


def one_host(cores: int) -> Platform:
    return Platform((Site("a", (Host("h", 1.0, cores),)),))


def program_of(*tasks: tuple[float, int]) -> Program:
    program = Program("cores")
    for number, (work, cores) in enumerate(tasks):
        program.task(None, work=work, cores=cores, name=f"t{number}")
    return program


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("tasks", "makespan"),
    [
        (((4.0, 2), (3.0, 2)), 7.0),  # one after the other
        (((4.0, 1), (4.0, 2)), 4.0),  # three cores are enough for both
        (((5.0, 3), (2.0, 1), (2.0, 1), (2.0, 1)), 7.0),  # three small ones beside each other
    ],
)
def test_cores_are_held_together(name: str, tasks: tuple[tuple[float, int], ...], makespan: float) -> None:
    graph, platform = program_of(*tasks).graph, one_host(3)
    plan = make(name).plan(Problem(graph, platform))
    require_valid(graph, platform, plan)
    assert plan.makespan == pytest.approx(makespan)


@pytest.mark.parametrize("name", [*NAMES, "auto", "best"])
def test_a_task_that_fits_on_no_host(name: str) -> None:
    problem = Problem(program_of((1.0, 1), (1.0, 4)).graph, one_host(3))
    with pytest.raises(NoPlan, match="'t1' needs 4 cores, but no host has more than 3"):
        make(name).plan(problem)
