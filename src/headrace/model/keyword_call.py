"""A function with some of its arguments given by name: constants, and items that a task reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class InputAt(NamedTuple):
    """Stands for the value of an input of the task, by its position among the inputs."""

    position: int


class KeywordCall(functools.partial[Any]):
    """A partial function of which some keywords are inputs of the task; these come after the positional ones.

    >>> call = KeywordCall(pow, mod=InputAt(2))
    >>> call(2, 10, 1000)
    24
    """

    def __call__(self, /, *values: Any, **more: Any) -> Any:
        named = {
            name: values[given.position] if isinstance(given, InputAt) else given
            for name, given in self.keywords.items()
        }
        first = min(given.position for given in self.keywords.values() if isinstance(given, InputAt))
        return self.func(*self.args, *values[:first], **{**named, **more})


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
