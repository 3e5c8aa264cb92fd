"""Functions by name, imported when a program runs and not when it is read."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.formats.python_program import import_file
from headrace.model.errors import BadProgram
from headrace.model.program import Program

_FILTERS = "headrace.runtime.filters"


@dataclass(frozen=True)
class FunctionReference:
    """The body of a task: a function of a Python file or module, with its parameters.

    >>> FunctionReference("math:pow", "", ("", ""))(2, 3)
    8.0
    """

    reference: str
    """`file.py:name` or `module:name`."""
    folder: str
    """Where files are looked for."""
    names: tuple[str, ...] = ()
    """The parameter that each input is given for; "": by its position."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Values of further parameters."""

    def __call__(self, *given: Any) -> Any:
        return self.bound()(*given)

    def bound(self) -> Callable[..., Any]:
        """The function with its parameters, to be called with the inputs; imports its file or module.

        Raises
        ------
        BadProgram
            If there is no such function, or its parameters do not fit.
        """
        found = self.function()
        if isinstance(found, type) and any(one.__module__ == _FILTERS for one in found.__mro__):
            raise BadProgram(
                "is a filter of a pipeline, not a function",
                where=self.reference,
                hint="run the drawing with `headrace stream`",
            )
        return bind(found, self.names, self.constants, self.reference)

    def function(self) -> Callable[..., Any]:
        """The function itself; imports its file or module."""
        place, _, name = self.reference.rpartition(":")
        if place.endswith(".py"):
            module: Any = _module_of((Path(self.folder) / place).resolve(), self.reference)
        else:
            try:
                module = importlib.import_module(place)
            except ImportError as error:
                raise BadProgram(
                    f"{place} cannot be imported: {error}", where=self.reference, hint="install it"
                ) from None
        found = getattr(module, name, None)
        if not callable(found):
            raise BadProgram(f"has no function {name!r}", where=place, hint="check the name")
        return found  # type: ignore[no-any-return]


def _module_of(path: Path, where: str) -> Any:
    """The module of a file; executed once in a process, so that all functions of a file share it."""
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", None) or "/").resolve() == path:
        return known
    if known is not None and path.stem in sys.stdlib_module_names:
        raise BadProgram(
            f"{path.name} has the name of a module of Python", where=where, hint="give it another name"
        )
    if not path.is_file():
        raise BadProgram(f"there is no file {path.name}", where=where, hint="put it beside the program")
    return import_file(path)


def with_functions(program: Program) -> Program:
    """The program with its functions imported: executes the files that it names. O(tasks).

    The program itself is returned if it refers to none.
    """
    if not any(isinstance(task.body, FunctionReference) for task in program.tasks.values()):
        return program
    found = Program(program.name)
    found.data, found.producer = dict(program.data), dict(program.producer)
    for name, task in program.tasks.items():
        try:
            body = task.body.bound() if isinstance(task.body, FunctionReference) else task.body
        except BadProgram as error:
            raise error.at(f"{program.name}: task {name!r}") from None
        found.tasks[name] = replace(task, body=body)
    found.reality = program.reality
    return found


def bind(
    function: Callable[..., Any], names: tuple[str, ...], constants: Mapping[str, Any], where: str = ""
) -> Callable[..., Any]:
    """A callable that takes the inputs in order: input i is given for the parameter names[i].

    >>> def blend(image, sigma, mask=0):
    ...     return image, sigma, mask
    >>> bind(blend, ("image", "mask"), {"sigma": 2})("i", "m")
    ('i', 2, 'm')
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of some built-in functions
        signature = None
    plain = not any(names)
    if signature is not None:
        given: dict[str, Any] = {name: None for name in names if name} | dict(constants)
        _require_fitting(signature, names, given, where)
        plain = plain or _in_order(signature, names, constants)
    if plain:
        return functools.partial(function, **constants) if constants else function
    if signature is None:
        return _by_keyword(function, names, constants)
    return _by_signature(function, signature, names, constants)


def _require_fitting(
    signature: inspect.Signature, names: tuple[str, ...], given: Mapping[str, Any], where: str
) -> None:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        unknown = next((name for name in given if name not in signature.parameters), None)
        if unknown is not None:
            known = ", ".join(signature.parameters) or "none"
            raise BadProgram(f"has no parameter {unknown!r}", where=where, hint=f"its parameters: {known}")
    if not any(names) and names:
        return
    open_ones = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in given
    ]
    if open_ones:
        raise BadProgram(
            f"parameter {open_ones[0]!r} has no value", where=where, hint="connect it, or set its value"
        )


def _in_order(signature: inspect.Signature, names: tuple[str, ...], constants: Mapping[str, Any]) -> bool:
    """Whether the inputs are the first parameters, in order, and the rest can be given by name."""
    expected = [p for p in signature.parameters.values() if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    at = 0
    for name in names:
        if at < len(expected) and expected[at].kind is inspect.Parameter.VAR_POSITIONAL:
            if name != expected[at].name:
                return False
            continue
        if at >= len(expected) or expected[at].name != name:
            return False
        at += 1
    return not any(
        name in constants and parameter.kind is parameter.POSITIONAL_ONLY
        for name, parameter in signature.parameters.items()
    )


def _by_keyword(
    function: Callable[..., Any], names: tuple[str, ...], constants: Mapping[str, Any]
) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        positional = [value for name, value in zip(names, given, strict=True) if not name]
        return function(
            *positional, **{n: v for n, v in zip(names, given, strict=True) if n}, **dict(constants)
        )

    return call


def _by_signature(
    function: Callable[..., Any],
    signature: inspect.Signature,
    names: tuple[str, ...],
    constants: Mapping[str, Any],
) -> Callable[..., Any]:
    """Positional parameters in their order, with defaults where a later one is given; the others by name."""
    several = {p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL}
    by_order = [
        p.name
        for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    spread = next(iter(several & set(names)), "")
    fixed = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if spread and name in by_order and parameter.default is not parameter.empty
    } | dict(constants)

    def call(*given: Any) -> Any:
        values = dict(fixed)
        rest = []
        for name, value in zip(names, given, strict=True):
            if name == spread and name:
                rest.append(value)
            else:
                values[name] = value
        if not spread:
            return function(**values)
        ordered = [values.pop(name) for name in by_order]
        return function(*ordered, *rest, **values)

    return call
