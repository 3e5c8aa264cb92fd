"""Every hostile file gives one typed error that names the value and the place, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.plan_json import read_plan
from headrace.formats.platform_toml import read_platform
from headrace.formats.registry import detect
from headrace.formats.wfformat import read_program
from headrace.model.errors import HeadraceError
from hostile.cases import CASES, FLAT, GOOD, LAB, PLAN, Case, as_json


def read(kind: str, files: list[Path]) -> object:
    if kind == "program":
        return read_program(files[-1])
    if kind == "platform":
        return read_platform(files[-1])
    program, platform, plan = files
    return read_plan(plan, read_program(program).graph, read_platform(platform))


def test_the_files_that_cases_start_from_are_good(tmp_path: Path) -> None:
    contents = {
        "a.json": as_json(GOOD),
        "b.json": as_json(FLAT),
        "c.toml": LAB.encode(),
        "d.json": as_json(PLAN),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    a, b, c, d = (tmp_path / name for name in contents)
    assert read("program", [b])
    assert read("plan", [a, c, d])


def test_there_are_enough_cases_with_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 45
    assert all(case.expect for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_typed_error_that_names_value_and_place(case: Case, tmp_path: Path) -> None:
    files = case.build(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(HeadraceError) as caught:
        read(case.kind, files)
    message = str(caught.value)
    assert type(caught.value) is case.error
    assert all(part in message for part in (*case.expect, files[-1].name)), message
    assert len(message) < 600
    assert "\n" not in message
    assert sorted(tmp_path.iterdir()) == before


UNREADABLE = {
    "missing file",
    "directory",
    "pipe that nobody writes to",
    "endless device",
    "symbolic links in a circle",
    "symbolic link to nothing",
    "empty file",
    "gzip cut short",
    "gzip of only a header",
    "gzip with a flipped byte",
    "gzip with a wrong checksum",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_detection_takes_a_bad_file_for_its_kind_or_refuses_it(case: Case, tmp_path: Path) -> None:
    bad = case.build(tmp_path)[-1]
    if case.name not in UNREADABLE:
        assert detect(bad).kind == case.kind
        return
    with pytest.raises(HeadraceError) as caught:
        detect(bad)
    assert all(part in str(caught.value) for part in (*case.expect, bad.name))
