"""Where results go: files, stdout for `-`, and what is said about failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import headrace

LAB = '[[site]]\nname = "s"\n[[site.host]]\nname = "h 1"\n[[site.host]]\nname = "h2"\n'
TWO = (
    "import headrace as hr\nprogram = hr.Program('two')\n"
    "first = program.task(None, work=1.0, name='first task', outputs={'some data': 5})\n"
    "program.task(None, work=1.0, name='second', inputs=[first])\n"
)
FAILS = (
    "import headrace as hr\nprogram = hr.Program('fails')\n"
    "def boom():\n    raise ValueError('no such luck')\n"
    "def after(x):\n    return x\n"
    "made = program.task(boom, name='boom', outputs=['a'])\n"
    "program.task(after, name='after', inputs=[made], outputs=['b'])\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "two.py").write_text(TWO)
    return tmp_path


def test_a_dash_is_stdout_and_the_summary_goes_to_stderr(folder: Path) -> None:
    ended = headrace("plan", "two.py", "--on", "lab.toml", "-s", "heft", "-o", "-", cwd=folder)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["format"] == "headrace-plan-1"
    assert "makespan" in ended.err
    assert not (folder / "-").exists()
    drawn = headrace("convert", "two.py", "-", "--to", "dot", cwd=folder)
    assert drawn.out.startswith("digraph")
    both = headrace("plan", "two.py", "--on", "lab.toml", "-o", "-", "--gantt", "-", cwd=folder)
    assert (both.code, "both go to stdout" in both.err) == (2, True)


def test_a_log_is_parseable_when_names_hold_spaces(folder: Path) -> None:
    command = ("simulate", "two.py", "--on", "lab.toml", "-s", "workqueue", "--faults", "kill=h2@99")
    ended = headrace(*command, "--log", "-", cwd=folder)
    assert ended.code == 0, ended.err
    words = [json_words(line) for line in ended.out.splitlines()]
    started = [word[2] for word in words if word[1] == "start"]
    assert sorted(started) == ["first task", "second"]


def json_words(line: str) -> list[str]:
    """The words of a log line, as docs/formats.md describes them."""
    decoder = json.JSONDecoder()
    words = []
    while line:
        if line[0] == '"':
            word, end = decoder.raw_decode(line)
        else:
            end = line.find(" ") if " " in line else len(line)
            word = line[:end]
        words.append(word)
        line = line[end + 1 :]
    return words


@pytest.mark.slow
def test_failures_are_told_apart_from_what_did_not_run(folder: Path) -> None:
    (folder / "fails.py").write_text(FAILS)
    ended = headrace("run", "fails.py", "--workers", "1", "--json", cwd=folder)
    assert ended.code == 1
    answer = json.loads(ended.out)
    assert [failed["task"] for failed in answer["failed"]] == ["boom"]
    assert answer["not_run"] == ["after"]
    shown = headrace("runs", answer["run"], cwd=folder)
    assert "task 'boom' failed" in shown.out
    assert "no such luck" in shown.out
