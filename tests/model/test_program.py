import math

import numpy as np
import pytest

from headrace.model.errors import BadProgram, HeadraceError, UsageError
from headrace.model.graph import make_graph
from headrace.model.program import Command, Program


def diamond() -> Program:
    program = Program("diamond")
    source = program.input("source", size="1 kB")
    left, right = program.task(None, name="split", inputs=[source], outputs={"l": 10, "r": 20}, work=3.0)
    a = program.task(None, name="a", inputs=[left], outputs={"la": 1}, kind="fft")
    b = program.task(None, name="b", inputs=[right, source], outputs={"rb": 2}, after=["a"])
    program.task(None, name="join", inputs=[a, b, "l"], outputs={"out": 5}, kind="fft")
    return program


def test_arrays_of_a_program():
    g = diamond().graph
    names = list(g.item_names)
    assert names == ["source", "l", "r", "la", "rb", "out", "a.finished"]
    assert g.size.tolist() == [1000, 10, 20, 1, 2, 5, 0]
    assert g.producer.tolist() == [-1, 0, 0, 1, 2, 3, 1]
    assert [[names[i] for i in g.reads_of(t)] for t in range(4)] == [
        ["source"],
        ["l"],
        ["r", "source", "a.finished"],
        ["la", "rb", "l"],
    ]
    assert [[names[i] for i in g.writes_of(t)] for t in range(4)] == [
        ["l", "r"],
        ["la", "a.finished"],
        ["rb"],
        ["out"],
    ]
    assert g.readers_of(names.index("l")).tolist() == [1, 3]
    assert g.readers_of(names.index("source")).tolist() == [0, 2]
    assert g.order.tolist() == [0, 1, 2, 3]
    assert g.level.tolist() == [0, 1, 2, 3]
    assert [g.kinds[k] for k in g.kind] == ["", "fft", "", "fft"]
    assert [n for n, wanted in zip(names, g.result, strict=True) if wanted] == ["out"]


def test_an_item_read_twice_by_one_task_is_read_once():
    program = Program()
    x = program.input("x", size=1)
    program.task(None, name="t", inputs=[x, x, "x"])
    assert program.graph.reads.tolist() == [0]


def test_declared_results_replace_those_that_nobody_reads():
    program = diamond()
    assert [d.name for d in program.results()] == ["out"]
    program.output("la", "la.dat")
    assert [(d.name, d.path) for d in program.results()] == [("la", "la.dat")]
    assert program.graph.result.tolist() == [False, False, False, True, False, False, False]


def test_the_graph_is_built_once_and_anew_after_a_change():
    program = diamond()
    first = program.graph
    assert program.graph is first
    program.task(None, name="more", inputs=["out"])
    assert program.graph.n_tasks == 5


def test_a_task_without_outputs_gives_a_signal():
    program = Program()
    done = program.task(None, name="clean")
    program.task(None, name="next", inputs=[done])
    assert done.name == "clean.done"
    assert done.size == 0
    assert program.graph.level.tolist() == [0, 1]


def test_commands_and_callables_give_names_and_kinds():
    program = Program()
    program.task(["convert", "{x}", "-"], outputs=["y"], stdout="y", inputs=[program.input("x", "x.png")])
    program.task(abs, inputs=["y"], outputs=["z"])
    first, second = program.tasks.values()
    assert (first.name, first.kind, first.body) == (
        "convert_0",
        "convert",
        Command(("convert", "{x}", "-"), "y"),
    )
    assert (second.name, second.kind, second.body) == ("abs_1", "abs", abs)


def test_with_work_changes_run_times_alone():
    g = diamond().graph
    h = g.with_work(g.work * 2)
    assert h.work.tolist() == [6, 2, 2, 2]
    assert h.order.tolist() == g.order.tolist()
    assert h.reads.tolist() == g.reads.tolist()
    assert h.result.tolist() == g.result.tolist()


