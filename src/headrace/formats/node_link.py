"""Programs as node-link JSON, as networkx.node_link_data(..., edges="edges") makes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AliasChoices, FailFast, Field, TypeAdapter

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.graph_program import GraphEdge, GraphNode, edge_values, node_values, program_of_graph
from headrace.formats.shapes import STRICT, read_shape, shorten
from headrace.model.errors import BadProgram, HeadraceError
from headrace.model.program import Program

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | list[Scalar] | dict[str, Scalar]


def write_node_link(program: Program, path: str | Path) -> None:
    """Write tasks as nodes (`work`, `kind`), edges with `bytes`, and `data` and `sizes` (lists)."""
    document = {
        "directed": True,
        "multigraph": False,
        "graph": {"name": program.name},
        "nodes": [{"id": node.id, **node.attributes} for node in node_values(program)],
        "edges": [{"source": e.source, "target": e.target, **e.attributes} for e in edge_values(program)],
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_file(path, encode_text(text + "\n", str(path)))


def read_node_link(path: str | Path) -> Program:
    """Read a directed graph, with its edges in `edges` or, as older versions write it, in `links`: O(bytes)."""
    where = str(path)
    document = read_shape(_adapter(), read_file(path), where)
    if not document.directed:
        raise BadProgram("the graph has no directions", where=where, hint="write a networkx.DiGraph")
    try:
        nodes = [GraphNode(_name(node.get("id"), "id of a node"), node) for node in document.nodes]
        edges = [
            GraphEdge(_name(edge.get("source"), "source"), _name(edge.get("target"), "target"), edge)
            for edge in document.edges
        ]
        name = document.graph.get("name")
        return program_of_graph(name if isinstance(name, str) and name else Path(path).stem, nodes, edges)
    except HeadraceError as error:
        raise error.at(where) from None


@dataclass(slots=True)
class Document:
    """The parts of a node-link document that are read."""

    __pydantic_config__ = STRICT

    nodes: Annotated[list[dict[str, Value]], FailFast()]
    edges: Annotated[
        list[dict[str, Value]], FailFast(), Field(validation_alias=AliasChoices("edges", "links"))
    ]
    directed: bool = True
    graph: dict[str, Value] = field(default_factory=dict)


@cache
def _adapter() -> TypeAdapter[Document]:
    return TypeAdapter(Document)


def _name(value: object, what: str) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return str(int(value) if whole else value)  # 1.0 is 1, as other tools write it
    raise BadProgram(f"the {what} is {shorten(value)}", hint="give a text or a number")


def _is_node_link(head: bytes) -> bool:
    return head.startswith(b"{") and b'"nodes"' in head and b'"workflow"' not in head


FORMATS = (
    Format(
        "node-link",
        "program",
        "node-link JSON",
        suffixes=(".nodelink.json",),
        sniff=_is_node_link,
        read=read_node_link,
        write=write_node_link,
    ),
)
