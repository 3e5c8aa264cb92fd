"""Workers that pause, retire, fall silent, join or lose single copies; clusters that restart; clients that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.chaos import disturbed_run, set_paused
from distributed import Client, LocalCluster

from headrace.core.scheduler import Assign
from headrace.core.view import RunView
from headrace.model.errors import RunStalled
from headrace.model.events import Event, HostJoined, HostLeft, HostPaused, TaskFinished
from headrace.model.platform import Host
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster, connect, open_local
from headrace.runtime.local_workers import start_workers
from headrace.runtime.run_policy import RunPolicy
from headrace.testing.least_again import ran_again

from .tasks import RoundRobin, add, alive, finished, layered, nap, one

POLICY = RunPolicy(suspect=2.0, stall=15.0)


def once(after: int, action: Callable[[], None]) -> Callable[[Event], None]:
    """An observer that acts in a thread of its own when so many tasks have finished."""
    count = 0

    def observe(event: Event) -> None:
        nonlocal count
        count += isinstance(event, TaskFinished)
        if isinstance(event, TaskFinished) and count == after:
            threading.Thread(target=action, daemon=True).start()

    return observe


def address_of(cluster: Cluster, name: str) -> str:
    workers = cluster.client.scheduler_info(n_workers=-1)["workers"]
    return str(next(address for address, info in workers.items() if info["name"] == name))


@pytest.mark.parametrize("scheduler", ["lheft", "heft"])
def test_tasks_leave_a_worker_that_is_paused(scheduler: str) -> None:
    program, answer = layered(6, 5, 0.05)
    with open_local(2) as cluster:

        def pause() -> None:
            cluster.client.run(set_paused, True, workers=[address_of(cluster, "w1")])

        outcome = cluster.execute(
            program, make_scheduler(scheduler), once(4, pause), timeout=60, policy=POLICY
        )
    assert outcome.results == {"answer": answer}
    paused = next(e for e in outcome.events if isinstance(e, HostPaused))
    assert paused.host == "w1"
    assert finished(outcome.events)[-1].host == "w0"


@pytest.mark.parametrize("scheduler", ["lheft", "workqueue", "heft"])
def test_a_worker_can_retire(scheduler: str) -> None:
    program, answer = layered(6, 5, 0.05)
    with open_local(3) as cluster:

        def retire() -> None:
            cluster.client.retire_workers([address_of(cluster, "w1")], close_workers=True)

        outcome = cluster.execute(
            program, make_scheduler(scheduler), once(6, retire), timeout=60, policy=POLICY
        )
    assert outcome.results == {"answer": answer}
    assert "w1" in {e.host for e in outcome.events if isinstance(e, HostLeft)}
    assert ran_again(program, outcome.events)[0] == 0  # its data was copied before it left


@pytest.mark.parametrize("scheduler", ["lheft", "workqueue", "heft", "dheft"])
def test_a_worker_of_any_name_joins_and_is_used(scheduler: str) -> None:
    program, answer = layered(6, 30, 0.05)
    with open_local(1) as cluster:
        started: list[Any] = []

        def join() -> None:
            started.append(start_workers(cluster.client.scheduler.address, [Host("guest")], 1.0))

        outcome = cluster.execute(
            program, make_scheduler(scheduler), once(2, join), timeout=90, policy=POLICY
        )
        for workers in started:
            workers.end()
    assert outcome.results == {"answer": answer}
    assert "guest" in {e.host for e in outcome.events if isinstance(e, HostJoined)}
    assert "guest" in {e.host for e in finished(outcome.events)}


def test_a_run_begins_again_after_a_restart_of_the_cluster() -> None:
    program, answer = layered(4, 10, 0.05)
    with open_local(2) as cluster:
        started: list[Any] = []

        def restart() -> None:
            address = cluster.client.scheduler.address
            with Client(address, set_as_default=False) as other:
                other.restart(wait_for_workers=False, timeout=5)
            started.append(start_workers(address, [Host("w0"), Host("w1")], 1.0))

        outcome = cluster.execute(program, RoundRobin(), once(5, restart), timeout=90, policy=POLICY)
        for workers in started:
            workers.end()
    assert outcome.results == {"answer": answer}


@pytest.mark.parametrize("scheduler", ["lheft", "heft"])
def test_the_tasks_of_a_silent_worker_run_elsewhere(scheduler: str) -> None:
    program, answer = layered(6, 5, 0.05)
    with open_local(3) as cluster:
        stop = once(8, lambda: os.kill(cluster.pids["w2"], signal.SIGSTOP))
        outcome = cluster.execute(program, make_scheduler(scheduler), stop, timeout=60, policy=POLICY)
    assert outcome.results == {"answer": answer}
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == ["w2"]


def freeze(mark: str) -> int:
    """Stop this process the first time; a helper continues it after five seconds."""
    if Path(mark).exists():
        time.sleep(60)
        return 2
    Path(mark).write_text("")
    subprocess.Popen(
        [sys.executable, "-c", f"import os, time; time.sleep(5); os.kill({os.getpid()}, 18)"],
        start_new_session=True,
    )
    os.kill(os.getpid(), signal.SIGSTOP)
    return 1


def test_the_first_answer_counts(tmp_path: Path) -> None:
    """A worker is silent for 5 s in the only task; the second execution elsewhere would take a minute."""
    program = Program("frozen")
    program.task(
        freeze, inputs=[program.input("mark", value=str(tmp_path / "mark"))], outputs=["x"], name="t"
    )
    with open_local(2) as cluster:
        outcome = cluster.execute(program, make_scheduler("lheft"), timeout=50, policy=POLICY)
    assert outcome.results == {"x": 1}
    left = [e.host for e in outcome.events if isinstance(e, HostLeft)]
    assert [e.host for e in outcome.events if isinstance(e, HostJoined)] == left != []


class Stuck:
    """What no worker can send to another."""

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


def stuck() -> Stuck:
    return Stuck()


class _Apart(RoundRobin):
    def react(self, view: RunView, events: Any) -> list[Assign]:
        hosts = {"make": "w0", "read": "w1"}
        return [Assign(a.task, hosts[a.task], a.rank) for a in super().react(view, events)]


def test_a_standstill_ends_with_a_diagnosis() -> None:
    program = Program("stuck")
    program.task(add, inputs=[program.task(stuck, outputs=["x"], name="make")], outputs=["y"], name="read")
    with open_local(2) as cluster:
        with pytest.raises(RunStalled, match=r"task 'read' waits on w1 for 'x' from w0.*2 of 2 hosts are up"):
            cluster.execute(program, _Apart(), timeout=60, policy=RunPolicy(stall=3.0))
        again = Program("after")
        again.task(one, outputs=["z"], name="t")
        assert cluster.execute(again, make_scheduler("lheft"), timeout=60).results == {"z": 1}


CLIENT = """
import sys
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import connect
from runtime.tasks import nap

