"""`headrace logs` and `headrace certificates`, and the options for tasks that misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from cli.command import Ended
from cli.command import headrace as command
from headrace.commands.logs import followed
from headrace.model.events import TaskFinished
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.record import Record
from headrace.runtime.task_logs import create_log, find_logs, store_log

TALK = """
import os, time
from pathlib import Path
from headrace import Program

def talk(folder):
    number = len(list(Path(folder).glob("try*")))
    (Path(folder) / f"try{number}").touch()
    print("attempt", number + 1)
    if number == 0:
        raise ValueError("not yet")
    return number

program = Program("talk")
folder = program.input("folder", value=os.getcwd())
program.output(program.task(talk, inputs=[folder], outputs=["x"], name="talk/1", work=0.01))
program.task(lambda: None, name="silent", work=0.01)
"""


Command: TypeAlias = Callable[..., Ended]


@pytest.fixture
def headrace(tmp_path: Path) -> Command:
    return partial(command, cwd=tmp_path)


def test_logs_of_a_recorded_run(tmp_path: Path, headrace: Command) -> None:
    program = Program("one")
    program.task(None, name="t", work=1.0)
    with (
        Record.open(tmp_path / ".headrace") as record,
        record.begin("one", program.graph, Platform.pairwise([1.0], bandwidth=1e6), "heft") as run,
    ):
        run.observe(TaskFinished(1.0, "t", "h0", 0.0))
        for attempt in (1, 2):
            store_log(record.logs_folder(run.id), "t", "h0", attempt, b"attempt %d\n" % attempt)
    assert "--- attempt 1 on h0\nattempt 1\n--- attempt 2" in headrace("logs", "last", "t").out
    unknown = headrace("logs", "last", "nobody")
    assert (unknown.code, "has no task 'nobody'" in unknown.err) == (2, True)
    with (
        Record.open(tmp_path / ".headrace") as record,
        record.begin("one", program.graph, Platform.pairwise([1.0], bandwidth=1e6), "heft") as silent,
    ):
        silent.observe(TaskFinished(1.0, "t", "h0", 0.0))
    nothing = headrace("logs", silent.id)
    assert (nothing.code, nothing.out, "has printed anything" in nothing.err) == (0, "", True)


@pytest.mark.slow
def test_logs_of_a_run_with_a_retry(tmp_path: Path, headrace: Command) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    done = headrace(
        "run", "talk.py:program", "--workers", "2", "--retries", "1", "--backoff", "0.1", "--json"
    )
    assert done.code == 0
    assert "failed on" in done.err
    assert "ValueError: not yet" in done.err
    listed = json.loads(headrace("logs", "last", "--json").out)["logs"]
    assert [(log["task"], log["attempt"]) for log in listed] == [("talk/1", 1), ("talk/1", 2)]
    assert {Path(log["file"]).stat().st_mode & 0o777 for log in listed} == {0o600}
    both = headrace("logs", "last", "talk/1").out
    assert "attempt 1\n" in both
    assert "attempt 2\n" in both
    assert headrace("logs", json.loads(done.out)["run"], "talk/1", "--attempt", "2").out == "attempt 2\n"
    told = json.loads(headrace("logs", "last", "talk/1", "--json").out)["logs"]
    assert [log["text"] for log in told] == ["attempt 1\n", "attempt 2\n"]
    assert headrace("logs", "last", "talk/1", "-f").out == both
    silent = headrace("logs", "last", "silent")
    assert (silent.code, silent.out, "printed nothing" in silent.err) == (0, "", True)
    unknown = headrace("logs", "last", "nobody")
    assert (unknown.code, "has no task 'nobody'" in unknown.err) == (2, True)
    assert headrace("logs", "last", "-f").code == 2
    assert headrace("logs", "no-such-run", "x").code == 2


def test_without_a_run(headrace: Command) -> None:
    result = headrace("logs", "last")
    assert (result.code, "no run yet" in result.err) == (2, True)


def test_following(tmp_path: Path) -> None:
    """What comes while the run lasts, and what came between the last look and its end."""
    file, _ = create_log(tmp_path, "t", "w0")
    steps = iter([b"one\n", b"two\n", b"three\n"])

    def live() -> bool:
        os.write(file, next(steps))
        left = steps.__length_hint__()
        if left == 1:
            os.close(create_log(tmp_path, "t", "w1")[0])
        return left > 0

    shown = b"".join(followed(lambda: find_logs(tmp_path, "t"), live, pause=0.0))
    os.close(file)
    assert shown == b"--- attempt 1 on w0\none\ntwo\nthree\n"


def test_certificates(tmp_path: Path, headrace: Command) -> None:
    folder = tmp_path / "tls"
    made = headrace("certificates", str(folder), "--days", "7", "--json")
    assert made.code == 0
    assert len(json.loads(made.out)["files"]) == 8
    again = headrace("certificates", str(folder))
    assert (again.code, "exists" in again.err) == (2, True)


@pytest.mark.slow
def test_a_cluster_with_these_certificates(tmp_path: Path, headrace: Command) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    assert headrace("certificates", "tls").code == 0

    def start(what: str, role: str, *arguments: str) -> subprocess.Popen[bytes]:
        files = [
            "--tls-ca-file",
            "tls/ca.pem",
            "--tls-cert",
            f"tls/{role}.pem",
            "--tls-key",
            f"tls/{role}-key.pem",
        ]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{what}", *arguments, *files, "--no-dashboard"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path, start_new_session=True,
        )  # fmt: skip

    started = [start("dask_scheduler", "scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0",
                     "--scheduler-file", "scheduler.json")]  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "scheduler.json").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
        started += [
            start("dask_worker", "worker", address, "--name", name, "--nthreads", "1") for name in "ab"
        ]
        code, result = 2, None
        while code == 2 and time.monotonic() < deadline:  # no worker yet
            result = headrace(
                "run", "talk.py:program", "--on", address, "--retries", "1", "--backoff", "0.1",
                "--tls-ca", "tls/ca.pem", "--tls-cert", "tls/client.pem", "--tls-key", "tls/client-key.pem",
            )  # fmt: skip
            code = result.code
        assert code == 0, result
        assert "attempt 2" in headrace("logs", "last", "talk/1").out  # sent by the workers
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)
