"""After a loss, what workers have kept is read back, and its tasks do not run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Assign
from headrace.core.view import RunView
from headrace.model.events import Event, HostLeft, TaskFinished
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster

from .tasks import RoundRobin, finished, killer, layered, nap


class OnHosts(RoundRobin):
    """Given hosts as long as they live, else any."""

    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        there = {h.name for h in view.platform.hosts} - view.down
        return [
            Assign(a.task, h if (h := self.hosts[a.task]) in there else a.host, a.rank)
            for a in super().react(view, events)
        ]


def filled(size: int, *before: np.ndarray) -> np.ndarray:
    """The next array of a chain."""
    return np.full(size, 1.0 + sum(array[0] for array in before))


def total(seconds: float, *values: np.ndarray) -> float:
    return float(sum(value[0] for value in values)) + nap(seconds) - 1


def chain(length: int, size: int) -> tuple[Program, dict[str, str]]:
    """A chain on w0 beside a slow task on w1, where both are joined."""
    program = Program("chain")
    n = program.input("n", value=size)
    program.task(filled, inputs=[n], outputs=["x0"], name="t0")
    for i in range(1, length):
        program.task(filled, inputs=[n, f"x{i - 1}"], outputs=[f"x{i}"], name=f"t{i}")
    slow, soon = program.input("slow", value=1.5), program.input("soon", value=0.0)
    program.task(total, inputs=[slow, "x0"], outputs=["other"], name="slow")
    program.task(
        lambda x, y, s: total(s, x) + y, inputs=[f"x{length - 1}", "other", soon], outputs=["answer"]
    )
    program.output("answer")
    hosts = dict.fromkeys(program.tasks, "w1") | {f"t{i}": "w0" for i in range(length)}
    return program, hosts


def repeated(events: Sequence[Event]) -> list[str]:
    names = [event.task for event in finished(events)]
    return sorted({name for name in names if names.count(name) > 1})


def damage_all(folder: Path, then: Callable[[Event], None], after: int) -> Callable[[Event], None]:
    """Change a byte of every kept file once so many tasks have finished, and then go on."""
    done = 0

    def observe(event: Event) -> None:
        nonlocal done
        done += isinstance(event, TaskFinished)
        if isinstance(event, TaskFinished) and done == after:
            for path in folder.rglob("*"):
                if path.is_file() and "kept" in str(path) and path.name != "token":
                    data = bytearray(path.read_bytes())
                    data[-1] ^= 1
                    path.write_bytes(data)
        then(event)

    return observe


@pytest.mark.parametrize("size", [8, pytest.param(4000, marks=pytest.mark.slow)], ids=["small", "file"])
def test_nothing_kept_runs_again(size: int, hardy: Cluster, tmp_path: Path) -> None:
    program, hosts = chain(8, size)
    run = hr.run(
        program, hardy, scheduler=OnHosts(hosts), observe=killer(hardy.pids, {8: "w0"}),
        record=tmp_path, output=tmp_path, keep="all",
    )  # fmt: skip
    assert run.results == {"answer": 9.0}
    assert [e.host for e in run.outcome.events if isinstance(e, HostLeft)] == ["w0"]
    assert repeated(run.outcome.events) == []


@pytest.mark.slow
def test_what_is_not_kept_runs_again(hardy: Cluster, tmp_path: Path) -> None:
    program, hosts = chain(8, 8)
    run = hr.run(
        program, hardy, scheduler=OnHosts(hosts), observe=killer(hardy.pids, {8: "w0"}),
        record=tmp_path, output=tmp_path, keep="results",
    )  # fmt: skip
    assert run.results == {"answer": 9.0}
    assert repeated(run.outcome.events) == [f"t{i}" for i in range(1, 8)]  # w1 has x0


@pytest.mark.slow
def test_damaged_files_are_made_again(hardy: Cluster, tmp_path: Path) -> None:
    program, hosts = chain(8, 4000)
    observe = damage_all(tmp_path, killer(hardy.pids, {8: "w0"}), after=8)
    run = hr.run(
        program,
        hardy,
        scheduler=OnHosts(hosts),
        observe=observe,
        record=tmp_path,
        output=tmp_path,
        keep="all",
    )
    assert run.results == {"answer": 9.0}
    assert repeated(run.outcome.events) == [f"t{i}" for i in range(1, 8)]  # w1 has x0


def halves(value: float) -> tuple[float, float]:
    return value + 1, value - 1


@pytest.mark.slow
def test_one_of_several_outputs(hardy: Cluster, tmp_path: Path) -> None:
    program = Program("two outputs")
    start, slow = program.input("start", value=5.0), program.input("slow", value=1.5)
    program.task(halves, inputs=[start], outputs=["up", "down"], name="halves")
    program.task(nap, inputs=[slow, "up"], outputs=["other"], name="slow")
    program.task(
        lambda up, down, other: (up, down, other), inputs=["up", "down", "other"], outputs=["answer"]
    )
    program.output("answer")
    hosts = dict.fromkeys(program.tasks, "w1") | {"halves": "w0"}
    run = hr.run(
        program, hardy, scheduler=OnHosts(hosts), observe=killer(hardy.pids, {1: "w0"}),
        record=tmp_path, output=tmp_path,
    )  # fmt: skip
    assert tuple(run.results["answer"]) == (6.0, 4.0, 7.0)
    assert repeated(run.outcome.events) == []


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["heft", "lheft", "workqueue"])
def test_two_losses_under_real_schedulers(scheduler: str, hardy: Cluster, tmp_path: Path) -> None:
    program, answer = layered(8, 8, 0.05)
    observe = killer(hardy.pids, {20: "w0", 40: "w2"})
    run = hr.run(program, hardy, scheduler=scheduler, observe=observe, record=tmp_path, output=tmp_path)
    assert run.results == {"answer": answer}
    assert repeated(run.outcome.events) == []
