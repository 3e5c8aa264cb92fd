"""Every planner of the registry keeps the contract."""

from __future__ import annotations

import pytest

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.list.heft import Heft
from headrace.planners.registry import ENTRIES, make
from headrace.testing.conformance import check_planner

EARLIER = ("pull",)
"""Planners that hold transfers back on purpose: carried out, their plans take less time than they say."""
PLANNERS = [entry.name for entry in ENTRIES if entry.module.startswith("headrace.planners.")]
"""Without schedulers, which decide while a program runs."""


FEW = {"coschedule": 45, "search": 45, "best": 90, "auto": 60}
"""Cases for planners that take longer."""


@pytest.mark.parametrize("share", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name in PLANNERS if name not in EARLIER])
def test_planner_conforms(name: str, share: int) -> None:
    options = {"time": 0.02} if name in ("best", "coschedule") else {}
    check_planner(lambda: make(name, **options), cases=FEW.get(name, 225) // share)


class Hasty(Heft):
    """Starts every task one second too early."""

    name = "hasty"

    def plan(self, problem: Problem) -> Plan:
        plan = super().plan(problem)
        plan.start[plan.start > 1.0] -= 1.0
        return plan


def test_the_suite_finds_a_planner_that_breaks_the_rules() -> None:
    with pytest.raises(AssertionError, match="duration"):
        check_planner(Hasty, cases=30)
