"""Drawn programs: read from source, saved as files, opened again, run."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

from bench.page_draw import SOURCE, draw_case, operations, same_graph, write_files

import headrace as hr
from headrace.formats.function_reference import with_functions
from headrace.formats.loading import load_program
from headrace.formats.wfformat import write_program
from headrace.testing.generate import random_program
from ui.serving import Page, served


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    (tmp_path / "operations.py").write_text(SOURCE)
    with served(tmp_path) as made:
        made.open()
        yield made
    sys.modules.pop("operations", None)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of an empty folder, for requests that change nothing."""
    with served(tmp_path_factory.mktemp("empty")) as made:
        made.open()
        yield made


def evaluated(program: hr.Program, folder: Path) -> dict[str, Any]:
    """The results, computed task by task in this process."""
    program = with_functions(program)
    values: dict[str, Any] = {
        item.name: Path(item.path) if item.path is not None else item.value for item in program.inputs()
    }
    left = dict(program.tasks)
    while left:
        name = next(n for n, t in left.items() if all(item in values for item in t.inputs))
        task = left.pop(name)
        if callable(task.body):
            made = task.body(*(values[item] for item in task.inputs))
        else:
            made = folder / f"{len(values)}.out"
            made.write_text(task.body.argv[2])
        values |= dict(zip(task.outputs, made if len(task.outputs) > 1 else [made], strict=True))
    return {item.name: values[item.name] for item in program.results()}


def test_functions_are_listed_without_executing_their_file(page: Page, capfd: pytest.CaptureFixture[str]):
    places = ["operations.py", "statistics", "no.such.module", "../x.py", "gone.py"]
    found = page.post("/api/library", {"places": places}).json
    functions = {one["name"]: one for one in found[0]["functions"]}
    assert functions["total"]["parameters"][1] == {
        "name": "values",
        "annotation": "float",
        "default": None,
        "kind": "several",
    }
    assert functions["halves"]["returns"] == "tuple[float, float]"
    assert functions["add"]["doc"] == "Add two numbers."
    assert "median" in [one["name"] for one in found[1]["functions"]]
    assert all(entry["error"] for entry in found[2:])
    assert "executed" not in capfd.readouterr().out
    assert "operations" not in sys.modules


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed % 3 else ()) for seed in range(12)]
)
def test_round_trip(page: Page, tmp_path: Path, seed: int, capfd: pytest.CaptureFixture[str]):
    case = draw_case(seed, operations())
    write_files(case, tmp_path)
    saved = page.post("/api/drawings/save", {"drawing": case.drawing, "file": "d.toml", "version": ""}).json
    opened = page.post("/api/drawings/open", {"file": "d.toml"}).json
    assert opened["version"] == saved["version"]
    assert opened["problems"] == []
    again = page.post(
        "/api/drawings/save",
        {"drawing": opened["drawing"], "file": "d.toml", "version": opened["version"]},
    ).json
    assert again["file"] == saved["file"]
    assert again["version"] == saved["version"]
    program = load_program(tmp_path / "d.toml")
    assert "executed" not in capfd.readouterr().out
    assert same_graph(case.program, program)
    (tmp_path / "d.py").write_text(saved["python"])
    sys.path.insert(0, str(tmp_path))
    try:
        generated = runpy.run_path(str(tmp_path / "d.py"))["program"]
    finally:
        sys.path.remove(str(tmp_path))
    assert same_graph(case.program, generated)
    assert evaluated(program, tmp_path) == case.expected
    for item in generated.inputs():
        if item.path is not None:
            generated.data[item.name] = program.data[item.name]  # relative to the current folder
    assert evaluated(generated, tmp_path) == case.expected


@pytest.mark.slow
def test_a_drawing_runs(page: Page, tmp_path: Path):
    case = draw_case(3, operations())
    write_files(case, tmp_path)
    page.post("/api/drawings/save", {"drawing": case.drawing, "file": "d.toml", "version": ""})
    run = hr.run(load_program(tmp_path / "d.toml"), workers=1, output=tmp_path)
    assert run.failure is None
    assert run.results == case.expected


def save(page: Page, drawing: dict[str, Any], file: str = "d.toml", version: str = "") -> Any:
    return page.post("/api/drawings/save", {"drawing": drawing, "file": file, "version": version})


def drawing(**task: Any) -> dict[str, Any]:
    return {"name": "p", "inputs": [], "results": [], "tasks": [{"name": "t", **task}]}


