"""Workers that pause, retire, fall silent, join or lose single copies; clusters that restart; clients that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.chaos import Runner
from bench.chaos_clusters import TlsGround
from bench.chaos_clusters import address_of as worker_address
from bench.chaos_faults import set_paused
from distributed import Client

from headrace.core.scheduler import Assign
from headrace.core.view import RunView
from headrace.model.errors import ClusterLost, RunStalled, UsageError
from headrace.model.events import Event, HostJoined, HostLeft, HostPaused, TaskFinished
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import Cluster, connect, open_local
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
    return worker_address(cluster.client, name)


def test_tasks_leave_a_worker_that_is_paused(hardy: Cluster) -> None:
    """Also when its data is still needed, which can be read from it."""
    program, answer = layered(6, 5, 0.03)
    address = address_of(hardy, "w1")
    outcome = hardy.execute(
        program,
        make_scheduler("lheft"),
        once(4, lambda: hardy.client.run(set_paused, True, workers=[address])),
        timeout=60,
        policy=POLICY,
    )
    hardy.client.run(set_paused, False, workers=[address])
    assert outcome.results == {"answer": answer}
    paused = next(e for e in outcome.events if isinstance(e, HostPaused))
    assert paused.host == "w1"
    assert "w1" not in {e.host for e in finished(outcome.events)[-8:]}


@pytest.mark.slow
@pytest.mark.parametrize(("scheduler", "victim"), [("workqueue", "w1"), ("heft", "w0")])
def test_a_worker_can_retire(scheduler: str, victim: str, hardy: Cluster) -> None:
    program, answer = layered(6, 5, 0.05)
    address = address_of(hardy, victim)
    retire = once(6, lambda: hardy.client.retire_workers([address], close_workers=True))
    outcome = hardy.execute(program, make_scheduler(scheduler), retire, timeout=60, policy=POLICY)
    assert outcome.results == {"answer": answer}
    assert victim in {e.host for e in outcome.events if isinstance(e, HostLeft | HostPaused)}
    assert ran_again(program, outcome.events)[0] == 0  # its data was copied before it left


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["lheft", "heft"])
def test_a_worker_of_any_name_joins_and_is_used(scheduler: str) -> None:
    program, answer = layered(6, 20, 0.05)
    with open_local(1) as cluster:
        join = once(2, lambda: cluster.start_workers("guest"))
        outcome = cluster.execute(program, make_scheduler(scheduler), join, timeout=90, policy=POLICY)
        assert sorted(cluster.pids) == ["guest", "w0"]
        pids = list(cluster.pids.values())
    assert not any(alive(pid) for pid in pids)
    assert outcome.results == {"answer": answer}
    assert "guest" in {e.host for e in outcome.events if isinstance(e, HostJoined)}
    assert "guest" in {e.host for e in finished(outcome.events)}


def test_workers_that_cannot_be_started(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="worker 'w0' exists"):
        cluster.start_workers("w0")
    with pytest.raises(UsageError, match="not a local cluster"):
        Cluster(cluster.client, cluster.platform).start_workers("guest")


@pytest.mark.slow
def test_a_run_begins_again_after_a_restart_of_the_cluster(hardy: Cluster) -> None:
    program, answer = layered(4, 10, 0.05)

    def restart() -> None:
        known = hardy.client
        with Client(known.scheduler.address, security=known.security, set_as_default=False) as other:
            other.restart(wait_for_workers=False, timeout=5)

    outcome = hardy.execute(program, RoundRobin(), once(5, restart), timeout=90, policy=POLICY)
    assert outcome.results == {"answer": answer}


@pytest.mark.slow
def test_the_tasks_of_a_silent_worker_run_elsewhere(hardy: Cluster) -> None:
    program, answer = layered(6, 5, 0.05)
    frozen = hardy.pids["w2"]
    stop = once(8, lambda: os.kill(frozen, signal.SIGSTOP))
    outcome = hardy.execute(program, make_scheduler("heft"), stop, timeout=60, policy=POLICY)
    os.kill(frozen, signal.SIGKILL)
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


@pytest.mark.slow
def test_the_first_answer_counts(hardy: Cluster, tmp_path: Path) -> None:
    """A worker is silent for 5 s in the only task; the second execution elsewhere would take a minute."""
    program = Program("frozen")
    program.task(
        freeze, inputs=[program.input("mark", value=str(tmp_path / "mark"))], outputs=["x"], name="t"
    )
    outcome = hardy.execute(program, make_scheduler("lheft"), timeout=50, policy=POLICY)
    assert outcome.results == {"x": 1}
    left = [e.host for e in outcome.events if isinstance(e, HostLeft)]
    assert finished(outcome.events)[0].host in left  # it was given up, and then its answer was taken
    for name, pid in hardy.pids.items():  # one of the others sleeps for a minute
        if name != finished(outcome.events)[0].host:
            os.kill(pid, signal.SIGKILL)


class _Apart(RoundRobin):
    def react(self, view: RunView, events: Any) -> list[Assign]:
        hosts = {"make": "w0", "read": "w1"}
        return [Assign(a.task, hosts[a.task], a.rank) for a in super().react(view, events)]


@pytest.mark.slow
def test_a_standstill_ends_with_a_diagnosis() -> None:
    """A worker is frozen, and would be suspected only much later."""
    program = Program("stuck")
    program.task(add, inputs=[program.task(one, outputs=["x"], name="make")], outputs=["y"], name="read")
    with open_local(2) as cluster:
        os.kill(cluster.pids["w1"], signal.SIGSTOP)
        with pytest.raises(RunStalled, match=r"task 'read' waits on w1 for 'x' from w0.*2 of 2 hosts are up"):
            cluster.execute(program, _Apart(), timeout=60, policy=RunPolicy(stall=3.0, suspect=100.0))
        os.kill(cluster.pids["w1"], signal.SIGCONT)
        assert cluster.execute(program, _Apart(), timeout=60).results == {"y": 1}


CLIENT = """
import sys
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.runtime.cluster import connect
from runtime.tasks import nap

