"""The order that rules ask for holds in real runs, also where no data passes between the tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.model.events import TaskFinished
from headrace.model.program import Program
from headrace.rules.builder import before
from headrace.runtime.cluster import Cluster

from .tasks import killer, nap


def two_groups() -> Program:
    program = Program("two groups")
    for i in range(4):
        long, short = program.input(f"long{i}", value=0.2), program.input(f"short{i}", value=0.01)
        program.task(nap, inputs=[long], outputs=[f"x{i}"], name=f"first.{i}", work=0.2)
        program.task(nap, inputs=[short], outputs=[f"y{i}"], name=f"second.{i}", work=0.01)
    return program


def spans(run: hr.Run, name: str) -> list[TaskFinished]:
    return [e for e in run.outcome.events if isinstance(e, TaskFinished) and e.task.startswith(name)]


@pytest.mark.parametrize(
    "scheduler", ["heft", pytest.param("auto", marks=pytest.mark.slow), pytest.param("lheft", marks=pytest.mark.slow)]
)  # fmt: skip
def test_all_of_one_kind_before_another(scheduler: str, cluster: Cluster, tmp_path: Path) -> None:
    run = hr.run(
        two_groups(), cluster, scheduler=scheduler, rules=before("first", "second"), record=tmp_path,
        output=tmp_path,
    )  # fmt: skip
    assert max(e.time for e in spans(run, "first")) <= min(e.start for e in spans(run, "second"))


@pytest.mark.slow
def test_also_after_a_loss(hardy: Cluster, tmp_path: Path) -> None:
    run = hr.run(
        two_groups(), hardy, scheduler="heft", rules=before("first", "second"), record=tmp_path, output=tmp_path,
        observe=killer(hardy.pids, {2: "w1"}),
    )  # fmt: skip
    assert max(e.time for e in spans(run, "first")) <= min(e.start for e in spans(run, "second"))
    assert len({e.task for e in spans(run, "second")}) == 4