program = Program("long")
for k in range(50):
    program.task(nap, inputs=[program.input(f"s{k}", value=0.3)], outputs=[f"x{k}"], name=f"t{k}", work=0.3)
with connect(sys.argv[1]) as cluster:
    cluster.execute(program, make_scheduler("lheft"), lambda event: print(event, flush=True))
"""


def state_of(dask_scheduler: Any) -> tuple[Any, ...]:
    """What a run changes in a scheduler."""
    amm = dask_scheduler.extensions["amm"]
    clients = sorted(name for name in dask_scheduler.clients if "headrace" in name)
    plugins = sorted(name for name in dask_scheduler.plugins if "headrace" in name)
    handlers = {op: type(h).__name__ for op, h in sorted(dask_scheduler.stream_handlers.items())}
    return amm.running, clients, plugins, handlers, len(dask_scheduler.tasks)


def test_a_killed_client_leaves_the_cluster_as_it_was(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    with (
        LocalCluster(
            n_workers=0, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as engine,
        Client(engine, set_as_default=False) as client,
    ):
        workers = start_workers(engine.scheduler_address, [Host("a"), Host("b")], 1.0)
        workers.wait_for(client)
        before = client.run_on_scheduler(state_of)
        assert before[0]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with subprocess.Popen(
            [sys.executable, str(script), engine.scheduler_address],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None
            while "TaskFinished" not in process.stdout.readline():
                assert process.poll() is None
            during = client.run_on_scheduler(state_of)
            os.kill(process.pid, signal.SIGKILL)
        assert not during[0]
        assert during[2]
        end = time.monotonic() + 30
        while client.run_on_scheduler(state_of) != before and time.monotonic() < end:
            time.sleep(0.1)
        assert client.run_on_scheduler(state_of) == before
        workers.end()


def test_finished_data_is_kept_until_nothing_depends_on_it() -> None:
    """A chain's last item is lost: only the last task runs again, since its input is still there."""
    program = Program("chain")
    pause = program.input("pause", value=0.01)
    program.task(nap, inputs=[pause], outputs=["x0"], name="t0")
    for i in range(1, 9):
        program.task(nap, inputs=[pause, f"x{i - 1}"], outputs=[f"x{i}"], name=f"t{i}")
    program.task(nap, inputs=[program.input("slow", value=2.0)], outputs=["other"], name="slow")
    program.task(add, inputs=["x8", "other"], outputs=["answer"], name="add")
    hosts = {f"t{i}": "w0" for i in range(8)} | {"t8": "w1", "slow": "w2", "add": "w2"}
    with open_local(3) as cluster:
        kill = once(9, lambda: os.kill(cluster.pids["w1"], signal.SIGKILL))
        outcome = cluster.execute(program, _Fixed(hosts), kill, timeout=60, policy=POLICY)
    assert outcome.results == {"answer": 10}
    assert ran_again(program, outcome.events) == (1, 1)


