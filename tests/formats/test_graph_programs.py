"""Programs read from networkx, GraphML, DOT and node-link JSON; what is written is read back."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.strategies import amounts, dot_texts, programs, xml_texts
from headrace.formats import dot_text
from headrace.formats.dot import read_dot, write_dot
from headrace.formats.graphml import read_graphml, write_graphml
from headrace.formats.loading import load_program
from headrace.formats.node_link import read_node_link, write_node_link
from headrace.formats.task_edges import task_edges
from headrace.model.errors import BadFile, BadProgram, HeadraceError, UsageError
from headrace.model.program import Program


def between_tasks(program: Program) -> tuple[object, ...]:
    """What a graph of tasks can hold of a program."""
    tasks = [
        (t.name, t.work, t.kind, t.cores, t.memory, t.release, t.deadline) for t in program.tasks.values()
    ]
    return tasks, sorted(
        (e.source, e.target, tuple(sorted(zip(e.data, e.sizes, strict=True)))) for e in task_edges(program)
    )


def example() -> Program:
    program = Program("lab")
    a, b = program.task(name="a", outputs={"x": 5, "y": 7}, work=1.5, kind="k", cores=2, memory="1 GB")
    program.task(name="b", inputs=[a, b], work=2, release=3.0, deadline=90.0)
    program.task(name="c", inputs=[a], after=["b"], work=3)
    return program


sizes = st.one_of(st.none(), amounts)

each_format = pytest.mark.parametrize(
    ("write", "read", "suffix"),
    [
        (write_graphml, read_graphml, ".graphml"),
        (write_dot, read_dot, ".dot"),
        (write_node_link, read_node_link, ".nodelink.json"),
    ],
)


@each_format
def test_what_is_written_is_read_back(write, read, suffix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / f"p{suffix}"
    write(example(), path)
    assert between_tasks(read(path)) == between_tasks(example())
    found = load_program(path)  # the format is recognised
    assert (found.name, between_tasks(found)) == ("lab", between_tasks(example()))


@pytest.mark.parametrize("suffix", [".dot", ".gv", ".graphml", ".nodelink.json", ".json", ".pst"])
def test_every_text_format_can_be_packed(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"p{suffix}.gz"
    program = Program("lab")
    program.task(name="a", outputs={"x": 5})
    program.task(name="b", inputs=["x"])
    program.write(path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert len(load_program(path).tasks) == 2


@each_format
def test_unusual_names_and_numbers_are_read_back(write, read, suffix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Line breaks, what looks like a list or a comment, and numbers that are written with an exponent."""
    program = Program("http://lab")
    sizes = {"one\ntwo": 5e-5, '["x"]': 7e17, "[y]": 1.0, "z\r": 0.0}
    program.task(name="a\r\n", outputs=sizes, work="50 us", kind="k\r", memory=2e15)
    program.task(name="b", inputs=[*sizes], work=1e17, release=1e-7, deadline=1e18)
    program.task(name="c", inputs=["[y]"], work=0.0)
    program.task(name="d", inputs=['["x"]'])
    program.task(name="e", inputs=["one\ntwo"])
    path = tmp_path / f"p{suffix}"
    write(program, path)
    assert between_tasks(read(path)) == between_tasks(program)
    assert load_program(path).name == "http://lab"


