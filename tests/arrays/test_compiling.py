"""Compiled code: kept by content, never stale, never from a folder that others can write to."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.arrays import clock, code_cache, compile_notice
from headrace.arrays.source_digest import ROOT, _imports, imported_modules, source_digest

SHOW = """
from headrace.small_entry import total
from headrace.arrays.compiling import LOG
print(total(3.0), sorted(name.split('.')[-1] for name in LOG.compiled))
"""
INNER = """
from headrace.arrays.compiling import inner

@inner
def weight(number):
    return 2.0 * number
"""
ENTRY = """
from headrace.arrays.compiling import entry

@entry
def total(number):
    return weight(number) + 1.0

def _lazily():
    from headrace.small_lazy import NOTHING

from headrace.small_inner import weight
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the package with two small compiled modules of its own."""
    return _clone(tmp_path / "first")


def _clone(folder: Path) -> Path:
    package = folder / "headrace"
    shutil.copytree(ROOT / "arrays", package / "arrays", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    (package / "small_inner.py").write_text(INNER)
    (package / "small_entry.py").write_text(ENTRY)
    (package / "small_lazy.py").write_text("NOTHING = 0\n")
    return folder


def _run(folder: Path, cache: Path, **environment: str) -> str:
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "COV", "XDG"))}
    env = plain | {"PYTHONPATH": str(folder), "HEADRACE_CACHE_DIR": str(cache)} | environment
    done = subprocess.run(
        [sys.executable, "-c", SHOW], capture_output=True, text=True, env=env, cwd=folder, check=True
    )
    return done.stdout.strip() + done.stderr.strip().split("(")[0].rstrip()


def test_compiled_once_for_all_clones_of_the_same_source(clone, tmp_path):
    first = "7.0 ['total', 'weight']Compiling"
    again = "7.0 []"
    assert _run(clone, tmp_path / "cache") == first
    assert _run(clone, tmp_path / "cache") == again
    second = _clone(tmp_path / "second")
    assert _run(second, tmp_path / "cache") == again
    assert _run(second, tmp_path / "other cache", NUMBA_CACHE_DIR=str(tmp_path / "cache")) == first
    assert {folder.name.split("-")[0] for folder in (tmp_path / "cache" / "headrace").iterdir()} == {
        "headrace.small_entry",
        "headrace.small_inner",
    }


@pytest.mark.slow
def test_an_edited_callee_is_noticed(clone, tmp_path):
    _run(clone, tmp_path / "cache")
    path = clone / "headrace" / "small_inner.py"
    before = path.stat()
    path.write_text(path.read_text().replace("2.0", "5.0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _run(clone, tmp_path / "cache") == "16.0 ['total', 'weight']Compiling"
    (clone / "headrace" / "small_lazy.py").write_text("NOTHING = 1\n")
    assert _run(clone, tmp_path / "cache") == "16.0 ['total']Compiling"


def test_a_folder_that_others_can_write_to_is_not_used(clone, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    said = _run(clone, cache)
    assert said.startswith("7.0 ['total', 'weight']warning: compiled code is not cached in")
    assert list(cache.iterdir()) == []
    assert len(list((clone / "headrace" / "__pycache__" / "compiled").iterdir())) == 2


def test_the_folder_is_made_for_its_user_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache.config, "CACHE_DIR", "")
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "a" / "b"))
    folder = code_cache.cache_root.__wrapped__()
    assert folder == (tmp_path / "a" / "b").resolve()
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("HEADRACE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_cache.cache_root.__wrapped__() == (tmp_path / "xdg" / "headrace").resolve()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=str)
def test_all_imports_are_found_without_parsing(path):
    found = set(_imports(path))
    package = ("headrace", *path.relative_to(ROOT).parts[:-1])
    wanted = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*start, *((node.module,) if node.module else ())))
            wanted |= {base} | {f"{base}.{name.name}" for name in node.names}
    assert {name for name in wanted if _is_module(name)} <= found


def _is_module(name: str) -> bool:
    first, *rest = name.split(".")
    path = ROOT.joinpath(*rest)
    return first == "headrace" and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def test_relative_and_wrapped_imports(tmp_path):
    own = tmp_path / "own.py"
    own.write_text("from headrace.arrays import (  # (why)\n    clock as c,\n    code_cache,\n)\n")
    assert {"headrace.arrays.clock", "headrace.arrays.code_cache", "headrace.arrays.source_digest"} <= (
        imported_modules(own)
    )
    assert source_digest(own) != source_digest(own, "x")


def test_damaged_and_foreign_entries_are_compiled_again(tmp_path):
    entries = code_cache._Entries(tmp_path, "f")
    assert entries.load("key") is None
    entries.save("key", [1, 2])
    assert entries.load("key") == [1, 2]
    entries._path("other").write_bytes(entries._path("key").read_bytes())
    assert entries.load("other") is None
    entries._path("key").write_bytes(entries._path("key").read_bytes()[:10])
    assert entries.load("key") is None
    entries.flush()
    assert list(tmp_path.iterdir()) == []


def test_unused_folders_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache, "cache_root", lambda: tmp_path)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.nbc").touch()
    month = time.time() - 31 * 86400
    os.utime(tmp_path / "old", (month, month))
    assert code_cache.prune() == 1
    assert [folder.name for folder in tmp_path.iterdir()] == ["new"]


def test_the_work_clock_stops_while_code_is_compiled(monkeypatch):
    now = [time.perf_counter()]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    began, compiled = clock.work_clock(), clock.compile_seconds()
    clock.compile_begins()
    clock.compile_begins()
    now[0] += 5.0
    clock.compile_ends()
    assert clock.compile_seconds() - compiled == pytest.approx(5.0)
    clock.compile_ends()
    now[0] += 1.0
    assert clock.compile_seconds() - compiled == pytest.approx(5.0)
    assert clock.work_clock() - began == pytest.approx(1.0)


def test_compiling_is_said_once(monkeypatch):
    monkeypatch.setattr(compile_notice, "_told", False)
    said, shown = [], []
    with compile_notice.compile_notice(compile_notice.Notice(said.append, shown.append, expected_seconds=20)):
        compile_notice.notify_begin(1, 0.0)
        monkeypatch.setattr(compile_notice, "_shown_at", time.perf_counter() - 2)
        compile_notice.notify_begin(8, 2.2)
        compile_notice.notify_end()
    assert said == [
        "Compiling (first use; about 20 s for this command; `headrace warmup` compiles everything in advance)"
    ]
    assert shown == ["Compiling: 8 functions, 2 s", ""]
