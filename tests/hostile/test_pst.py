"""Hostile grids, applications and behaviours: one typed error with the line, the value and what to try."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.platform_toml import read_platform
from headrace.formats.pst_behaviour import read_behaviour
from headrace.formats.pst_grid import read_grid
from headrace.formats.pst_work import read_work
from headrace.model.errors import BadFile, BadPlatform, BadProgram, HeadraceError

GRID = "GridDescription 1\n# two lines\n0:ADD_CLUSTER <c> <net> <0>\n0:ADD_HOST <c> <h> <cpu> <0> <0>\n"
WORK = "WorkDescription 1 3 1\nFile: <0> <a> <1> <1>\nFile: <1> <b> <1> <1>\nFile: <2> <c> <1> <1>\n"
LINE = "Work: <0> <1 : 0> <1 : 1> <1 : 5> <1 : 5>\n"


def refused(read: object, path: Path, error: type[HeadraceError], *parts: str) -> None:
    assert callable(read)
    before = sorted(path.parent.iterdir())
    with pytest.raises(HeadraceError) as caught:
        read(path)
    message = str(caught.value)
    assert type(caught.value) is error, message
    assert all(part in message for part in (*parts, path.name)), message
    assert caught.value.hint
    assert len(message) < 600
    assert "\n" not in message
    assert sorted(path.parent.iterdir()) == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net").write_text("1\n10 1000\n")
    (tmp_path / "cpu").write_text("1\n50\n")
    (tmp_path / "off").write_text("1\n0\n")
    (tmp_path / "bad").write_text("1\nfifty\n")
    return tmp_path


GRIDS = {
    "empty": ("", "is empty"),
    "only comments": ("# nothing\n\n", "is empty"),
    "wrong keyword": ("GridDescriptor 1\n", "line 1", "GridDescriptor"),
    "wrong version": ("GridDescription 2\n", "line 1", "'2'"),
    "no version": ("GridDescription\n", "line 1", "version"),
    "more after the version": ("GridDescription 1 7\n", "line 1", "'7'"),
    "unknown event": (GRID + "9:MOVE_HOST <h>\n", "line 5", "MOVE_HOST"),
    "no time": (GRID + "REMOVE_HOST <h>\n", "line 5", "REMOVE_HOST"),
    "negative time": (GRID + "-1:REMOVE_HOST <h>\n", "line 5", "'-1'"),
    "time that is no number": (GRID + "soon:REMOVE_HOST <h>\n", "line 5", "'soon'"),
    "nan time": (GRID + "nan:REMOVE_HOST <h>\n", "line 5", "'nan'"),
    "infinite time": (GRID + "1e999:REMOVE_HOST <h>\n", "line 5", "1e999"),
    "too few fields": (GRID + "9:REMOVE_HOST\n", "line 5", "0 fields"),
    "too many fields": (GRID + "9:REMOVE_HOST <h> <i>\n", "line 5", "2 fields"),
    "no brackets": (GRID + "9:REMOVE_HOST h\n", "line 5", "'h'"),
    "nested brackets": (GRID + "9:REMOVE_HOST <<h>>\n", "line 5", "'<<h>>'"),
    "empty name": (GRID + "9:REMOVE_HOST < >\n", "line 5", "''"),
    "long name": (GRID + f"9:REMOVE_HOST <{'h' * 300}>\n", "line 5", "hhh"),
    "offset that is no number": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <cpu> <x>\n", "line 5", "'x'"),
    "negative offset": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <cpu> <-1>\n", "line 5", "'-1'"),
    "huge offset": (GRID + f"9:CHANGE_HOST_BEHAVIOR <h> <cpu> <{'9' * 30}>\n", "line 5", "999"),
    "digits of another script": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <cpu> <٣>\n", "line 5", "٣"),
    "behaviour that is not there": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <gone> <0>\n", "line 5", "gone"),
    "behaviour outside": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <../net> <0>\n", "line 5", "../net"),
    "behaviour by absolute path": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> </etc/passwd> <0>\n", "line 5", "/etc/passwd"),
    "behaviour with a null byte": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <a\0b> <0>\n", "line 5", "a\\x00b"),
    "behaviour that is broken": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <bad> <0>\n", "line 5", "bad", "'fifty'"),
    "behaviour that is a folder": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <.> <0>\n", "line 5", "directory"),
}  # fmt: skip


@pytest.mark.parametrize("case", GRIDS)
def test_bad_grids(case: str, folder: Path) -> None:
    text, *parts = GRIDS[case]
    (folder / "grid.pst").write_text(text)
    refused(read_grid, folder / "grid.pst", BadFile, *parts)


SCRIPTS = {
    "no host": ("GridDescription 1\n0:ADD_CLUSTER <c> <net> <0>\n", "no host is ever added"),
    "link for a host": (GRID + "9:CHANGE_HOST_BEHAVIOR <h> <net> <0>\n", "'net' describes a link"),
    "host for a link": (GRID + "9:CHANGE_CLUSTER_BEHAVIOR <c> <cpu> <0>\n", "'cpu' describes a host"),
    "host twice": (GRID + "9:ADD_HOST <c> <h> <cpu> <0> <0>\n", "'h' is already present"),
    "host of nobody": (GRID + "9:REMOVE_HOST <g>\n", "no host 'g'"),
    "host and cluster of one name": (GRID + "9:ADD_HOST <c> <c> <cpu> <0> <0>\n", "'c' is used 2 times"),
    "never available": (GRID + "9:ADD_HOST <c> <g> <off> <0> <0>\n", "always 0"),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_grids_that_contradict_themselves(case: str, folder: Path) -> None:
    text, *parts = SCRIPTS[case]
    (folder / "grid.pst").write_text(text)
    refused(read_grid, folder / "grid.pst", BadPlatform, *parts)


def test_a_symbolic_link_does_not_lead_out(folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "way").symlink_to(folder / "cpu")
    (inside / "p.toml").write_text('[[host]]\nname = "n"\ntrace = "way"\n')
    refused(read_platform, inside / "p.toml", BadFile, "'way'", "outside")


WORKS = {
    "empty": ("", "is empty"),
    "wrong keyword": ("Work 1 0 0\n", "line 1", "'Work'"),
    "wrong version": ("WorkDescription 3 0 0\n", "line 1", "'3'"),
    "no counts": ("WorkDescription 1\n", "line 1", "0 numbers"),
    "count that is no number": ("WorkDescription 1 x 0\n", "line 1", "'x'"),
    "absurd count": ("WorkDescription 1 0 99999999999\n", "line 1", "99999999999"),
    "too few files": ("WorkDescription 1 2 0\nFile: <0> <a> <1> <1>\n", "line 1", "2 files", "has 1"),
    "too few tasks": (WORK, "line 1", "1 tasks", "has 0"),
    "unknown line": (WORK + "Task: <0>\n", "line 5", "Task"),
    "file twice": (WORK + "File: <0> <z> <1> <1>\n", "line 5", "file id 0"),
    "file id out of range": (WORK + "File: <3> <z> <1> <1>\n", "line 5", "is 3"),
    "negative size": ("WorkDescription 1 1 0\nFile: <0> <a> <-1> <1>\n", "line 2", "'-1'"),
    "nan size": ("WorkDescription 1 1 0\nFile: <0> <a> <nan> <1>\n", "line 2", "'nan'"),
    "size with a unit": ("WorkDescription 1 1 0\nFile: <0> <a> <1> <1 MB>\n", "line 2", "'1 MB'"),
    "underscores": ("WorkDescription 1 1 0\nFile: <0> <a> <1_0> <1>\n", "line 2", "'1_0'"),
    "file without estimate": ("WorkDescription 1 1 0\nFile: <0> <a> <1>\n", "line 2", "3 fields"),
    "task twice": (WORK + LINE + LINE.replace("1 : 1", "1 : 2"), "line 6", "task id 0"),
    "task id out of range": (WORK + LINE.replace("<0>", "<1>"), "line 5", "is 1"),
    "input that is not there": (WORK + LINE.replace("1 : 0", "1 : 7"), "line 5", "file 7 is not declared"),
    "file after its use": ("WorkDescription 1 3 1\n" + LINE + WORK.partition("\n")[2], "line 2", "file 0 is not"),
    "count and list differ": (WORK + LINE.replace("1 : 0", "2 : 0"), "line 5", "'2 : 0'"),
    "list without count": (WORK + LINE.replace("1 : 0", "0"), "line 5", "inputs are '0'"),
    "read and written": (WORK + LINE.replace("1 : 0", "1 : 1"), "line 5", "file 1"),
    "written twice": (WORK + LINE.replace("1 : 1", "2 : 1 1"), "line 5", "file 1"),
    "two writers": (WORK.replace("3 1\n", "3 2\n") + LINE + LINE.replace("<0>", "<1>"), "line 6", "file 1"),
    "no run time": (WORK + LINE.replace("<1 : 5>", "<0 :>"), "line 5", "0 run times"),
    "too many architectures": (WORK + LINE.replace("<1 : 5>", f"<2000 : {'5 ' * 2000}>"), "line 5", "2000"),
    "negative run time": (WORK + LINE.replace("1 : 5", "1 : -5"), "line 5", "'-5'"),
    "endless run time": (WORK + LINE.replace("1 : 5", "1 : inf"), "line 5", "'inf'"),
    "no time on one architecture": (WORK + LINE.replace("1 : 5", "2 : 5 0"), "line 5", "[5.0, 0.0]"),
    "fewer estimates": (WORK + LINE.replace("<1 : 5> <1 : 5>", "<2 : 5 6> <1 : 5>"), "line 5", "2 run times"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKS)
def test_bad_applications(case: str, folder: Path) -> None:
    text, *parts = WORKS[case]
    (folder / "work.pst").write_text(text)
    refused(read_work, folder / "work.pst", BadFile, *parts)


def test_tasks_that_wait_for_each_other(folder: Path) -> None:
    text = WORK.replace("3 1\n", "3 2\n") + LINE + LINE.replace("1 : 1", "1 : X").replace("1 : 0", "1 : 1")
    (folder / "work.pst").write_text(text.replace("1 : X", "1 : 0").replace("<0> <1 : 1>", "<1> <1 : 1>"))
    with pytest.raises(BadProgram, match="circle"):
        read_work(folder / "work.pst")


BEHAVIOURS = {
    "empty": ("", "is empty"),
    "no number first": ("many\n1\n", "line 1", "'many'"),
    "no values": ("0\n", "line 1", "0 values"),
    "fewer values than said": ("3\n1\n2\n", "line 1", "declares 3"),
    "more values than said": ("1\n1\n2\n", "line 1", "has 2"),
    "over 100 percent": ("2\n100\n101\n", "line 3", "101"),
    "negative": ("1\n-1\n", "line 2", "'-1'"),
    "rows that differ": ("2\n1\n1 2\n", "line 3", "2 numbers"),
    "too wide": ("1\n1 2 3\n", "line 2", "3 numbers"),
    "no interval": ("1 0\n50\n", "line 1", "interval"),
    "long header": ("1 5 5\n50\n", "line 1", "'1 5 5'"),
    "own, unknown end": ("HeadraceTrace 1 stop\n0 1\n", "line 1", "stop"),
    "own, no rows": ("HeadraceTrace 1 hold\n", "line 1", "no rows"),
    "own, no length": ("HeadraceTrace 1 repeat\n0 1\n", "line 1", "length"),
    "own, more at the end": ("HeadraceTrace 1 hold offset\n0 1\n", "line 1", "'offset'"),
    "own, late start": ("HeadraceTrace 1 hold\n1 1\n", "do not increase from 0"),
    "own, time stands still": ("HeadraceTrace 1 hold\n0 1\n0 1\n", "do not increase from 0"),
    "own, repeats too early": ("HeadraceTrace 1 repeat 5\n0 1\n5 1\n", "5.0 s"),
    "own, not a number": ("HeadraceTrace 1 hold\n0 inf\n", "line 2", "'inf'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BEHAVIOURS)
def test_bad_behaviours(case: str, folder: Path) -> None:
    text, *parts = BEHAVIOURS[case]
    (folder / "b.trace").write_text(text)
    refused(read_behaviour, folder / "b.trace", BadFile, *parts)


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "b.trace").write_bytes(b"1\n\xff\n")
    refused(read_behaviour, folder / "b.trace", BadFile, "0xff", "line 2")


def test_too_many_values(folder: Path) -> None:
    (folder / "b.trace").write_text("600000\n" + "1\n" * 600_000)
    refused(read_behaviour, folder / "b.trace", BadFile, "600000")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[[host]]\nname = "n"\ntrace = "net"\n', ("trace of a link",)),
        ('[[host]]\nname = "n"\ntrace = "off"\n', ("always 0",)),
        ('[[host]]\nname = "n"\ntrace = 3\n', ("trace is 3",)),
        ('[[host]]\nname = "n"\narch = -1\n', ("arch is -1",)),
        ('[[site]]\nname = "s"\nuplink_trace = "off"\n[[site.host]]\nname = "n"\n', ("always 0",)),
    ],
)
def test_bad_traces_in_platforms(text: str, parts: tuple[str, ...], folder: Path) -> None:
    (folder / "p.toml").write_text(text)
    refused(read_platform, folder / "p.toml", BadPlatform, *parts)
