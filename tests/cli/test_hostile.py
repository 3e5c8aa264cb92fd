"""Hostile files through the command: one error, exit code 2, little memory, nothing written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.cli import main
from hostile.cases import CASES, Case

MEMORY = 512 * 2**20
EVERY = 7
"""One case in so many starts a process in the quick suite, where its memory can be measured."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder where the command runs; it stays empty."""
    (tmp_path / "work").mkdir()
    (tmp_path / "files").mkdir()
    return tmp_path / "work"


def require_one_error(case: Case, text: str) -> None:
    assert text.startswith("error: "), text
    assert text.count("\n") == 1, "one line"
    assert "Traceback" not in text
    for part in case.expect:
        assert part in text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_error(
    case: Case,
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    built = [str(word) for word in case.build(tmp_path / "files")]
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(work))
    monkeypatch.setattr(sys, "argv", ["headrace", "check", *built])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    require_one_error(case, said.err)
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=pytest.mark.slow if number % EVERY else ())
        for number, case in enumerate(CASES)
    ],
)
def test_a_process_takes_little_memory_and_writes_nothing(case: Case, work: Path, tmp_path: Path) -> None:
    built = case.build(tmp_path / "files")
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    ended = headrace("check", *built, cwd=work)
    assert ended.code == 2, ended.err
    require_one_error(case, ended.err)
    assert ended.peak_bytes < MEMORY
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before
