"""Defaults of options from `headrace.toml`, or from `[tool.headrace]` of `pyproject.toml`, in the current folder.

    scheduler = "heft"      # of every command that has the option

    [plan]                  # of one command
    on = "lab.toml"

What is given on the command line comes first. A file that happens to lie in the current folder must not make a command
execute code: schedulers of Python files and `allow-commands` are refused.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile, HeadraceError

FILE = "headrace.toml"
PROJECT = "pyproject.toml"
VARIABLE = "HEADRACE_CONFIG"
"""Names another file; empty: no file."""
SHARED = ("on", "scheduler", "rules", "seed", "workers", "platform", "quiet", "verbose")
"""Options that may stand outside the section of a command."""
REFUSED = ("allow-commands", "help")
_MOST_BYTES = 1_000_000

Options = Mapping[str, Any]
"""The parameters of a command by the long name of the option, without dashes."""


def find_config() -> tuple[str, dict[str, Any]]:
    """The name of the file and its settings; ("", {}) if there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return (named, _read(Path(named))) if named else ("", {})
    if Path(FILE).exists():
        return FILE, _read(Path(FILE))
    if Path(PROJECT).is_file() and b"headrace" in (text := Path(PROJECT).read_bytes()[:_MOST_BYTES]):
        try:
            found = _read(Path(PROJECT)).get("tool", {}).get("headrace", {})
        except BadFile:
            if b"tool.headrace" not in text:  # it is about something else
                return "", {}
            raise
        if not isinstance(found, dict):
            raise BadFile("tool.headrace is not a table", where=PROJECT, hint="write [tool.headrace]")
        return f"{PROJECT}: [tool.headrace]", found
    return "", {}


def _read(path: Path) -> dict[str, Any]:
    from headrace.formats.files import read_file
    from headrace.formats.toml_text import parse_toml

    return parse_toml(read_file(path, limit=_MOST_BYTES), str(path))


def defaults_from(
    settings: Mapping[str, Any], where: str, command: str, options: Options, commands: Collection[str]
) -> dict[str, Any]:
    """The defaults of a command's parameters, by name.

    Raises
    ------
    BadFile
        If a setting is unknown, of the wrong type, or not allowed in a file.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = key.replace("_", "-")
        if isinstance(value, dict):
            if name.lower() not in commands:
                raise _unknown(f"section [{key}]", where, name, commands)
        elif name not in SHARED:
            raise BadFile(
                f"{key!r} is not a setting of all commands",
                where=where,
                hint=f"put it below the name of a command, such as [plan], or use one of {', '.join(SHARED)}",
            )
        elif name in options:
            found[options[name].name] = _value(value, options[name], name, where)
    for key, value in _section(settings, command).items():
        name, place = key.replace("_", "-"), f"{where}: [{command}]"
        if name in REFUSED:
            raise BadFile(f"{key!r} cannot be set in a file", where=place, hint="give it on the command line")
        if name not in options:
            raise _unknown(f"setting {key!r}", place, name, options)
        found[options[name].name] = _value(value, options[name], name, place)
    return found


def _section(settings: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The settings of one command."""
    return next(
        (v for k, v in settings.items() if k.replace("_", "-").lower() == command and isinstance(v, dict)), {}
    )


def named_place(
    error: HeadraceError,
    words: Collection[str],
    settings: Mapping[str, Any],
    where: str,
    command: str,
    options: Options,
) -> HeadraceError:
    """An error about an option that the file sets, and not the command line, with the place in the file."""
    text, _, rest = error.problem.partition(" ")
    name = text.removeprefix("--")
    if not text.startswith("--") or name not in options:
        return error
    if any(word.partition("=")[0] in options[name].opts for word in words):
        return error
    for part, place in ((_section(settings, command), f"{where}: [{command}]"), (settings, where)):
        if name in (key.replace("_", "-") for key in part):
            return BadFile(f"{name} {rest}", where=place, hint=error.hint)
    return error


def _unknown(what: str, where: str, name: str, known: Collection[str]) -> BadFile:
    near = get_close_matches(name, list(known), 1)
    return BadFile(
        f"unknown {what}", where=where, hint=near[0] if near else f"use one of {', '.join(sorted(known))}"
    )


def _value(value: Any, option: Any, name: str, where: str) -> Any:
    """The value as it would be typed."""
    if getattr(option, "is_flag", False):
        if not isinstance(value, bool):
            raise BadFile(f"{name} is {value!r}", where=where, hint="write true or false")
        return value
    several = bool(getattr(option, "multiple", False))
    given = value if several and isinstance(value, list) else [value]
    for each in given:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise BadFile(f"{name} is {each!r}", where=where, hint="write a text or a number")
        if ".py:" in str(each):
            raise BadFile(
                f"{name} {each!r} would execute a Python file",
                where=where,
                hint="give it on the command line",
            )
    texts = [str(each) for each in given]
    return texts if several else texts[0]
