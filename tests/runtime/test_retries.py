"""Tasks that fail at first, and tasks that take too long."""

from __future__ import annotations

import math
import os
import pickle
import time
from pathlib import Path

import pytest

from headrace.model.errors import BadProgram, TaskFailed, UsageError
from headrace.model.events import HostLeft, TaskErred, TaskFinished
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.dask_outbox import is_by_engine
from headrace.runtime.retrying import Retries
from headrace.runtime.run_policy import RunPolicy, with_fields
from headrace.runtime.timeouts import call_within

from .tasks import OneHost, RoundRobin, alive, boom, increment, one

QUICK = RunPolicy(retries=2, backoff=0.01)
SCHEDULERS = pytest.mark.parametrize(
    "scheduler", [RoundRobin(), OneHost("w1", {}), None], ids=["planned", "one host", "engine"]
)


def fails_at_first(folder: str, times: int) -> str:
    number = len(list(Path(folder).iterdir()))
    (Path(folder) / str(number)).write_text(str(os.getpid()))
    if number < times:
        raise ValueError(f"attempt {number + 1}")
    return "done"


def flaky(folder: Path, times: int, retries: int | None = None) -> Program:
    program = Program("flaky")
    where = program.input("folder", value=str(folder))
    often = program.input("times", value=times)
    result = program.task(fails_at_first, inputs=[where, often], outputs=["x"], name="flaky", retries=retries)
    program.task(len, inputs=[result], outputs=["length"], name="reader")
    return program


@SCHEDULERS
def test_a_task_is_tried_again_elsewhere(
    cluster: Cluster, tmp_path: Path, scheduler: RoundRobin | OneHost | None
) -> None:
    outcome = cluster.execute(flaky(tmp_path, 2), scheduler, policy=QUICK, timeout=60)
    assert outcome.results == {"length": 4}
    assert outcome.failure is None
    failed = [e for e in outcome.events if isinstance(e, TaskErred)]
    assert [(e.attempt, e.again, f"attempt {e.attempt}" in e.error) for e in failed] == [
        (1, True, True),
        (2, True, True),
    ]
    hosts = [e.host for e in (*failed, *(e for e in outcome.events if isinstance(e, TaskFinished)))][:3]
    assert sorted(hosts) == ["w0", "w1", "w2"]
    assert len({(tmp_path / str(i)).read_text() for i in range(3)}) == 3


def test_a_task_says_itself_how_often(cluster: Cluster, tmp_path: Path) -> None:
    outcome = cluster.execute(
        flaky(tmp_path, 2, retries=1), RoundRobin(), policy=RunPolicy(retries=9, backoff=0.01), timeout=60
    )
    assert [(e.task, e.attempt, e.again) for e in outcome.errors] == [("flaky", 2, False)]
    assert outcome.not_run == ("flaky", "reader")
    assert len(list(tmp_path.iterdir())) == 2


def test_without_retries_one_failure_is_the_end(cluster: Cluster, tmp_path: Path) -> None:
    outcome = cluster.execute(flaky(tmp_path, 1), RoundRobin(), timeout=60)
    assert [(e.attempt, e.again) for e in outcome.errors] == [(1, False)]
    assert len(list(tmp_path.iterdir())) == 1


def test_others_go_on_during_a_pause(cluster: Cluster, tmp_path: Path) -> None:
    program = flaky(tmp_path, 1)
    for i in range(6):
        program.task(one, outputs=[f"one{i}"], name=f"one{i}")
    outcome = cluster.execute(program, RoundRobin(), policy=RunPolicy(retries=1, backoff=1.0), timeout=60)
    assert len(outcome.results) == 7
    (error,) = [e for e in outcome.events if isinstance(e, TaskErred)]
    finish = {e.task: e for e in outcome.events if isinstance(e, TaskFinished)}
    assert max(finish[f"one{i}"].time for i in range(6)) < error.time + 1.0 <= finish["flaky"].start + 0.01


@pytest.mark.slow
def test_one_worker_tries_again_too(tmp_path: Path) -> None:
    with open_local(1) as cluster:
        outcome = cluster.execute(flaky(tmp_path, 2), RoundRobin(), policy=QUICK, timeout=60)
    assert outcome.results == {"length": 4}


