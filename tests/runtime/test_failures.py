"""Tasks that fail end the run; what was there is kept."""

from __future__ import annotations

import sys
import threading

import pytest

from headrace.model.errors import BadFile, BadProgram, RunStopped
from headrace.model.events import TaskErred
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster

from .tasks import RoundRobin, boom, increment, layered, nap, one

SCHEDULERS = pytest.mark.parametrize("scheduler", [RoundRobin(), None], ids=["planned", "engine"])


@SCHEDULERS
def test_a_failing_function(cluster: Cluster, scheduler: RoundRobin | None) -> None:
    program = Program("fails")
    program.task(one, outputs=["good"], name="good")
    program.task(boom, inputs=["good"], outputs=["bad"], name="bad")
    program.task(increment, inputs=["bad"], outputs=["worse"], name="worse")
    program.task(increment, inputs=["worse"], outputs=["worst"], name="worst")
    program.output("good")
    program.output("worst")
    outcome = cluster.execute(program, scheduler, timeout=60)
    assert outcome.results == {"good": 1}
    assert outcome.not_run == ("bad", "worse", "worst")
    (error,) = outcome.errors
    assert isinstance(error, TaskErred)
    assert (error.task, error.host in cluster.pids) == ("bad", True)
    assert "ValueError: the bottom fell out" in error.error
    assert "tasks.py" in error.error
    assert "headrace/run" not in error.error
    assert outcome.failure is not None
    assert outcome.failure.exit_code == 1


def test_a_failing_command(cluster: Cluster) -> None:
    program = Program("fails")
    program.task([sys.executable, "-c", "import sys; sys.exit('went wrong')"], outputs=["x"], name="command")
    (error,) = cluster.execute(program, RoundRobin(), timeout=60).errors
    assert "ended with status 1" in error.error
    assert "went wrong" in error.error


def test_exit_in_a_function_is_a_failure_and_not_the_end_of_the_worker(cluster: Cluster) -> None:
    program = Program("exits")
    program.task(sys.exit, inputs=[program.input("status", value=3)], outputs=["x"], name="exit")
    (error,) = cluster.execute(program, RoundRobin(), timeout=60).errors
    assert "SystemExit: 3" in error.error


def test_the_cluster_goes_on_after_a_failure(cluster: Cluster) -> None:
    failing = Program("fails")
    failing.task(boom, outputs=["x"])
    assert cluster.execute(failing, RoundRobin(), timeout=60).errors
    program, answer = layered(3, 3, 0.0)
    assert cluster.execute(program, RoundRobin(), timeout=60).results == {"answer": answer}


def test_what_cannot_be_sent_is_named(cluster: Cluster) -> None:
    program = Program("odd")
    program.task(increment, inputs=[program.input("lock", value=threading.Lock())], outputs=["x"])
    with pytest.raises(BadProgram, match="input 'lock': lock cannot be sent to a worker"):
        cluster.execute(program, RoundRobin())


def test_a_missing_input_file_is_named(cluster: Cluster) -> None:
    program = Program("missing")
    program.task(increment, inputs=[program.input("x", "no-such-file.txt")], outputs=["y"])
    with pytest.raises(BadFile, match=r"no-such-file.txt: input 'x' cannot be read"):
        cluster.execute(program, RoundRobin())


def test_time_is_limited(cluster: Cluster) -> None:
    program = Program("long")
    program.task(nap, inputs=[program.input("pause", value=2.0)], outputs=["x"])
    with pytest.raises(RunStopped, match="time limit"):
        cluster.execute(program, RoundRobin(), timeout=0.3)
