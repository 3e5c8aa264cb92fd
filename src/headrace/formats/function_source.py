"""What the functions of Python files look like, read from their source: nothing is imported or executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal, TypeAlias

from headrace.formats.files import read_file
from headrace.model.errors import BadFile

MAX_BYTES = 4_000_000
MOST_FUNCTIONS = 2_000
LONGEST_DOC = 2_000
STREAMS = "streams"
"""The parameter of a drawn filter that stands for the streams that arrive."""
ParameterKind: TypeAlias = Literal["positional", "several", "keyword", "keywords"]


@dataclass(frozen=True)
class ParameterSource:
    """A parameter: `several` is `*name`, `keywords` is `**name`."""

    name: str
    annotation: str = ""
    default: str | None = None
    kind: ParameterKind = "positional"


@dataclass(frozen=True)
class FunctionSource:
    """A function as its source has it."""

    reference: str
    """`file.py:name` or `module:name`."""
    name: str
    parameters: tuple[ParameterSource, ...] = ()
    returns: str = ""
    doc: str = ""
    line: int = 0
    executable: str = ""
    """Why it cannot be a task; "" if it can."""
    filter: bool = False
    """Whether it is a class of filters: its parameters are the streams that arrive, and those of its constructor."""

    @property
    def positional(self) -> list[str]:
        return [one.name for one in self.parameters if one.kind == "positional"]


@dataclass(frozen=True)
class ClassSource:
    """A class and the names of those that it is derived from."""

    name: str
    bases: tuple[str, ...]


@dataclass(frozen=True)
class ModuleSource:
    """The functions and classes at the top level of a file."""

    functions: tuple[FunctionSource, ...]
    classes: tuple[ClassSource, ...]
    filters: tuple[FunctionSource, ...] = ()
    """Classes that are filters of pipelines, as far as the names of their bases tell."""

    def find(self, name: str) -> FunctionSource | None:
        """A function or a filter."""
        return next((one for one in (*self.functions, *self.filters) if one.name == name), None)


def file_source(path: Path, place: str) -> ModuleSource:
    """Of a Python file; `place` is what references call it. O(bytes)."""
    return parsed_source(read_file(path, limit=MAX_BYTES), place)


def module_source(name: str) -> ModuleSource:
    """Of an importable module, found without importing it or its packages.

    >>> "median" in [one.name for one in module_source("statistics").functions]
    True
    """
    path: Sequence[str] | None = None
    spec = None
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise BadFile(f"{name[:100]!r} is not the name of a module", hint="such as scipy.ndimage")
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        try:
            spec = PathFinder.find_spec(".".join(parts[:end]), path)
        except (ImportError, ValueError, OSError):
            spec = None
        if spec is None:
            raise BadFile(f"there is no module {name!r}", hint="install it, or give a file below the folder")
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise BadFile(f"module {name!r} has no Python source", hint="write a function that calls it")
    return file_source(Path(spec.origin), name)


def parsed_source(data: bytes, place: str) -> ModuleSource:
    """
    >>> source = b"def blur(image: bytes, sigma: float = 2.0) -> bytes: 'Blur an image.'"
    >>> found = parsed_source(source, "filters.py").functions[0]
    >>> found.reference, found.doc, [(p.name, p.annotation, p.default) for p in found.parameters]
    ('filters.py:blur', 'Blur an image.', [('image', 'bytes', None), ('sigma', 'float', '2.0')])
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadFile(f"not valid Python: {error}", where=place, hint="fix the file") from None
    functions = [
        _function(node, place)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    classes = [
        ClassSource(node.name, tuple(ast.unparse(base) for base in node.bases))
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    filters = tuple(_filters([node for node in tree.body if isinstance(node, ast.ClassDef)], place))
    return ModuleSource(tuple(functions[:MOST_FUNCTIONS]), tuple(classes), filters[:MOST_FUNCTIONS])


def _filters(classes: Sequence[ast.ClassDef], place: str) -> Iterator[FunctionSource]:
    """Classes derived from filters, directly or from others of the file.

    >>> source = b"class Base(Filter): ...\\nclass Add(Base): 'Add up.'\\nclass Other: ..."
    >>> [(one.name, one.doc) for one in parsed_source(source, "a.py").filters]
    [('Base', ''), ('Add', 'Add up.')]
    """
    kinds = dict.fromkeys(("Filter", "CommandFilter"), "filter") | {"Reader": "reader"}
    for node in classes:
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        kind = next((kinds[base] for base in bases if base in kinds), "")
        if not kind:
            continue
        kinds[node.name] = kind
        if node.name.startswith("_"):
            continue
        init = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        given = [one for made in init for one in _parameters(made.args)][1:]
        arriving = () if kind == "reader" else (ParameterSource(STREAMS, "Stream", None, "several"),)
        doc = (ast.get_docstring(node) or "")[:LONGEST_DOC]
        parameters = (*arriving, *(replace(one, kind="keyword") for one in given if one.kind != "keywords"))
        reference = f"{place}:{node.name}"
        yield FunctionSource(reference, node.name, parameters, "Stream", doc, node.lineno, filter=True)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, place: str) -> FunctionSource:
    reason = ""
    if isinstance(node, ast.AsyncFunctionDef):
        reason = "asynchronous functions cannot be tasks"
    elif any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node)):
        reason = "generators cannot be tasks"
    return FunctionSource(
        f"{place}:{node.name}",
        node.name,
        tuple(_parameters(node.args)),
        _unparsed(node.returns),
        (ast.get_docstring(node) or "")[:LONGEST_DOC],
        node.lineno,
        reason,
    )


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        at = waiting.pop()
        yield at
        if not isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(at)


def _parameters(given: ast.arguments) -> Iterator[ParameterSource]:
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        yield _parameter(argument, default, "positional")
    if given.vararg is not None:
        yield _parameter(given.vararg, None, "several")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(argument, default, "keyword")
    if given.kwarg is not None:
        yield _parameter(given.kwarg, None, "keywords")


def _parameter(argument: ast.arg, default: ast.expr | None, kind: ParameterKind) -> ParameterSource:
    shown = None if default is None else _unparsed(default)
    return ParameterSource(argument.arg, _unparsed(argument.annotation), shown, kind)


def _unparsed(node: ast.expr | None) -> str:
    """Source of an annotation or default; a text annotation without its quotes."""
    if node is None:
        return ""
    return ast.unparse(node)[:500]
