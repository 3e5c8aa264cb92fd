"""DOT, GraphML and node-link JSON, read back by others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings

from formats.strategies import dot_texts, programs, xml_texts
from headrace.formats.dot import write_dot
from headrace.formats.graphml import write_graphml
from headrace.formats.node_link import write_node_link
from headrace.formats.task_edges import task_edges
from headrace.model.errors import BadProgram
from headrace.model.program import Program

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_DOT = re.compile(
    rf"digraph {_QUOTED} {{\n  node \[shape=box\];\n"
    rf"(?P<nodes>(?:  t\d+ \[(?:\w+=(?:{_QUOTED}|[-+.\w]+)(?:, )?)+\];\n)*)"
    rf"(?P<edges>(?:  t\d+ -> t\d+(?: \[(?:\w+=(?:{_QUOTED}|[-+.\w]+)(?:, )?)+\])?;\n)*)}}\n"
)


def diamond() -> Program:
    program = Program('d "<&>')
    a = program.task(name='a "<&>\\', outputs={"x": 5, "y <&>": 7}, work=1.5, kind="k&\r")
    program.task(name="b\n", inputs=a, work=2, kind="")
    program.task(name="c", after=['a "<&>\\'], work=3)
    return program


def test_dot(tmp_path: Path) -> None:
    write_dot(diamond(), tmp_path / "d.dot")
    assert (tmp_path / "d.dot").read_bytes().decode().split("\n") == [
        'digraph "d \\"<&>" {',
        "  node [shape=box];",
        '  t0 [label="a \\"<&>\\\\", tooltip="1.5 s", name="a \\"<&>\\\\", work=1.5, kind="k&\r"];',
        '  t1 [label="b\\n", tooltip="2 s", name="b\\n", work=2.0, kind=""];',
        '  t2 [label="c", tooltip="3 s", name="c", work=3.0, kind=""];',
        '  t0 -> t1 [label="12 B", bytes=12.0, data="x\\ny <&>", sizes="5.0\\n7.0"];',
        "  t0 -> t2;",
        "}",
        "",
    ]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(program=programs(dot_texts))
def test_dot_is_well_formed_whatever_the_names(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("dot") / "p.dot"
    write_dot(program, path)
    match = _DOT.fullmatch(path.read_bytes().decode())
    assert match
    assert match["nodes"].count("\n") == len(program.tasks)
    assert match["edges"].count("\n") == len(list(task_edges(program)))


def test_dot_refuses_what_graphviz_cannot_hold(tmp_path: Path) -> None:
    program = Program("x")
    program.task(name="nul \0")
    with pytest.raises(BadProgram, match="nul"):
        write_dot(program, tmp_path / "x.dot")
    assert list(tmp_path.iterdir()) == []


def check_graph(graph: nx.DiGraph, program: Program, join: bool) -> None:
    nodes = {name: {key: values[key] for key in ("work", "kind")} for name, values in graph.nodes(data=True)}
    assert nodes == {t.name: {"work": t.work, "kind": t.kind} for t in program.tasks.values()}
    assert {(a, b): d for a, b, d in graph.edges(data=True)} == {
        (e.source, e.target): {
            "bytes": e.bytes,
            "data": "\n".join(e.data) if join else list(e.data),
            "sizes": "\n".join(map(repr, e.sizes)) if join else list(e.sizes),
        }
        for e in task_edges(program)
    }


def test_graphml_escapes(tmp_path: Path) -> None:
    write_graphml(diamond(), tmp_path / "d.graphml")
    graph = nx.read_graphml(tmp_path / "d.graphml")
    assert list(graph.nodes) == ['a "<&>\\', "b\n", "c"]
    assert graph.nodes['a "<&>\\']["kind"] == "k&\r"
    assert graph.edges['a "<&>\\', "b\n"] == {
        "bytes": 12.0,
        "data": "x\ny <&>",
        "sizes": "5.0\n7.0",
    }


@settings(max_examples=40, deadline=None, derandomize=True)
@given(program=programs(xml_texts))
def test_graphml_as_networkx_reads_it(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("xml") / "p.graphml"
    write_graphml(program, path)
    check_graph(nx.read_graphml(path), program, join=True)


def test_graphml_refuses_what_xml_cannot_hold(tmp_path: Path) -> None:
    program = Program("x")
    program.task(name="nul \0")
    with pytest.raises(BadProgram, match="nul"):
        write_graphml(program, tmp_path / "x.graphml")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=40, deadline=None, derandomize=True)
@given(program=programs())
def test_node_link_as_networkx_reads_it(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("json") / "p.json"
    write_node_link(program, path)
    check_graph(nx.node_link_graph(json.loads(path.read_bytes()), edges="edges"), program, join=False)
