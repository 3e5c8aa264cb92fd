"""The record: what goes in comes out, from several threads and processes, and bad files are named."""

from __future__ import annotations

import math
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from headrace.model.errors import BadFile, BadProgram, RunStopped, UsageError
from headrace.model.events import DataMoved, HostLeft, RuleDropped, Started, TaskErred, TaskFinished
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.predict.history import Measurement
from headrace.record import Record
from headrace.record.database import Database
from headrace.record.store import FILE_NAME

PLATFORM = Platform.pairwise([1.0, 1.0], bandwidth=1e6)


def two_tasks() -> Program:
    program = Program("edges")
    image = program.input("image", size=100.0)
    edges = program.task(None, inputs=[image], outputs={"edges": 10.0}, name="sobel", kind="sobel")
    program.task(None, inputs=[edges], outputs=["thin"], name="thin", kind="thin")
    return program


def a_plan(program: Program) -> Plan:
    times = {"start": np.array([0.0, 1.0]), "finish": np.array([1.0, 2.0])}
    host = np.array([0, 1], np.int32)
    return Plan(
        program.graph, PLATFORM, "heft", host=host, core=np.zeros(2, np.int32), bound=1.5, **times, **NO_MOVES
    )


def ticking():
    ticks = count(1_700_000_000, 100)
    return lambda: float(next(ticks))


def test_a_run_is_kept_as_it_happened(tmp_path):
    program = two_tasks()
    with Record.open(tmp_path, clock=ticking()) as record:
        with record.begin("edges", program.graph, PLATFORM, "heft", a_plan(program)) as run:
            run.observe(Started(0.0))
            run.observe(TaskFinished(1.0, "sobel", "h0", 0.25, (("edges", 40.0),)))
            run.observe(DataMoved(1.5, "edges", "h0", "h1", 1.1, 40.0))
            run.stored("thin", "results/thin.npy")
            run.observe(
                TaskFinished(np.float64(3.0), "thin", "h1", np.float32(1.5), (("thin", np.int64(7)),))
            )
            run.observe(HostLeft(2.0, "h0"))
            run.observe(RuleDropped(2.0, "on-h0", "host 'h0' left at 2 s"))
            assert run.results_folder.is_dir()
            run.finish("done")
        (row,) = record.runs()
        assert (row.id, row.status, row.scheduler) == ("20231114-221320-001", "done", "heft")
        assert (row.makespan, row.bound, row.started, row.finished) == (3.0, 1.5, 1.7e9, 1.7e9 + 100)
        first, second = record.tasks(row.id)
        assert (first.task, first.kind, first.host, first.start, first.finish) == (
            "sobel",
            "sobel",
            "h0",
            0.25,
            1.0,
        )
        assert (first.input_bytes, first.output_bytes, first.location) == (100.0, 40.0, "")
        # The measured size of what it reads counts, not the estimate.
        assert (second.input_bytes, second.output_bytes, second.location) == (40.0, 7.0, "results/thin.npy")
        (moved,) = record.transfers(row.id)
        assert (moved.item, moved.source, moved.target, moved.start, moved.size) == (
            "edges",
            "h0",
            "h1",
            1.1,
            40.0,
        )
        assert [(p.task, p.host, p.start) for p in record.planned(row.id)] == [
            ("sobel", "h0", 0.0),
            ("thin", "h1", 1.0),
        ]
        assert record.item_sizes(program.graph) == {"edges": 40.0, "thin": 7.0}
        assert record.dropped_rules(row.id) == [RuleDropped(2.0, "on-h0", "host 'h0' left at 2 s")]


def test_measurements_come_oldest_first_and_only_of_what_went_well(tmp_path):
    program = two_tasks()
    with Record.open(tmp_path, clock=ticking()) as record:
        for seconds in (5.0, 3.0):
            with record.begin("edges", program.graph, PLATFORM, "heft") as run:
                run.observe(TaskErred(0.5, "sobel", "h1", "no space left"))
                run.observe(TaskFinished(seconds, "sobel", "h0", 1.0))
                run.observe(TaskFinished(9.0, "thin", "h0", 9.0))
        sobel = [Measurement("sobel", "h0", 4.0, 100.0), Measurement("sobel", "h0", 2.0, 100.0)]
        assert record.measurements(["sobel"]) == sobel
        assert [m.kind for m in record.measurements()] == ["sobel", "thin", "sobel", "thin"]
        failed = record.tasks(record.runs()[0].id)[0]
        assert (failed.status, failed.error, failed.start) == ("failed", "no space left", None)


def test_bare_numbers_leave_no_measurements(tmp_path):
    program = Program()
    program.task(None, name="bare")
    with Record.open(tmp_path) as record:
        with record.begin("p", program.graph, PLATFORM, "heft") as run:
            run.observe(TaskFinished(1.0, "bare", "h0", 0.0))
        assert record.measurements() == []
        assert len(record.tasks(run.id)) == 1


