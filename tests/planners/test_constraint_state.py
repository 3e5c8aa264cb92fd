"""State of constraints for compiled functions."""

from __future__ import annotations

import pytest
from numba import typeof

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints
from headrace.planners.constraint_state import constraint_state
from headrace.testing.generate import random_platform, random_program


def ruled(tasks: int, hosts: int) -> Problem:
    graph = random_program(1, tasks).graph
    platform: hr.Platform = random_platform(1, hosts=hosts)
    none = Constraints.none(graph.n_tasks, len(platform.hosts))
    return Problem(graph, platform, constraints=none)


@pytest.mark.parametrize(("tasks", "hosts"), [(1, 1), (5, 1), (1, 4)])
def test_small_problems_need_no_other_compiled_code(tasks: int, hosts: int) -> None:
    assert typeof(constraint_state(ruled(tasks, hosts))) == typeof(constraint_state(ruled(30, 4)))
