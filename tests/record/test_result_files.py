"""Results as files: each at once, whole or not at all; bad ones are named; a full disk is waited for."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.model.errors import BadFile, TaskFailed
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.record import Record
from headrace.record.result_files import MOST_BARE, ResultFiles, intact_files, result_problem
from headrace.runtime.durable import checksum_of
from headrace.runtime.kept_files import Kept, pickled, seal


def program_with(paths: dict[str, str | None]) -> Program:
    program = Program("results")
    for name, path in paths.items():
        program.task(None, outputs=[name], name=f"make {name}")
        program.output(name, path)
    return program


@pytest.fixture
def record(tmp_path) -> Iterator[Record]:
    with Record.open(tmp_path / "home") as opened:
        yield opened


def begun(record: Record, program: Program) -> Any:
    return record.begin("results", program.graph, Platform.local(1), "heft")


def test_results_are_written_with_their_checksums(record, tmp_path):
    program = program_with({"a": "deep/a.txt", "b": None, "c": None})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path / "out")
        for item, value in {"a": "text", "b": {"x": 1}, "c": object(), "other": 5}.items():
            files.offer_value(item, value)
        files.finish()
    assert files.failures == {}  # what has no path need not have a form
    assert files.files == {"a": tmp_path / "out/deep/a.txt", "b": entry.results_folder / "b.json"}
    assert json.loads(files.files["b"].read_text()) == {"x": 1}
    assert stat.S_IMODE(files.files["b"].stat().st_mode) == 0o600
    rows = record.results(entry.id)
    assert [(r.item, r.task, r.location, r.size) for r in rows] == [
        ("a", "make a", str(tmp_path / "out/deep/a.txt"), 4.0),
        ("b", "make b", str(files.files["b"]), 13.0),
    ]
    assert [r.checksum for r in rows] == [checksum_of(Path(r.location)) for r in rows]
    assert [result_problem(r) for r in rows] == ["", ""]
    files.files["a"].write_text("texT")
    files.files["b"].unlink()
    assert [result_problem(r) for r in rows] == [
        "is not what was written",
        "cannot be read: No such file or directory",
    ]
    assert intact_files(rows) == {}


def test_one_that_cannot_be_encoded_is_named_and_the_others_are_kept(record, tmp_path):
    program = program_with({"good": "good.txt", "odd": "odd", "late": "late.txt"})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path)
        for item, value in {"good": "x", "odd": {1, 2}, "late": "y"}.items():
            files.offer_value(item, value)
        files.finish()
    assert set(files.files) == {"good", "late"}
    assert isinstance(files.failures["odd"], TaskFailed)
    assert "result 'odd': a set cannot be written" in str(files.failures["odd"])
    assert not (tmp_path / "odd").exists()


def test_a_place_that_cannot_be_written_is_named(record, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("")
    program = program_with({"x": "taken", "y": "file/y", "z": "z"})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path)
        for item in ("x", "y", "z"):
            files.offer_value(item, "text")
        files.finish()
    assert set(files.files) == {"z"}
    assert {type(error) for error in files.failures.values()} == {BadFile}
    assert "taken: cannot be written: Is a directory" in str(files.failures["x"])
    assert (tmp_path / "taken").is_dir()


def kept_value(entry: Any, item: str, value: Any) -> Kept:
    parts = pickled(value)
    return Kept(item, "", bytes(parts[0]), seal(entry.kept.key, entry.id, item, parts).hex(), 1)


def test_a_kept_result_is_written_while_the_run_goes_on(record, tmp_path):
    program = program_with({"a": "a.txt", "b": "b.txt"})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path)
        files.offer(kept_value(entry, "a", "early"))
        for _ in range(1000):
            if (tmp_path / "a.txt").exists():
                break
            files._thread.join(0.01)
        assert (tmp_path / "a.txt").read_text() == "early"
        forged = Kept("b", "", b"cos\nsystem\n(S'false'\ntR.", "00" * 32, 1)
        files.offer(forged)
        files.offer_value("a", "late")  # it has been written: the value is the same
        files.finish()
    assert (tmp_path / "a.txt").read_text() == "early"
    assert "not what was committed" in str(files.failures["b"])


def test_a_second_kept_value_repairs_a_failure(record, tmp_path):
    program = program_with({"b": "b.txt"})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path)
        files.offer(Kept("b", "", b"", "00" * 32, 1))
        files.offer(kept_value(entry, "b", "good"))
        files.finish()
    assert (files.failures, (tmp_path / "b.txt").read_text()) == ({}, "good")


def test_many_results_without_a_path_stay_in_the_record(record, tmp_path):
    program = program_with({f"x{i}": None for i in range(MOST_BARE + 1)} | {"y": "y.txt"})
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, tmp_path)
        for item in program.results():
            files.offer_value(item.name, "text")
        files.finish()
    assert set(files.files) == {"y"}


def test_intact_files_of_an_earlier_session_are_not_written_again(record, tmp_path):
    program = program_with({"a": "a.txt", "b": "b.txt"})
    with begun(record, program) as entry:
        old = {"a": (tmp_path / "a.txt").absolute(), "b": (tmp_path / "elsewhere").absolute()}
        files = ResultFiles(program, entry, tmp_path, written=old)
        files.offer_value("a", "again")
        files.offer_value("b", "new")
        files.finish()
    assert not (tmp_path / "a.txt").exists()
    assert files.files == {"a": tmp_path / "a.txt", "b": tmp_path / "b.txt"}


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_waited_for(record, small_disk):
    program = program_with({"a": "a.txt", "b": "b.bin", "c": "c.txt"})
    (small_disk / "other").write_bytes(bytes(900_000))
    said = []

    def make_room(text: str) -> None:
        said.append(text)
        assert (small_disk / "a.txt").read_text() == "first"
        (small_disk / "other").unlink()

    with begun(record, program) as entry:
        files = ResultFiles(program, entry, small_disk, say=make_room, patience=60.0)
        for item, value in {"a": "first", "b": bytes(500_000), "c": "last"}.items():
            files.offer_value(item, value)
        files.finish()
    assert len(said) == 1
    assert "no room" in said[0]
    assert files.failures == {}
    assert sorted(p.name for p in small_disk.iterdir()) == ["a.txt", "b.bin", "c.txt"]
    assert len((small_disk / "b.bin").read_bytes()) == 500_000


def test_a_disk_that_stays_full_loses_only_what_does_not_fit(record, small_disk):
    program = program_with({"a": "a.txt", "b": "b.bin", "c": "c.txt", "d": "d.bin"})
    said = []
    with begun(record, program) as entry:
        files = ResultFiles(program, entry, small_disk, say=said.append, patience=0.6)
        values = {"a": "first", "b": bytes(2_000_000), "c": "last", "d": bytes(3_000_000)}
        for item, value in values.items():
            files.offer_value(item, value)
        files.finish()
    assert len(said) == 1  # the second one does not wait again
    assert set(files.failures) == {"b", "d"}
    assert "make room and resume" in str(files.failures["b"])
    assert sorted(p.name for p in small_disk.iterdir()) == ["a.txt", "c.txt"]
    assert set(intact_files(record.results(entry.id))) == {"a", "c"}


def test_a_limit_on_file_sizes_is_like_a_full_disk(record, tmp_path):
    program = program_with({"a": "a.bin", "b": "b.txt"})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with begun(record, program) as entry:
        files = ResultFiles(
            program,
            entry,
            tmp_path,
            say=lambda text: resource.setrlimit(resource.RLIMIT_FSIZE, before),
            patience=60.0,
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, before[1]))
        try:
            files.offer_value("a", bytes(6_000_000))
            files.offer_value("b", "text")
            files.finish()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (files.failures, files.files["a"].stat().st_size) == ({}, 6_000_000)
