"""What a task executes, in parts that can be compared one by one: functions, the values they refer to, and defaults.

The parts of a function are its own instructions, without comments, formatting and docstrings; the functions and classes
of the user's own files that it refers to, in whichever of these files; global, captured and default values. What comes
from installed packages counts by its name, unless the user declares the package's version.
"""

from __future__ import annotations

import datetime
import decimal
import dis
import enum
import fractions
import functools
import hashlib
import inspect
import os
import pathlib
import pickle
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from headrace.model.program import Command
from headrace.record.code_source import module_source, source_of

PartKind: TypeAlias = Literal["code", "global", "captured", "default", "argument", "command", "module"]
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range)
_BY_REPR = (
    re.Pattern, pathlib.PurePath, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal,
    fractions.Fraction, slice,
)  # fmt: skip
_SHOWN = 200
_CONSTANT = {"LOAD_CONST", "RETURN_CONST", "KW_NAMES"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


class NotUnderstoodError(Exception):
    """A value whose changes could not be noticed."""


class Part(NamedTuple):
    """One part of what a task executes."""

    kind: PartKind
    name: str
    digest: str
    detail: str
    """Of a function its source, of a value how it is shown."""
    place: str = ""
    """File and line of a function."""


@dataclass(frozen=True)
class Code:
    """What a task executes."""

    digest: str
    parts: tuple[Part, ...]


def code_of(body: Any) -> Code:
    """What a function or command consists of: O(size of the code it refers to).

    Raises
    ------
    NotUnderstoodError
        If it refers to a value whose changes could not be noticed.

    >>> def scaled(factor):
    ...     return lambda x: factor * x
    >>> code_of(scaled(3)).digest == code_of(scaled(3)).digest, code_of(scaled(3)).digest == code_of(scaled(4)).digest
    (True, False)
    """
    walk = _Walk()
    lines = list(walk.lines(body))
    if isinstance(body, Command):
        walk.parts["command", " ".join(body.argv[:1])] = Part(
            "command", " ".join(body.argv[:1]), digest_of(lines), " ".join(body.argv)
        )
    parts = tuple(walk.parts[key] for key in sorted(walk.parts))
    told = [*lines, *(f"{p.kind} {p.name} {p.digest}" for p in parts)]
    return Code(digest_of([f"python {sys.version_info[0]}.{sys.version_info[1]}", *told]), parts)


def value_digest(value: Any) -> str:
    """The digest of a value, with the code of what it refers to."""
    walk = _Walk()
    lines = list(walk.lines(value))
    return digest_of([*lines, *(f"{p.kind} {p.name} {p.digest}" for _, p in sorted(walk.parts.items()))])


def digest_of(lines: Any) -> str:
    """
    >>> len(digest_of(["a", "b"]))
    32
    """
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


class _Walk:
    """A walk through a value and what it refers to; functions, classes and modules become parts, each once."""

    def __init__(self) -> None:
        self.parts: dict[tuple[str, str], Part] = {}
        self.seen: dict[int, str] = {}
        self.open: set[int] = set()

    def lines(self, value: Any) -> Iterator[str]:
        """Texts that are the same for the same value in any process."""
        if isinstance(value, enum.Enum):
            yield f"enum {type(value).__qualname__}.{value.name}"
            yield from self.lines(value.value)
        elif isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}"
        elif isinstance(value, tuple | list):
            yield f"{type(value).__name__} {len(value)}"
            for each in value:
                yield from self._inside(value, each)
        elif isinstance(value, dict):
            yield f"dict {len(value)}"
            for key, each in value.items():
                yield from self._inside(value, key)
                yield from self._inside(value, each)
        elif isinstance(value, set | frozenset):
            yield f"{type(value).__name__} {sorted(digest_of(self.lines(each)) for each in value)}"
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            content = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
            yield f"array {value.dtype.str} {value.shape} {content}"
        elif isinstance(value, bytearray | memoryview):
            yield f"bytes {hashlib.blake2b(value, digest_size=16).hexdigest()}"
        elif isinstance(value, Command):
            yield from self.lines(("command", value.argv, value.stdout, value.literal))
        elif isinstance(value, functools.partial):
            yield "partial"
            yield from self.lines((value.func, value.args))
            yield from self.lines(tuple(sorted(value.keywords.items())))
        else:
            yield from self._other(value)

    def _inside(self, holder: Any, value: Any) -> Iterator[str]:
        """The lines of what a container holds; a container that holds itself is not followed again."""
        if id(holder) in self.open:
            yield "itself"
            return
        self.open.add(id(holder))
        try:
            yield from list(self.lines(value))
        finally:
            self.open.discard(id(holder))

    def _other(self, value: Any) -> Iterator[str]:
        if isinstance(value, ModuleType):
            yield f"module {value.__name__}"
            if not is_installed(value.__name__):
                self._module(value.__name__)
        elif isinstance(value, MethodType):
            yield "method"
            yield from self.lines((value.__func__, value.__self__))
        elif isinstance(value, FunctionType | type):
            yield f"{type(value).__name__} {self._named(value)}"
        elif isinstance(value, BuiltinFunctionType):
            yield f"built-in {value.__module__}.{value.__qualname__}"
        elif isinstance(getattr(value, "__wrapped__", None), FunctionType):
            yield f"{type(value).__qualname__} of"
            yield from self.lines(value.__wrapped__)
        elif isinstance(value, _BY_REPR):
            yield f"{type(value).__qualname__} {value!r}"
        elif isinstance(value, np.ufunc):
            yield f"ufunc {value.__name__}"
        else:
            yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        """An object: its class, and its state; one of an installed class by its pickle."""
        kind = type(value)
        if not is_installed(kind.__module__):
            yield f"object {self._named(kind)}"
            state = dict(getattr(value, "__dict__", {}))
            for of in kind.__mro__:
                slots = getattr(of, "__slots__", ())
                for name in (slots,) if isinstance(slots, str) else slots:
                    if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                        state[name] = getattr(value, name)
            yield from self._inside(value, tuple(sorted(state.items())))
            return
        try:
            packed = pickle.dumps(value, protocol=4)
        except Exception as error:
            raise NotUnderstoodError(f"a {kind.__qualname__}") from error
        if b"__main__" in packed:
            raise NotUnderstoodError(f"a {kind.__qualname__} with objects of the main program")
        yield f"{kind.__module__}.{kind.__qualname__} {hashlib.blake2b(packed, digest_size=16).hexdigest()}"

    def _named(self, value: FunctionType | type) -> str:
        """The name of a function or class; one of the user's own files becomes a part."""
        name = f"{value.__module__}.{value.__qualname__}"
        if _is_elsewhere(value):
            return name
        if id(value) in self.seen:
            return self.seen[id(value)]
        number = 2
        while ("code", name) in self.parts:  # another function of this name, such as a second lambda
            name = f"{value.__module__}.{value.__qualname__}#{number}"
            number += 1
        self.seen[id(value)] = name
        self.parts["code", name] = Part("code", name, "", "")  # holds the place while it refers to itself
        lines = self._function(value, name) if isinstance(value, FunctionType) else self._class(value)
        digest = digest_of(list(lines))
        self.parts["code", name] = Part("code", name, digest, *source_of(value))
        return name

    def _value(self, kind: PartKind, name: str, value: Any) -> str:
        """Note a value as a part, unless it is a function, class or module, which are noted themselves."""
        lines = list(self.lines(value))
        if not isinstance(value, FunctionType | type | ModuleType):
            self.parts[kind, name] = Part(kind, name, digest_of(lines), repr(value)[:_SHOWN])
            return f"{kind} {name}"
        return f"{name}: {lines[0]}"

    def _function(self, function: FunctionType, name: str) -> Iterator[str]:
        yield _instructions(function.__code__)
        spec = function.__code__
        defaults = function.__defaults__ or ()
        positional = spec.co_varnames[: spec.co_argcount]
        for parameter, value in zip(positional[len(positional) - len(defaults) :], defaults, strict=True):
            yield self._value("default", f"{name}({parameter})", value)
        for parameter, value in sorted((function.__kwdefaults__ or {}).items()):
            yield self._value("default", f"{name}({parameter})", value)
        for free, cell in zip(spec.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield self._value("captured", f"{name}: {free}", cell.cell_contents)
            except ValueError:  # not assigned yet
                yield f"{free} unassigned"
        for attribute, value in sorted(vars(function).items()):
            yield self._value("global", f"{name}.{attribute}", value)
        for path in sorted(_references(function.__code__)):
            yield from self._reference(path, function)

    def _reference(self, path: tuple[str, ...], function: FunctionType) -> Iterator[str]:
        """What a global name stands for; attributes of the user's own modules are followed."""
        scope = function.__globals__
        if path[0] == "import":
            yield from self._imported(path[1], function)
            return
        if path[0] not in scope:
            return
        value, taken = scope[path[0]], 1
        while isinstance(value, ModuleType) and not is_installed(value.__name__) and taken < len(path):
            if not hasattr(value, path[taken]):
                return
            value, taken = getattr(value, path[taken]), taken + 1
        yield self._value("global", f"{function.__module__}.{'.'.join(path[:taken])}", value)

    def _imported(self, module: str, function: FunctionType) -> Iterator[str]:
        """A module that a function imports while it runs: the whole of it, if it is the user's own."""
        yield f"import {module}"
        if not is_installed(module):
            self._module(module)

    def _module(self, name: str) -> None:
        if ("module", name) in self.parts:
            return
        text, place, imports = module_source(name)
        self.parts["module", name] = Part("module", name, digest_of([text]), text, place)
        for other in imports:
            if other != name and not is_installed(other):
                self._module(other)

    def _class(self, kind: type) -> Iterator[str]:
        yield kind.__qualname__
        for base in kind.__bases__:
            yield self._named(base)
        for name, value in sorted(vars(kind).items()):
            inner: Any = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            inner = inner.func if isinstance(inner, functools.cached_property) else inner
            if isinstance(inner, FunctionType):
                yield f"{name} {self._named(inner)}"
            elif isinstance(inner, property):
                yield from (name, *self.lines((inner.fget, inner.fset, inner.fdel)))
            elif not (name.startswith("__") and name.endswith("__")):
                try:
                    yield from (name, *self.lines(inner))
                except NotUnderstoodError:  # descriptors and the like
                    yield f"{name} {type(inner).__qualname__}"


@functools.lru_cache(maxsize=10_000)
def _instructions(code: CodeType) -> str:
    """The digest of the instructions with what they refer to; numbers of constants and lines do not count.

    Remembered: functions that a loop makes share their code.
    """
    return digest_of(_instruction_lines(code))


def _instruction_lines(code: CodeType) -> Iterator[str]:
    yield " ".join((str(code.co_argcount), str(code.co_kwonlyargcount), *code.co_varnames, *code.co_freevars))
    for step in dis.get_instructions(code):
        if step.opname in _CONSTANT and isinstance(step.argval, CodeType):
            yield f"code {_instructions(step.argval)}"
        elif step.opname in _CONSTANT:
            yield f"{step.opname} {' '.join(_Walk().lines(step.argval))}"
        elif step.opcode in dis.hasname or step.opcode in dis.hasfree or step.opcode in dis.haslocal:
            yield f"{step.opname} {step.argval} {(step.arg or 0) & 1 if step.opname == 'LOAD_GLOBAL' else ''}"
        else:
            yield f"{step.opname} {step.arg}"


@functools.lru_cache(maxsize=10_000)
def _references(code: CodeType) -> frozenset[tuple[str, ...]]:
    """Global names with the attributes that follow them, and modules that are imported inside."""
    found: set[tuple[str, ...]] = set()
    steps = list(dis.get_instructions(code))
    for k, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            path = [str(step.argval)]
            for following in steps[k + 1 :]:
                if following.opname not in _ATTRIBUTE:
                    break
                path.append(str(following.argval))
            found.add(tuple(path))
        elif step.opname == "IMPORT_NAME":
            found.add(("import", str(step.argval)))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _references(constant)
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def is_installed(name: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to Headrace: its changes are not looked for."""
    if not name or name in sys.builtin_module_names or name.partition(".")[0] in ("headrace", "builtins"):
        return True
    if name == "__main__":
        return False
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None) if module is not None else _found(name)
    if file is None:  # a module of the interpreter, or code that was made from a text
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        return origin in ("built-in", "frozen")
    return file in ("built-in", "frozen") or str(file).startswith(_installed())


def _is_elsewhere(value: FunctionType | type) -> bool:
    """Whether a function or class is not the user's own: for a function the file that its code was made from counts."""
    if isinstance(value, FunctionType):
        file = value.__code__.co_filename
        return file.startswith((*_installed(), "<frozen"))
    return is_installed(value.__module__)


def _found(name: str) -> str | None:
    import importlib.util

    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return None if spec is None else spec.origin


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = (sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return (*(path + os.sep for path in paths), str(pathlib.Path(__file__).parents[1]) + os.sep)


def accepts(body: Any, arguments: int, keyword: str = "") -> str:
    """Why a function cannot be called with this many arguments and a keyword; "" if it can, or nothing is known.

    >>> accepts(lambda image, sigma=1.0: image, 2), accepts(lambda image: image, 1, "sigma")
    ('', "got an unexpected keyword argument 'sigma'")
    """
    try:
        signature = inspect.signature(body)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*range(arguments), **({keyword: None} if keyword else {}))
    except TypeError as error:
        return str(error)
    return ""