@each_format
def test_unknown_sizes_stay_unknown_and_zeros_zero(write, read, suffix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    given = {"unknown": None, "empty": 0.0, "large": 5.0}
    program = Program("p")
    program.task(name="a", outputs=given)
    program.task(name="b", inputs=["unknown"])
    program.task(name="c", inputs=[*given])
    path = tmp_path / f"p{suffix}"
    write(program, path)
    for found in (read(path), Program.from_networkx(program.to_networkx())):
        assert {name: found.data[name].size for name in given} == given


def test_a_size_that_is_a_question_mark_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text(
        'digraph { a -> b [bytes="?"]; a -> c [data="x\\ny", sizes="?\\n3 kB"]; b -> c }'
    )
    program = read_dot(tmp_path / "g.dot")
    assert [program.data[name].size for name in ("a -> b", "x", "y")] == [None, None, 3000.0]
    with pytest.raises(BadProgram, match="give 2 sizes"):
        Program.from_networkx(nx.DiGraph([("a", "b", {"data": ["x", "y"], "sizes": [None]})]))


@each_format
def test_what_could_not_be_read_back_is_not_written(write, read, suffix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    def of(size: float = 1.0, item: str = "x", **values: float) -> Program:
        program = Program("p")
        program.task(name="a", outputs={item: size, "y": size}, **values)  # type: ignore[arg-type]
        program.task(name="b", inputs=[item, "y"])
        return program

    path = tmp_path / f"p{suffix}"
    for program, said in (
        (of(size=6e17), r"edge 'a' -> 'b': bytes is 1\.2e\+18"),
        (of(work=2e18), r"task 'a': work is 2e\+18"),
        (of(item=""), "the name of an item is ''"),
    ):
        with pytest.raises(BadProgram, match=said):
            write(program, path)
    assert not path.exists()


def test_a_task_without_a_name_cannot_be_written() -> None:
    with pytest.raises(BadProgram, match="name is empty"):
        Program("p").task(name="")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(program=programs(dot_texts, sizes))
def test_any_program_survives_dot(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("dot") / "p.dot"
    write_dot(program, path)
    assert between_tasks(read_dot(path)) == between_tasks(program)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(program=programs(xml_texts, sizes))
def test_any_program_survives_networkx(program: Program) -> None:
    back = Program.from_networkx(program.to_networkx())
    assert between_tasks(back) == between_tasks(program)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(program=programs(xml_texts, sizes))
def test_any_program_survives_graphml(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("xml") / "p.graphml"
    write_graphml(program, path)
    assert between_tasks(read_graphml(path)) == between_tasks(program)


def test_weights_of_other_tools_are_understood() -> None:
    graph = nx.DiGraph()
    graph.add_node(1, weight=3)
    graph.add_node(2, runtime="2 min")
    graph.add_edge(1, 2, weight=100)
    program = Program.from_networkx(graph)
    assert [t.work for t in program.tasks.values()] == [3.0, 120.0]
    assert [e.bytes for e in task_edges(program)] == [100.0]


def test_one_item_on_several_edges_is_one_item() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", data=["x"], bytes="1 kB")
    graph.add_edge("a", "c", data=["x", "y"], bytes=1500)
    program = Program.from_networkx(graph)
    assert {d.name: d.size for d in program.data.values() if d.size} == {"x": 1000.0, "y": 500.0}
    assert program.tasks["c"].inputs == ("x", "y")


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (nx.Graph([("a", "b")]), "no directions"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "circle"),
        (nx.DiGraph([("a", "b", {"bytes": "much"})]), "much"),
        (nx.DiGraph([("a", "c", {"data": ["x"]}), ("b", "c", {"data": ["x"]})]), "one producer"),
        (nx.DiGraph([(1, "1")]), "same name"),
        (nx.DiGraph([("a", "b", {"bytes": np.array([1, 2])})]), "edge 'a' -> 'b': bytes is array"),
        (nx.DiGraph([("a", "b", {"data": np.array(["x", "y"])})]), "edge 'a' -> 'b': data is array"),
        (nx.DiGraph([("a", "b", {"data": ["x"], "sizes": np.array([1, 2])})]), "sizes is array"),
        (nx.DiGraph([("a", "b", {"bytes": 10**5000})]), "bytes is a number of more than 1000 digits"),
    ],
)
def test_graphs_that_are_no_programs_are_refused(graph: object, said: str) -> None:
    with pytest.raises(BadProgram, match=said):
        Program.from_networkx(graph)
    with pytest.raises(UsageError, match="networkx"):
        Program.from_networkx([])


@pytest.mark.parametrize("name", ["work", "cores", "memory"])
def test_arrays_are_no_numbers(name: str) -> None:
    for value in (np.array([1, 2]), np.array([1])):
        graph = nx.DiGraph()
        graph.add_node("a", **{name: value})
        with pytest.raises(BadProgram, match=f"node 'a': {name} is array"):
            Program.from_networkx(graph)


def test_dot_of_other_tools(tmp_path: Path) -> None:
    """Chains, subgraphs, defaults, comments, ports, strings in parts."""
    (tmp_path / "g.dot").write_text(
        """// made by hand
        strict digraph "my graph" { graph [rankdir=LR]; rankdir = TB
          node [shape=box, work="2 s"]; edge [bytes=10]
          a -> {b c} -> d:p:n [color=red]
          subgraph cluster_0 { node [work=5] e [label="align" + "er"] }
          d -> e /* last */ [bytes="1 kB"];
          # 1 "preprocessed"
          "b" [work=.5]
        }"""
    )
    program = load_program(tmp_path / "g.dot")
    assert program.name == "my graph"
    assert {t.name: t.work for t in program.tasks.values()} == {
        "a": 2.0,
        "b": 0.5,
        "c": 2.0,
        "d": 2.0,
        "e": 5.0,
    }
    assert program.tasks["e"].kind == "aligner"
    edges = {(e.source, e.target): e.bytes for e in task_edges(program)}
    assert edges == {("a", "b"): 10, ("a", "c"): 10, ("b", "d"): 10, ("c", "d"): 10, ("d", "e"): 1000}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("strict digraph { a -> b [bytes=3]; a -> b [bytes=4] }", [("a", "b", 4)]),
        ("strict digraph { a -> b [bytes=3]; edge [bytes=9]; a -> {b c} }", [("a", "b", 3), ("a", "c", 9)]),
        ("digraph { a -> b [bytes=3]; a -> b [bytes=4] }", [("a", "b", 7)]),
        ("digraph { {a; a} -> b [bytes=3] }", [("a", "b", 3)]),
    ],
)
def test_edges_that_dot_names_twice(
    text: str, expected: list[tuple[str, str, float]], tmp_path: Path
) -> None:
    (tmp_path / "g.dot").write_text(text)
    found = [(e.source, e.target, e.bytes) for e in task_edges(read_dot(tmp_path / "g.dot"))]
    assert found == expected


