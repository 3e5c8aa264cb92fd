"""What the record gives to predictions: executions of the same tasks and functions, probes, reports."""

from __future__ import annotations

import math
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from headrace.model.errors import BadFile
from headrace.model.events import DataMoved, TaskFinished
from headrace.model.machines import MachineLinks
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.predict.functions import function_digests
from headrace.predict.kind_fit import OTHER
from headrace.predict.overheads import Overheads
from headrace.predict.parameters import task_parameters
from headrace.record import Record
from headrace.record.executions import executions, note_figures
from headrace.record.probes import (
    save_links,
    save_overheads,
    saved_links,
    saved_overheads,
    transfers_since,
)
from headrace.record.run_reports import note_report, report_of

LAB = Platform.pairwise([1.0, 1.0], bandwidth=1e6)


def double(x: int) -> int:
    return 2 * x


def program_of(value: int = 1, tasks: int = 2, work: float = 3.0) -> Program:
    program = Program("p")
    item = program.input("x", value=value)
    for k in range(tasks):
        program.task(double, inputs=[item], outputs=[f"y{k}"], name=f"t{k}", work=work + k)
    return program


def run(record: Record, program: Program) -> str:
    with record.begin(program.name, program.graph, LAB, "heft") as entry:
        note_figures(record, entry.id, program.graph, function_digests(program), task_parameters(program))
        for k, name in enumerate(program.tasks):
            entry.observe(TaskFinished(k + 2.0, name, "h0", float(k), ()))
        entry.observe(DataMoved(1.5, "y0", "h0", "h1", 0.5, 4e5))
    return entry.id


def found(record: Record, program: Program) -> list[tuple[int, float, bool]]:
    return [
        (one.task, one.figure, one.first)
        for one in executions(record, program.graph, function_digests(program), task_parameters(program))
    ]


def test_only_tasks_whose_own_parameters_have_changed_are_other_tasks(tmp_path: Path) -> None:
    def scaled(last: int) -> Program:
        program = Program("scaled")
        for k, factor in enumerate((2, 3, last)):
            program.task(partial(pow, factor), inputs=[program.input(f"x{k}", value=2)], name=f"t{k}")
        return program

    with Record.open(tmp_path) as record:
        run(record, scaled(4))
        program = scaled(5)
        seen = executions(record, program.graph, function_digests(program), task_parameters(program))
    assert [one.task for one in seen] == [0, 1, OTHER]
    assert [one.parameters["argument 0"] for one in seen] == [2.0, 3.0, 4.0]


def test_with_another_function_all_are_other_tasks(tmp_path: Path) -> None:
    program = program_of()
    other = Program("p")
    item = other.input("x", value=1)
    for k in range(2):
        other.task(lambda x: x, kind="double", inputs=[item], outputs=[f"y{k}"], name=f"t{k}")
    with Record.open(tmp_path) as record:
        run(record, program)
        assert [task for task, _, _ in found(record, other)] == [OTHER, OTHER]


def test_the_same_program_is_recognised(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of())
        assert found(record, program_of(work=7.0)) == [(0, 3.0, True), (1, 4.0, False)]


def test_with_other_parameters_it_is_of_other_tasks(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of(value=1))
        assert found(record, program_of(value=2)) == [(OTHER, 3.0, True), (OTHER, 4.0, False)]


def test_another_program_with_the_same_function_counts_and_one_with_another_does_not(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of(tasks=3))
        assert [task for task, _, _ in found(record, program_of())] == [OTHER] * 3
        other = Program("other")
        other.task(abs, name="t0", kind="double", inputs=[other.input("x", value=1)], outputs=["y0"])
        assert found(record, other) == []


def test_runs_recorded_without_figures_count_as_the_same_tasks(tmp_path: Path) -> None:
    program = program_of()
    with Record.open(tmp_path) as record:
        with record.begin(program.name, program.graph, LAB, "heft") as entry:
            entry.observe(TaskFinished(2.0, "t0", "h0", 0.0, ()))
        ((task, figure, _),) = found(record, program)
        assert task == 0
        assert math.isnan(figure)


@pytest.mark.parametrize("blob", [b"junk", b"", 17])
def test_broken_figures_are_reported(tmp_path: Path, blob: object) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of())
    with sqlite3.connect(tmp_path / "record.sqlite") as connection:
        connection.execute("UPDATE run_figures SET figures = ?", (blob,))
    with Record.open(tmp_path) as record, pytest.raises(BadFile, match="cannot be read"):
        found(record, program_of())


def test_probes_are_kept_with_their_age(tmp_path: Path) -> None:
    links = (MachineLinks("a", up=1e6, latency=0.01), MachineLinks("b", inside=1e9))
    with Record.open(tmp_path) as record:
        save_links(record, "lab", links, clock=lambda: 1000.0)
        kept = saved_links(record, "lab", ["a", "b"], clock=lambda: 1500.0)
        assert kept is not None
        assert (kept.links, kept.measured) == (links, 1000.0)
        assert saved_links(record, "lab", ["a", "new"], clock=lambda: 1500.0) is None
        assert saved_links(record, "lab", ["a"], oldest=100.0, clock=lambda: 1500.0) is None
        assert saved_links(record, "other", ["a"], clock=lambda: 1500.0) is None


def test_broken_probes_are_reported(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        save_links(record, "lab", [MachineLinks("a", up=-5.0)], clock=lambda: 0.0)
        with pytest.raises(BadFile, match="invalid probe"):
            saved_links(record, "lab", ["a"], clock=lambda: 0.0)


def test_transfers_of_later_runs_are_found(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of())
        (seen,) = transfers_since(record, LAB.name, 0.0)
        assert (seen.source, seen.target, seen.size) == ("h0", "h1", 4e5)
        assert transfers_since(record, LAB.name, 1e12) == []


def test_reports_are_kept(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        name = run(record, program_of())
        assert report_of(record, name) == {}
        note_report(record, name, {"sources": {"links": "as given"}})
        assert report_of(record, name) == {"sources": {"links": "as given"}}
        record.database.rows("UPDATE run_reports SET report = '[1]'")
        with pytest.raises(BadFile, match="not an object"):
            report_of(record, name)


def test_overheads_of_the_same_platform_are_kept(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        assert saved_overheads(record, LAB.name) == Overheads()
        for task in (0.001, 0.002, 0.009):
            save_overheads(record, run(record, program_of()), Overheads(task, 0.0))
        assert saved_overheads(record, LAB.name) == Overheads(0.002, 0.0)
        assert saved_overheads(record, "other") == Overheads()
        record.database.rows("UPDATE run_overheads SET task = 'x'")
        with pytest.raises(BadFile, match="invalid overhead"):
            saved_overheads(record, LAB.name)


@pytest.mark.parametrize("blob", [b"junk", b"", 17])
def test_broken_parameters_are_reported(tmp_path: Path, blob: object) -> None:
    with Record.open(tmp_path) as record:
        run(record, program_of())
        record.database.rows("UPDATE run_parameters SET parameters = ?", (blob,))
        with pytest.raises(BadFile, match="parameters of run"):
            found(record, program_of())
