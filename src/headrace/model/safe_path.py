"""Names of files that come from outside: relative paths that stay in their folder."""

from __future__ import annotations

from pathlib import PurePosixPath

from headrace.model.errors import BadFile

LONGEST_NAME = 255
"""Bytes of one part of a path."""
LONGEST_PATH = 2000


def safe_path(name: str, where: str = "") -> PurePosixPath:
    """A name as a relative path that stays in its folder.

    Raises
    ------
    BadFile
        If it is absolute, has a part `..`, a NUL or half a surrogate pair, or is too long for a file system.

    >>> safe_path("run/part 1.txt")
    PurePosixPath('run/part 1.txt')
    >>> safe_path("/etc/passwd")
    Traceback (most recent call last):
        ...
    headrace.model.errors.BadFile: '/etc/passwd' leaves its folder (try: use plain relative paths)
    """
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise BadFile(f"{shown!r} leaves its folder", where=where, hint="use plain relative paths")
    try:
        lengths = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        lengths = []
    if not lengths or "\0" in name or path.as_posix() != name:
        raise BadFile(f"{shown!r} cannot be the name of a file", where=where, hint="use plain relative paths")
    if max(lengths) > LONGEST_NAME or sum(lengths) + len(lengths) > LONGEST_PATH:
        raise BadFile(
            f"the name {shown!r} is too long", where=where, hint=f"use at most {LONGEST_NAME} bytes"
        )
    return path
