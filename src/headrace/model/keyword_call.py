"""A function with some of its arguments given by name: constants, and items that a task reads.

A task's function is called with the values of its inputs, in order, as positional arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from headrace.model.errors import BadProgram

_PLACEHOLDER = getattr(functools, "Placeholder", object())
"""Stands for a positional argument of a partial function that the caller gives, from Python 3.14 on."""


class InputAt(NamedTuple):
    """Stands for the value of an input of the task, by its position among the inputs."""

    position: int


class KeywordCall(functools.partial[Any]):
    """A partial function of which some keywords are inputs of the task; these come after the positional ones.

    >>> call = KeywordCall(pow, mod=InputAt(2))
    >>> call(2, 10, 1000)
    24
    """

    @property
    def positional(self) -> int:
        """How many inputs are positional arguments: those before the first that is given by name."""
        return min(given.position for given in self.keywords.values() if isinstance(given, InputAt))

    def __call__(self, /, *values: Any, **more: Any) -> Any:
        named = {
            name: values[given.position] if isinstance(given, InputAt) else given
            for name, given in self.keywords.items()
        }
        return self.func(*self.args, *values[: self.positional], **{**named, **more})


def with_keywords(
    function: Callable[..., Any], constants: Mapping[str, Any], items: list[str], positional: int
) -> Callable[..., Any]:
    """The function with constants bound; the named items are passed after `positional` others.

    >>> with_keywords(round, {"ndigits": 1}, [], 1)(2.34)
    2.3
    """
    if not items:
        return functools.partial(function, **constants) if constants else function
    places = {name: InputAt(positional + k) for k, name in enumerate(items)}
    return KeywordCall(function, **constants, **places)


def require_call(body: Callable[..., Any], inputs: int, where: str, *, complete: bool = True) -> None:
    """Raise an error if a task's function cannot be called with so many inputs, as far as its signature tells.

    Arguments may be missing if the call is not yet `complete`. A signature that a decorator has copied from another
    function says nothing about the call.

    >>> require_call(lambda image, sigma: image, 1, "task 'blur'", complete=False)
    >>> require_call(lambda image, sigma: image, 1, "task 'blur'")
    Traceback (most recent call last):
        ...
    headrace.model.errors.BadProgram: task 'blur': lambda(): missing a required argument: 'sigma' (try: its \
parameters: image, sigma)
    """
    if not complete and isinstance(body, FunctionType) and inputs <= body.__code__.co_argcount:
        return  # the usual case, without the time that a signature takes
    positional: list[Any] = [None] * (body.positional if isinstance(body, KeywordCall) else inputs)
    keywords: dict[str, Any] = {}
    while isinstance(body, functools.partial):  # its own signature cannot be read if an argument is wrong
        filled = sum(given is _PLACEHOLDER for given in body.args)
        positional, keywords = [*body.args, *positional[filled:]], {**body.keywords, **keywords}
        body = body.func
    try:
        signature = inspect.signature(body, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        (signature.bind if complete else signature.bind_partial)(*positional, **keywords)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        raise BadProgram(
            f"{function_name(body)}(): {error}", where=where, hint=f"its parameters: {known}"
        ) from None


def function_name(body: Callable[..., Any]) -> str:
    """The name of a function or class, without what it is defined in if that is a function.

    >>> function_name(lambda: 0), function_name(int.bit_length), function_name([lambda: 0 for _ in range(1)][0])
    ('lambda', 'int.bit_length', 'lambda')
    """
    name = str(getattr(body, "__qualname__", type(body).__name__)).replace("<lambda>", "lambda")
    return name.rpartition("<locals>.")[2].rpartition(">.")[
        2
    ]  # before Python 3.12, "<listcomp>." comes before it