class _Fixed(RoundRobin):
    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Any) -> list[Assign]:
        up = {h.name for h in view.platform.hosts} - view.down
        answer = super().react(view, events)
        return [Assign(a.task, h if (h := self.hosts[a.task]) in up else a.host, a.rank) for a in answer]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_chaos(seed: int) -> None:
    verdict = disturbed_run(seed)
    assert verdict.outcome == "right", str(verdict)


COMMANDS = """
import os, signal, sys, threading, time
from pathlib import Path
from headrace.model.errors import RunStopped
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import connect

note = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w')); time.sleep(99)"
program = Program("long")
program.task([sys.executable, "-c", note, sys.argv[2]], name="t")


def interrupt():
    while not (Path(sys.argv[2]).exists() and Path(sys.argv[2]).read_text().endswith("\\n")):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=interrupt, daemon=True).start()
try:
    with connect(sys.argv[1]) as cluster:
        cluster.execute(program, make_scheduler("lheft"))
except RunStopped:
    sys.exit(130)
"""


def test_an_interrupted_run_leaves_no_command_and_the_next_one_works(tmp_path: Path) -> None:
    script, note = tmp_path / "client.py", tmp_path / "note"
    script.write_text(COMMANDS)
    with (
        LocalCluster(
            n_workers=0, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as engine,
        Client(engine, set_as_default=False) as client,
    ):
        workers = start_workers(engine.scheduler_address, [Host("a")], 1.0)
        workers.wait_for(client)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run(
            [sys.executable, str(script), engine.scheduler_address, str(note)],
            env=environment,
            check=False,
            timeout=100,
        )
        assert done.returncode == 130
        end = time.monotonic() + 30
        while alive(int(note.read_text())) and time.monotonic() < end:
            time.sleep(0.1)
        assert not alive(int(note.read_text()))
        program = Program("next")
        program.task(one, outputs=["x"], name="t")
        with connect(engine.scheduler_address) as cluster:
            assert cluster.execute(program, make_scheduler("lheft"), timeout=60).results == {"x": 1}
        workers.end()
