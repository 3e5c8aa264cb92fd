"""Load a program, a platform or a grid, in whichever format the file has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.formats import platform_ini
from headrace.formats.format import Kind
from headrace.formats.platform_ini import Machines
from headrace.formats.registry import detect
from headrace.model.behaviour import GridScript
from headrace.model.errors import BadFile, HeadraceError, UsageError
from headrace.model.pipeline import Pipeline
from headrace.model.platform import Platform
from headrace.model.program import Program

LOCAL = "local"
"""The platform that is this machine."""


def load_program(spec: str | Path, *, commands: bool = False) -> Program:
    """The program of a file, or of `file.py:name`, which is executed: use it only on files that you trust.

    With `commands`, tasks of a WfFormat file execute the commands that the file has, which it otherwise does not:
    use that only on files that you trust.
    """
    if commands:
        return _with_commands(spec)
    program: Program = _load(spec, "program")
    return program


def _with_commands(spec: str | Path) -> Program:
    from headrace.formats import wfformat
    from headrace.formats.wfformat_commands import read_with_commands

    if detect(spec) not in wfformat.FORMATS:
        raise UsageError(
            "only WfFormat files have commands that must be allowed", where=str(spec), hint="leave it out"
        )
    return read_with_commands(spec)


def executable_commands(spec: str | Path) -> bool:
    """Whether a file has commands that `load_program` with `commands` would execute."""
    from headrace.formats import wfformat
    from headrace.formats.wfformat_commands import has_commands

    return detect(spec) in wfformat.FORMATS and has_commands(spec)


def load_platform(spec: str | Path) -> Platform:
    """The platform of a file, or this machine for `local`; a grid description gives the grid at time 0."""
    grid = load_grid(spec)
    if isinstance(grid, Platform):
        return grid
    try:
        return grid.start()
    except HeadraceError as error:
        raise error if str(spec) in error.where else error.at(str(spec)) from None


def load_grid(spec: str | Path) -> GridScript | Platform:
    """Like `load_platform`, but a grid description keeps its events."""
    if str(spec) == LOCAL:
        return Platform.local()
    grid: GridScript | Platform = _load(spec, "platform", "grid")
    return grid


def load_machines(spec: str | Path) -> Machines:
    """A platform with its shared segments, which only INI files have."""
    if str(spec) != LOCAL and detect(spec) in platform_ini.FORMATS:
        return platform_ini.read_machines(spec)
    return Machines(load_platform(spec))


def load_pipeline(path: str | Path) -> Pipeline:
    """The pipeline of a file."""
    pipeline: Pipeline = _load(path, "pipeline")
    return pipeline


def _load(spec: str | Path, *kinds: Kind) -> Any:
    found = detect(spec)
    assert found.read is not None  # only such formats are detected
    if found.kind not in kinds:
        raise BadFile(
            f"is a {found.kind}, not a {' or '.join(kinds)}", where=str(spec), hint=f"give a {kinds[0]} file"
        )
    return found.read(spec)
