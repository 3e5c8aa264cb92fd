"""Programs as Graphviz DOT: written with the attributes that are read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.formats.dot_text import parse_dot
from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.graph_program import (
    GraphEdge,
    GraphNode,
    edge_texts,
    edge_values,
    node_values,
    program_of_graph,
)
from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.program import Program
from headrace.model.units import show_size, show_time

_HEAD = re.compile(
    rb"(?:\s|//[^\n]*|/\*.*?\*/|#[^\n]*)*+(strict\s+)?(di)?graph\b[^{]{0,5000}\{", re.IGNORECASE | re.DOTALL
)
"""Comments, and the beginning of a graph; its name may look like a comment."""


def write_dot(program: Program, path: str | Path) -> None:
    """Write tasks as boxes with name and run time, edges with the bytes they carry."""
    text = "\n".join(_lines(program)) + "\n"
    bad = text.find("\0")
    if bad >= 0:
        around = text[max(0, bad - 20) : bad + 20]
        raise BadProgram(
            f"the name {shorten(around)} contains a character that DOT does not allow",
            where=str(path),
            hint="write node-link JSON instead",
        )
    write_file(path, encode_text(text, str(path)))


def _lines(program: Program) -> Iterator[str]:
    yield f"digraph {_quoted(program.name)} {{"
    yield "  node [shape=box];"
    number = {name: i for i, name in enumerate(program.tasks)}
    for node in node_values(program):
        label = {"label": node.id, "tooltip": show_time(node.attributes["work"]), "name": node.id}
        yield f"  t{number[node.id]} [{_attributes(label | dict(node.attributes))}];"
    for edge in edge_values(program):
        values = edge_texts(edge)
        label = {"label": show_size(values["bytes"])} if values["bytes"] else {}
        shown = _attributes(label | values) if values["data"] else ""
        yield f"  t{number[edge.source]} -> t{number[edge.target]}{f' [{shown}]' if shown else ''};"
    yield "}"


def _attributes(values: Mapping[str, str | float]) -> str:
    return ", ".join(
        f"{name}={_quoted(value) if isinstance(value, str) else _numeral(value)}"
        for name, value in values.items()
    )


def _numeral(value: float) -> str:
    """A number; numerals of DOT have no exponent, so one that has is quoted.

    >>> print(_numeral(1.5), _numeral(5e-5))
    1.5 "5e-05"
    """
    text = repr(value)
    return _quoted(text) if "e" in text else text


def read_dot(path: str | Path) -> Program:
    """Read a directed graph: O(bytes).

    A task is named by its `name`, or else by the id of its node; without a `kind`, its label is its kind.
    """
    where = str(path)
    data = read_file(path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadFile("not UTF-8 text", where=where, hint="save it as UTF-8") from None
    found = parse_dot(text, where)
    names = {node: values.get("name", node) for node, values in found.nodes.items()}
    nodes = [
        GraphNode(names[node], ({"kind": values["label"]} if "label" in values else {}) | values)
        for node, values in found.nodes.items()
    ]
    edges = [GraphEdge(names[a], names[b], values) for a, b, values in found.edges]
    try:
        return program_of_graph(found.name or Path(path).stem, nodes, edges)
    except HeadraceError as error:
        raise error.at(where) from None


def _is_dot(head: bytes) -> bool:
    return _HEAD.match(head) is not None


def _quoted(text: str) -> str:
    r"""
    >>> print(_quoted('a "b" \\N'))
    "a \"b\" \\N"
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


FORMATS = (
    Format(
        "dot",
        "program",
        "Graphviz DOT",
        suffixes=(".dot", ".gv"),
        sniff=_is_dot,
        read=read_dot,
        write=write_dot,
    ),
)
