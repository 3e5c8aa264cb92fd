"""Runs that keep, are cancelled and resumed, on workers that stay."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.model.errors import ProgramChanged, RunStopped, UsageError
from headrace.model.events import TaskFinished
from headrace.model.program import Program
from headrace.record import Record
from headrace.record.launch import Launch
from headrace.resuming import preview_resume
from headrace.runtime.cluster import Cluster

from .tasks import finished, increment, one, wait_for_file


def large(value: int) -> np.ndarray:
    return np.full(5000, value)


def first(values: np.ndarray) -> int:
    return int(values[0])


def held_chain(gate: Path) -> Program:
    """one -> large -> first -> waits for a file -> increment."""
    program = Program("held")
    a = program.task(one, outputs=["a"], name="a")
    b = program.task(large, inputs=[a], outputs=["b"], name="b")
    c = program.task(first, inputs=[b], outputs=["c"], name="c")
    path = program.input("gate", value=str(gate))
    program.task(wait_for_file, inputs=[path], outputs=["d"], name="d", after=["c"])
    e = program.task(increment, inputs=[c], outputs=["e"], name="e", after=["d"])
    program.output(e, "e.json")
    program.output("b", "b.npy")
    return program


def test_a_run_is_cancelled_and_resumed(cluster: Cluster, tmp_path: Path) -> None:
    gate, home = tmp_path / "gate", tmp_path / "home"
    program = held_chain(gate)

    def cancel_after_c(event: Any) -> None:
        if isinstance(event, TaskFinished) and event.task == "c":
            with Record.open(home) as record:
                record.cancel("last")

    with pytest.raises(RunStopped, match="cancelled"):
        hr.run(
            program,
            cluster,
            "dask",
            record=home,
            output=tmp_path,
            learn=False,
            keep="all",
            observe=cancel_after_c,
        )
    gate.touch()
    with Record.open(home) as record:
        assert record.last().status == "stopped"
        assert {k.item for k in record.kept("last")} == {"a", "b", "c"}
        assert [r.item for r in record.results("last")] == ["b"]  # written before the end of the run
    shown = preview_resume("last", program, record=home, scheduler="heft")
    assert (shown.tasks, shown.reused) == (("d", "e"), ("a", "b", "c"))
    before = (tmp_path / "b.npy").stat().st_mtime_ns
    done = hr.resume("last", program, record=home, on=cluster, scheduler="heft")
    assert done.results["e"] == 2
    np.testing.assert_array_equal(done.results["b"], np.full(5000, 1))
    assert [e.task for e in finished(done.outcome.events)] == ["d", "e"]
    assert (tmp_path / "e.json").read_text() == "2\n"
    assert (tmp_path / "b.npy").stat().st_mtime_ns == before
    with Record.open(home) as record:
        assert record.last().status == "done"
        assert [(t.task, t.session) for t in record.tasks("last")][-2:] == [("d", 2), ("e", 2)]
        assert record.last().makespan >= max(t.finish for t in record.tasks("last")) - 1e-6
        starts = [t.start for t in record.tasks("last")]
        assert starts == sorted(starts)  # the second session follows the first


def test_kept_files_are_sent_to_workers_that_cannot_read_them(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program("p")
    a = program.task(large, inputs=[program.input("n", value=7)], outputs=["a"], name="a")
    program.output(program.task(first, inputs=[a], outputs=["b"], name="b"))
    hr.run(program, cluster, "dask", record=tmp_path, output=tmp_path, learn=False, keep="all")
    with Record.open(tmp_path) as record:
        run = record.last().id
        with record._database.writing() as connection:
            connection.execute("DELETE FROM kept WHERE item = 'b'")
    monkeypatch.setattr("headrace.runtime.execute._all_reach", lambda *_: False)
    done = hr.resume(run, program, record=tmp_path, on=cluster)
    assert (done.results, done.reused) == ({"b": 7}, ("a",))


@pytest.mark.parametrize("keep", ["results", "auto", "all"])
def test_what_stays_after_a_run_that_is_done(cluster: Cluster, tmp_path: Path, keep: str) -> None:
    program = held_chain(tmp_path / "gate")
    (tmp_path / "gate").touch()
    done = hr.run(program, cluster, "dask", record=tmp_path, output=tmp_path, learn=False, keep=keep)
    with Record.open(tmp_path) as record:
        kept = {k.item for k in record.kept(done.id)}
        files = {k.file for k in record.kept(done.id) if k.file}
        assert kept == ({"a", "b", "c", "d", "e"} if keep == "all" else {"b", "e"})
        assert {p.name for p in (tmp_path / "kept" / done.id).iterdir()} == {"token", *files}
    again = hr.resume(done.id, program, record=tmp_path)  # no workers: everything is there
    assert again.results["e"] == 2
    assert len(again.reused) == 5
    assert again.files == done.files


def test_a_result_that_cannot_be_written_fails_the_run_and_not_the_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    program = Program("p")
    program.output(program.task(one, outputs=["good"]), "good.json")
    program.output(program.task(set, outputs=["odd"]), "odd.json")
    done = hr.run(program, cluster, "dask", record=tmp_path, output=tmp_path, learn=False)
    assert (tmp_path / "good.json").read_text() == "1\n"
    assert "result 'odd': a set cannot be written" in str(done.failure)
    assert done.failure is not None
    assert done.failure.exit_code == 1
    assert (set(done.unwritten), done.results["odd"]) == ({"odd"}, set())
    with Record.open(tmp_path) as record:
        assert record.last().status == "failed"


def test_inputs_that_have_changed_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("abc")
    program = Program("p")
    data = program.input("data", tmp_path / "in.txt")
    program.output(program.task(lambda path: path.read_text(), inputs=[data], outputs=["text"]))
    done = hr.run(program, cluster, "dask", record=tmp_path, output=tmp_path, learn=False)
    assert hr.resume(done.id, program, record=tmp_path).results == {"text": "abc"}
    (tmp_path / "in.txt").write_text("abd")
    with pytest.raises(ProgramChanged, match=r"the input .*in.txt changed"):
        hr.resume(done.id, program, record=tmp_path)
    assert hr.resume(done.id, program, record=tmp_path, anyway=True).results == {"text": "abc"}
    with Record.open(tmp_path) as record:
        assert record.last().status == "done"
    program.task(one, name="more")
    with pytest.raises(ProgramChanged, match="tasks and data"):
        hr.resume(done.id, program, record=tmp_path, anyway=True)


def test_what_cannot_be_resumed_is_said(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("p")
    program.task(one, outputs=["x"])
    with pytest.raises(UsageError, match="there are no runs"):
        hr.resume(record=tmp_path)
    done = hr.run(program, cluster, "dask", record=tmp_path, output=tmp_path, learn=False)
    with pytest.raises(UsageError, match="built by a script"):
        hr.resume(done.id, record=tmp_path)
    with pytest.raises(UsageError, match="parameter 'colour'"):
        hr.resume(done.id, program, record=tmp_path, colour="red")
    with pytest.raises(UsageError, match="parameter 'colour'"):
        hr.run(program, cluster, "dask", record=tmp_path, colour="red")
    with Record.open(tmp_path) as record:
        with record._database.writing() as connection:
            connection.execute("UPDATE runs SET launch = ''")
        with pytest.raises(UsageError, match="older Headrace"):
            Launch.parse(record.launch("last"))
        with pytest.raises(UsageError, match="is not running"):
            record.cancel("last")


def test_two_processes_do_not_resume_the_same_run(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    program = held_chain(gate)
    errors: list[Exception] = []
    started = threading.Event()

    def run() -> None:
        hr.run(
            program,
            cluster,
            "dask",
            record=tmp_path,
            output=tmp_path,
            learn=False,
            observe=lambda event: started.set(),
        )

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    try:
        with pytest.raises(UsageError, match="is running"):
            hr.resume("last", program, record=tmp_path, on=cluster)
    except Exception as error:
        errors.append(error)
    gate.touch()
    thread.join()
    assert errors == []


def test_a_run_is_resumed_with_the_file_of_its_program(cluster: Cluster, tmp_path: Path) -> None:
    file, home = tmp_path / "one.py", tmp_path / "home"
    file.write_text(
        "import headrace as hr\n\n"
        "program = hr.Program('one')\n"
        "program.output(program.task(lambda: 42, outputs=['answer']))\n"
    )
    hr.run(hr.Program.read(f"{file}:program"), cluster, record=home, output=tmp_path)
    done = hr.resume("last", f"{file}:program", record=home, on=cluster)
    assert (done.results["answer"], done.reused) == (42, ("lambda_0",))
    with pytest.raises(UsageError, match="the program is 3, an int"):
        hr.resume("last", 3, record=home, on=cluster)  # type: ignore[arg-type]
