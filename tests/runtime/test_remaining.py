"""What is left of a program when some of its items are kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.program import Program
from headrace.runtime.remaining import remaining_program


@st.composite
def programs(draw):
    """A program of sums, each task with one or two outputs, some declared results, some order without data."""
    program = Program("sums")
    program.input("i", value=1)
    items = ["i"]
    for number in range(draw(st.integers(1, 10))):
        read = draw(st.lists(st.sampled_from(items), max_size=3, unique=True))
        before = (
            draw(st.lists(st.sampled_from(sorted(program.tasks)), max_size=2, unique=True)) if number else []
        )
        outputs = [f"{number}.{k}" for k in range(draw(st.integers(0, 2)))]
        program.task(None, name=f"t{number}", inputs=read, outputs=outputs, after=before)
        items += program.tasks[f"t{number}"].outputs
    for name in draw(st.lists(st.sampled_from(items), max_size=3, unique=True)):
        program.output(name)
    return program


def compute(program: Program, given: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    """All values by plain execution in order, and the tasks that were executed."""
    values = {d.name: given.get(d.name, d.value) for d in program.inputs()}
    executed = []
    for number in program.graph.order.tolist():
        task = program.tasks[program.graph.task_names[number]]
        assert all(before in executed for before in task.after)
        for k, out in enumerate(task.outputs):
            values[out] = 1 + k + sum(values[name] for name in task.inputs)
        executed.append(task.name)
    return values, executed


@settings(max_examples=200, deadline=None)
@given(programs(), st.data())
def test_the_rest_gives_the_same_results_and_makes_nothing_kept_again(program, data):
    values, _ = compute(program, {})
    made = sorted(program.producer)
    kept = set(data.draw(st.lists(st.sampled_from(made), unique=True), label="kept"))
    done = {t for t in program.tasks if all(o in kept for o in program.tasks[t].outputs)}
    left = remaining_program(program, {name: (8.0, values[name]) for name in kept}, done)
    found, executed = compute(left.program, {name: values[name] for name in kept})
    results = {d.name for d in program.results()}
    assert {d.name for d in left.program.results()} == results
    assert {name: found[name] for name in results} == {name: values[name] for name in results}
    assert set(executed).isdisjoint(done)
    assert sorted([*executed, *left.reused]) == sorted(program.tasks)
    # Nothing runs in vain: each task makes a missing result or something that a task reads or waits for.
    for name in executed:
        task = program.tasks[name]
        read = {i for t in executed for i in program.tasks[t].inputs if i not in kept}
        waited = {b for t in executed for b in program.tasks[t].after}
        nobody = not any(
            o in results or any(o in t.inputs for t in program.tasks.values()) for o in task.outputs
        )
        missing = any(o in results and o not in kept for o in task.outputs)
        assert missing or nobody or name in waited or any(o in read for o in task.outputs)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_with_nothing_kept_everything_needed_runs_and_with_all_nothing(program):
    everything = remaining_program(program, {})
    values, _ = compute(program, {})
    results = {d.name for d in program.results()}
    found, _ = compute(everything.program, {})
    assert {name: found[name] for name in results} == {name: values[name] for name in results}
    nothing = remaining_program(program, {name: (1.0, values[name]) for name in program.producer})
    assert list(nothing.program.tasks) == []
    assert set(nothing.reused) == set(program.tasks)
