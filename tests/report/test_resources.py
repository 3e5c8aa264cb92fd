"""Plans by resource: the lines of the summary and the lanes of the chart."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.scheduler import Problem
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.registry import make
from headrace.report import resources
from headrace.report.resources import by_resource, disk_levels, resource_chart, resource_rows


def example() -> object:
    program = Program("few")
    for k in range(3):
        program.input(f"in{k}", size=10, sites=["a"])
        program.output(program.task(None, inputs=[f"in{k}"], outputs={f"out{k}": 5.0}, work=4), sites=["a"])
    platform = Platform(
        (Site("a"), Site("b", (Host("h", cores=2),), storage=100)),
        (Link("a", "b", 5.0),),
        contention="fifo",
        routing="links",
    )
    return make("equal-load").plan(Problem(program.graph, platform))


def test_rows_name_jobs_the_busiest_link_and_the_fullest_disk() -> None:
    plan = example()
    rows = dict(resource_rows(plan))
    assert by_resource(plan)
    assert rows["jobs by site"] == "b 3"
    assert rows["busiest link"].startswith(f"a -> b, busy {6 / plan.makespan:.1%}")
    assert rows["fullest disk"].startswith("b, ")


def test_a_disk_is_filled_as_the_model_says() -> None:
    ((site, level),) = disk_levels(example())
    assert site == 1
    assert level.amount[-1] == 0.0
    # in0 from 0, in1 from 2, job 0 from 2 (its result), in2 from 4, job 1 from 4: 10 + 10 + 5 + 10 + 5
    assert level.peak == 40.0


def test_the_chart_has_the_jobs_of_each_core_and_a_lane_for_each_link_and_disk(tmp_path: Path) -> None:
    plan = example()
    chart = resource_chart(plan)
    assert [lane.group for lane in chart.lanes] == [
        "h: 2 cores",
        "h: 2 cores",
        "a -> b",
        "b -> a",
        "b: 100 B",
    ]
    assert {bar.lane for bar in chart.bars} == {lane.key for lane in chart.lanes}
    jobs = [bar for bar in chart.bars if bar.lane.startswith("pool ")]
    assert sorted({bar.label for bar in jobs}) == sorted(plan.graph.task_names)
    for one in jobs:
        for other in jobs:
            apart = one is other or one.finish <= other.start + 1e-9 or other.finish <= one.start + 1e-9
            assert one.lane != other.lane or apart


def test_a_chart_of_many_cores_has_one_lane_for_each_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MOST_CORE_LANES", 1)
    chart = resource_chart(example())
    assert [lane.group for lane in chart.lanes] == ["h: 2 cores", "a -> b", "b -> a", "b: 100 B"]
    assert {bar.label for bar in chart.bars if bar.lane == "pool h"} <= {"up to 1 core", "up to 2 cores"}


def test_the_picture_names_the_pool(tmp_path: Path) -> None:
    plan = example()
    plan.gantt(tmp_path / "plan.svg")
    assert "h: 2 cores" in (tmp_path / "plan.svg").read_text()
