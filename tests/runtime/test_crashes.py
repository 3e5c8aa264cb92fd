"""Tasks that end their worker process: named after two workers, while the others go on."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.model.errors import PoisonTask
from headrace.model.events import HostJoined, HostLeft
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.crash_notes import CrashNotes, Death, digest_of, note_death, read_trace
from headrace.runtime.local_workers import end_session

from .tasks import RoundRobin, alive, finished, layered, nap, one, start_sleeper


def exits(*values: object) -> None:
    os._exit(7)


def crashes(*values: object) -> None:
    ctypes.string_at(0)


def exits_once(path: str) -> int:
    if not Path(path).exists():
        Path(path).touch()
        os._exit(7)
    return 5


def with_neighbours(culprit: object) -> Program:
    program = Program("crash")
    pause = program.input("pause", value=0.05)
    program.task(culprit, inputs=[pause], outputs=["bad"], name="culprit")  # type: ignore[arg-type]
    for i in range(4):
        program.task(nap, inputs=[pause], outputs=[f"ok{i}"], name=f"fine{i}")
    return program


@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_task_that_exits_is_named(workers: int) -> None:
    with open_local(workers) as cluster:
        outcome = cluster.execute(with_neighbours(exits), RoundRobin(), timeout=60)
        assert [e.task for e in outcome.errors] == ["culprit"]
        assert "it killed 2 workers" in outcome.errors[0].error
        assert "exit status 7" in outcome.errors[0].error
        assert "bad" not in outcome.results
        before = outcome.events[: outcome.events.index(outcome.errors[0])]
        assert {f"ok{e.task[-1]}" for e in finished(before)} <= set(outcome.results)  # also if they were lost


@pytest.mark.slow
def test_a_crash_is_told_with_the_frames_of_the_user() -> None:
    with open_local(2) as cluster:
        outcome = cluster.execute(with_neighbours(crashes), None, timeout=60)
        program, answer = layered(3, 3, 0.0)  # the cluster is as it was
        assert cluster.execute(program, RoundRobin(), timeout=60).results == {"answer": answer}
    (error,) = outcome.errors
    assert error.task == "culprit"
    assert "SIGSEGV" in error.error
    assert "test_crashes.py" in error.error
    assert "headrace/runtime/bodies.py" not in error.error
    assert outcome.failure is not None
    assert outcome.failure.exit_code == 1


def test_one_crash_is_forgiven(tmp_path: Path) -> None:
    program = Program("once")
    program.task(exits_once, inputs=[program.input("path", value=str(tmp_path / "x"))], outputs=["y"])
    with open_local(1) as cluster:
        outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert outcome.results == {"y": 5}
    assert [type(e) for e in outcome.events if isinstance(e, HostLeft | HostJoined)] == [HostLeft, HostJoined]


@pytest.mark.slow
def test_a_killed_worker_comes_back_under_its_name() -> None:
    program = Program("long")
    pause = program.input("pause", value=0.3)
    for i in range(20):
        program.task(nap, inputs=[pause], outputs=[f"x{i}"], name=f"t{i}")
    with open_local(2) as cluster:
        before = cluster.pids
        os.kill(before["w0"], signal.SIGKILL)
        outcome = cluster.execute(program, None, timeout=60)
        assert len(outcome.results) == 20
        deadline = time.monotonic() + 30
        while len(cluster.client.scheduler_info()["workers"]) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert {w["name"] for w in cluster.client.scheduler_info()["workers"].values()} == {"w0", "w1"}
        assert cluster.pids["w0"] != before["w0"]
        assert cluster.pids["w1"] == before["w1"]
        pids = [*before.values(), *cluster.pids.values()]
    assert not any(alive(pid) for pid in pids)


@pytest.mark.slow
def test_workers_killed_from_outside_do_not_blame_their_task() -> None:
    """Two kills of the worker that executes a task: the task is not at fault."""
    program = Program("victim")
    program.task(nap, inputs=[program.input("pause", value=1.0)], outputs=["x"], name="t")
    with open_local(1) as cluster:
        for _ in range(2):
            seen = _executing(cluster, program)
            assert seen == {"x": 1}


def _executing(cluster: Cluster, program: Program) -> dict[str, object]:
    import threading

    pid = cluster.pids["w0"]
    killing = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killing.start()
    try:
        outcome = cluster.execute(program, RoundRobin(), timeout=60)
    finally:
        killing.join()
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == ["w0"]
    return outcome.results


CGROUP = Path("/sys/fs/cgroup/memory/headrace-test")


def eats_memory(*values: object) -> int:
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
    return sum(bytearray(b"x" * 600_000_000)[::4096])


@pytest.fixture
def small_memory() -> Iterator[None]:
    """A control group in which a process may have 200 MB."""
    try:
        CGROUP.mkdir()
        (CGROUP / "memory.limit_in_bytes").write_text("200000000")
    except OSError:
        pytest.skip("needs root and control groups, version 1")
    yield
    CGROUP.rmdir()


@pytest.mark.slow
def test_a_task_that_eats_all_memory_is_named(small_memory: None) -> None:
    with open_local(2) as cluster:
        outcome = cluster.execute(with_neighbours(eats_memory), None, timeout=100)
    (error,) = outcome.errors
    assert "it killed 2 workers: w" in error.error
    assert "out of memory" in error.error
    assert "use less memory" in error.error


def test_verdicts(tmp_path: Path) -> None:
    notes = CrashNotes(tmp_path, "w0")
    killed = [Death("w0", -signal.SIGKILL)] * 9
    for deaths, guilty in [
        ([Death("w0", -11)], False),
        ([Death("w0", -11), Death("w1", 1)], True),
        (killed, False),
        ([*killed, Death("w0", -signal.SIGKILL)], True),
        ([Death("w0", -signal.SIGKILL, out_of_memory=True)] * 2, True),
        ([Death("w0", 75)] * 5, False),  # restarted after a time-out
    ]:
        notes.begin("key", "t")
        for death in deaths:
            note_death(tmp_path, notes.file_name, death)
        notes.end()
        if guilty:
            with pytest.raises(PoisonTask, match=f"task 't': it killed {len(deaths)} workers: w0"):
                notes.begin("key", "t")
        else:
            notes.begin("key", "t")
            notes.end()
        (tmp_path / f"died-{digest_of('key')}").unlink(missing_ok=True)
    assert read_trace(tmp_path, "nothing") == ""


def test_a_session_is_ended_with_all_its_process_groups() -> None:
    leader = start_sleeper(groups=2)
    pids = [int(line) for line in leader.stdout.readline().split()]  # type: ignore[union-attr]
    assert all(alive(pid) for pid in pids)
    end_session(leader.pid)
    leader.wait()
    leader.stdout.close()  # type: ignore[union-attr]
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in pids)


@pytest.mark.slow
def test_finished_tasks_are_not_blamed() -> None:
    """A worker dies between two tasks: nothing is noted."""
    program = Program("idle")
    program.task(one, outputs=["x"], name="t")
    with open_local(1) as cluster:
        assert finished(cluster.execute(program, RoundRobin(), timeout=60).events)
        folder = cluster._workers.folder  # type: ignore[union-attr]
        os.kill(cluster.pids["w0"], signal.SIGKILL)
        deadline = time.monotonic() + 30
        while len(list(folder.glob("*.trace"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(folder.glob("*.trace"))) == 2
        assert not list(folder.glob("died-*"))
    assert not folder.exists()
