"""Kinds of files by their content."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.test_plan_json import a_plan
from headrace.formats.detect import detect
from headrace.formats.files import write_file
from headrace.formats.plan_json import write_plan
from headrace.model.errors import BadFile

HERE = Path(__file__).parent / "data"


def test_programs_and_plans(tmp_path: Path) -> None:
    assert {detect(path) for path in HERE.glob("*.json*")} == {"program"}
    write_plan(a_plan(), tmp_path / "misleading.toml.gz")
    assert detect(tmp_path / "misleading.toml.gz") == "plan"


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
        ("GridDescription 1\n", "platform"),
        ("12\n100\n", "behaviour"),
        ("2 60\n100\n", "behaviour"),
        ("HeadraceTrace 1 hold\n0 1\n", "behaviour"),
        ('schedulers = ["a"]\n[[application]]\n', "campaign"),
    ],
)
def test_by_first_bytes(text: str, kind: str, tmp_path: Path) -> None:
    write_file(tmp_path / "x", text.encode())
    assert detect(tmp_path / "x") == kind


@pytest.mark.parametrize("data", [b"", b"  \n", b"\x7fELF\x02\x01", b"Dear reader,\nhello\n"])
def test_neither(data: bytes, tmp_path: Path) -> None:
    write_file(tmp_path / "x", data)
    with pytest.raises(BadFile, match="not a program, platform or plan"):
        detect(tmp_path / "x")
