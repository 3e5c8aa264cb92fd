"""Plan files: round trip, and cores that are left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headrace.formats.plan_json import plan_to_dict, read_plan, write_plan
from headrace.model.bound import Bound
from headrace.model.errors import BadPlan
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program


def a_program() -> Program:
    program = Program("p")
    x = program.input("x", size=10)
    a = program.task(name="a", inputs=[x], outputs={"y": 100}, work=2)
    program.task(name="b", inputs=[a], outputs={"z": 5}, work=4)
    program.task(name="c", inputs=[x], outputs={"w": 5}, work=1)
    return program


def a_platform() -> Platform:
    hosts = (Host("h", cores=2), Host("g"))
    return Platform((Site("s", hosts, bandwidth=50.0), Site("store", uplink=10.0)), origin="store", name="q")


def a_plan() -> Plan:
    return Plan(
        graph=a_program().graph,
        platform=a_platform(),
        scheduler="by hand",
        host=np.array([0, 1, 0], np.int32),
        core=np.array([1, 0, 0], np.int32),
        start=np.array([1.0, 5.0, 1.0]),
        finish=np.array([3.0, 9.0, 2.0]),
        move_item=np.array([0, 1], np.int32),
        move_source=np.array([2, 0], np.int32),
        move_target=np.array([0, 1], np.int32),
        move_start=np.array([0.0, 3.0]),
        move_finish=np.array([1.0, 5.0]),
        bound=Bound(6.0, "chain of tasks"),
        seconds=0.25,
        notes=("x lies at the store",),
    )


def test_keys_and_values() -> None:
    document = plan_to_dict(a_plan())
    assert list(document) == [
        "format",
        "scheduler",
        "program",
        "platform",
        "makespan",
        "bound",
        "bound_name",
        "seconds",
        "notes",
        "tasks",
        "transfers",
    ]
    assert (document["format"], document["program"], document["platform"]) == ("headrace-plan-1", "p", "q")
    assert (document["makespan"], document["bound"], document["seconds"]) == (9.0, 6.0, 0.25)
    assert document["bound_name"] == "chain of tasks"
    assert document["tasks"][0] == {"id": "a", "host": "h", "core": 1, "start": 1.0, "finish": 3.0}
    assert document["transfers"][0] == {
        "data": "x",
        "from": "store",
        "to": "h",
        "start": 0.0,
        "finish": 1.0,
    }


def test_round_trip(tmp_path: Path) -> None:
    plan = a_plan()
    write_plan(plan, tmp_path / "plan.json.gz")
    back = read_plan(tmp_path / "plan.json.gz", plan.graph, plan.platform)
    assert plan_to_dict(back) == plan_to_dict(plan)


def without_cores(tmp_path: Path, changes: dict[str, dict[str, object]]) -> Path:
    document = plan_to_dict(a_plan())
    for row in document["tasks"]:
        del row["core"]
        row.update(changes.get(row["id"], {}))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    return path


def test_missing_cores_are_the_lowest_free_ones(tmp_path: Path) -> None:
    path = without_cores(tmp_path, {"b": {"host": "h", "start": 2.0, "finish": 6.0}})
    back = read_plan(path, a_program().graph, a_platform())
    assert back.core.tolist() == [1, 0, 0]  # c ends first and takes core 0, b follows c there


def test_hosts_with_all_their_cores_given_keep_them(tmp_path: Path) -> None:
    path = without_cores(tmp_path, {"a": {"core": 1}, "c": {"core": 0}})
    assert read_plan(path, a_program().graph, a_platform()).core.tolist() == [1, 0, 0]


def test_more_tasks_at_a_time_than_cores(tmp_path: Path) -> None:
    path = without_cores(tmp_path, {"b": {"host": "h", "start": 1.5, "finish": 5.5}})
    with pytest.raises(BadPlan, match=r"task 'b' starts at 1\.5 on host 'h', whose 2 cores are all busy"):
        read_plan(path, a_program().graph, a_platform())


def test_tiny_overlaps_from_rounding_are_none(tmp_path: Path) -> None:
    path = without_cores(tmp_path, {"c": {"host": "g", "start": 0.0, "finish": 5.0 + 1e-12}})
    assert read_plan(path, a_program().graph, a_platform()).core.tolist() == [0, 0, 0]
