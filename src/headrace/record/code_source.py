"""The source of functions and modules, normalised: how a change of code is shown to the user."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib.util
import inspect
import linecache
import sys
import textwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

_LONGEST = 200_000
"""Characters of a source that are kept."""


def source_of(value: FunctionType | type) -> tuple[str, str]:
    """The source of a function or class with its line numbers as they are, and `file:line`; empty if there is none."""
    return _source(value.__code__ if isinstance(value, FunctionType) else value)


@functools.lru_cache(maxsize=10_000)
def _source(value: CodeType | type) -> tuple[str, str]:
    try:
        linecache.checkcache(inspect.getsourcefile(value) or "")
        lines, first = inspect.getsourcelines(value)
        file = inspect.getsourcefile(value) or ""
    except (OSError, TypeError, IndentationError, SyntaxError):
        return "", ""
    return textwrap.dedent("".join(lines))[:_LONGEST], f"{file}:{max(1, first)}"


def module_source(name: str) -> tuple[str, str, list[str]]:
    """A module of the user's own: its source without comments, formatting and docstrings, its file, what it imports."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
        file = None if spec is None else spec.origin
    try:
        tree = ast.parse(Path(str(file)).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return "", "", []
    imports: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.append(node.module)
    return ast.unparse(_without_docstrings(tree))[:_LONGEST], f"{file}:1", sorted(set(imports))


class SourceChange(NamedTuple):
    """The first line that differs between two versions of a source."""

    line: int
    """Number in the new source, from 1."""
    before: str
    after: str


def changed_line(before: str, after: str) -> SourceChange | None:
    """The first changed statement; comments, formatting and docstrings are not compared. None if there is none.

    >>> changed_line("def f(x):\\n    return x + 1", "def f(x):  # new\\n\\n    return x + 2")
    SourceChange(line=3, before='return x + 1', after='return x + 2')
    """
    old, new = _statements(before), _statements(after)
    matcher = difflib.SequenceMatcher(
        None, [text for text, _ in old], [text for text, _ in new], autojunk=False
    )
    for what, a, b, c, d in matcher.get_opcodes():
        if what != "equal":
            line = new[c][1] if c < len(new) else (new[-1][1] if new else 1)
            shown = new[c][0] if c < d else ""
            return SourceChange(line, old[a][0] if a < b else "", shown)
    return None


def _statements(source: str) -> list[tuple[str, int]]:
    """The statements of a source, each on one line and with its number; the lines themselves if it cannot be parsed."""
    try:
        tree = _without_docstrings(ast.parse(source))
    except SyntaxError:  # a lambda inside a longer statement
        return [(line.strip(), k) for k, line in enumerate(source.splitlines(), 1) if line.strip()]
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            found.append((ast.unparse(node).splitlines()[0].strip(), node.lineno))
    return sorted(found, key=lambda each: each[1])


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.body:
            first = node.body[0]
            text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if text and isinstance(first.value.value, str):  # type: ignore[attr-defined]
                node.body = node.body[1:] or [ast.Pass(lineno=first.lineno, col_offset=0)]
    return tree
