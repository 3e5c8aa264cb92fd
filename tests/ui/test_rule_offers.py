"""The rule for a dragged bar: planning with it puts the task where it was dragged."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.errors import UsageError
from headrace.rules.parser import parse_rules
from headrace.testing.generate import random_platform, random_program
from headrace.ui.rule_offers import offered, with_offer


@pytest.fixture(scope="module")
def plan() -> hr.Plan:
    return hr.plan(random_program(4, 30), random_platform(4, "uplinks", hosts=4), "heft")


def planned_with(plan: hr.Plan, text: str) -> hr.Plan:
    return hr.plan(random_program(4, 30), plan.platform, "heft", rules=parse_rules(text))


def test_another_host(plan: hr.Plan):
    moved = next(plan.tasks())
    for host in [one.name for one in plan.platform.hosts if one.name != moved.host]:
        offer = offered(plan, moved.id, host, moved.start)[0]
        assert offer.says == f"{moved.id} on {host}"
        again = {task.id: task for task in planned_with(plan, offer.text).tasks()}
        assert again[moved.id].host == host


def test_all_tasks_of_a_name(plan: hr.Plan):
    offers = offered(plan, next(plan.tasks()).id, plan.platform.hosts[0].name, 0.0)
    all_of = [offer for offer in offers if offer.says.startswith("all")]
    for offer in all_of:
        assert {task.host for task in planned_with(plan, offer.text).tasks()} == {plan.platform.hosts[0].name}


def test_later_and_earlier(plan: hr.Plan):
    tasks = list(plan.tasks())
    late = offered(plan, tasks[0].id, tasks[0].host, plan.makespan / 2)
    assert late[-1].says.startswith(f"{tasks[0].id} not before")
    again = {task.id: task for task in planned_with(plan, late[-1].text).tasks()}
    assert again[tasks[0].id].start >= plan.makespan / 2 * (1 - 1e-6)
    order = [one for one in late if " before " in one.says and "not before" not in one.says]
    assert order
    first = order[0].says.removesuffix(f" before {tasks[0].id}")
    again = {task.id: task for task in planned_with(plan, order[0].text).tasks()}
    assert again[first].finish <= again[tasks[0].id].start + 1e-9
    early = offered(plan, tasks[-1].id, tasks[-1].host, 0.0)
    assert "finished by" in early[-1].says


def test_a_second_move_of_a_task_replaces_the_first(plan: hr.Plan):
    moved = next(plan.tasks())
    others = [one.name for one in plan.platform.hosts if one.name != moved.host]
    mine = 'mine: assert relationship requirement ((select task-cores from task where task-name = "x") = 1)\n'
    rules = mine
    for host in others:
        rules = with_offer(rules, offered(plan, moved.id, host, moved.start)[0])
        assert [rule.name for rule in parse_rules(rules).rules] == [
            "mine",
            f"{moved.id}-on-{host}".lower().replace("_", "-"),
        ]


def test_nothing_is_offered_where_it_is(plan: hr.Plan):
    moved = next(plan.tasks())
    assert offered(plan, moved.id, moved.host, moved.start) == []


@pytest.mark.parametrize("name", ['a "b" c', "it's", "ö, 1", "x" * 300, "--", "1"])
def test_any_name_can_be_written(name: str):
    program = hr.Program()
    program.task(None, name=name, work=1.0)
    plan = hr.plan(program, hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6), "heft")
    now = next(plan.tasks())
    other = "h1" if now.host == "h0" else "h0"
    offer = offered(plan, name, other, 0.0)[0]
    again = hr.plan(program, plan.platform, "heft", rules=parse_rules(offer.text))
    assert next(again.tasks()).host == other


def test_unknown_names_are_refused(plan: hr.Plan):
    with pytest.raises(UsageError):
        offered(plan, "nothing", plan.platform.hosts[0].name, 0.0)
    with pytest.raises(UsageError):
        offered(plan, next(plan.tasks()).id, "nowhere", 0.0)
