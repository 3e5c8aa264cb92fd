"""Checks of what Python callers pass: an error names the argument, its value, and what to pass instead."""

from __future__ import annotations

import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any, SupportsFloat

from headrace.model.errors import UsageError

_SHOWN = 60
"""The most characters of a value in a message."""
MOST_SEED = 2**62
"""Random seeds fit into 64 bits, also when a planner counts on from them."""


def wrong_argument(what: str, given: object, hint: str) -> UsageError:
    """
    >>> wrong_argument("seed", "a", "give a whole number")
    UsageError("the seed is 'a', a str")
    """
    text, kind = short(given), _kind(given)
    return UsageError(f"the {what} is {text if text.startswith(kind) else f'{text}, {kind}'}", hint=hint)


def short(value: object) -> str:
    """A value as text, or only its kind if the text is long.

    >>> short([1, 2]), short("a" * 99), short(10**400)
    ('[1, 2]', 'a str', 'an int of 1329 bits')
    """
    if isinstance(value, int) and value.bit_length() > 3 * _SHOWN:  # Python refuses to write very long ones
        return f"{_kind(value)} of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else _kind(value)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def as_float(value: object) -> float | None:
    """A number, of Python or of NumPy; None for all else, such as truth values, arrays, and what no float can hold.

    >>> as_float(3), as_float(True), as_float("3"), as_float(10**400)
    (3.0, None, None, None)
    """
    if not isinstance(value, (int, float, Real)) or isinstance(value, bool):
        return None
    number: SupportsFloat = value
    try:
        return float(number)
    except OverflowError:
        return None


def as_whole(value: object) -> int | None:
    """A whole number, of Python or of NumPy; None for all else.

    >>> as_whole(3), as_whole(True), as_whole(3.0)
    (3, None, None)
    """
    return int(value) if isinstance(value, (int, Integral)) and not isinstance(value, bool) else None


def checked_whole(given: object, what: str, most: int | None = None) -> int:
    """A whole number of at least 0."""
    number = as_whole(given)
    if number is None or number < 0 or (most is not None and number > most):
        upto = "of 0 or more" if most is None else f"from 0 to {most:,}"
        raise wrong_argument(what, given, f"give a whole number {upto}")
    return number


def checked_seed(given: object) -> int:
    """
    >>> checked_seed(7)
    7
    """
    return checked_whole(given, "seed", MOST_SEED)


def checked_workers(given: object) -> int | None:
    """How many workers; None: as many as there are cores.

    >>> checked_workers(None), checked_workers(2)
    (None, 2)
    """
    if given is None:
        return None
    number = as_whole(given)
    if number is None or number < 1:
        hint = "give a whole number of 1 or more, or leave it out for one per core"
        raise wrong_argument("number of workers", given, hint)
    return number


def checked_path(given: Any, what: str = "path") -> str | Path:
    """The name of a file, as text or path.

    >>> checked_path("a.json")
    'a.json'
    """
    if isinstance(given, str | Path):
        return given
    named = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(named, str):
        raise wrong_argument(what, given, "give the name of a file, as a text or a pathlib.Path")
    return named
