"""What a kind of task executes, as digests: whether the executions of an earlier run say something about this one."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from headrace.model.program import Command, Program

_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 10_000
"""Longer texts count by their length alone."""
_DEEPEST = 8


class FunctionDigest(NamedTuple):
    """Digests of what the tasks of one kind execute."""

    code: str
    """Of the functions or commands alone."""
    exact: str
    """Of these with their parameters: defaults, captured numbers and texts, and inputs that are such values."""


def function_digests(program: Program) -> dict[str, FunctionDigest]:
    """The digests of every kind of a program's tasks: O(tasks).

    >>> def power(exponent):
    ...     return lambda x: x**exponent
    >>> def digests(exponent):
    ...     program = Program()
    ...     done = program.task(power(exponent), inputs=[program.input("x", value=1.5)], kind="power")
    ...     return function_digests(program)["power"]
    >>> digests(2).code == digests(3).code, digests(2).exact == digests(3).exact
    (True, False)
    """
    code: dict[str, set[str]] = {}
    exact: dict[str, set[str]] = {}
    for task in program.tasks.values():
        code.setdefault(task.kind, set()).add("\n".join(_code(task.body, 0)))
        values = [program.data[name].value for name in task.inputs if name not in program.producer]
        exact.setdefault(task.kind, set()).add(
            "\n".join((task.name, *parameter_texts(task.body), *(simple_text(v) for v in values)))
        )
    return {
        kind: FunctionDigest(_digest(code[kind]), _digest({_digest(code[kind]), *exact[kind]}))
        for kind in code
    }


def _digest(texts: set[str]) -> str:
    return hashlib.sha256("\0".join(sorted(texts)).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _code(body: Any, depth: int) -> Iterator[str]:
    """What is executed, without parameters."""
    if isinstance(body, functools.partial):
        yield from _code(body.func, depth)
    elif isinstance(body, Command):
        yield body.argv[0] if body.argv else ""
    elif isinstance(getattr(body, "__code__", None), CodeType):
        yield from _code_object(body.__code__, depth)
    else:
        yield f"{type(body).__module__}.{getattr(body, '__qualname__', type(body).__qualname__)}"


def _code_object(code: CodeType, depth: int) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if depth < _DEEPEST:
                yield from _code_object(constant, depth + 1)
        else:
            yield simple_text(constant)


def parameter_texts(body: Any, depth: int = 0) -> Iterator[str]:
    """Numbers and texts that a function or command receives besides its inputs, as texts.

    >>> list(parameter_texts(functools.partial(round, ndigits=2)))
    ['ndigits=2']
    """
    if depth > _DEEPEST:
        return
    if isinstance(body, functools.partial):
        yield from (simple_text(value) for value in body.args)
        yield from (f"{name}={simple_text(value)}" for name, value in sorted(body.keywords.items()))
        yield from parameter_texts(body.func, depth + 1)
    elif isinstance(body, Command):
        yield from body.argv
    elif isinstance(getattr(body, "__code__", None), CodeType):
        yield from (simple_text(value) for value in body.__defaults__ or ())
        keywords = sorted((body.__kwdefaults__ or {}).items())
        yield from (f"{name}={simple_text(value)}" for name, value in keywords)
        for cell in body.__closure__ or ():
            try:
                yield simple_text(cell.cell_contents)
            except ValueError:  # not assigned yet
                yield "?"


def simple_text(value: Any) -> str:
    """A number or text as it is, another value by its type.

    >>> simple_text(2.5), simple_text((1, "a")), simple_text([1])
    ('2.5', "(1, 'a')", 'list')
    """
    if isinstance(value, tuple):
        return f"({', '.join(simple_text(each) for each in value[:100])})"
    if not isinstance(value, _SIMPLE):
        return type(value).__qualname__
    if isinstance(value, str | bytes) and len(value) > _LONGEST:
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)