def test_ids_of_one_second_are_distinct_and_sorted_and_spare_old_results(tmp_path):
    graph = two_tasks().graph
    with Record.open(tmp_path, clock=lambda: 0.0) as record:
        (tmp_path / "results" / "19700101-000000-002").mkdir()
        ids = []
        for _ in range(3):
            with record.begin("p", graph, PLATFORM, "heft") as run:
                ids.append(run.id)
        assert ids == [f"19700101-000000-00{i}" for i in (1, 3, 4)]
        assert [row.id for row in record.runs()] == ids


@pytest.mark.parametrize(
    ("error", "status"),
    [(ValueError("x"), "failed"), (KeyboardInterrupt(), "stopped"), (RunStopped("x"), "stopped")],
)
def test_how_a_run_ended_follows_from_its_error(tmp_path, error, status):
    with Record.open(tmp_path) as record:
        with pytest.raises(type(error)), record.begin("p", two_tasks().graph, PLATFORM, "heft"):
            raise error
        assert [row.status for row in record.runs()] == [status]


def test_a_finished_run_takes_nothing_more(tmp_path):
    with Record.open(tmp_path) as record:
        run = record.begin("p", two_tasks().graph, PLATFORM, "heft")
        with pytest.raises(UsageError, match="status is 'lost'"):
            run.finish("lost")
        run.finish("stopped", 4.5)
        assert record.run(run.id).makespan == 4.5
        for call in (
            lambda: run.observe(Started(0.0)),
            lambda: run.stored("a", "b"),
            lambda: run.finish("done"),
        ):
            with pytest.raises(UsageError, match="is finished"):
                call()


def test_events_that_cannot_be_kept_are_refused_at_once_and_spoil_nothing(tmp_path):
    with Record.open(tmp_path) as record:
        with record.begin("p\ud800", two_tasks().graph, PLATFORM, "heft") as run:
            with pytest.raises(BadProgram, match="no task 'other'"):
                run.observe(TaskFinished(1.0, "other", "h0", 0.0))
            with pytest.raises(UsageError, match="the number nan"):
                run.observe(TaskFinished(math.nan, "sobel", "h0", 0.0))
            run.observe(TaskErred(2.0, "sobel", "h0", "half a character: \ud800"))
        (row,) = record.tasks(run.id)
        assert row.error == "half a character: ?"
        assert (record.run(run.id).program, record.run(run.id).makespan) == ("p?", 2.0)


