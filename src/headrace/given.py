"""What Python callers give: programs and platforms as objects, or as files, as the command takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.program import Program

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript


def as_program(given: Any, *, commands: bool = False) -> Program | Graph:
    """A program or graph as it is; a text or path is a file, or `file.py:name`.

    With `commands`, tasks of a WfFormat file execute the commands that the file has.

    >>> as_program(5)
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: the program is 5, an int (try: give a Program, or the name of a file)
    """
    if isinstance(given, Program | Graph):
        return given
    if isinstance(given, str | Path):
        from headrace.formats.loading import load_program

        return load_program(given, commands=commands)
    hint = "give a Program, or the name of a file"
    if type(given).__module__.split(".")[0] == "networkx":
        hint = "use Program.from_networkx"
    elif type(given).__module__.split(".")[0] == "dask":
        hint = "use Program.from_dask"
    elif isinstance(given, Platform):
        hint = "the program comes first, then the platform"
    raise _wrong("program", given, hint)


def as_platform(given: Any) -> Platform:
    """A platform as it is; a text or path is a file, or `local`. A grid is taken at time 0."""
    from headrace.model.behaviour import GridScript

    found = as_grid(given)
    return found.start() if isinstance(found, GridScript) else found


def as_grid(given: Any) -> Platform | GridScript:
    """A platform or grid as it is; a text or path is a file, or `local`."""
    from headrace.model.behaviour import GridScript

    if isinstance(given, Platform | GridScript):
        return given
    if isinstance(given, str | Path):
        from headrace.formats.loading import load_grid

        return load_grid(given)
    hint = "the program comes first, then the platform" if isinstance(given, Program | Graph) else ""
    raise _wrong("platform", given, hint or "give a Platform, the name of a file, or 'local'")


def require_bodies(program: Program, spec: str | Path | None, *, allow: str, emulate: str) -> None:
    """Raise an error if a task has nothing to execute; `allow` and `emulate` are what to write to change that."""
    bare = next((t.name for t in program.tasks.values() if t.body is None), None)
    if bare is None:
        return
    from headrace.formats.loading import executable_commands

    if spec and executable_commands(spec):
        raise UsageError(
            f"the commands of this file are not executed unless you allow it, such as that of task {bare!r}",
            where=program.name,
            hint=f"{allow} if you trust the file, or {emulate} to run emulated tasks",
        )
    raise UsageError(
        f"task {bare!r} has nothing to execute",
        where=program.name,
        hint=f"{emulate} to run emulated tasks, or give it a function or a command",
    )


def _wrong(what: str, given: Any, hint: str) -> UsageError:
    kind = type(given).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    shown = repr(given)
    text = f"{shown}, {article} {kind}" if len(shown) <= 60 else f"{article} {kind}"
    return UsageError(f"the {what} is {text}", hint=hint)
