"""Emulated programs and emulated speeds."""

from __future__ import annotations

import time

import pytest

from headrace.model.errors import UsageError
from headrace.model.program import Program
from headrace.runtime.bodies import Job, execute_job
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.emulate import Emulated, emulate
from headrace.runtime.pace import Pace
from headrace.runtime.packing import packer

from .tasks import OneHost, RoundRobin, finished, one, spin


def numbers() -> Program:
    program = Program("numbers")
    raw = program.input("raw", size="2 MB")
    program.task(work=10.0, inputs=[raw], outputs={"a": "1 MB", "b": "3 MB"}, name="first", kind="cut")
    program.task(work=20.0, inputs=["a"], outputs={"c": 500}, name="second")
    program.task(work=5.0, inputs=["b", "c"], name="third", after=["first"])
    program.output("c")
    return program


def test_graph_and_numbers_are_kept_and_scaled() -> None:
    program = numbers()
    small = emulate(program, time_scale=0.01, size_scale=0.1)
    assert [t.work for t in small.tasks.values()] == pytest.approx([0.1, 0.2, 0.05])
    assert [(t.inputs, t.outputs, t.after) for t in small.tasks.values()] == [
        (t.inputs, t.outputs, t.after) for t in program.tasks.values()
    ]
    assert [t.kind for t in small.tasks.values()] == ["emulated cut", "", ""]
    assert {d.name: d.size for d in small.data.values()} == {
        "raw": 2e5, "a": 1e5, "b": 3e5, "c": 50, "third.done": 0
    }  # fmt: skip
    assert [d.name for d in small.results()] == ["c"]
    assert small.graph.order.tolist() == program.graph.order.tolist()


def test_emulated_program_runs(cluster: Cluster) -> None:
    outcome = cluster.execute(emulate(numbers(), time_scale=0.001), RoundRobin(), timeout=60)
    assert outcome.results == {"c": b""}
    sizes = {e.task: dict(e.sizes) for e in finished(outcome.events)}
    assert sizes == {"first": {"a": 1000, "b": 3000}, "second": {"c": 0}, "third": {"third.done": 0}}
    assert outcome.measured["first"]["read"] == 2000
    assert outcome.makespan >= 0.035


def test_too_much_data_and_odd_scales_are_refused() -> None:
    program = Program("big")
    program.task(work=1.0, outputs={"x": "8 TB"})
    with pytest.raises(UsageError, match=r"8 GB, more than 4 GB \(try: use a size scale of 0.0005"):
        emulate(program, time_scale=0.001)
    with pytest.raises(UsageError, match="time_scale is -1"):
        emulate(program, time_scale=-1)


@pytest.mark.parametrize("burn", [False, True])
def test_emulated_body_takes_its_time(burn: bool) -> None:
    began, used = time.perf_counter(), time.thread_time()
    assert Emulated(0.05, (3,), burn)() == bytes(3)
    assert time.perf_counter() - began >= 0.05
    assert burn == (time.thread_time() - used >= 0.05)


def test_speeds_stretch_tasks_and_emulated_time() -> None:
    program = Program("speeds")
    program.task(spin, inputs=[program.input("seconds", value=0.05)], outputs=["x"], name="spin")
    sleeping = Program("sleeping")
    sleeping.task(work=0.4, outputs=["x"], name="sleep")
    lasted, slept = {}, {}
    with open_local(speeds=[4, 1], stretch=4.0) as cluster:
        assert [(h.name, h.speed) for h in cluster.platform.hosts] == [("w0-4x", 4.0), ("w1-1x", 1.0)]
        for host in ("w0-4x", "w1-1x"):
            (end,) = finished(cluster.execute(program, OneHost(host, {}), timeout=60).events)
            lasted[host] = end.time - end.start
            (end,) = finished(
                cluster.execute(emulate(sleeping, time_scale=1.0), OneHost(host, {}), timeout=60).events
            )
            slept[host] = end.time - end.start
    assert lasted["w1-1x"] >= 0.2
    assert slept["w1-1x"] >= 0.4
    assert slept["w0-4x"] >= 0.1
    assert min(lasted["w0-4x"], slept["w0-4x"]) >= 0.05


def test_pace_never_shortens() -> None:
    assert Pace(speed=8.0, stretch=1.0).rest(used=2.0, lasted=2.0) == 0.0
    assert Pace(speed=0.5, stretch=3.0).rest(used=2.0, lasted=2.5) == 9.5


def test_measurement_of_a_function() -> None:
    with packer() as pack:
        job = Job("t", pack(one, "t"), (), ("x",))
    outputs, measured = execute_job(job, ())
    assert outputs == (1,)
    assert 0 <= measured.cpu <= measured.finish - measured.start + 0.01
    assert [name for name, size in measured.sizes if size > 0] == ["x"]


def test_speeds_and_workers_must_agree() -> None:
    with pytest.raises(UsageError, match="3 workers with 2 speeds"):
        open_local(3, speeds=[1, 2])
    with pytest.raises(UsageError, match="stretch is 0"):
        open_local(1, stretch=0)
