"""Ctrl-C, and the sudden end of the client: no process stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .tasks import alive

SCRIPT = """
import sys
from headrace.model.errors import RunStopped
from headrace.model.program import Program
from headrace.runtime.cluster import open_local

program = Program("long")
note = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w')); time.sleep(99)"
start = [sys.executable, "-c", note]
for folder in sys.argv[1:3]:
    program.task([*start, folder])
# No guard for __main__: starting workers must not run this file again.
try:
    with open_local(2) as cluster:
        print(*cluster.pids.values(), flush=True)
        cluster.execute(program)
except RunStopped as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""


def wait_until(condition: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.02)
    assert condition()  # type: ignore[operator]


@pytest.mark.parametrize(
    "how",
    [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)],
    ids=["Ctrl-C", "kill"],
)
def test_nothing_stays_behind(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    notes = [tmp_path / "first", tmp_path / "second"]
    with subprocess.Popen(
        [sys.executable, str(script), *map(str, notes)], stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        workers = [int(pid) for pid in client.stdout.readline().split()]
        wait_until(lambda: all(note.exists() and note.read_text().endswith("\n") for note in notes))
        processes = workers + [int(note.read_text()) for note in notes]
        assert len(processes) == 4
        assert all(alive(pid) for pid in processes)
        os.kill(client.pid, how)
        said = client.stdout.read()
        status = client.wait(timeout=30)
    if how is signal.SIGINT:
        assert status == 130
        assert said.startswith("long: interrupted")
        assert not any(alive(pid) for pid in processes)
    wait_until(lambda: not any(alive(pid) for pid in processes))
