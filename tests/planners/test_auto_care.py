"""`auto` takes the planner that can where the others cannot: releases, deadlines, storage."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.errors import NoPlan


def two(**asked: float) -> hr.Program:
    program = hr.Program("two")
    first = program.task(None, name="x", outputs={"d": "1 MB"}, work=1)
    program.task(None, name="y", inputs=[first], work=2, **asked)
    return program


LAB = hr.Platform(
    [hr.Site("s", [hr.Host("a", cores=2), hr.Host("b")], bandwidth="1 MB/s")], contention="fifo"
)


def test_releases_are_obeyed() -> None:
    plan = hr.plan(two(release=5.0), LAB)
    assert plan.makespan == pytest.approx(7.0)
    assert plan.notes[-1] == "auto chose coschedule"
    assert hr.check(two(release=5.0), LAB, plan) == []


def test_without_such_requirements_nothing_changes() -> None:
    assert "coschedule" not in hr.plan(two(), LAB).notes[-1]
    assert "coschedule" not in hr.plan(two(deadline=4.0), LAB).notes[-1]  # heft keeps it


@pytest.mark.slow
def test_what_nobody_can_do_is_still_refused() -> None:
    with pytest.raises(NoPlan, match=r"should have finished by 2\.9"):
        hr.plan(two(deadline=2.9), LAB)


def test_cores_are_obeyed() -> None:
    program = hr.Program("wide")
    for name in "xyz":
        program.task(None, name=name, work=1, cores=2)
    for scheduler in ("heft", "minmin", "auto"):
        plan = hr.plan(program, LAB, scheduler)
        assert plan.makespan == pytest.approx(3.0)
        assert hr.check(program, LAB, plan) == []


def test_storage_is_obeyed() -> None:
    program = hr.Program("store")
    for i in range(4):
        item = program.input(f"i{i}", size="1.5 MB")
        program.task(None, inputs=[item], outputs={f"o{i}": "1 MB"}, work=1)
    sites = [hr.Site("in"), hr.Site("s", [hr.Host("a")], storage="3 MB")]
    grid = hr.Platform(sites, [hr.Link("in", "s", "1 MB/s")], origin="in")
    plan = hr.plan(program, grid)
    assert hr.check(program, grid, plan) == []
