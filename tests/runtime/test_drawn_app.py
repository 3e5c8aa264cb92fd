"""Drawn pipelines: the same application from the file, from its Python, and through the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.formats.drawing import Drawing, DrawnInput, DrawnTask
from headrace.formats.drawing_python import drawing_python
from headrace.formats.drawing_toml import read_drawing, write_drawing
from headrace.formats.function_source import file_source
from headrace.model.errors import BadProgram
from headrace.runtime.drawn_app import drawn_app

FILTERS = '''
from headrace.runtime.filters import Filter, Reader


class Numbers(Reader):
    """Counts."""

    def init(self, work):
        self.mine = range(round(work.settings["most"] * work.begin), round(work.settings["most"] * work.end))

    def read(self, out):
        for number in self.mine:
            out.send(b"%d" % number)


class Times(Filter):
    """Multiplies each number."""

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor

    def process(self, buffer, out):
        out.send(b"%d" % (int(buffer.data) * self.factor))


class Total(Filter):
    def init(self, work):
        self.total = 0

    def process(self, buffer, out):
        self.total += int(buffer.data)

    def finalize(self, out):
        out.send(b"%d\\n" % self.total)


def double(x: int) -> int:
    return 2 * x
'''
TASKS = (
    DrawnTask("total", "my_filters.py:Total", inputs=(("streams", "timed"),), outputs=(("sum", None),)),
    DrawnTask("numbers", "my_filters.py:Numbers", outputs=(("counted", None),)),
    DrawnTask(
        "times",
        "my_filters.py:Times",
        inputs=(("streams", "counted"),),
        set={"factor": 3},
        outputs=(("timed", None),),
    ),
)
DRAWING = Drawing("sums", (DrawnInput("most", value=100),), TASKS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "my_filters", raising=False)
    (tmp_path / "my_filters.py").write_text(FILTERS)
    write_drawing(DRAWING, tmp_path / "sums.toml")
    return tmp_path


def test_filters_are_found_in_the_source(folder: Path):
    found = {one.name: one for one in file_source(folder / "my_filters.py", "my_filters.py").filters}
    assert list(found) == ["Numbers", "Times", "Total"]
    assert [one.name for one in found["Numbers"].parameters] == []
    assert [(one.name, one.default) for one in found["Times"].parameters] == [
        ("streams", None),
        ("factor", "2"),
    ]
    assert found["Times"].doc == "Multiplies each number."


def test_the_application_of_a_drawing(folder: Path):
    assert read_drawing(folder / "sums.toml") == DRAWING
    app = drawn_app(folder / "sums.toml")
    assert (app.name, app.order) == ("sums", ("numbers", "times", "total"))
    assert [(s.source, s.target) for s in app.streams] == [("times", "total"), ("numbers", "times")]
    assert dict(app.units[0].settings) == {"most": 100}
    assert app.make("times").factor == 3  # type: ignore[attr-defined]


def test_its_python_makes_the_same_application(folder: Path):
    source = file_source(folder / "my_filters.py", "my_filters.py")
    text = drawing_python(DRAWING, lambda reference: source.find(reference.rpartition(":")[2]))
    space: dict[str, object] = {"__name__": "made"}
    sys.path.insert(0, str(folder))
    try:
        exec(text, space)
    finally:
        sys.path.remove(str(folder))
    made, right = space["app"], drawn_app(folder / "sums.toml")
    assert (made.order, made.streams, made.units) == (right.order, right.streams, right.units)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (DrawnTask("x", "my_filters.py:double"), "not a filter"),
        (DrawnTask("x", command=("ls",)), "not a filter"),
        (DrawnTask("x", "my_filters.py:Total", inputs=(("streams", "most"),)), "connected to an input"),
        (DrawnTask("x", "my_filters.py:Nothing"), "no function"),
    ],
)
def test_what_is_no_pipeline_is_refused(folder: Path, task: DrawnTask, why: str):
    write_drawing(Drawing("bad", (DrawnInput("most", value=1),), (task,)), folder / "bad.toml")
    with pytest.raises(BadProgram, match=why):
        drawn_app(folder / "bad.toml")


def test_a_pipeline_is_not_run_as_a_program(folder: Path):
    with pytest.raises(BadProgram, match="headrace stream"):
        run_command(["run", "sums.toml", "--workers", "1"])


@pytest.mark.slow
def test_a_drawn_pipeline_is_streamed(folder: Path):
    command = [sys.executable, "-m", "headrace.cli", "stream", "sums.toml", "--speeds", "1,1", "-o", "out"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    parts = (folder / "out" / "all.total").read_text().split()  # one of each copy
    assert sum(map(int, parts)) == 3 * sum(range(100))
