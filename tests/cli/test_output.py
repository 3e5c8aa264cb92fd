"""Where results go: files, stdout for `-`, and what is said about failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.formats.files import write_file

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


PLAN = ("plan", "two.py", "--on", "lab.toml", "-s", "heft")


def test_pipes_devices_and_links_stay_what_they_are(folder: Path) -> None:
    pipe, link = folder / "pipe", folder / "link.json"
    os.mkfifo(pipe)
    unread = headrace("convert", "two.py", "pipe", "--to", "dot", cwd=folder)
    assert (unread.code, "pipe: cannot be written" in unread.err) == (2, True)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    link.symlink_to("plan.json")
    write_file(link, b"behind")
    assert link.is_symlink()
    assert (folder / "plan.json").read_bytes() == b"behind"
    write_file("/dev/null", b"nowhere")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (("-o", "two.py"), "two.py is read and would be overwritten"),
        (("--trace", "./lab.toml"), "is read and would be overwritten"),
        (("-o", "alias.json"), "alias.json is read and would be overwritten"),
        (("-o", "same.json", "--trace", "same.json"), "two outputs have the name same.json"),
    ],
)
def test_outputs_never_replace_inputs_or_each_other(
    folder: Path, outputs: tuple[str, ...], said: str
) -> None:
    (folder / "alias.json").symlink_to("two.py")
    ended = headrace(*PLAN, *outputs, cwd=folder)
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert (folder / "two.py").read_text() == TWO
    assert (folder / "lab.toml").read_text() == LAB
    assert not (folder / "same.json").exists()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [("schedulers",), (*PLAN, "--json"), (*PLAN, "-o", "-")])
def test_a_full_disk_is_one_message(folder: Path, args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "headrace.cli", *args],
            cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("error: stdout: cannot be written: No space left")
    assert "Traceback" not in ended.stderr
