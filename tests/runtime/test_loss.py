"""Workers that die: nothing hangs and the answer is right."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.core.scheduler import Assign
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostLeft
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster, open_local
from headrace.testing.least_again import ran_again

from .tasks import Online, RoundRobin, add, alive, finished, killer, layered, nap, one


@pytest.mark.parametrize(
    ("scheduler", "victim"),
    [
        (RoundRobin(), "w2"),
        pytest.param(Online(), "w1", marks=pytest.mark.slow),
        pytest.param(None, "w0", marks=pytest.mark.slow),
    ],
    ids=["planned", "online", "engine"],
)
def test_one_worker_killed(scheduler: object, victim: str, hardy: Cluster) -> None:
    program, answer = layered(8, 6, 0.02)
    observe = killer(hardy.pids, {12: victim})
    outcome = hardy.execute(program, scheduler, observe, timeout=60)  # type: ignore[arg-type]
    assert outcome.results == {"answer": answer}
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == [victim]


@pytest.mark.slow
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


@pytest.mark.slow
def test_data_dropped_long_ago_is_made_again(hardy: Cluster) -> None:
    """A chain's last item is lost: the engine has dropped all before it and computes them anew."""
    program = Program("chain")
    pause = program.input("pause", value=0.01)
    program.task(nap, inputs=[pause], outputs=["x0"], name="t0")
    for i in range(1, 9):
        program.task(nap, inputs=[pause, f"x{i - 1}"], outputs=[f"x{i}"], name=f"t{i}")
    slow = program.input("slow", value=1.0)
    program.task(nap, inputs=[slow, "x0"], outputs=["other"], name="slow")
    program.task(add, inputs=["x8", "other"], outputs=["answer"], name="add")
    program.output("answer")
    hosts = {f"t{i}": "w0" for i in range(9)} | {"slow": "w1", "add": "w1"}
    outcome = hardy.execute(program, _Fixed(hosts), killer(hardy.pids, {9: "w0"}), timeout=60)
    assert outcome.results == {"answer": 11}
    assert len(finished(outcome.events)) > len(program.tasks)


class _Fixed(RoundRobin):
    """Given hosts, as long as they live; else any."""

    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        answer = super().react(view, events)
        there = {h.name for h in view.platform.hosts} - view.down
        return [type(a)(a.task, h if (h := self.hosts[a.task]) in there else a.host, a.rank) for a in answer]


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", [RoundRobin(), None], ids=["planned", "engine"])
def test_all_workers_killed_is_an_error_soon(scheduler: RoundRobin | None) -> None:
    program, _ = layered(4, 30, 0.05)
    with open_local(2, restart=False) as cluster:
        observe = killer(cluster.pids, {3: "w0", 4: "w1"})
        with pytest.raises(NoPlan, match="no worker is left"):
            cluster.execute(program, scheduler, observe, timeout=30)
        with pytest.raises(NoPlan, match=r"no (host|worker) is left"):
            cluster.execute(program, RoundRobin(), timeout=30)


@pytest.mark.slow
def test_closing_ends_all_workers() -> None:
    with open_local(2) as cluster:
        pids = list(cluster.pids.values())
        assert all(alive(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)


@pytest.mark.slow
def test_a_worker_killed_while_idle_is_not_planned_for() -> None:
    program = Program("idle")
    for i in range(6):
        program.task(one, outputs=[f"x{i}"], name=f"t{i}")
    with open_local(2, restart=False) as cluster:
        os.kill(cluster.pids["w0"], signal.SIGKILL)
        outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert sum(outcome.results.values()) == 6
    assert finished(outcome.events)[-1].host == "w1"


def leave_mark(mark: str, *values: int) -> int:
    """Name the process of this worker, and take a while."""
    Path(mark).write_text(f"{os.getpid()}\n")
    time.sleep(1.5)
    return sum(values)


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["lheft", "workqueue"])
def test_copies_that_no_finished_task_has_reported_are_used(
    scheduler: str, hardy: Cluster, tmp_path: Path
) -> None:
    """All workers die but the one whose task still runs: it has copies of all that is needed."""
    mark = tmp_path / "mark"
    program = Program("lost copy")
    pause = program.input("pause", value=0.3)
    for name in ("x", "y"):
        program.task(nap, inputs=[pause], outputs=[name], name=f"make {name}", work=0.3)
    program.task(
        leave_mark,
        inputs=[program.input("mark", value=str(mark)), "x", "y"],
        outputs=["z"],
        name="long",
        work=1.5,
    )
    program.task(add, inputs=["x", "y", "z"], outputs=["answer"], name="add", work=0.1)

    def kill_others() -> None:
        while not (mark.exists() and mark.read_text().endswith("\n")):
            time.sleep(0.02)
        for pid in hardy.pids.values():
            if pid != int(mark.read_text()):
                os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill_others, daemon=True).start()
    outcome = hardy.execute(program, make_scheduler(scheduler), timeout=60)
    assert outcome.results == {"answer": 4}
    assert ran_again(program, outcome.events)[0] == 0
