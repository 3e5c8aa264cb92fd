"""A client that is killed leaves a shared cluster as it was; others work on, and the run can be resumed there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.chaos_clusters import TlsGround

from headrace.record import Record

from .tasks import increment, wait_for_file

PROGRAM = """
import time
from pathlib import Path

import headrace as hr


def step(here, number, *before):
    Path(here, f"began{number}").touch()
    while number and not Path(here, "gate").exists():
        time.sleep(0.02)
    return sum(before) + number


program = hr.Program("held")
here = program.input("here", value=HERE)
items = []
for number in range(4):
    given = program.input(f"n{number}", value=number)
    items.append(program.task(step, inputs=[here, given, *items[:1]], outputs=[f"x{number}"], work=1.0))
program.output(program.task(lambda *v: sum(v), inputs=items, outputs=["sum"], work=0.1), "sum.json")
"""


@pytest.fixture(scope="module")
def ground() -> Iterator[TlsGround]:
    with TlsGround(2) as opened:
        yield opened


def state_of(dask_scheduler: Any) -> dict[str, Any]:
    """What a run could leave behind in the scheduler."""
    handlers = dask_scheduler.stream_handlers
    return {
        "plugins": sorted(dask_scheduler.plugins),
        "manager": dask_scheduler.extensions["amm"].running,
        "extensions": sorted(dask_scheduler.extensions),
        "tasks": len(dask_scheduler.tasks),
        "clients": sorted(name for name in dask_scheduler.clients if not name.startswith("Client-")),
        "handlers": {name: getattr(handlers[name], "__qualname__", "") for name in sorted(handlers)},
        "topics": sorted(topic for topic in dask_scheduler._broker._topics if topic.startswith("headrace")),
    }


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def changes_since(client: Any, before: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is different in the scheduler, when that is nothing but tasks or 10 s have passed."""
    changed: dict[str, tuple[Any, Any]] = {}

    def settled() -> bool:
        nonlocal changed
        now = client.run_on_scheduler(state_of)
        changed = {name: (was, now[name]) for name, was in before.items() if now[name] != was}
        return changed.keys() <= {"tasks"}

    until(settled, 10.0)
    return changed


def headrace(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *arguments],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "HEADRACE_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kept_items(home: Path) -> list[str]:
    with Record.open(home) as record:
        return [kept.item for kept in record.kept("last")] if record.runs() else []


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["heft", "lheft"])
def test_a_killed_client_leaves_nothing_behind(ground: TlsGround, tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM.replace("HERE", repr(str(tmp_path))))
    files = [part for name, path in ground.tls.items() for part in (f"--tls-{name}", path)]
    with ground.client() as other:
        before = other.run_on_scheduler(state_of)
        options = ["--on", ground.url, *files, "-s", scheduler, "--no-learn", "--keep", "all"]
        process = headrace(tmp_path, "run", "prog.py:program", *options)
        try:
            assert until(lambda: kept_items(tmp_path / "home") == ["x0"])
            assert until(lambda: sum((tmp_path / f"began{n}").exists() for n in range(4)) >= 2)
            during = other.run_on_scheduler(state_of)
            assert (len(during["plugins"]), during["manager"]) == (len(before["plugins"]) + 1, False)
            mine = other.submit(increment, 41, pure=False)
            waits = other.submit(wait_for_file, str(tmp_path / "gate"), pure=False)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        with Record.open(tmp_path / "home") as record:
            assert record.last().status == "lost"
        changed = changes_since(other, before)
        (tmp_path / "gate").touch()
        assert changed.keys() <= {"tasks"}, changed  # those of the other client
        assert other.gather([mine, waits]) == [42, 1]
        del mine, waits
        assert until(lambda: other.run_on_scheduler(state_of)["tasks"] == before["tasks"])
        again = headrace(tmp_path, "resume")
        _, error = again.communicate(timeout=120)
        assert again.returncode == 0, error
        assert (tmp_path / "sum.json").read_text() == "6\n"
        assert changes_since(other, before) == {}
