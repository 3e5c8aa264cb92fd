"""Programs as node-link JSON, for networkx.node_link_graph(..., edges="edges")."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.task_edges import task_edges
from headrace.model.program import Program


def write_node_link(program: Program, path: str | Path) -> None:
    """Write tasks as nodes (`work`, `kind`), edges with `bytes` and `data` (a list of names)."""
    document = {
        "directed": True,
        "multigraph": False,
        "graph": {"name": program.name},
        "nodes": [{"id": t.name, "work": t.work, "kind": t.kind} for t in program.tasks.values()],
        "edges": [edge._asdict() for edge in task_edges(program)],
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_file(path, encode_text(text + "\n", str(path)))


FORMATS = (
    Format("node-link", "program", "node-link JSON", suffixes=(".nodelink.json",), write=write_node_link),
)
