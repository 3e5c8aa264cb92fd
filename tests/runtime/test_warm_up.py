"""Compiling before a run begins."""

from __future__ import annotations

import pytest

from headrace.arrays.clock import work_clock
from headrace.core.replan import Replan
from headrace.planners.registry import make
from headrace.runtime.warm_up import warm_up


@pytest.mark.parametrize("name", ["coschedule", "best", "search"])
def test_planners_do_not_search_for_as_long_as_in_a_run(name: str) -> None:
    scheduler = Replan(make(name, time=30.0))
    began = work_clock()
    warm_up(scheduler)
    assert work_clock() - began < 10
    assert vars(scheduler.planner)["time"] == 30.0
