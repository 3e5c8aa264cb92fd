"""Kinds of files by their content."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from formats.test_plan_json import a_plan
from headrace.cli import load_command
from headrace.commands.check import check_files
from headrace.commands.convert import convert_file, plan_formats
from headrace.formats import registry
from headrace.formats.files import write_file
from headrace.formats.format import Format
from headrace.formats.loading import load_program
from headrace.formats.plan_json import write_plan
from headrace.formats.registry import detect, formats, writable
from headrace.model.errors import BadFile, UsageError
from headrace.model.program import Program

HERE = Path(__file__).parent / "data"


def test_programs_and_plans(tmp_path: Path) -> None:
    assert {detect(path).kind for path in HERE.glob("*.json*")} == {"program"}
    write_plan(a_plan(), tmp_path / "misleading.toml.gz")
    assert detect(tmp_path / "misleading.toml.gz").kind == "plan"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('name = "lab"\n', "platform"),
        ("# a comment\n\n[[host]]\n", "platform"),
        ("[[site]]\n", "platform"),
        ("[pairs]\n", "platform"),
        ('"name" = "x"\n', "platform"),
        ('{"name": "format: headrace-plan"}', "program"),
        (' \n{"format" : "headrace-plan-1"', "plan"),
        ("[1, 2]", "program"),
        ('["a"]', "program"),
        ("# mine\n\nWorkDescription 1 0 0\n", "program"),
        ("GridDescription 1\n", "grid"),
        ("12\n100\n", "behaviour"),
        ("2 60\n100\n", "behaviour"),
        ("HeadraceTrace 1 hold\n0 1\n", "behaviour"),
        ('schedulers = ["a"]\n[[application]]\n', "campaign"),
        ('# edges\nprogram = "edges.py:program"\n', "experiment"),
        ('name = "x"\n[sweep]\n', "experiment"),
    ],
)
def test_by_first_bytes(text: str, kind: str, tmp_path: Path) -> None:
    write_file(tmp_path / "x", text.encode())
    assert detect(tmp_path / "x").kind == kind


@pytest.mark.parametrize("data", [b"", b"  \n", b"\x7fELF\x02\x01", b"Dear reader,\nhello\n"])
def test_neither(data: bytes, tmp_path: Path) -> None:
    write_file(tmp_path / "x", data)
    with pytest.raises(BadFile, match="not a format that Headrace reads"):
        detect(tmp_path / "x")


def _is_lines(head: bytes) -> bool:
    return head.startswith(b"LINES")


def _read_lines(path: str | Path) -> Program:
    program = Program("lines")
    for _ in Path(path).read_text().splitlines()[1:]:
        program.task(work=1.0)
    return program


def _write_lines(program: Program, path: Path) -> None:
    path.write_text("LINES\n" + "task\n" * len(program.tasks))


LINES = Format(
    "lines", "program", "a line per task", (".lines",), sniff=_is_lines, read=_read_lines, write=_write_lines
)


def test_a_format_that_is_registered_is_read_checked_and_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", [])
    registry.register(LINES)
    (tmp_path / "a.txt").write_text("LINES\ntask\ntask\n")
    assert len(load_program(tmp_path / "a.txt").tasks) == 2
    assert "2 tasks" in check_files([str(tmp_path / "a.txt")])[0]["summary"]
    assert convert_file(str(tmp_path / "a.txt"), tmp_path / "b.json") == "wfformat"
    assert convert_file(str(tmp_path / "b.json"), tmp_path / "c.lines") == "lines"
    assert detect(tmp_path / "c.lines") is LINES
    with pytest.raises(UsageError, match="already a format 'lines'"):
        registry.register(LINES)


def test_a_format_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_from_entry_points", lambda: (LINES,))
    (tmp_path / "a.txt").write_text("LINES\n")
    assert detect(tmp_path / "a.txt") is LINES


def test_an_entry_point_that_names_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", "math:pi", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    registry._from_entry_points.cache_clear()
    with pytest.raises(UsageError, match="float"):
        registry._from_entry_points()
    registry._from_entry_points.cache_clear()


def test_names_and_suffixes_are_unique_within_a_kind() -> None:
    found = list(formats())
    assert len({(f.name, f.kind) for f in found}) == len(found)
    endings = [(f.kind, suffix) for f in found for suffix in f.suffixes]
    assert len(set(endings)) == len(endings)
    assert all(f.read is not None or f.write is not None for f in found)


def test_the_help_of_convert_names_every_format() -> None:
    to = inspect.signature(load_command("convert")).parameters["to"].annotation.__metadata__[0]
    written = {
        f.name for kind in ("program", "platform", "grid", "behaviour", "pipeline") for f in writable(kind)
    }
    written |= {f.name for f in plan_formats()}
    assert written == set(re.findall(r"[a-z-]+", to.help)) & written


def test_the_wrong_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text('[[host]]\nname = "a"\n')
    with pytest.raises(BadFile, match="is a platform, not a program"):
        load_program(tmp_path / "lab.toml")