def two_tasks() -> Program:
    program = Program("p")
    program.task(None, name="t", outputs=["d"])
    program.input("x")
    return program


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda p: p.task(None, name="t"), ["two tasks", "'t'"]),
        (lambda p: p.input("x"), ["two items", "'x'"]),
        (lambda p: p.task(None, name="u", outputs=["d"]), ["'d'", "'t'", "'u'"]),
        (lambda p: p.task(None, name="u", outputs=["x"]), ["two items", "'x'"]),
        (lambda p: p.task(None, name="u", outputs={"e": -1}), ["-1", "'e'"]),
        (lambda p: p.input("y", size="1 parsec"), ["parsec", "'y'"]),
        (lambda p: p.input("y", size=math.nan), ["nan", "'y'"]),
        (lambda p: p.task(None, name="u", work="-3 s"), ["-3 s", "'u'"]),
        (lambda p: p.output("nothing"), ["'nothing'"]),
    ],
)
def test_mistakes_are_named_when_made(wrong, words):
    with pytest.raises(BadProgram) as caught:
        wrong(two_tasks())
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.hint


def test_a_refused_task_leaves_the_program_as_it_was():
    program = two_tasks()
    before = dict(program.tasks), dict(program.data), dict(program.producer)
    with pytest.raises(BadProgram, match="two items are named 'x'"):
        program.task(None, outputs=["a", "x"])
    assert (program.tasks, program.data, program.producer) == before
    assert program.task(None, outputs=["a"]).name == "a"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda p: p.task(None, name="u", inputs=["nothing"]), ["'u'", "'nothing'"]),
        (lambda p: p.task(None, name="u", after=["nobody"]), ["'u'", "'nobody'"]),
        (lambda p: p.task(None, name="u", inputs=["u.done"]), ["circle", "u -> u"]),
        (
            lambda p: (p.task(None, name="u", after=["v"]), p.task(None, name="v", after=["u"])),
            ["circle", "u -> v -> u"],
        ),
    ],
)
def test_mistakes_that_show_in_the_whole(wrong, words):
    program = two_tasks()
    wrong(program)
    with pytest.raises(BadProgram) as caught:
        _ = program.graph
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_long_circle_is_shortened():
    n = 50
    with pytest.raises(BadProgram) as caught:
        make_graph(
            work=np.ones(n),
            size=np.zeros(n),
            producer=np.arange(n),
            read_ptr=np.arange(n + 1),
            reads=np.roll(np.arange(n), 1),
        )
    assert "..." in str(caught.value)
    assert str(caught.value).count("->") == 7


def test_order_puts_producers_first_whatever_the_numbers():
    rng = np.random.default_rng(5)
    n = 300
    rank = rng.permutation(n)
    reads = [[int(i) for i in rng.integers(0, n, 3) if rank[i] < rank[t]] for t in range(n)]
    g = make_graph(
        work=np.ones(n),
        size=np.ones(n),
        producer=np.arange(n),
        read_ptr=np.cumsum([0, *map(len, reads)]),
        reads=np.concatenate(reads),
    )
    position = np.argsort(g.order)
    assert sorted(g.order.tolist()) == list(range(n))
    for t in range(n):
        assert all(position[i] < position[t] for i in reads[t])
        assert g.level[t] == max((g.level[i] + 1 for i in reads[t]), default=0)


def test_errors_say_where_and_what_to_try():
    error = HeadraceError("speed is -1", where="host n1", hint="give more").at("lab.toml")
    assert str(error) == "lab.toml: host n1: speed is -1 (try: give more)"


def test_what_a_program_and_an_input_are_not() -> None:
    with pytest.raises(UsageError, match="the argument name is 3"):
        Program(3)  # type: ignore[arg-type]
    program = Program()
    with pytest.raises(BadProgram, match="item 'x' has a path and a value"):
        program.input("x", "x.txt", value=1)
    assert not program.data