def test_a_file_that_is_something_else_is_not_replaced(page: Page, tmp_path: Path):
    (tmp_path / "lab.toml").write_text("name = 'lab'\n")
    assert save(page, drawing(), "lab.toml").status == 400
    assert (tmp_path / "lab.toml").read_text() == "name = 'lab'\n"
    first = save(page, drawing()).json["version"]
    (tmp_path / "d.toml").write_text((tmp_path / "d.toml").read_text() + "# mine\n")
    answer = save(page, drawing(command=["true"]), version=first)
    assert answer.status == 400
    assert "changed" in answer.json["error"]
    assert "# mine" in (tmp_path / "d.toml").read_text()


@pytest.mark.parametrize(
    "file",
    ["../d.toml", "/tmp/d.toml", "d.py", ".toml/", "no/such/d.toml", "d\0.toml", "", "a" * 300 + ".toml"],
)
def test_files_stay_in_the_folder(refusing: Page, file: str):
    assert save(refusing, drawing(), file).status == 400


def test_links_are_not_followed(page: Page, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside")
    (tmp_path / "out").symlink_to(outside)
    (tmp_path / "l.toml").symlink_to(outside / "x.toml")
    assert save(page, drawing(), "out/d.toml").status == 400
    assert save(page, drawing(), "l.toml").status == 400
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"function": "os.system"}, "function is"),
        ({"function": "../x.py:f"}, "leaves its folder"),
        ({"function": "/x.py:f"}, "leaves its folder"),
        ({"function": "a b:f"}, "function is"),
        ({"function": "m:f", "set": [["x", "__import__('os')"]]}, "x is"),
        ({"function": "m:f", "set": [["x", "None"]]}, "x is None"),
        ({"function": "m:f", "set": [["x", "1e999"]]}, "x is inf"),
        ({"function": "m:f", "set": [["x", "(" * 5000]]}, "x is"),
        ({"command": ["a"], "set": [["x", "1"]]}, "without a function"),
        ({"command": [1]}, "command is"),
        ({"inputs": [["", "t.done"]]}, "circle"),
        ({"inputs": [["", "gone"]]}, "gone"),
        ({"function": "m:f", "command": ["a"]}, "both"),
        ({"cores": 0}, "cores is 0"),
        ({"work": "soon"}, "soon"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_wrong_drawings_are_refused_with_a_reason(refusing: Page, task: dict[str, Any], said: str):
    answer = save(refusing, drawing(**task))
    assert answer.status == 400
    assert said in answer.json["error"]


def test_what_is_missing_is_said_before_the_run(page: Page):
    answer = page.post(
        "/api/drawings/check",
        {"drawing": drawing(function="operations.py:add", set=[["a", "1"], ["c", "2"]]), "file": "d.toml"},
    ).json
    problems = [one["problem"] for one in answer["problems"]]
    assert problems == ["operations.py:add has no parameter c.", "b has no value."]


def test_the_page_says_what_would_be_executed(page: Page, tmp_path: Path):
    (tmp_path / "p.py").write_text("raise SystemExit\n")
    made = drawing(function="operations.py:add", set=[["a", "1"], ["b", "2"]])
    made["tasks"].append({"name": "c", "command": ["touch", "x"]})
    save(page, made)
    told = page.post("/api/programs/executes", {"program": "d.toml"}).json["executes"]
    assert told == ["function operations.py:add", "command touch x"]
    assert "p.py" in page.post("/api/programs/executes", {"program": "p.py:q"}).json["executes"][0]


@pytest.mark.parametrize("seed", range(4))
def test_a_large_program_is_shown_by_levels_and_opens(page: Page, tmp_path: Path, seed: int):
    program = random_program(seed, 3000)
    write_program(program, tmp_path / "w.json")
    whole = page.post("/api/programs/overview", {"program": "w.json", "opened": []}).json
    assert whole["tasks"] == 3000
    assert sum(node["tasks"] for node in whole["nodes"]) == 3000
    assert len(whole["nodes"]) <= 400
    levels = {node["id"]: node["level"] for node in whole["nodes"]}
    assert all(levels[a] < levels[b] for a, b, _ in whole["edges"])
    largest = max(whole["nodes"], key=lambda node: node["tasks"])
    opened = page.post("/api/programs/overview", {"program": "w.json", "opened": [str(largest["box"])]}).json
    names = [node["name"] for node in opened["nodes"] if "name" in node]
    assert len(names) == min(largest["tasks"], 400)
    assert set(names) <= set(program.tasks)
    assert len({(a, b) for a, b, _ in opened["edges"]}) == len(opened["edges"])
    # What was inside a box can now be seen.
    assert sum(n for _, _, n in opened["edges"]) >= sum(n for _, _, n in whole["edges"])


def test_a_python_program_is_not_opened_as_a_structure(page: Page, tmp_path: Path):
    (tmp_path / "p.py").write_text("raise SystemExit\n")
    assert page.post("/api/programs/overview", {"program": "p.py", "opened": []}).status == 400
