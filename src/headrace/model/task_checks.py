"""Checks of what users say about a task."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.model.arguments import as_float, as_whole, short
from headrace.model.errors import BadProgram

MOST_CORES = 10**6
"""The most cores of a task, in programs as in files."""
_COMMAND = 'give a function, or a list such as ["ls", "-l"]'


def checked_text(given: Any, what: str, where: str) -> str:
    """A name, which must be a text that is not empty."""
    if not isinstance(given, str):
        raise BadProgram(f"{what} is {short(given)}", where=where, hint=f"write {what}={str(given)[:60]!r}")
    if not given:
        raise BadProgram(f"{what} is empty", where=where, hint="give a text, or leave it out")
    return given


def checked_names(given: Iterable[str], what: str, where: str) -> tuple[str, ...]:
    """Names, of tasks, items or sites; a single text would be taken for a list of letters."""
    if isinstance(given, str):
        raise BadProgram(f"{what} is the text {given!r}", where=where, hint=f"write {what}=[{given!r}]")
    if not isinstance(given, Iterable):
        raise BadProgram(f"{what} is {given!r}", where=where, hint="give a list of names")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise BadProgram(f"{what} contains {name!r}", where=where, hint="give names, as texts")
    return names


def checked_words(command: Any, where: str = "") -> tuple[str, ...]:
    """The words of a command: texts, or paths, of which the first is the program."""
    if not isinstance(command, Sequence) or isinstance(command, str | bytes | bytearray | memoryview):
        raise BadProgram(f"a task cannot execute {short(command)}", where=where, hint=_COMMAND)
    return tuple(_word(word, number, where) for number, word in enumerate(command))


def text_as_command(text: str, where: str = "") -> BadProgram:
    """The error for a command that is one text instead of a list of words."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return BadProgram(
        f"the command {text!r} is one text, and no shell splits it",
        where=where,
        hint=f"write {words}, or run a shell: ['sh', '-c', {text!r}]",
    )


def require_program(words: tuple[str, ...], where: str) -> None:
    if not words or not words[0]:
        raise BadProgram(f"the command {short(list(words))} names no program", where=where, hint=_COMMAND)


def _word(given: Any, number: int, where: str) -> str:
    word = os.fspath(given) if isinstance(given, os.PathLike) else given
    if isinstance(word, str):
        return word
    text = os.fsdecode(word) if isinstance(word, bytes) else short(word)
    raise BadProgram(
        f"word {number} of the command is {short(word)}, which is not a text",
        where=where,
        hint=f"write {text!r}",
    )


def checked_labels(labels: Any, where: str) -> dict[str, str | float]:
    if not isinstance(labels, Mapping):
        hint = 'give names and values, such as {"site": "cern"}'
        raise BadProgram(f"labels is {short(labels)}", where=where, hint=hint)
    for name, value in labels.items():
        if not isinstance(name, str) or not name:
            raise BadProgram(f"the name of a label is {name!r}", where=where, hint="give a text")
        number = as_float(value)
        if not isinstance(value, str) and (number is None or not math.isfinite(number)):
            raise BadProgram(
                f"label {name!r} is {short(value)}", where=where, hint="give a text or a finite number"
            )
    return {name: _plain(value) for name, value in labels.items()}


def _plain(label: Any) -> str | float:
    """Numbers of NumPy as those of Python, which files can hold."""
    if isinstance(label, str | int | float):
        return label
    whole = as_whole(label)
    return float(label) if whole is None else whole


def checked_cores(cores: int, where: str) -> int:
    number = as_whole(cores)
    if number is None or not 1 <= number <= MOST_CORES:
        hint = f"give a whole number from 1 to {MOST_CORES:,}"
        raise BadProgram(f"cores is {short(cores)}", where=where, hint=hint)
    return number


def checked_attempts(
    timeout: float | None, retries: int | None, where: str
) -> tuple[float | None, int | None]:
    if timeout is not None and not timeout > 0:
        raise BadProgram(f"timeout is {timeout}", where=where, hint="give a time above 0")
    number = None if retries is None else as_whole(retries)
    if retries is not None and (number is None or number < 0):
        raise BadProgram(f"retries is {short(retries)}", where=where, hint="give a whole number, 0 or more")
    return timeout, number
