"""Programs as Graphviz DOT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.task_edges import task_edges
from headrace.model.program import Program
from headrace.model.units import show_size, show_time


def write_dot(program: Program, path: str | Path) -> None:
    """Write tasks as boxes with name and run time, edges with the bytes they carry."""
    write_file(path, encode_text("\n".join(_lines(program)) + "\n", str(path)))


def _lines(program: Program) -> Iterator[str]:
    yield f"digraph {_quoted(program.name)} {{"
    yield "  node [shape=box];"
    number = {name: i for i, name in enumerate(program.tasks)}
    for name, task in program.tasks.items():
        yield f"  t{number[name]} [label={_quoted(name)}, tooltip={_quoted(show_time(task.work))}];"
    for edge in task_edges(program):
        label = f" [label={_quoted(show_size(edge.bytes))}]" if edge.bytes else ""
        yield f"  t{number[edge.source]} -> t{number[edge.target]}{label};"
    yield "}"


def _quoted(text: str) -> str:
    r"""
    >>> print(_quoted('a "b" \\N'))
    "a \"b\" \\N"
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return '"' + text.replace("\0", "\ufffd") + '"'


FORMATS = (Format("dot", "program", "Graphviz DOT", suffixes=(".dot", ".gv"), write=write_dot),)
