"""Errors in code that users bring along: program factories, planners and schedulers of their own.

The message says in one line whose code it is; below it stands the traceback of that code alone.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError

_PACKAGE = str(Path(__file__).parents[1])
_SHOWN = 30
"""Frames of a traceback at most: those at its end."""


class UserCodeError(HeadraceError):
    """A function or class of the user raised an exception; its traceback, from the user's code on, is in `problem`."""

    exit_code = 1


@contextmanager
def user_code(what: str, where: str = "") -> Iterator[None]:
    """Turn exceptions into `UserCodeError`; errors of Headrace's own, such as of a wrong program, stay as they are.

    >>> with user_code("the planner Mine", "mine.py"):
    ...     {}["a"]
    Traceback (most recent call last):
        ...
    headrace.model.user_code.UserCodeError: mine.py: the planner Mine raised KeyError: 'a'
    Traceback (most recent call last):
      File "<doctest headrace.model.user_code.user_code[0]>", line 2, in <module>
        {}["a"]
        ~~^^^^^
    KeyError: 'a'
    """
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        line = f"{what} raised {told.splitlines()[0]}"
        raise UserCodeError(f"{line}\n{users_traceback(error)}", where=where) from error


def users_traceback(error: BaseException) -> str:
    """The traceback of an exception without the frames of Headrace and of importing that come first."""
    told = traceback.TracebackException.from_exception(error)
    frames = list(told.stack)
    first = next((k for k, frame in enumerate(frames) if not _is_ours(frame.filename)), len(frames))
    told.stack = traceback.StackSummary.from_list(frames[first:][-_SHOWN:])
    return "".join(told.format(chain=False)).rstrip()


def _is_ours(file: str) -> bool:
    return file.startswith((_PACKAGE, "<frozen importlib"))


def is_users(made: Any) -> bool:
    """Whether an object is of a class that does not belong to Headrace."""
    return not type(made).__module__.startswith("headrace.")
