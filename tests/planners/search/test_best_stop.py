"""A search ends when the plan is good enough."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.check import check
from headrace.planners.search.best import Best
from headrace.rules.parser import parse_rules
from headrace.testing.generate import random_platform, random_program

LATE = """assert value preference (opt-type = minimize, priority = 1,
  function = (select max(task-finish-time) from task), min = 0, max = (select sum(task-work) from task))"""


@pytest.mark.parametrize("contention", ["none", "fifo"])
@pytest.mark.parametrize("rules", ["", LATE])
def test_a_search_of_a_day_ends_when_it_is_told(contention: str, rules: str):
    platform = random_platform(5, "uplinks", hosts=4, contention=contention)
    told: list[float] = []
    planner = Best(time=86_400.0, tell=lambda *facts: told.append(facts[1]), stop=lambda: len(told) >= 1)
    given = parse_rules(rules) if rules else None
    program = random_program(5, 40)
    plan = hr.plan(program, platform, planner, rules=given)
    assert check(program, platform, plan) == []
    assert told
