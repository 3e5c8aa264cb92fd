"""`headrace run --allow-commands`: a workflow file whose commands are executed."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.model.errors import BadFile, UsageError

from .command import headrace

EXAMPLE = Path(__file__).parents[2] / "examples" / "words"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "words")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_must_be_allowed(folder: Path) -> None:
    with pytest.raises(UsageError, match="are not executed unless you allow it") as raised:
        run_command(["run", "words/words.json"])
    assert "--allow-commands" in raised.value.hint
    assert "--emulate" in raised.value.hint
    with pytest.raises(UsageError, match="exclude each other"):
        run_command(["run", "words/words.json", "--allow-commands", "--emulate"])


def test_a_dry_run_lists_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["run", "words/words.json", "--allow-commands", "--dry-run", "-s", "heft", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["commands"]["count"] == ["uniq", "--count", "words.sorted", "counts.txt"]
    assert len(facts["commands"]) == 10


def test_a_missing_input_is_an_error_before_anything_starts(folder: Path) -> None:
    (folder / "words" / "words.txt").unlink()
    for more in ([], ["--dry-run"]):
        with pytest.raises(BadFile, match=r"input 'words.txt' cannot be read"):
            run_command(["run", "words/words.json", "--allow-commands", *more])


@pytest.mark.slow
def test_a_workflow_of_commands(folder: Path) -> None:
    run = (
        "run",
        "words/words.json",
        "--allow-commands",
        "--workers",
        "2",
        "-s",
        "heft",
        "-o",
        "made",
        "--json",
    )
    ended = headrace(*run, cwd=folder)
    assert ended.code == 0, ended.err
    words = (folder / "words" / "words.txt").read_text().split()
    counted = [line.split() for line in (folder / "made" / "counts.txt").read_text().splitlines()]
    assert {word: int(number) for number, word in counted} == Counter(words)
    long = (folder / "made" / "long.txt").read_text().split()
    assert sorted(long) == sorted({word for word in words if len(word) >= 6})
    assert sorted(path.name for path in (folder / "words").iterdir()) == ["words.json", "words.txt"]


@pytest.mark.slow
def test_failures_are_told_and_resumed(folder: Path) -> None:
    """A command fails, its output does not appear, and after it is repaired only the rest runs."""
    path = folder / "words" / "words.json"
    document = json.loads(path.read_text())
    runs = {run["id"]: run for run in document["workflow"]["execution"]["tasks"]}
    runs["count"]["command"] = {"program": "uniq", "arguments": ["--version"]}
    path.write_text(json.dumps(document))
    run = ("run", "words/words.json", "--allow-commands", "--workers", "1", "-s", "heft", "-o", "made")
    ended = headrace(*run, "--keep", "all", cwd=folder)
    assert ended.code == 1
    assert "'uniq' did not write its output 'counts.txt'" in ended.err
    runs["count"]["command"] = {"program": "uniq", "arguments": ["words.sorted", "counts.txt"]}
    path.write_text(json.dumps(document))
    ended = headrace("resume", "last", "--anyway", "--json", cwd=folder)
    assert ended.code == 0, ended.err
    assert "split" in json.loads(ended.out)["reused"]
    assert (folder / "made" / "counts.txt").exists()
