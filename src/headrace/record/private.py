"""Files that only their owner can read: folders of mode 0700, files of mode 0600."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headrace.model.errors import BadFile

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077


def private_folder(path: Path, parts: Iterable[str] = ()) -> None:
    """Create a folder with these subfolders, readable by its owner only.

    A folder that existed with a wider mode is tightened, and so is what its subfolders hold: O(files), once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as base:
    ...     private_folder(Path(base) / "home", ["results"])
    ...     oct((Path(base) / "home" / "results").stat().st_mode & 0o777)
    '0o700'
    """
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        _require_own(path)
        wide = path.stat().st_mode & _OTHERS
        path.chmod(FOLDER_MODE)
        for part in parts:
            (path / part).mkdir(mode=FOLDER_MODE, exist_ok=True)
            if wide:
                _tighten(path / part)
        if wide:
            _tighten_files(path)
    except OSError as error:
        raise BadFile(
            f"the record's folder cannot be created: {error.strerror}",
            where=str(path),
            hint="set HEADRACE_HOME to a writable folder",
        ) from None


def create_private(path: Path) -> None:
    """Create an empty file of mode 0600 if there is none, and tighten one that there is."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    if path.is_file() and path.stat().st_mode & _OTHERS:
        path.chmod(FILE_MODE)


def _require_own(path: Path) -> None:
    """Refuse a folder that others share or own: its contents could not be trusted, or not be kept private."""
    about = path.stat()
    if about.st_mode & stat.S_ISVTX and about.st_mode & 0o002:
        raise BadFile(
            "this folder is shared by all users", where=str(path), hint="set HEADRACE_HOME to a folder in it"
        )
    if about.st_uid != os.geteuid() and os.geteuid() != 0:
        raise BadFile(
            "this folder belongs to another user",
            where=str(path),
            hint="set HEADRACE_HOME to your own folder",
        )


def _tighten(folder: Path) -> None:
    folder.chmod(FOLDER_MODE)
    for base, folders, files in os.walk(folder):
        for name in folders:
            _restrict(Path(base) / name, FOLDER_MODE)
        for name in files:
            _restrict(Path(base) / name, FILE_MODE)


def _tighten_files(folder: Path) -> None:
    """Files beside the subfolders, such as the database; folders of others are left alone."""
    for path in folder.iterdir():
        if path.is_file():
            _restrict(path, FILE_MODE)


def _restrict(path: Path, mode: int) -> None:
    if not path.is_symlink():
        path.chmod(mode)
