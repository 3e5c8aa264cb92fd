"""Tasks with a release time do not start before it."""

from __future__ import annotations

import pytest

from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster

from .tasks import RoundRobin, finished, one


@pytest.mark.parametrize(
    "scheduler", ["pinned", "heft", pytest.param("lheft", marks=pytest.mark.slow), "engine"]
)
def test_released_tasks_wait(cluster: Cluster, scheduler: str) -> None:
    program = Program("released")
    for i in range(6):
        program.task(one, outputs=[f"x{i}"], name=f"t{i}", release=0.4 * (i % 3), work=0.01)
    program.task(lambda *values: sum(values), inputs=[f"x{i}" for i in range(6)], outputs=["sum"], name="sum")
    chosen = {"pinned": RoundRobin(), "engine": None}.get(scheduler, "named")
    policy = make_scheduler(scheduler) if chosen == "named" else chosen
    outcome = cluster.execute(program, policy, timeout=60)  # type: ignore[arg-type]
    assert outcome.results == {"sum": 6}
    starts = {event.task: event.start for event in finished(outcome.events)}
    for i in range(6):
        assert starts[f"t{i}"] >= 0.4 * (i % 3) - 0.005
