"""Results, comparisons and experiments in the page."""

from __future__ import annotations

import base64
import json
import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

from bench.causes import Planted

import headrace as hr
from cli.test_report import recorded
from headrace.model.events import TaskFinished
from headrace.record import Record
from headrace.ui.previews import MOST_ROWS, preview
from ui.serving import Page, served


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    with served(tmp_path) as made:
        made.open()
        yield made


def simple_case() -> Planted:
    """A run of three tasks, which went as planned."""
    program = hr.Program("three")
    for name in ("a", "b", "c"):
        program.task(None, name=name, work=1.0)
    plan = hr.plan(program, hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6), "heft")
    events = [TaskFinished(one.finish, one.id, one.host, one.start) for one in plan.tasks()]
    return Planted("task", "b", plan, sorted(events, key=lambda event: event.time))


def test_images_are_shown_as_they_are(tmp_path: Path):
    file = tmp_path / "a.dat"
    file.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    shown = preview(file)
    assert shown["kind"] == "image"
    assert base64.b64decode(shown["source"].partition(",")[2]) == file.read_bytes()


def test_arrays_have_facts_and_a_picture(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.arange(600.0).reshape(2, 300))
    shown = preview(tmp_path / "a.npy")
    assert shown["kind"] == "array"
    assert [value for _, value in shown["facts"]] == ["2 by 300", "float64", "0", "299.5", "599"]
    png = base64.b64decode(shown["source"].partition(",")[2])
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (150, 1)
    size = struct.unpack(">I", png[33:37])[0]
    assert zlib.decompress(png[41 : 41 + size])[-1] == 255


def test_arrays_of_objects_are_not_unpickled(tmp_path: Path):
    class Evil:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "harm", "x"))

    np.save(tmp_path / "a.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    assert preview(tmp_path / "a.npy")["kind"] == "text"
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(Evil()))
    assert preview(tmp_path / "a.pickle")["kind"] in ("text", "bytes")
    assert not (tmp_path / "harm").exists()


def test_tables(tmp_path: Path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 100)
    shown = preview(tmp_path / "a.csv")
    assert (shown["kind"], shown["headers"], len(shown["rows"]), shown["cut"]) == (
        "table",
        ["x", "y"],
        MOST_ROWS,
        True,
    )
    (tmp_path / "a.json").write_text(json.dumps([{"x": 1}, {"x": 2, "z": 3}]))
    shown = preview(tmp_path / "a.json")
    assert (shown["headers"], shown["rows"]) == (["x", "z"], [["1", ""], ["2", "3"]])


def test_text_and_anything_else(tmp_path: Path):
    (tmp_path / "a.txt").write_text("words " * 10_000)
    assert preview(tmp_path / "a.txt")["cut"] is True
    (tmp_path / "a.json").write_text("[" * 10_000)
    assert preview(tmp_path / "a.json")["kind"] == "text"
    (tmp_path / "a.bin").write_bytes(b"\0" * 100)
    assert preview(tmp_path / "a.bin")["kind"] == "bytes"
    assert preview(tmp_path)["kind"] == "folder"


def test_results_of_a_run(page: Page, tmp_path: Path):
    run = recorded(simple_case())
    file = tmp_path / "out.txt"
    file.write_text("hello")
    with Record.open() as record, record.database.writing() as connection:
        values = (run, "x", "t", str(file), "", 5.0)
        record.database.insert(connection, "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)", [values])
    assert [one["item"] for one in page.get(f"/api/runs/{run}/results").json] == ["x"]
    assert page.post(f"/api/runs/{run}/preview", {"item": "x"}).json["text"] == "hello"
    assert page.post(f"/api/runs/{run}/preview", {"item": "../x"}).status == 400
    file.unlink()
    assert page.post(f"/api/runs/{run}/preview", {"item": "x"}).status == 400
    assert "<html" in page.get(f"/api/runs/{run}/report").json["html"]


def test_two_runs_task_by_task(page: Page):
    case = simple_case()
    first, second = recorded(case), recorded(case)
    with Record.open() as record, record.database.writing() as connection:
        connection.execute(
            "UPDATE tasks SET finish = finish + 100 WHERE run = ? AND task = ?", (second, case.name)
        )
    answer = page.post("/api/compare", {"first": first, "second": second}).json
    assert answer["rows"][0]["task"] == case.name
    assert answer["rows"][0]["difference"] == pytest.approx(100)
    assert all(row["difference"] == pytest.approx(0) for row in answer["rows"][1:])
    assert page.post("/api/compare", {"first": first, "second": "none"}).status == 400


def test_without_experiments(page: Page):
    assert page.get("/api/experiments").json == []
    assert page.post("/api/experiments/table", {"name": "x", "where": ""}).status == 400


def test_the_log_of_a_task(page: Page):
    from headrace.runtime.task_logs import create_log

    run = recorded(simple_case())
    with Record.open() as record:
        folder = record.logs_folder(run)
    file, path = create_log(folder, "a b", "h0")
    os.write(file, b"one\n")
    first = page.post(f"/api/runs/{run}/log", {"task": "a b", "seen": {}}).json["pieces"][0]
    assert (first["text"], first["end"], first["host"]) == ("one\n", 4, "h0")
    os.write(file, "zwei ö\n".encode())
    os.close(file)
    again = page.post(f"/api/runs/{run}/log", {"task": "a b", "seen": {"1": 4}}).json["pieces"][0]
    assert again["text"] == "zwei ö\n"
    assert page.post(f"/api/runs/{run}/log", {"task": "other", "seen": {}}).json["pieces"] == []
    assert page.post(f"/api/runs/{run}/log", {"task": "a b", "seen": {"1": "x"}}).status == 400
    assert path.is_file()
