"""Workers that die: nothing hangs and the answer is right."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from headrace.core.scheduler import Assign
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostLeft
from headrace.model.program import Program
from headrace.runtime.cluster import open_local

from .tasks import Online, RoundRobin, add, alive, finished, killer, layered, nap, one


@pytest.mark.parametrize("scheduler", [RoundRobin(), Online(), None], ids=["planned", "online", "engine"])
def test_one_worker_killed(scheduler: object) -> None:
    program, answer = layered(8, 6, 0.02)
    with open_local(3) as cluster:
        observe = killer(cluster.pids, {12: "w2"})
        outcome = cluster.execute(program, scheduler, observe, timeout=60)  # type: ignore[arg-type]
    assert outcome.results == {"answer": answer}
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == ["w2"]


def test_two_workers_killed_and_the_cluster_used_again() -> None:
    program, answer = layered(8, 8, 0.02)
    with open_local(4, restart=False) as cluster:
        outcome = cluster.execute(
            program, RoundRobin(), killer(cluster.pids, {10: "w1", 30: "w3"}), timeout=60
        )
        assert outcome.results == {"answer": answer}
        assert {e.host for e in outcome.events if isinstance(e, HostLeft)} == {"w1", "w3"}
        again = cluster.execute(program, RoundRobin(), timeout=60)
        assert again.results == {"answer": answer}
        assert {e.host for e in finished(again.events)} == {"w0", "w2"}


def test_data_dropped_long_ago_is_made_again() -> None:
    """A chain's last item is lost: the engine has dropped all before it and computes them anew."""
    program = Program("chain")
    pause = program.input("pause", value=0.01)
    program.task(nap, inputs=[pause], outputs=["x0"], name="t0")
    for i in range(1, 9):
        program.task(nap, inputs=[pause, f"x{i - 1}"], outputs=[f"x{i}"], name=f"t{i}")
    slow = program.input("slow", value=1.0)
    program.task(nap, inputs=[slow], outputs=["other"], name="slow")
    program.task(add, inputs=["x8", "other"], outputs=["answer"], name="add")
    program.output("answer")
    with open_local(2) as cluster:
        hosts = {f"t{i}": "w0" for i in range(9)} | {"slow": "w1", "add": "w1"}
        outcome = cluster.execute(program, _Fixed(hosts), killer(cluster.pids, {9: "w0"}), timeout=60)
    assert outcome.results == {"answer": 10}
    assert len(finished(outcome.events)) > len(program.tasks)


class _Fixed(RoundRobin):
    """Given hosts, as long as they live; else any."""

    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        answer = super().react(view, events)
        there = {h.name for h in view.platform.hosts} - view.down
        return [type(a)(a.task, h if (h := self.hosts[a.task]) in there else a.host, a.rank) for a in answer]


@pytest.mark.parametrize("scheduler", [RoundRobin(), None], ids=["planned", "engine"])
def test_all_workers_killed_is_an_error_soon(scheduler: RoundRobin | None) -> None:
    program, _ = layered(4, 30, 0.05)
    with open_local(2, restart=False) as cluster:
        observe = killer(cluster.pids, {3: "w0", 4: "w1"})
        with pytest.raises(NoPlan, match="no worker is left"):
            cluster.execute(program, scheduler, observe, timeout=30)
        with pytest.raises(NoPlan, match=r"no (host|worker) is left"):
            cluster.execute(program, RoundRobin(), timeout=30)


def test_closing_ends_all_workers() -> None:
    with open_local(2) as cluster:
        pids = list(cluster.pids.values())
        assert all(alive(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)


def test_a_worker_killed_while_idle_is_not_planned_for() -> None:
    program = Program("idle")
    for i in range(6):
        program.task(one, outputs=[f"x{i}"], name=f"t{i}")
    with open_local(2, restart=False) as cluster:
        os.kill(cluster.pids["w0"], signal.SIGKILL)
        outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert sum(outcome.results.values()) == 6
    assert finished(outcome.events)[-1].host == "w1"
