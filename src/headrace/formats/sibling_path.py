"""Paths of files that another file refers to: only in the same folder or below."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile


def sibling_path(file: str | Path, name: str) -> Path:
    """The path of a file that `file` refers to, which must not leave its folder, not even by a symbolic link.

    >>> sibling_path("grids/lab.toml", "traces/n.trace").as_posix()
    'grids/traces/n.trace'
    """
    folder = Path(file).parent
    relative = PurePosixPath(name)
    inside = not relative.is_absolute() and ".." not in relative.parts and "\\" not in name
    if inside and "\0" not in name:
        path = folder / relative
        try:
            if path.resolve().is_relative_to(folder.resolve()):
                return path
        except (OSError, RuntimeError):  # a cycle of symbolic links
            pass
    raise BadFile(
        f"refers to {shorten(name, 60)}, which is outside its folder",
        where=str(file),
        hint="keep referenced files in the same folder or below it",
    )
