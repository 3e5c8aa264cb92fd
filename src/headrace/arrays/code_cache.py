"""Cache of compiled code on disk, keyed by the content of the source instead of its path and modification time.

Numba's own cache checks only one file, so it keeps stale code of changed callees, and it belongs to one checkout. Here
a folder is named after a digest (see `source_digest`), so another clone or a new installation of the same source
reuses the compiled code, and a changed callee is noticed.

Each entry is one file that contains its own key. Numba's index file is not used: two processes that compile two
signatures of one function at the same time can make it refer to the wrong code.
"""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from functools import cache
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.serialize import dumps

from headrace.arrays.clock import compile_begins, compile_ends
from headrace.arrays.source_digest import ROOT, source_digest

VERSIONS = (f"numba {numba.__version__}", f"llvmlite {llvmlite.__version__}", f"numpy {numpy.__version__}")
UNUSED_DAYS = 30
"""`prune` removes folders that no process has used for this many days."""

_DAY = 86400.0


@cache
def cache_root() -> Path | None:
    """Return the folder of all compiled code; None if no trusted, writable folder is available.

    `$NUMBA_CACHE_DIR` if it is set, else `$HEADRACE_CACHE_DIR`, else `$XDG_CACHE_HOME/headrace`, else
    `~/.cache/headrace`. Entries are pickles, which can execute code when they are read: a folder that belongs to
    another user or that others can write to is not used, and `__pycache__` of the package is used instead.
    """
    if config.CACHE_DIR:  # the user has configured numba to trust it
        return _made(Path(config.CACHE_DIR) / "headrace")
    wanted = _user_folder()
    if wanted is not None and (folder := _made(wanted)) is not None:
        if _is_private(folder):
            return folder
        sys.stderr.write(
            f"warning: compiled code is not cached in {folder}: other users can write there (chmod 700 it)\n"
        )
    return _made(ROOT / "__pycache__" / "compiled")


def _user_folder() -> Path | None:
    if own := os.environ.get("HEADRACE_CACHE_DIR"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "headrace"
    with suppress(RuntimeError):  # an account without a home directory
        return Path.home() / ".cache" / "headrace"
    return None


def _made(folder: Path) -> Path | None:
    """The folder, if it can be created and written to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder.resolve()


def _is_private(folder: Path) -> bool:
    if not hasattr(os, "getuid"):  # Windows: a user's folders are private
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def prune() -> int:
    """Remove what no process has used for `UNUSED_DAYS`; returns the number of folders and files removed."""
    root = cache_root()
    oldest = time.time() - UNUSED_DAYS * _DAY
    unused = [path for path in root.iterdir() if path.stat().st_mtime < oldest] if root else []
    for path in unused:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(unused)


@cache
def _folder_of(source: Path) -> Path | None:
    """The folder with the compiled functions of a source file, marked as used today."""
    root = cache_root()
    if root is None:
        return None
    digest = source_digest(source, *VERSIONS)
    folder = root / f"{source.parent.name}.{source.stem}-{digest[:24]}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_mtime < time.time() - _DAY:
            os.utime(folder)
        return folder
    return None


class ContentLocator(_CacheLocator):  # type: ignore[misc]
    """Tells numba where the compiled code of a function is cached."""

    def __init__(self, folder: Path, source: str, line: int) -> None:
        self._folder = folder
        self._py_file = source
        self._line = line

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> ContentLocator | None:
        path = Path(py_file)
        folder = _folder_of(path.resolve()) if path.exists() else None
        return None if folder is None else cls(folder, py_file, py_func.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class _ContentCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (ContentLocator,)


class ContentCache(FunctionCache):  # type: ignore[misc]
    """The compiled signatures of one function; time spent loading and saving counts as compiling."""

    _impl_class = _ContentCacheImpl

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = _Entries(Path(self._cache_path), self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        compile_begins()
        try:
            return super().load_overload(sig, target_context)
        finally:
            compile_ends()

    def save_overload(self, sig: Any, data: Any) -> None:
        compile_begins()
        try:
            super().save_overload(sig, data)
        finally:
            compile_ends()


class _Entries:
    """One file per signature, named after its key and containing it."""

    def __init__(self, folder: Path, base: str) -> None:
        self._folder = folder
        self._base = base

    def _path(self, key: object) -> Path:
        return self._folder / f"{self._base}.{sha256(str(key).encode()).hexdigest()[:16]}.nbc"

    def load(self, key: object) -> Any:
        path = self._path(key)
        try:
            found, payload = pickle.loads(zlib.decompress(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (
            Exception
        ):  # a damaged file can raise anything; the code is recompiled and the file overwritten
            return None
        return payload if found == key else None

    def save(self, key: object, payload: object) -> None:
        path = self._path(key)
        packed = zlib.compress(dumps((key, payload)), 1)
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "wb") as file:
                file.write(packed)
            Path(name).replace(path)
        except (
            OSError
        ) as error:  # such as a full disk: the code is usable, but not cached for the next process
            sys.stderr.write(f"warning: compiled code was not cached: {error}\n")

    def flush(self) -> None:
        for path in self._folder.glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)


def cache_of(function: FunctionType) -> ContentCache | None:
    """Return the cache of a function; None if its code can be kept only in memory."""
    source = Path(getfile(function))
    if (
        not source.exists() or _folder_of(source.resolve()) is None
    ):  # typed at a prompt, or no folder to write to
        return None
    return ContentCache(function)
