"""After a failure, tasks that are running finish and are kept; no other task is started."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headrace as hr
from headrace.model.program import Program
from headrace.record import Record
from headrace.runtime.cluster import Cluster

from .tasks import finished, increment, one

SCHEDULERS = pytest.mark.parametrize("scheduler", ["heft", "dask", "lheft"])


def note(folder: str, name: str) -> None:
    with (Path(folder) / "log").open("a") as log:
        log.write(f"{name}\n")


def slow(folder: str) -> int:
    """Say that it runs; end when the other has failed, and a while later."""
    note(folder, "slow")
    (Path(folder) / "running").touch()
    wait(Path(folder) / "failed")
    time.sleep(1.0)
    return 5


def fails_once(folder: str) -> int:
    """Fail while the other runs, unless this is fixed."""
    note(folder, "fails")
    if (Path(folder) / "fixed").exists():
        return 7
    wait(Path(folder) / "running")
    (Path(folder) / "failed").touch()
    raise ValueError("not fixed yet")


def later(folder: str, *values: int) -> int:
    note(folder, "later")
    return sum(values) + 1


def wait(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)


def two_branches(folder: Path) -> Program:
    """One branch fails, the other is slow, a result follows each of them; another task waits for both."""
    program = Program("branches")
    place = program.input("place", value=str(folder))
    a = program.task(fails_once, inputs=[place], outputs=["a"], name="fails", work=0.1)
    b = program.task(slow, inputs=[place], outputs=["b"], name="slow", work=0.5)
    program.output(program.task(later, inputs=[place, b], outputs=["c"], name="later", work=0.1), "c.json")
    program.output("b", "b.json")
    program.output(program.task(increment, inputs=[a], outputs=["d"], name="after", work=0.1), "d.json")
    return program


@SCHEDULERS
def test_what_runs_is_finished_and_kept_and_nothing_else_starts(
    cluster: Cluster, tmp_path: Path, scheduler: str
) -> None:
    program = two_branches(tmp_path)
    options = {"record": tmp_path / "home", "output": tmp_path, "learn": False}
    failed = hr.run(program, cluster, scheduler, **options)
    assert failed.failure is not None
    assert "not fixed yet" in str(failed.failure)
    assert failed.failure.exit_code == 1
    assert [event.task for event in finished(failed.outcome.events)] == ["slow"]
    assert failed.results == {"b": 5}
    assert (tmp_path / "b.json").read_text() == "5\n"
    assert sorted((tmp_path / "log").read_text().split()) == ["fails", "slow"]
    with Record.open(tmp_path / "home") as record:
        assert record.last().status == "failed"
        assert [kept.item for kept in record.kept("last")] == ["b"]
    (tmp_path / "fixed").touch()
    done = hr.resume("last", program, record=tmp_path / "home", on=cluster)
    assert done.failure is None
    assert done.results == {"b": 5, "c": 6, "d": 8}
    assert sorted((tmp_path / "log").read_text().split()) == ["fails", "fails", "later", "slow"]


@SCHEDULERS
def test_tasks_in_the_queues_of_workers_are_taken_back(
    cluster: Cluster, tmp_path: Path, scheduler: str
) -> None:
    program = two_branches(tmp_path)
    place = "place"
    for number in range(40):
        program.task(
            later, inputs=[place], outputs=[f"q{number}"], name=f"q{number}", work=0.1, after=["after"]
        )
        program.task(
            linger, inputs=[place], outputs=[f"l{number}"], name=f"l{number}", work=0.2, after=["one"]
        )
    program.task(one, name="one", outputs=["1"], work=0.01)
    failed = hr.run(program, cluster, scheduler, record=tmp_path / "home", output=tmp_path, learn=False)
    assert "not fixed yet" in str(failed.failure)
    log = (tmp_path / "log").read_text().split()
    assert "later" not in log
    ended = {event.task for event in finished(failed.outcome.events)}
    assert "slow" in ended
    # What had begun has ended, except for tasks that were on their way to a worker at that very moment.
    assert 0 <= log.count("linger") - len([task for task in ended if task.startswith("l")]) <= 3
    assert log.count("linger") < 30


def linger(folder: str) -> int:
    note(folder, "linger")
    time.sleep(0.1)
    return 1


def test_the_wait_is_bounded(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("bounded")
    gate = program.input("gate", value=str(tmp_path))
    program.task(held, inputs=[gate], outputs=["x"], name="held")
    program.task(fails_once, inputs=[gate], outputs=["y"], name="fails")
    failed = hr.run(
        program, cluster, "dask", record=tmp_path / "home", output=tmp_path, learn=False, failure_wait=0.2
    )
    assert set(failed.outcome.not_run) == {"held", "fails"}
    assert not (tmp_path / "gate").exists()
    (tmp_path / "gate").touch()


def held(folder: str) -> int:
    (Path(folder) / "running").touch()
    wait(Path(folder) / "gate")
    return 1
