"""Commands of WfFormat files: read when allowed, and hostile ones refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.formats.loading import executable_commands, load_program
from headrace.formats.wfformat import write_program
from headrace.model.errors import BadFile, BadProgram, HeadraceError, UsageError
from headrace.model.program import Command, Program

EXAMPLE = Path(__file__).parents[2] / "examples" / "words" / "words.json"


def split_document(
    command: dict[str, Any] | None, inputs: tuple[str, ...] = ("in",), outputs: tuple[str, ...] = ("out",)
) -> dict[str, Any]:
    """A workflow of 1.5 with one task."""
    run = {"id": "t", "runtimeInSeconds": 1.0} | ({} if command is None else {"command": command})
    task = {"name": "t", "id": "t", "inputFiles": list(inputs), "outputFiles": list(outputs)}
    files = [{"id": name, "sizeInBytes": 1} for name in dict.fromkeys([*inputs, *outputs])]
    return {
        "name": "one",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": [task], "files": files}, "execution": {"tasks": [run]}},
    }


def flat_document(command: dict[str, Any], version: str) -> dict[str, Any]:
    """The same in 1.3 or 1.4."""
    size = "size" if version == "1.3" else "sizeInBytes"
    runtime = "runtime" if version == "1.3" else "runtimeInSeconds"
    files = [{"name": "in", "link": "input", size: 1}, {"name": "out", "link": "output", size: 1}]
    task = {"name": "t", "type": "compute", "files": files, runtime: 1.0, "command": command}
    return {"name": "one", "schemaVersion": version, "workflow": {"tasks": [task]}}


def read(document: dict[str, Any], folder: Path) -> Program:
    path = folder / "wf.json"
    path.write_text(json.dumps(document))
    return load_program(path, commands=True)


def test_nothing_can_be_executed_unless_it_is_allowed() -> None:
    assert all(task.body is None for task in load_program(EXAMPLE).tasks.values())
    assert executable_commands(EXAMPLE)
    allowed = load_program(EXAMPLE, commands=True)
    assert allowed.tasks["sort_1"].body == Command(("sort", "--output=sorted/part01", "part01"), literal=True)
    assert allowed.data["words.txt"].path == str(EXAMPLE.parent / "words.txt")
    assert {item.name: item.path for item in allowed.results()} == {
        "counts.txt": "counts.txt",
        "long.txt": "long.txt",
    }


@pytest.mark.parametrize("version", ["1.3", "1.4"])
def test_older_versions_have_commands_too(version: str, tmp_path: Path) -> None:
    command = {"program": "cp", "arguments": ["in", "out"]}
    assert read(flat_document(command, version), tmp_path).tasks["t"].body == Command(
        ("cp", "in", "out"), literal=True
    )


HOSTILE_NAMES = {
    "absolute": "/etc/cron.d/x",
    "above": "../x",
    "above, later": "a/../../x",
    "NUL": "a\0b",
    "300 characters": "x" * 300,
    "half a surrogate pair": "\ud800",
    "the folder itself": ".",
}


@pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES.keys())
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_hostile_names_are_refused(name: str, side: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        read(split_document({"program": "cp"}, **{side: (name,)}), tmp_path)


HOSTILE_COMMANDS = {
    "none": None,
    "no program": {"arguments": ["x"]},
    "an empty program": {"program": ""},
    "for a shell": {"program": "cat in | tee out"},
    "many lines": {"program": "true \\\n out"},
    "NUL": {"program": "cp", "arguments": ["a\0b"]},
    "NUL in the program": {"program": "c\0p"},
    "a long argument": {"program": "cp", "arguments": ["x" * 200_000]},
    "stdout elsewhere": {"program": "cat", "stdout": "in"},
}


@pytest.mark.parametrize("command", HOSTILE_COMMANDS.values(), ids=HOSTILE_COMMANDS.keys())
def test_hostile_commands_are_refused(command: dict[str, Any] | None, tmp_path: Path) -> None:
    with pytest.raises(BadProgram, match="task 't'"):
        read(split_document(command), tmp_path)


def test_arguments_must_be_texts(tmp_path: Path) -> None:
    for arguments in ([1], "x", [["x"]], {"a": 1}):
        with pytest.raises(BadFile):
            read(split_document({"program": "cp", "arguments": arguments}), tmp_path)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3), st.text(min_size=1, max_size=30))
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, program: str, arguments: list[str], name: str
) -> None:
    command = {"program": program, "arguments": arguments}
    try:
        made = read(split_document(command, outputs=(name,)), tmp_path_factory.mktemp("wf"))
    except HeadraceError:
        return
    body = made.tasks["t"].body
    assert isinstance(body, Command)
    assert body.argv == (program, *arguments)


def test_only_workflow_files_have_commands_to_allow(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import headrace as hr\nprogram = hr.Program('x')\n")
    with pytest.raises(UsageError, match="only WfFormat"):
        load_program(f"{tmp_path / 'p.py'}:program", commands=True)


def test_commands_of_python_programs_come_back(tmp_path: Path) -> None:
    program = Program("own")
    text = program.input("text", size=5)
    program.task(
        ["sort", "{text}"], inputs=[text], outputs=["sorted"], stdout="sorted", name="t", kind="order"
    )
    write_program(program, tmp_path / "p.json")
    back = load_program(tmp_path / "p.json", commands=True)
    assert back.tasks["t"].body == Command(("sort", "{text}"), "sorted")
    assert back.tasks["t"].kind == "order"
