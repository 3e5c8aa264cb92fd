"""Numbers that tasks receive besides their inputs: run times of one function often follow them."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from headrace.model.program import Command, Program, Task
from headrace.predict.functions import parameter_texts, simple_text

_MOST = 8
"""Numbers of one task that are considered."""


class TaskParameters(NamedTuple):
    """What a task receives besides the results of other tasks."""

    digest: str
    """Of all of it: equal if nothing has changed."""
    numbers: Mapping[str, float]
    """The numbers among it by name; at most 8."""


def task_parameters(program: Program) -> dict[str, TaskParameters]:
    """The parameters of every task: O(tasks).

    These are bound, captured and default values of functions, arguments of commands, and scalar inputs.

    >>> from functools import partial
    >>> program = Program()
    >>> def smooth(x, width=3):
    ...     return x
    >>> done = program.task(partial(smooth, width=5), inputs=[program.input("x", value=1.5)], name="s")
    >>> task_parameters(program)["s"].numbers
    {'width': 5.0, 'input 0': 1.5}
    """
    return {task.name: _of_task(task, program) for task in program.tasks.values()}


def _of_task(task: Task, program: Program) -> TaskParameters:
    outside = [
        (k, program.data[name].value) for k, name in enumerate(task.inputs) if name not in program.producer
    ]
    texts = [*parameter_texts(task.body), *(simple_text(value) for _, value in outside)]
    digest = hashlib.sha256("\n".join(texts).encode("utf-8", "backslashreplace")).hexdigest()[:12]
    numbers: dict[str, float] = {}
    for name, value in [*_named(task.body), *((f"input {k}", value) for k, value in outside)]:
        number = _number(value)
        if number is not None and len(numbers) < _MOST:
            numbers.setdefault(name, number)
    return TaskParameters(digest, numbers)


def _named(body: Any) -> Iterator[tuple[str, Any]]:
    """Values by name; those that are bound come before the defaults that they replace."""
    if isinstance(body, functools.partial):
        positions = _positional(body.func)
        for k, value in enumerate(body.args):
            yield positions[k] if k < len(positions) else f"argument {k}", value
        yield from body.keywords.items()
        yield from _named(body.func)
    elif isinstance(body, Command):
        yield from ((f"argument {k}", _read(text)) for k, text in enumerate(body.argv[1:]))
    elif isinstance(code := getattr(body, "__code__", None), CodeType):
        defaults = body.__defaults__ or ()
        yield from zip(_positional(body)[-len(defaults) :] if defaults else (), defaults, strict=True)
        yield from (body.__kwdefaults__ or {}).items()
        for name, cell in zip(code.co_freevars, body.__closure__ or (), strict=False):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not assigned yet
                continue


def _positional(body: Any) -> tuple[str, ...]:
    code = getattr(body, "__code__", None)
    return code.co_varnames[: code.co_argcount] if isinstance(code, CodeType) else ()


def _read(text: str) -> float | None:
    try:
        return float(text.rpartition("=")[2])
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not hasattr(type(value), "__float__") or getattr(value, "shape", ()) != ():
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