def test_two_failing_tasks_are_tried_independently(cluster: Cluster) -> None:
    program = Program("two")
    program.task(boom, outputs=["a"], name="a", retries=1)
    program.task(boom, outputs=["b"], name="b", retries=1)
    program.task(increment, inputs=["a"], outputs=["c"], name="c")
    outcome = cluster.execute(program, RoundRobin(), policy=RunPolicy(backoff=0.01), timeout=60)
    assert outcome.errors
    assert all(e.attempt == 2 for e in outcome.errors)


def forever(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def late_once(path: str) -> str:
    if not Path(path).exists():
        forever(path)
    return "done"


@pytest.mark.slow
def test_a_function_that_takes_too_long_is_ended_with_its_worker(tmp_path: Path) -> None:
    program = Program("late")
    path = program.input("path", value=str(tmp_path / "pid"))
    program.task(late_once, inputs=[path], outputs=["x"], name="late", timeout=0.5, retries=1)
    with open_local(1) as cluster:
        outcome = cluster.execute(program, RoundRobin(), policy=RunPolicy(backoff=0.5), timeout=60)
        assert outcome.results == {"x": "done"}
        (error,) = [e for e in outcome.events if isinstance(e, TaskErred)]
        assert "it did not finish within 500 ms" in error.error
        assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == ["w0"]
        assert not alive(int((tmp_path / "pid").read_text()))


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("late")
    script = f"sleep 100 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/self; wait"
    program.task(["sh", "-c", script], outputs=[], name="late")
    before = cluster.pids
    outcome = cluster.execute(program, RoundRobin(), policy=RunPolicy(timeout=0.5), timeout=60)
    assert "it did not finish within 500 ms" in outcome.errors[0].error
    deadline = time.monotonic() + 10
    pids = [int((tmp_path / name).read_text()) for name in ("child", "self")]
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in pids)
    assert cluster.pids == before


def test_calls_with_a_time_out_are_like_others() -> None:
    assert call_within(divmod, (7, 2), 10.0)[0] == (3, 1)
    value, cpu = call_within(lambda: sum(range(300_000)), (), 10.0)
    assert value == sum(range(300_000))
    assert cpu > 0
    with pytest.raises(ZeroDivisionError):
        call_within(divmod, (1, 0), 10.0)
    with pytest.raises(SystemExit):
        call_within(exit, (3,), 10.0)


@pytest.mark.parametrize("bad", [{"timeout": 0}, {"timeout": "soon"}, {"retries": -1}, {"retries": 1.5}])
def test_bad_wishes_of_tasks(bad: dict[str, object]) -> None:
    with pytest.raises(BadProgram):
        Program("bad").task(one, outputs=["x"], **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [{"retries": -1}, {"backoff": -1.0}, {"backoff": math.inf}, {"timeout": 0.0}, {"nonsense": 1}]
)
def test_bad_wishes_of_runs(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        with_fields(None, bad)


def test_times_are_quantities() -> None:
    program = Program("ok")
    program.task(one, outputs=["x"], name="t", timeout="2 min", retries=0)
    assert (program.tasks["t"].timeout, program.tasks["t"].retries) == (120.0, 0)


def details(error: Exception, traceback: str) -> dict[str, object]:
    """What the engine says of a failed task."""
    return {"exception": pickle.dumps(error), "traceback_text": traceback, "exception_text": repr(error)}


def test_only_failures_before_the_task_itself_are_the_engines() -> None:
    """An input can vanish while its reader is about to start; what the task's own code raises is its failure."""
    engine = '  File "/x/headrace/.venv/lib/distributed/worker.py", line 2263, in execute\n'
    ours = f'{engine}  File "/x/lib/headrace/runtime/bodies.py", line 88, in run_job\n'
    assert is_by_engine(details(KeyError("x"), engine))
    assert not is_by_engine(details(KeyError("x"), ours))
    assert not is_by_engine(details(TaskFailed("x"), engine))
    assert not is_by_engine({"exception": b"not a pickle", "traceback_text": engine})


def test_the_engines_failures_do_not_count_as_retries_of_the_user() -> None:
    retries = Retries(policy=RunPolicy(retries=1, backoff=0.01))
    pauses = [retries.pause("t", "w0", by_engine=by) for by in (True, True, False, False)]
    assert [pause is None for pause in pauses] == [False, False, False, True]
    assert [Retries().pause("t", "w0", by_engine=True) is None for _ in range(2)] == [False, False]
    endless = Retries()
    assert [endless.pause("t", "w0", by_engine=True) is None for _ in range(5)] == [False] * 3 + [True] * 2
