"""`headrace trial` on the example applications, and what `headrace deploy` makes of its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.model.pipeline import Pipeline

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = """
import sys
sys.path.insert(0, {examples!r})
from averager import build
app = build(2.0, 50_000)
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.py"
    file.write_text(SMALL.format(examples=str(EXAMPLES)))
    return f"{file}:app"


def test_the_file_has_what_was_measured(small, tmp_path):
    file = tmp_path / "small.ini"
    done = headrace("trial", small, "--clock", "cpu", "--repeats", "2", "-o", file, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    pipeline = Pipeline.read(file)
    assert [f.name for f in pipeline.filters] == ["ArrayReader", "ArrayAdder", "ArrayAverager"]
    assert [f.seconds for f in pipeline.filters] == [f["cpu"] for f in said["filters"]]
    assert [f.power for f in pipeline.filters] == [f["power"] for f in said["filters"]]
    assert pipeline.volumes == (0.4, 0.040024)
    assert "filter ArrayAdder (2 of 3)" in done.err


def test_the_table_has_a_row_for_each_filter(small, tmp_path):
    done = headrace("trial", small, cwd=tmp_path)
    assert done.code == 0, done.err
    for word in ("ArrayReader", "ArrayAdder", "ArrayAverager", "400 kB", "host power"):
        assert word in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.py:app"], 2, "no such file"),
        ([f"{EXAMPLES}/mosaic.py:program"], 2, "not an App"),
        ([f"{EXAMPLES}/averager.py:build", "--spool", "1 kB"], 1, "would exceed 1 kB"),
        ([f"{EXAMPLES}/averager.py", "--clock", "sun"], 2, "one of wall, cpu"),
        ([f"{EXAMPLES}/averager.py", "--spool", "much"], 2, "not a size"),
        (["averager.ini"], 2, "file.py:name"),
    ],
)
def test_errors_say_what_to_do(arguments, code, words, tmp_path):
    done = headrace("trial", *arguments, cwd=tmp_path)
    assert done.code == code
    assert words in done.err
    assert done.out == ""