def test_only_attributes_that_are_read_are_kept() -> None:
    graph = dot_text.parse_dot("digraph { node [color=red, work=2] edge [style] a -> b [bytes=3, x=4] }", "g")
    assert graph.nodes == {"a": {"work": "2"}, "b": {"work": "2"}}
    assert graph.edges == [("a", "b", {"bytes": "3"})]


def test_edges_of_groups_are_counted_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [" ".join(f"{letter}{i}" for i in range(5000)) for letter in "nm"]
    (tmp_path / "g.dot").write_text(f"digraph {{ {{{names[0]}}} -> {{{names[1]}}} }}")
    with pytest.raises(BadFile, match="more than 1000000 edges"):
        read_dot(tmp_path / "g.dot")
    monkeypatch.setattr(dot_text, "EDGES_OF_SHORT_TEXT", 1)
    (tmp_path / "g.dot").write_text("digraph {" + "".join(f"a{i}->b{i};" for i in range(200)) + "}")
    assert len(read_dot(tmp_path / "g.dot").tasks) == 400
    group = "{a b c d e f g h}->{i j k l m n o p};"
    (tmp_path / "g.dot").write_text(f"strict digraph {{ {group * 3} }}")
    with pytest.raises(BadFile, match="more than 130 edges"):
        read_dot(tmp_path / "g.dot")


def test_defaults_of_graphml_keys(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").write_text(
        """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
          <key id="d0" for="node" attr.name="weight"><default>3</default></key>
          <key id="d1" for="edge" attr.name="weight"><default>100</default></key>
          <key id="d2" attr.name="kind"><default>k</default></key>
          <graph edgedefault="directed">
            <node id="a"/><node id="b"><data key="d0">5</data></node><node id="c"><data key="d2">l</data></node>
            <edge source="a" target="b"/><edge source="b" target="c"><data key="d1">7</data></edge>
          </graph>
        </graphml>"""
    )
    program = read_graphml(tmp_path / "g.graphml")
    assert [(t.work, t.kind) for t in program.tasks.values()] == [(3.0, "k"), (5.0, "k"), (3.0, "l")]
    assert [e.bytes for e in task_edges(program)] == [100.0, 7.0]


