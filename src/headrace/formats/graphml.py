"""Programs as GraphML, for networkx, Gephi, yEd and others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.shapes import shorten
from headrace.formats.task_edges import task_edges
from headrace.model.errors import BadProgram
from headrace.model.program import Program

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KEYS = (
    ("work", "node", "double"),
    ("kind", "node", "string"),
    ("bytes", "edge", "double"),
    ("data", "edge", "string"),
)


def write_graphml(program: Program, path: str | Path) -> None:
    """Write tasks as nodes (`work`, `kind`), edges with `bytes` and `data` (item names, one per line)."""
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
    for key, owner, kind in _KEYS:
        yield f'  <key id="{key}" for="{owner}" attr.name="{key}" attr.type="{kind}"/>'
    yield f'  <graph id={quoteattr(program.name)} edgedefault="directed">'
    for task in program.tasks.values():
        values = _data("work", task.work) + _data("kind", task.kind)
        yield f"    <node id={quoteattr(task.name)}>{values}</node>"
    for edge in task_edges(program):
        ends = f"source={quoteattr(edge.source)} target={quoteattr(edge.target)}"
        yield f"    <edge {ends}>{_data('bytes', edge.bytes)}{_data('data', chr(10).join(edge.data))}</edge>"
    yield "  </graph>"
    yield "</graphml>"


def _data(key: str, value: float | str) -> str:
    text = value if isinstance(value, str) else repr(float(value))
    return f'<data key="{key}">{escape(text, {chr(13): "&#13;"})}</data>'


FORMATS = (Format("graphml", "program", "GraphML", suffixes=(".graphml",), write=write_graphml),)
