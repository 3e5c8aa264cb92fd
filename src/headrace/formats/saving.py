"""Write a program in the format that the name of the file selects."""

from __future__ import annotations

from pathlib import Path

from headrace.formats.registry import choose_format, writable
from headrace.model.errors import UsageError
from headrace.model.program import Program


def write_program_as(program: Program, path: str | Path, name: str | None = None) -> None:
    """Write a program; the format is that of this name, or selected by the suffix.

    Raises
    ------
    UsageError
        If there is no such format.
    """
    choices = writable("program")
    chosen = choose_format(choices, Path(path), name)
    if chosen is None or chosen.write is None:
        what = (
            f"there is no format {name!r} for a program"
            if name
            else f"the suffix of {str(path)!r} is unknown"
        )
        names = ", ".join(choice.name for choice in choices)
        suffixes = ", ".join(suffix for choice in choices for suffix in choice.suffixes)
        raise UsageError(what, hint=f"use one of {names if name else suffixes}")
    chosen.write(program, Path(path))