def test_numbers_as_ids_of_node_link_documents(tmp_path: Path) -> None:
    nodes = [{"id": value} for value in (1000001.0, 1000002.0, 7, 1.5, 1e300, 2.0**60)]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "edges": []}))
    names = ["1000001", "1000002", "7", "1.5", "1e+300", "1.152921504606847e+18"]
    assert [*read_node_link(tmp_path / "g.json").tasks] == names


def test_links_of_older_node_link_documents_are_read(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b", {"size": 7})])
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    assert [e.bytes for e in task_edges(load_program(tmp_path / "g.json"))] == [7.0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.dot", "graph { a -- b }", "no directions"),
        ("g.dot", "digraph { a -- b }", "no direction"),
        ("g.dot", "digraph { a -> }", "line 1"),
        ("g.dot", "digraph { a [label=<b>] }", "is not DOT"),
        ("g.dot", "digraph {" + "{" * 200, "deep"),
        ("g.dot", "digraph { a -> b", "end of the file"),
        ("g.dot", 'digraph { a [work="-3"]; }', "-3"),
        ("g.dot", "digraph { a [work=1e5]; }", "quotes"),
        ("g.dot", 'digraph { a [label="x" + ', "end of the file"),
        ("g.graphml", "<graphml><graph edgedefault='undirected'><node id='a'/><node id='b'/>"
         "<edge source='a' target='b'/></graph></graphml>", "direction"),
        ("g.graphml", "<graphml><graph><node id='a'><graph/></node></graph></graphml>", "contains a graph"),
        ("g.graphml", "<graphml><graph><edge source='a' target='b'/></graph></graphml>", "not there"),
        ("g.graphml", "<!DOCTYPE g [<!ENTITY a 'b'>]><graphml>&a;</graphml>", "document type"),
        ("g.graphml", "<graphml>" + "<a>" * 500, "deep"),
        ("g.graphml", "<graphml><graph>", "not valid XML"),
        ("g.graphml", '<?xml version="1.0" encoding="bogus"?><graphml/>', "'bogus'"),
        ("g.graphml", '<?xml version="1.0" encoding="utf-7"?><graphml/>', "'utf-7'"),
        ("g.graphml", '<?xml version="1.0" encoding="euc-jp"?><graphml/>', "'euc-jp'"),
        ("g.graphml", '<?xml version="1.0" encoding="rot13"?><graphml/>', "'rot13'"),
        ("g.json", f'{{"nodes": [{{"id": 1, "work": {10**400}}}], "edges": []}}', "node '1': work is 10"),
        ("g.json", f'{{"nodes": [{{"id": 1, "cores": {10**400}}}], "edges": []}}', "node '1': cores is 10"),
        ("g.json", '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2, "data": ["a", "b"], '
         '"sizes": 5}]}', "edge '1' -> '2': sizes is 5"),
        ("g.json", '{"nodes": [{"id": null}], "edges": []}', "id of a node"),
        ("g.json", '{"nodes": 5, "edges": []}', "nodes"),
        ("g.json", '{"directed": false, "nodes": [], "edges": []}', "no directions"),
    ],
)  # fmt: skip
def test_hostile_and_broken_files_give_one_typed_error(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((BadFile, BadProgram), match=said) as caught:
        load_program(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    lines = ["<!DOCTYPE g ["] + [f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, 40)]
    (tmp_path / "b.graphml").write_text("\n".join([*lines, "]><graphml>&a39;</graphml>"]))
    with pytest.raises(HeadraceError, match="document type"):
        load_program(tmp_path / "b.graphml")
    (tmp_path / "x.graphml").write_text(
        '<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml><graph><node id="a"><data>&x;</data></node></graph></graphml>'
    )
    with pytest.raises(HeadraceError, match="entity"):
        load_program(tmp_path / "x.graphml")
