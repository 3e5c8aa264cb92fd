"""What each task of a program executes, as digests: whether a change of the program's file concerns a task.

A digest covers the function with its defaults and captured values, the functions, classes and values of the same file
that it refers to, and the values of its inputs. Code that it imports from elsewhere counts by name. If a value is of a
kind that is not understood here, the task has no digest, and any change of the file is taken for one of the task.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from headrace.model.program import Command, Program

MOST_TASKS = 20_000
"""Larger programs have no digests: they would take longer to store than they are worth."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_VALUES = (*_PLAIN, tuple, list, dict, set, frozenset)


class _NotUnderstoodError(Exception):
    """A value whose changes could not be noticed."""


def code_digests(program: Program) -> dict[str, str]:
    """By task, a digest of what it executes; without tasks that cannot be understood. O(tasks + code).

    >>> def digest(factor):
    ...     program = Program()
    ...     x = program.input("x", value=2)
    ...     _ = program.task(lambda x: factor * x, inputs=[x], name="t"), program.task(abs, inputs=[x], name="u")
    ...     return code_digests(program)
    >>> one, other = digest(3), digest(4)
    >>> one["t"] == other["t"], one["u"] == other["u"], one == digest(3)
    (False, True, True)
    """
    if len(program.tasks) > MOST_TASKS:
        return {}
    bodies: dict[int, str | None] = {}
    inputs = {item.name: _understood(item.value) for item in program.inputs()}
    found = {}
    for task in program.tasks.values():
        if id(task.body) not in bodies:
            bodies[id(task.body)] = _understood(task.body)
        parts = [bodies[id(task.body)], *(inputs[name] for name in task.inputs if name in inputs)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            found[task.name] = _digest(known)
    return found


def changed_tasks(program: Program, before: Mapping[str, str], tasks: tuple[str, ...]) -> list[str]:
    """Those of the tasks that may execute something else than before."""
    now = code_digests(program)
    return [task for task in tasks if task not in now or before.get(task) != now[task]]


def _understood(value: Any) -> str | None:
    """The digest of a value; None if it has none."""
    try:
        return _digest(_Walk().lines(value))
    except (_NotUnderstoodError, RecursionError):
        return None


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for line in lines:
        digest.update(line.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


class _Walk:
    """A walk through a value and what it refers to; each function and class is visited once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def lines(self, value: Any) -> Iterator[str]:
        """Texts that are the same for the same value in any process."""
        if isinstance(value, _PLAIN):
            yield repr(value)
        elif isinstance(value, tuple | list):
            yield f"{type(value).__name__} {len(value)}"
            for each in value:
                yield from self.lines(each)
        elif isinstance(value, dict):
            yield f"dict {len(value)}"
            for key, each in value.items():
                yield from self.lines(key)
                yield from self.lines(each)
        elif isinstance(value, set | frozenset):
            yield f"{type(value).__name__} {sorted(_digest(self.lines(each)) for each in value)}"
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            yield f"{value.dtype} {value.shape} {hashlib.blake2b(value.tobytes()).hexdigest()}"
        elif isinstance(value, Command):
            yield from self.lines(("command", value.argv, value.stdout))
        elif isinstance(value, ModuleType):
            yield f"module {value.__name__}"
        elif isinstance(value, functools.partial):
            yield from self.lines(("partial", value.func, value.args, value.keywords))
        else:
            yield from self._code(value)

    def _code(self, value: Any) -> Iterator[str]:
        if isinstance(value, CodeType):
            yield from self._code_object(value)
        elif _is_named(value) and _is_installed(value):
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, FunctionType | type):
            if id(value) in self.seen:
                yield f"again {value.__qualname__}"
                return
            self.seen.add(id(value))
            yield from self._function(value) if isinstance(value, FunctionType) else self._class(value)
        elif isinstance(getattr(value, "__wrapped__", None), FunctionType):
            yield from self._code(value.__wrapped__)
        else:
            raise _NotUnderstoodError(type(value).__qualname__)

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield from self._code_object(function.__code__)
        yield from self.lines((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                captured = cell.cell_contents
            except ValueError:  # not assigned yet
                captured = None
            yield from self.lines(captured)
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield name
                yield from self._referred(function.__globals__[name], function.__module__)

    def _referred(self, value: Any, module: str) -> Iterator[str]:
        """What is defined in the same file in full, and what comes from elsewhere by its name."""
        home = getattr(value, "__module__", None)
        if isinstance(value, FunctionType | type) and home != module:
            yield f"{home}.{value.__qualname__}"
        else:
            yield from self.lines(value)

    def _class(self, kind: type) -> Iterator[str]:
        yield kind.__qualname__
        for base in kind.__bases__:
            yield from self._referred(base, kind.__module__)
        for name, value in sorted(vars(kind).items()):
            inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            inner = inner.fget if isinstance(inner, property) else inner
            if isinstance(inner, FunctionType) or (isinstance(inner, _VALUES) and not name.startswith("__")):
                yield name
                yield from self.lines(inner)

    def _code_object(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        yield " ".join((*code.co_names, *code.co_varnames, *code.co_freevars))
        for constant in code.co_consts:
            yield from self.lines(constant)


def _is_named(value: Any) -> bool:
    """Whether a name can say what a value is: a function or a class, and not a method of some object."""
    bound = getattr(value, "__self__", None)
    named = isinstance(getattr(value, "__module__", None), str) and hasattr(value, "__qualname__")
    return named and isinstance(bound, ModuleType | NoneType)


def _is_installed(value: Any) -> bool:
    """Whether a function or class belongs to Python or an installed package, whose changes are not looked for."""
    module = sys.modules.get(value.__module__)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    return (file is None and module.__name__ != "__main__") or str(file).startswith(_installed())


@functools.cache
def _installed() -> tuple[str, ...]:
    return tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _names(code: CodeType) -> set[str]:
    """Global names that a function and the functions inside it look up."""
    found = {
        step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
