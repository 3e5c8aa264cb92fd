"""Programs as GraphML, for networkx, Gephi, yEd and others."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.graph_program import (
    GraphEdge,
    GraphNode,
    edge_texts,
    edge_values,
    node_values,
    program_of_graph,
)
from headrace.formats.safe_xml import read_xml
from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.program import Program

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KEYS = (
    ("work", "node", "double"),
    ("kind", "node", "string"),
    ("bytes", "edge", "double"),
    ("data", "edge", "string"),
    ("sizes", "edge", "string"),
)
_MORE_KEYS = ("cores", "memory", "resources", "release", "deadline")
"""Attributes of nodes that are written where a task has them."""


def write_graphml(program: Program, path: str | Path) -> None:
    """Write tasks as nodes (`work`, `kind`), edges with `bytes`, and `data` and `sizes` (a line for each item)."""
    text = "\n".join(_lines(program)) + "\n"
    bad = _NOT_XML.search(text)
    if bad:
        around = text[max(0, bad.start() - 20) : bad.end() + 20]
        raise BadProgram(
            f"the name {shorten(around)} contains a character that XML does not allow",
            where=str(path),
            hint="write node-link JSON instead",
        )
    write_file(path, encode_text(text, str(path)))


def _lines(program: Program) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    nodes, edges = node_values(program), edge_values(program)
    used = [key for key in _MORE_KEYS if any(key in node.attributes for node in nodes)]
    for key, owner, kind in (*_KEYS, *((key, "node", _type_of(key)) for key in used)):
        yield f'  <key id="{key}" for="{owner}" attr.name="{key}" attr.type="{kind}"/>'
    yield f'  <graph id={quoteattr(program.name)} edgedefault="directed">'
    for node in nodes:
        data = "".join(_data(key, value) for key, value in node.attributes.items())
        yield f"    <node id={quoteattr(node.id)}>{data}</node>"
    for edge in edges:
        ends = f"source={quoteattr(edge.source)} target={quoteattr(edge.target)}"
        data = "".join(_data(key, value) for key, value in edge_texts(edge).items())
        yield f"    <edge {ends}>{data}</edge>"
    yield "  </graph>"
    yield "</graphml>"


def _type_of(key: str) -> str:
    return "string" if key == "resources" else "double"


def _data(key: str, value: float | str) -> str:
    text = value if isinstance(value, str) else repr(float(value))
    return f'<data key="{key}">{escape(text, {chr(13): "&#13;"})}</data>'


def read_graphml(path: str | Path) -> Program:
    """Read a directed graph: O(bytes). Attributes are found by their names; nested graphs are refused."""
    where = str(path)
    root = read_xml(path)
    graph = root.find("graph")
    if root.tag != "graphml" or graph is None:
        raise BadFile(f"the document is a <{root.tag}>, not a graph", where=where, hint="give GraphML")
    keys = {key.get("id", ""): key.get("attr.name", key.get("id", "")) for key in root.findall("key")}
    of_nodes, of_edges = (_defaults(root, keys, owner) for owner in ("node", "edge"))
    undirected = graph.get("edgedefault", "directed") != "directed"
    nodes, edges = [], []
    for element in graph:
        if element.tag == "node":
            if element.find("graph") is not None:
                raise BadFile("a node contains a graph", where=where, hint="flatten it")
            nodes.append(GraphNode(element.get("id", ""), _values(element, keys, of_nodes)))
        elif element.tag == "edge":
            if element.get("directed", "false" if undirected else "true") != "true":
                raise BadFile("an edge has no direction", where=where, hint='set edgedefault="directed"')
            ends = element.get("source", ""), element.get("target", "")
            edges.append(GraphEdge(*ends, _values(element, keys, of_edges)))
        elif element.tag == "hyperedge":
            raise BadFile("hyperedges are not read", where=where, hint="write an edge for each pair of tasks")
    try:
        return program_of_graph(graph.get("id") or Path(path).stem, nodes, edges)
    except HeadraceError as error:
        raise error.at(where) from None


def _defaults(root: Element, keys: Mapping[str, str], owner: str) -> dict[str, str]:
    """The values of nodes or edges that do not say otherwise."""
    return {
        keys[key.get("id", "")]: default.text or ""
        for key in root.findall("key")
        if key.get("for", "all") in (owner, "all") and (default := key.find("default")) is not None
    }


def _values(element: Element, keys: Mapping[str, str], defaults: dict[str, str]) -> Mapping[str, str]:
    found = {keys.get(data.get("key", ""), ""): data.text or "" for data in element.findall("data")}
    return ChainMap(found, defaults) if defaults else found  # not copied for each element


def _is_graphml(head: bytes) -> bool:
    return b"<graphml" in head


FORMATS = (
    Format(
        "graphml",
        "program",
        "GraphML",
        suffixes=(".graphml",),
        sniff=_is_graphml,
        read=read_graphml,
        write=write_graphml,
    ),
)