def test_many_threads_may_observe(tmp_path):
    program = Program()
    for i in range(800):
        program.task(None, name=f"t{i}", kind="k")
    with Record.open(tmp_path) as record:
        with record.begin("p", program.graph, PLATFORM, "heft") as run:

            def observe(part: int) -> None:
                for i in range(part, 800, 4):
                    run.observe(TaskFinished(float(i), f"t{i}", "h0", 0.0))

            threads = [threading.Thread(target=observe, args=(k,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(row.task for row in record.tasks(run.id)) == sorted(f"t{i}" for i in range(800))
        assert record.run(run.id).makespan == 799.0


def test_a_group_that_could_not_be_committed_is_tried_again(tmp_path, monkeypatch):
    insert, tried = Database.insert, threading.Event()

    def busy_once(connection, statement, rows):
        if not tried.is_set():
            tried.set()
            raise sqlite3.OperationalError("database is locked")
        insert(connection, statement, rows)

    with Record.open(tmp_path) as record:
        run = record.begin("p", two_tasks().graph, PLATFORM, "heft")
        monkeypatch.setattr(Database, "insert", staticmethod(busy_once))
        run.observe(TaskFinished(1.0, "sobel", "h0", 0.0))
        assert tried.wait(60)
        run.observe(TaskFinished(2.0, "thin", "h0", 1.0))
        run.finish("done")
        assert [row.task for row in record.tasks(run.id)] == ["sobel", "thin"]


def test_finish_says_so_when_rows_cannot_be_kept(tmp_path, monkeypatch):
    def full(connection, statement, rows):
        raise sqlite3.OperationalError("database or disk is full")

    with Record.open(tmp_path) as record:
        run = record.begin("p", two_tasks().graph, PLATFORM, "heft")
        monkeypatch.setattr(Database, "insert", staticmethod(full))
        run.observe(TaskFinished(1.0, "sobel", "h0", 0.0))
        with pytest.raises(BadFile, match="disk is full"):
            run.finish("done")
    with Record.open(tmp_path) as record:
        assert record.run(run.id).status == "lost"


def test_an_unknown_run_is_named(tmp_path):
    with Record.open(tmp_path) as record:
        for query in (record.run, record.tasks, record.transfers, record.planned):
            with pytest.raises(UsageError, match="no run 'x'"):
                query("x")


def test_the_folder_is_the_environment_s_or_the_working_directory_s(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_HOME", raising=False)
    with Record.open() as record:
        assert record.folder == tmp_path / ".headrace"
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    with Record.open() as record:
        assert record.folder == tmp_path / "home"


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (id)")
    connection.close()


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {0x48647263}")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign, "another program"),
        (newer, "version 99"),
        (lambda path: path.write_bytes(b"not a database" * 100), "not a database"),
        (lambda path: path.mkdir(), "unable to open"),
    ],
)
def test_files_that_are_no_record_are_refused_and_left_alone(tmp_path, spoil, message):
    path = tmp_path / FILE_NAME
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(BadFile, match=message):
        Record.open(tmp_path)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_damage_inside_the_file_is_a_typed_error(tmp_path):
    program = Program()
    for i in range(2000):
        program.task(None, name=f"t{i}", kind="k")
    with Record.open(tmp_path) as record, record.begin("p", program.graph, PLATFORM, "heft") as run:
        for i in range(2000):
            run.observe(TaskFinished(1.0, f"t{i}", "h0", 0.0))
    path = tmp_path / FILE_NAME
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(BadFile, match="cannot be used"):  # noqa: SIM117
        with Record.open(tmp_path) as record:
            record.measurements()


def test_a_row_that_makes_no_sense_is_a_typed_error(tmp_path):
    with Record.open(tmp_path) as record:
        with record.begin("p", two_tasks().graph, PLATFORM, "heft") as run:
            run.observe(TaskFinished(1.0, "sobel", "h0", 0.0))
        other = sqlite3.connect(tmp_path / FILE_NAME)
        other.execute("UPDATE tasks SET input_bytes = 'many'")
        other.commit()
        other.close()
        with pytest.raises(BadFile, match="invalid row"):
            record.measurements()


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="folder cannot be created"):
        Record.open(tmp_path / "file")


_WRITER = """
import sys
from pathlib import Path
from headrace.model.events import TaskFinished
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.record import Record

folder, name, tasks, end = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
program = Program(name)
for i in range(tasks):
    program.task(None, name=f"t{i}", kind="k")
record = Record.open(folder)
run = record.begin(name, program.graph, Platform.pairwise([1.0], bandwidth=1.0), "heft")
print(run.id, flush=True)
for i in range(tasks):
    run.observe(TaskFinished(float(i), f"t{i}", "h0", 0.0))
if end == "hang":
    print("all seen", flush=True)
    sys.stdin.read()
run.finish("done")
record.close()
"""


def writer(folder: Path, name: str, tasks: int, end: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(folder), name, str(tasks), end]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for_rows(folder: Path, run: str, wanted: int) -> int:
    """Rows of a run that another process has committed; gives up only after a long while."""
    with Record.open(folder) as record:
        for _ in range(1000):
            if (found := len(record.tasks(run))) >= wanted:
                return found
            threading.Event().wait(0.02)
    return found


def test_kill_9_loses_at_most_the_last_group(tmp_path):
    with writer(tmp_path, "victim", 1200, "hang") as process:
        assert process.stdout is not None
        run = process.stdout.readline().strip()
        assert process.stdout.readline() == "all seen\n"
        assert wait_for_rows(tmp_path, run, 1000) >= 1000
        with Record.open(tmp_path) as record:
            assert record.run(run).status == "running"  # opening does not disturb the living
            before = len(record.tasks(run))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Record.open(tmp_path) as record:
        assert record.run(run).status == "lost"
        rows = record.tasks(run)
        assert before <= len(rows) <= 1200
        assert [row.task for row in rows] == [f"t{i}" for i in range(len(rows))]
        with record.begin("after", two_tasks().graph, PLATFORM, "heft") as after:
            pass
        assert record.run(after.id).status == "done"
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert list((tmp_path / "alive").iterdir()) == []


def test_processes_may_write_at_the_same_time(tmp_path):
    processes = [writer(tmp_path, f"p{k}", 700, "finish") for k in range(3)]
    ids = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        ids.append(out.strip())
    assert len(set(ids)) == 3
    with Record.open(tmp_path) as record:
        assert sorted(row.id for row in record.runs()) == sorted(ids)
        assert [len(record.tasks(run)) for run in ids] == [700] * 3
        assert {row.status for row in record.runs()} == {"done"}


def test_a_copied_folder_s_running_runs_are_lost(tmp_path):
    source = tmp_path / "source"
    with Record.open(source) as record:
        run = record.begin("p", two_tasks().graph, PLATFORM, "heft")
        shutil.copytree(source, tmp_path / "copy")
        run.finish("done")
    with Record.open(tmp_path / "copy") as copy:
        assert [row.status for row in copy.runs()] == ["lost"]