program = Program("long")
for k in range(50):
    program.task(nap, inputs=[program.input(f"s{k}", value=0.3)], outputs=[f"x{k}"], name=f"t{k}", work=0.3)
with connect(sys.argv[1], ca=sys.argv[2], cert=sys.argv[3], key=sys.argv[4]) as cluster:
    cluster.execute(program, make_scheduler("lheft"), lambda event: print(event, flush=True))
"""


def state_of(dask_scheduler: Any) -> tuple[Any, ...]:
    """What a run changes in a scheduler."""
    amm = dask_scheduler.extensions["amm"]
    clients = sorted(name for name in dask_scheduler.clients if "headrace" in name)
    plugins = sorted(name for name in dask_scheduler.plugins if "headrace" in name)
    handlers = {op: type(h).__name__ for op, h in sorted(dask_scheduler.stream_handlers.items())}
    return amm.running, clients, plugins, handlers, len(dask_scheduler.tasks)


@pytest.fixture(scope="module")
def ground() -> Iterator[TlsGround]:
    """A scheduler and two workers, w0 and w1, in processes of their own."""
    with TlsGround(2) as started:
        yield started


@pytest.mark.slow
def test_a_killed_client_leaves_the_cluster_as_it_was(ground: TlsGround, tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    with ground.client() as client:
        before = client.run_on_scheduler(state_of)
        assert before[0]
        with subprocess.Popen(
            [sys.executable, str(script), ground.url, *ground.tls.values()],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
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


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.mark.slow
def test_finished_data_is_kept_until_nothing_depends_on_it(hardy: Cluster) -> None:
    """A chain's last item is lost: only the last task runs again, since its input is still there."""
    program = Program("chain")
    pause = program.input("pause", value=0.01)
    program.task(nap, inputs=[pause], outputs=["x0"], name="t0")
    for i in range(1, 9):
        program.task(nap, inputs=[pause, f"x{i - 1}"], outputs=[f"x{i}"], name=f"t{i}")
    program.task(nap, inputs=[program.input("slow", value=1.0)], outputs=["other"], name="slow")
    program.task(add, inputs=["x8", "other"], outputs=["answer"], name="add")
    hosts = {f"t{i}": "w0" for i in range(8)} | {"t8": "w1", "slow": "w2", "add": "w2"}
    kill = once(9, lambda: os.kill(hardy.pids["w1"], signal.SIGKILL))
    outcome = hardy.execute(program, _Fixed(hosts), kill, timeout=60, policy=POLICY)
    assert outcome.results == {"answer": 10}
    assert ran_again(program, outcome.events) == (1, 1)


class _Fixed(RoundRobin):
    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Any) -> list[Assign]:
        up = {h.name for h in view.platform.hosts} - view.down
        answer = super().react(view, events)
        return [Assign(a.task, h if (h := self.hosts[a.task]) in up else a.host, a.rank) for a in answer]


CHAOS = [*((seed, "local") for seed in range(1, 13)), (13, "tls"), (14, "tls"), (15, "client"), (16, "client"),
         (17, "scheduler"), (18, "link"), (19, "link"), (20, "tls")]  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(limit=90.0) as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kind"), CHAOS)
def test_chaos(seed: int, kind: str, runner: Runner) -> None:
    verdict = runner.run(seed, kind)
    if verdict.outcome == "skipped":
        pytest.skip(verdict.error)
    assert verdict.outcome == "right", str(verdict)
    assert verdict.left == (), str(verdict)


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
    with connect(sys.argv[1], ca=sys.argv[3], cert=sys.argv[4], key=sys.argv[5]) as cluster:
        cluster.execute(program, make_scheduler("lheft"))
except RunStopped:
    sys.exit(130)
"""


@pytest.mark.slow
def test_an_interrupted_run_leaves_no_command_and_the_next_one_works(
    ground: TlsGround, tmp_path: Path
) -> None:
    script, note = tmp_path / "client.py", tmp_path / "note"
    script.write_text(COMMANDS)
    done = subprocess.run(
        [sys.executable, str(script), ground.url, str(note), *ground.tls.values()],
        env=environment(),
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
    with connect(ground.url, **ground.tls) as cluster:
        assert cluster.execute(program, make_scheduler("lheft"), timeout=60).results == {"x": 1}


@pytest.mark.slow
def test_a_frozen_worker_is_left_out_when_speeds_are_measured(
    ground: TlsGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.runtime.asking.ask_workers.__defaults__", (2.0,))
    frozen = ground.pid("w1")
    os.kill(frozen, signal.SIGSTOP)
    try:
        with connect(ground.url, **ground.tls) as cluster:
            assert [host.name for host in cluster.platform.hosts] == ["w0"]
            program = Program("one")
            program.task(one, outputs=["x"], name="t")
            assert cluster.execute(program, make_scheduler("lheft"), timeout=60).results == {"x": 1}
    finally:
        os.kill(frozen, signal.SIGCONT)


@pytest.mark.slow
def test_the_death_of_the_scheduler_is_an_error_at_once(ground: TlsGround) -> None:
    """The last test of this cluster."""
    program, _ = layered(4, 30, 0.05)
    with connect(ground.url, **ground.tls) as cluster:
        kill = once(5, lambda: os.kill(ground.scheduler.pid, signal.SIGKILL))
        with pytest.raises(ClusterLost, match="connection to the cluster's scheduler is lost"):
            cluster.execute(program, make_scheduler("lheft"), kill, timeout=60, policy=POLICY)
