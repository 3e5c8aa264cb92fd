"""The list scheduler goes on where it was when its calendar of links was too small."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.arrays.calendar import exclusive_calendar
from headrace.core.scheduler import Problem
from headrace.planners.list.list_scheduler import ListScheduler
from headrace.testing.generate import cases


@pytest.mark.parametrize("results_wait", [False, True])
def test_a_calendar_that_has_to_grow_changes_nothing(results_wait: bool) -> None:
    grown = 0
    for program, platform in cases(60, seed=3, tasks=25):
        problem = Problem(program.graph, platform)
        plans = []
        for small in (False, True):
            scheduler = ListScheduler(problem)
            if small:
                links = exclusive_calendar(platform.network.n_links, 4)
                scheduler.schedule = scheduler.schedule._replace(links=links)
            scheduler.place(problem.graph.order, results_wait=results_wait)
            if results_wait:
                scheduler.return_results()
            grown += small and len(scheduler.schedule.links.start) > 4
            plans.append(scheduler.plan("test"))
        for name in (
            "host",
            "core",
            "start",
            "finish",
            "move_item",
            "move_source",
            "move_start",
            "move_finish",
        ):
            assert np.array_equal(getattr(plans[0], name), getattr(plans[1], name)), name
    assert grown > 20
