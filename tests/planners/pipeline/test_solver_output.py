"""The standard output belongs to the user, also while a solver runs."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest
from bench.generated.deployments import several_sources

from headrace.deploying import deploy
from headrace.planners.pipeline.solver_output import without_messages


def flush() -> None:
    ctypes.CDLL(None).fflush(None)


def test_the_solver_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    problem = several_sources(33)  # HiGHS repairs a solution of this one, and says so
    deploy(problem.pipeline, problem.platform)
    flush()
    assert capfd.readouterr().out == ""


def test_other_output_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    def write(text: bytes) -> None:
        with without_messages():
            os.write(1, text)

    with without_messages():
        threads = [threading.Thread(target=write, args=(b"%d\n" % i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ctypes.CDLL(None).printf(b"HighsMipSolverData::any message\n")
        print("printed")
        os.write(1, b"no end of line")
    os.write(1, b" and after")
    out = capfd.readouterr().out
    assert {"0", "1", "2", "3", "printed"} <= set(out.splitlines())
    assert "HighsMip" not in out
    assert out.endswith("no end of line and after")
