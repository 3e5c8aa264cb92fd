"""Merging: compared with a plain implementation that treats every combination by itself."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.experiment.sweep.axes import Axis, combinations
from headrace.experiment.sweep.merge import factorize, merge
from headrace.experiment.sweep.merged_program import merged_program
from headrace.experiment.sweep.remaining import left_of
from headrace.experiment.sweep.substitute import Experiment, takes
from headrace.formats.experiment_toml import ExperimentFile
from headrace.model.check import check
from headrace.record.task_identity import program_identities
from headrace.runtime.remaining import remaining_program

FILE = ExperimentFile(Path("e.toml"), "e", "", ())


def plus(*values, n=0):
    return sum(values) + n


def times(*values, n=1):
    return sum(values) * n + 1000


def plain(*values):
    return sum(values) + 7


def random_experiment(draw) -> Experiment:
    """A random program of up to six tasks, and up to three axes."""
    tasks = draw(st.integers(1, 6))
    reads = [draw(st.sets(st.integers(-2, t - 1), min_size=1, max_size=3)) for t in range(tasks)]
    program = hr.Program("random")
    for k in (1, 2):
        program.input(f"in{-k}", value=10 * k)
    for t in range(tasks):
        inputs = [f"in{r}" if r < 0 else f"out{r}" for r in sorted(reads[t])]
        body = draw(st.sampled_from([plus, functools.partial(plus, n=3), plain]))
        program.task(body, inputs=inputs, outputs=[f"out{t}"], name=f"t{t}")
    if draw(st.booleans()):
        program.output(f"out{draw(st.integers(0, tasks - 1))}")
    axes = []
    for what, target in draw(
        st.sets(st.tuples(st.sampled_from(["task", "parameter"]), st.integers(0, tasks - 1)), max_size=3)
    ):
        name = f"t{target}"
        if what == "task":
            axes.append(Axis(name, "task", name, ("plus", "times", "plain"), (plus, times, plain)))
        elif program.tasks[name].body is not plain:
            axes.append(Axis(f"{name}.n", "parameter", name, (1, 2), (1, 2), "n"))
    if draw(st.booleans()):
        axes.append(Axis("in-1", "input", "in-1", (10, 20, 30), (10, 20, 30)))
    axes.sort(key=lambda axis: axis.name)
    return Experiment(FILE, tuple(axes), combinations(axes, FILE), lambda values: program)


def one_program(experiment: Experiment, point: list[int]) -> hr.Program:
    """The program of one combination by itself."""
    base = experiment.build({})
    chosen = {(a.what, a.target): a.values[v] for a, v in zip(experiment.axes, point, strict=True)}
    made = hr.Program("one")
    for item in base.inputs():
        made.input(item.name, value=chosen.get(("input", item.name), item.value))
    for task in base.tasks.values():
        body = chosen.get(("task", task.name), task.body)
        if ("parameter", task.name) in chosen and takes(body, len(task.inputs), "n"):
            body = functools.partial(body, n=chosen["parameter", task.name])
        made.task(body, inputs=task.inputs, outputs=task.outputs, name=task.name)
    for item in base.data.values():
        if item.result:
            made.output(item.name)
    return made


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_identities_and_values_are_those_of_single_combinations(data) -> None:
    experiment = random_experiment(data.draw)
    merged = merge(experiment)
    built = merged_program(merged)
    expected: set[str] = set()
    results: dict[tuple[int, str], str] = {}
    for number, point in enumerate(experiment.points.tolist()):
        program = one_program(experiment, point)
        found = program_identities(program, Path())
        expected |= {facts.identity for facts in found.tasks.values()}
        results |= {(number, item.name): found.items[item.name] for item in program.results()}
    assert merged.identities == expected
    assert set(built.of_identity) == expected
    assert {(number, name): built.items[item] for number, name, item in built.results} == results
    assert evaluated(built.program, built.results) == {
        (number, name): value
        for number, point in enumerate(experiment.points.tolist())
        for name, value in outputs(one_program(experiment, point)).items()
    }


def outputs(program: hr.Program) -> dict[str, int]:
    values = {item.name: item.value for item in program.inputs()}
    names = list(program.tasks)
    for t in program.graph.order.tolist():
        task = program.tasks[names[t]]
        values[task.outputs[0]] = task.body(*(values[name] for name in task.inputs))
    return {item.name: values[item.name] for item in program.results()}


def evaluated(program: hr.Program, results) -> dict[tuple[int, str], int]:
    values = outputs(program)
    return {(number, name): values[item] for number, name, item in results}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_left_is_what_the_program_says(data) -> None:
    merged = merge(random_experiment(data.draw))
    built = merged_program(merged)
    kept = set(data.draw(st.lists(st.sampled_from(sorted(built.items.values())))))
    items = {item: (1.0, 0) for item, identity in built.items.items() if identity in kept}
    left = remaining_program(built.program, items)
    counted = left_of(merged, kept)
    assert counted.tasks == len(left.program.tasks)
    assert counted.reused == len(left.reused)


def test_a_task_that_is_run_for_its_side_effects_alone_is_read_under_another_name() -> None:
    """t3 equals t1 wherever t1 is replaced; t2 reads what t1 made."""
    program = hr.Program("p")
    item = program.task(plus, inputs=[program.input("x", value=1)], outputs=["out0"], name="t0")
    first = program.task(plus, inputs=[item], outputs=["out1"], name="t1")
    program.task(plus, inputs=[item, first], outputs=["out2"], name="t2")
    program.task(plus, inputs=[item], outputs=["out3"], name="t3")
    program.output(item)
    bodies = (("plus", "times", "plain"), (plus, times, plain))
    axes = (Axis("t1", "task", "t1", *bodies), Axis("t3", "task", "t3", *bodies))
    merged = merge(Experiment(FILE, axes, combinations(axes, FILE), lambda values: program))
    built = merged_program(merged)
    for kept in built.items.values():
        items = {item: (1.0, 0) for item, identity in built.items.items() if identity == kept}
        assert left_of(merged, {kept}).tasks == len(remaining_program(built.program, items).program.tasks)


def test_a_merged_program_plans_like_any_other() -> None:
    program = hr.Program("p")
    x = program.input("x", value=1)
    a = program.task(plus, inputs=[x], outputs={"a": 1000}, name="a")
    program.task(times, inputs=[a], outputs=["b"], name="b")
    axes = (Axis("n", "parameter", "b", tuple(range(9)), tuple(range(9)), "n"),)
    built = merged_program(merge(Experiment(FILE, axes, combinations(axes, FILE), lambda values: program)))
    assert list(built.program.tasks)[:2] == ["a", "b@n=0"]
    lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    plan = hr.plan(built.program, lab, scheduler="heft")
    assert check(built.program.graph, lab, plan) == []
    assert [t.labels for t in built.program.tasks.values()][1] == {"n": 0}


def test_equal_contents_are_one_instance_and_repetitions_stay_apart(tmp_path: Path) -> None:
    program = hr.Program("p")
    x = program.input("x", value=1)
    for k in range(3):
        program.task(plus, inputs=[x], outputs=[f"o{k}"], name=f"again {k}")
    axes = (Axis("x", "input", "x", ("one", "uno", "two"), (1, 1, 2)),)
    merged = merge(Experiment(FILE, axes, combinations(axes, FILE), lambda values: program))
    assert (merged.tasks_alone, len(merged.identities)) == (9, 6)


def test_parameters_of_the_program_change_its_structure() -> None:
    def build(values):
        program = hr.Program("p")
        item = program.input("x", value=1)
        for k in range(values.get("depth", 1)):
            item = program.task(plus, inputs=[item], outputs=[f"o{k}"], name=f"t{k}")
        program.output(item)
        return program

    axes = (Axis("depth", "program", "depth", (1, 2, 4), (1, 2, 4)),)
    merged = merge(Experiment(FILE, axes, combinations(axes, FILE), build))
    assert (merged.tasks_alone, len(merged.identities)) == (7, 4)
    built = merged_program(merged)
    assert evaluated(built.program, built.results) == {(0, "o0"): 1, (1, "o1"): 1, (2, "o3"): 1}


@pytest.mark.parametrize("mode", ["product", "zip", "groups"])
def test_the_ways_to_combine(mode: str) -> None:
    axes = [Axis(n, "input", n, (1, 2), (1, 2)) for n in "abc"]
    groups = (("a", "c"),) if mode == "groups" else ()
    file = ExperimentFile(Path("e.toml"), "e", "", (), mode=mode, groups=groups)  # type: ignore[arg-type]
    found = {tuple(row) for row in combinations(axes, file).tolist()}
    everything = {(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    expected = {
        "product": everything,
        "zip": {(0, 0, 0), (1, 1, 1)},
        "groups": {(a, b, c) for a, b, c in everything if a == c},
    }
    assert found == expected[mode]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**40)), min_size=1, max_size=30))
def test_rows_are_numbered(rows) -> None:
    at, first = factorize(
        [np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.zeros(len(rows), int)]
    )
    for k, row in enumerate(rows):
        assert rows[first[at[k]]] == row
        assert first[at[k]] == rows.index(row)
