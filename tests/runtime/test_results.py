"""Results as files, and the example that writes some."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from headrace.model.errors import TaskFailed
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster
from headrace.runtime.files import FileData
from headrace.runtime.results import encode

from .tasks import RoundRobin, finished

MOSAIC = Path(__file__).parents[2] / "examples" / "mosaic.py"


def test_each_type_has_its_form() -> None:
    assert encode(b"\x00\x01", "x") == (b"\x00\x01", ".bin")
    assert encode(FileData("n.png", b"abc"), "x") == (b"abc", ".png")
    assert encode("grüße\r\n", "x") == ("grüße\r\n".encode(), ".txt")
    content, suffix = encode(np.arange(6).reshape(2, 3), "x")
    assert (np.load(io.BytesIO(content)).tolist(), suffix) == ([[0, 1, 2], [3, 4, 5]], ".npy")
    assert json.loads(encode({"mean": 0.5, "names": ["a"]}, "x")[0]) == {"mean": 0.5, "names": ["a"]}
    assert encode(np.float64(2.5), "x") == (b"2.5\n", ".json")


@pytest.mark.parametrize("value", [object(), float("nan"), np.array([object()]), {1, 2}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TaskFailed, match=r"result 'odd': a \w+ cannot be written"):
        encode(value, "result 'odd'")


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
    for item in program.results():
        if item.path is not None:
            (tmp_path / item.path).write_bytes(encode(outcome.results[item.name], item.name)[0])
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
