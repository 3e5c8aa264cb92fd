"""Hostile files through the command: one error, exit code 2, little memory, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.command import headrace
from hostile.cases import CASES, Case

MEMORY = 512 * 2**20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_error_and_nothing_written(case: Case, tmp_path: Path) -> None:
    files = tmp_path / "files"
    work = tmp_path / "work"
    files.mkdir()
    work.mkdir()
    built = case.build(files)
    before = sorted(str(p) for p in files.rglob("*"))
    ended = headrace("check", *built, cwd=work)
    assert ended.code == 2, ended.err
    assert ended.err.startswith("error: "), ended.err
    assert ended.err.count("\n") == 1, "one line"
    assert "Traceback" not in ended.err
    for part in case.expect:
        assert part in ended.err
    assert ended.peak_bytes < MEMORY
    assert sorted(str(p) for p in files.rglob("*")) == before
    assert list(work.iterdir()) == []
