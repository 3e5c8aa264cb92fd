"""Results as files, and the example that writes some."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from headrace.model.errors import BadFile, TaskFailed
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster
from headrace.runtime.files import FileData
from headrace.runtime.results import write_results

from .tasks import RoundRobin, finished

MOSAIC = Path(__file__).parents[2] / "examples" / "mosaic.py"


def program_with(paths: dict[str, str | None]) -> Program:
    program = Program("results")
    for name, path in paths.items():
        program.task(print, outputs=[name])
        program.output(name, path)
    return program


def test_each_type_has_its_form(tmp_path: Path) -> None:
    results = {
        "raw": b"\x00\x01",
        "file": FileData("n", b"abc"),
        "text": "grüße\r\n",
        "array": np.arange(6).reshape(2, 3),
        "plain": {"mean": 0.5, "names": ["a"]},
        "number": np.float64(2.5),
        "kept": object(),
    }
    program = program_with({name: None if name == "kept" else f"deep/{name}" for name in results})
    written = write_results(program, results, tmp_path)
    assert written == {name: tmp_path / "deep" / name for name in results if name != "kept"}
    assert written["raw"].read_bytes() == b"\x00\x01"
    assert written["file"].read_bytes() == b"abc"
    assert written["text"].read_bytes() == "grüße\r\n".encode()
    assert np.load(written["array"]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert json.loads(written["plain"].read_text()) == {"mean": 0.5, "names": ["a"]}
    assert written["number"].read_text() == "2.5\n"
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == sorted(written)


@pytest.mark.parametrize("value", [object(), float("nan"), np.array([object()]), {1, 2}])
def test_other_values_are_refused_and_nothing_is_written(value: object, tmp_path: Path) -> None:
    program = program_with({"good": "good.txt", "odd": "odd"})
    with pytest.raises(TaskFailed, match=r"result 'odd': a \w+ cannot be written"):
        write_results(program, {"good": "x", "odd": value}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadFile, match="taken: cannot be written"):
        write_results(program_with({"x": "taken"}), {"x": "text"}, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_results_of_a_failed_run_are_written_as_far_as_they_are_there(tmp_path: Path) -> None:
    program = program_with({"x": "x.txt", "y": "y.txt"})
    assert write_results(program, {"x": "text"}, tmp_path) == {"x": tmp_path / "x.txt"}


def load(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A user's file as a module that no worker can import."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_mosaic(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = load(MOSAIC, "headrace_mosaic_example", monkeypatch).program
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert outcome.errors == ()
    assert len(finished(outcome.events)) == len(program.tasks) == 42
    write_results(program, outcome.results, tmp_path)
    assert (tmp_path / "mosaic.pgm").read_bytes().startswith(b"P5 1152 1152 255\n")
    assert (tmp_path / "mosaic.pgm").stat().st_size == 17 + 1152 * 1152
    edges = np.load(tmp_path / "edges.npy")
    lines = (tmp_path / "summary.txt").read_text().splitlines()
    assert len(lines) == 9
    assert lines == sorted(lines, reverse=True)
    row, column = (int(n) for n in lines[0].rsplit(" ", 1)[1].split(","))
    sharpest = edges[row * 384 : (row + 1) * 384, column * 384 : (column + 1) * 384]
    assert lines[0].startswith(f"{sharpest.mean():.4f} ")
    again = cluster.execute(program, None, timeout=60).results
    assert again["mosaic file"] == outcome.results["mosaic file"]


def test_functions_of_loose_files_go_by_value(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loose.py").write_text(
        "OFFSET = 40\ndef helper(x): return x + OFFSET\ndef f(x): return helper(x)\n"
    )
    module = load(tmp_path / "loose.py", "headrace_loose_file", monkeypatch)
    program = Program("loose")
    program.task(module.f, inputs=[program.input("x", value=2)], outputs=["y"])
    assert cluster.execute(program, RoundRobin(), timeout=60).results == {"y": 42}
