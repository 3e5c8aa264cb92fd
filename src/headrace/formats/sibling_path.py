"""Files that a file names: they lie in its folder or below, nowhere else."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile


def sibling_path(file: str | Path, name: str) -> Path:
    """The path of a file that `file` names, which must not lead out of its folder, not even by a link.

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
        except (OSError, RuntimeError):  # symbolic links in a circle
            pass
    raise BadFile(
        f"it names {shorten(name, 60)}, which is outside of its folder",
        where=str(file),
        hint="keep the files it names next to it, or in a folder there",
    )
