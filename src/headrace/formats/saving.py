"""Write a program or a platform in the format that the name of the file selects."""

from __future__ import annotations

from pathlib import Path

from headrace.formats.format import Format
from headrace.formats.pst_platform import grid_of
from headrace.formats.registry import choose_format, writable
from headrace.model.arguments import wrong_argument
from headrace.model.errors import UsageError
from headrace.model.platform import Platform
from headrace.model.program import Program


def write_program_as(program: Program, path: str | Path, name: str | None = None) -> None:
    """Write a program; the format is that of this name, or selected by the suffix.

    Raises
    ------
    UsageError
        If there is no such format.
    """
    chosen = _chosen(writable("program"), path, name, "program")
    assert chosen.write is not None
    chosen.write(program, Path(path))


def write_platform_as(platform: Platform, path: str | Path, name: str | None = None) -> None:
    """Write a platform, also as a grid that never changes; the format is chosen as by `write_program_as`."""
    chosen = _chosen([*writable("platform"), *writable("grid")], path, name, "platform")
    assert chosen.write is not None
    chosen.write(grid_of(platform) if chosen.kind == "grid" else platform, Path(path))


def _chosen(choices: list[Format], path: str | Path, name: str | None, what: str) -> Format:
    if not isinstance(name, str | None):
        raise wrong_argument("format", name, f"give its name, such as {choices[0].name!r}, or leave it out")
    chosen = choose_format(choices, Path(path), name)
    if chosen is not None:
        return chosen
    problem = (
        f"there is no format {name!r} for a {what}" if name else f"the suffix of {str(path)!r} is unknown"
    )
    names = ", ".join(choice.name for choice in choices)
    suffixes = ", ".join(suffix for choice in choices for suffix in choice.suffixes)
    raise UsageError(problem, hint=f"use one of {names if name else suffixes}")
