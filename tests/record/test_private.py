"""Nobody else can read a record."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headrace.model.errors import BadFile
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.record import Record
from headrace.record.store import FILE_NAME

NOBODY = 65534


def modes(folder: Path) -> dict[str, int]:
    """Permissions of a folder and of everything in it."""
    found = {".": stat.S_IMODE(folder.stat().st_mode)}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = stat.S_IMODE(path.stat().st_mode)
    return found


def a_run(folder: Path) -> None:
    program = Program("p")
    program.task(None, name="t")
    with (
        Record.open(folder) as record,
        record.begin("p", program.graph, Platform.local(1), "heft") as run,
    ):
        run.stored("t.done", "x")


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_new_record_is_private_whatever_the_umask(tmp_path, open_umask):
    a_run(tmp_path / "home")
    found = modes(tmp_path / "home")
    folders = {name: mode for name, mode in found.items() if (tmp_path / "home" / name).is_dir()}
    assert set(folders.values()) == {0o700}
    assert {mode for name, mode in found.items() if name not in folders} == {0o600}
    assert "key" in found


def test_an_old_record_is_tightened(tmp_path, open_umask):
    a_run(tmp_path)
    old = tmp_path / "results" / "run"
    old.mkdir(mode=0o755)
    (old / "x.json").write_text("{}")
    (tmp_path / FILE_NAME).chmod(0o644)
    tmp_path.chmod(0o755)
    with Record.open(tmp_path):
        found = modes(tmp_path)
    assert {found[n] for n in (".", "results", "results/run", "alive", "kept")} == {0o700}
    assert {found[n] for n in (FILE_NAME, "results/run/x.json", "key")} == {0o600}


def test_links_out_of_a_record_are_left_alone(tmp_path, open_umask):
    outside = tmp_path / "outside"
    outside.write_text("")
    home = tmp_path / "home"
    (home / "results").mkdir(parents=True)
    (home / "results" / "link").symlink_to(outside)
    with Record.open(home):
        assert stat.S_IMODE(outside.stat().st_mode) == 0o666


def test_a_folder_that_all_users_share_is_refused(tmp_path):
    tmp_path.chmod(0o1777)
    with pytest.raises(BadFile, match="shared by all users"):
        Record.open(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


_AS_NOBODY = f"""
import os, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
read = 0
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
        read += 1
    except PermissionError:
        pass
print(read)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reads_nothing(open_umask):
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)  # what protects the record is the record's own folder
        home = Path(base) / "home"
        a_run(home)
        (Path(base) / "open").write_text("")
        paths = [str(p) for p in (home, *home.rglob("*"))]
        command = [sys.executable, "-c", _AS_NOBODY]
        assert subprocess.check_output([*command, f"{base}/open"], text=True).strip() == "1"
        assert len(paths) > 6
        assert subprocess.check_output([*command, *paths], text=True).strip() == "0"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_user_s_key_is_not_trusted(tmp_path):
    a_run(tmp_path)
    os.chown(tmp_path / "key", NOBODY, NOBODY)
    with Record.open(tmp_path) as record, pytest.raises(BadFile, match="key belongs to another user"):
        record.kept_folder("r")


@pytest.mark.parametrize(("content", "mode"), [(b"short", 0o600), (bytes(32), 0o640)])
def test_a_key_that_is_none_is_refused(tmp_path, content, mode):
    a_run(tmp_path)
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(mode)
    with Record.open(tmp_path) as record, pytest.raises(BadFile, match="not a key of 32 bytes"):
        record.kept_folder("r")
