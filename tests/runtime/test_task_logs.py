"""What tasks print is kept, per attempt, privately and within limits."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.execute import execute
from headrace.runtime.run_policy import RunPolicy
from headrace.runtime.task_logs import LIMIT, TaskLog, all_logs, captured, find_logs, store_log

from .tasks import RoundRobin, one


def talk(word: str) -> int:
    print("out", word)
    print("err", word, file=sys.stderr)
    logging.getLogger("somebody").warning("careful %s", word)
    sys.stdout.buffer.write(b"raw\n")
    thread = threading.Thread(target=print, args=("thread", word))
    thread.start()
    thread.join()
    return 1


def fail_loudly(folder: str) -> None:
    number = len(list(Path(folder).iterdir()))
    (Path(folder) / str(number)).touch()
    print("attempt", number + 1)
    raise ValueError("no")


def die_loudly() -> None:
    print("last words")
    os._exit(3)


def shout(size: int) -> None:
    for _ in range(size // 100):
        print("x" * 99)


EXPECTED = b"out a\nerr a\ncareful a\nraw\nthread a\n"


def talking() -> Program:
    program = Program("talk")
    program.task(talk, inputs=[program.input("word", value="a")], outputs=["x"], name="talk")
    program.task(one, outputs=["y"], name="silent")
    program.task(["sh", "-c", "echo hello; echo there >&2"], outputs=[], name="command")
    program.task(["sh", "-c", "echo kept; echo only this >&2"], outputs=["z"], name="captured", stdout="z")
    return program


@pytest.mark.parametrize("shared", [True, False])
def test_all_that_is_printed_is_kept(cluster: Cluster, tmp_path: Path, shared: bool) -> None:
    """By workers that see the folder, and by the client for others."""
    folder = tmp_path / "logs" / "run"
    outcome = execute(
        cluster.client, cluster.platform, talking(), RoundRobin(), lambda event: None,
        timeout=60, logs=folder, shared_logs=shared,
    )  # fmt: skip
    assert not outcome.errors
    logs = {log.task: log for log in all_logs(folder)}
    assert {name: log.read() for name, log in logs.items()} == {
        "talk": EXPECTED,
        "command": b"hello\nthere\n",
        "captured": b"only this\n",
    }
    assert {log.host for log in logs.values()} <= {"w0", "w1", "w2"}
    assert {log.path.stat().st_mode & 0o777 for log in logs.values()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert outcome.results["z"].data == b"kept\n"


def test_attempts_have_their_own_logs(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "count").mkdir()
    program = Program("fail")
    where = program.input("folder", value=str(tmp_path / "count"))
    program.task(fail_loudly, inputs=[where], outputs=["x"], name="a/b.c", timeout=30)
    folder = tmp_path / "logs"
    policy = RunPolicy(retries=2, backoff=0.01)
    cluster.execute(program, RoundRobin(), policy=policy, logs=folder, timeout=60)
    found = find_logs(folder, "a/b.c")
    assert [(log.attempt, log.read()) for log in found] == [(n, b"attempt %d\n" % n) for n in (1, 2, 3)]
    assert find_logs(folder, "a/b") == []


@pytest.mark.slow
def test_a_dead_worker_leaves_the_log(tmp_path: Path) -> None:
    program = Program("die")
    program.task(die_loudly, outputs=["x"], name="die")
    with open_local(1) as cluster:
        outcome = cluster.execute(program, RoundRobin(), logs=tmp_path, timeout=60)
    assert outcome.errors
    assert [log.read() for log in find_logs(tmp_path, "die")] == [b"last words\n"] * 2


@pytest.mark.parametrize("command", [True, False])
def test_logs_have_a_limit(cluster: Cluster, tmp_path: Path, command: bool) -> None:
    program = Program("shout")
    size = 5 * LIMIT
    if command:
        script = f"for i in range({size // 100}): print('x' * 99)"
        program.task([sys.executable, "-c", script], outputs=[], name="shout")
    else:
        program.task(shout, inputs=[program.input("size", value=size)], outputs=["x"], name="shout")
    assert not cluster.execute(program, RoundRobin(), logs=tmp_path, timeout=60).errors
    (log,) = find_logs(tmp_path, "shout")
    text = log.read()
    assert LIMIT <= len(text) < LIMIT + 200
    assert f"[{size - LIMIT} bytes left out]".encode() in text
    assert text.startswith(b"x" * 99 + b"\n")
    assert text.endswith(b"x" * 99 + b"\n")


@given(st.lists(st.binary(max_size=50), max_size=30), st.integers(1, 40))
def test_head_and_tail(pieces: list[bytes], half: int) -> None:
    log = TaskLog("t", limit=2 * half)
    for piece in pieces:
        log.write(piece)
    whole, kept = b"".join(pieces), log.close()
    if len(whole) <= 2 * half:
        assert kept == whole
    else:
        left_out = len(whole) - 2 * half
        assert kept == whole[:half] + b"\n[%d bytes left out]\n" % left_out + whole[-half:]


def test_threads_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    logs = [TaskLog(str(i)) for i in range(4)]
    ready = threading.Barrier(4)

    def work(log: TaskLog) -> None:
        with captured(log):
            ready.wait()
            for _ in range(200):
                print(log.task)
            ready.wait()

    threads = [threading.Thread(target=work, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [log.close() for log in logs] == [f"{i}\n".encode() * 200 for i in range(4)]
    assert shown.getvalue().count("\n") == 800


def test_what_no_task_prints_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log = TaskLog("t")
    with captured(log):
        print("in \ud800")
    print("out")
    assert log.close() == b"in \\ud800\n"
    assert shown.getvalue().endswith("out\n")


def test_no_folder_no_failure(cluster: Cluster, tmp_path: Path) -> None:
    """A folder that cannot be written to does not fail the task."""
    (tmp_path / "file").touch()
    program = Program("talk")
    program.task(talk, inputs=[program.input("word", value="a")], outputs=["x"], name="talk")
    outcome = cluster.execute(program, RoundRobin(), logs=tmp_path / "file" / "logs", timeout=60)
    assert outcome.results == {"x": 1}


@given(st.text(min_size=1))
def test_any_name_has_a_file(name: Any) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store_log(Path(folder), name, "w0", 1, b"text")
        (log,) = find_logs(Path(folder), name)
        assert (log.read(), log.host, log.attempt) == (b"text", "w0", 1)
        assert log.path.parent == Path(folder)


def test_a_failing_command_tells_what_it_printed(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("fails")
    program.task(["sh", "-c", "echo went wrong >&2; exit 3"], outputs=[], name="command")
    (error,) = cluster.execute(program, RoundRobin(), logs=tmp_path, timeout=60).errors
    assert "ended with status 3:\nwent wrong" in error.error
