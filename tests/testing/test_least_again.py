"""The oracle for recovery against a search over all sets of tasks."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.events import DataMoved, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.program import Program
from headrace.testing.least_again import must_run_again, ran_again


@st.composite
def losses(draw: st.DrawFn) -> tuple[Graph, list[bool], list[bool]]:
    """A program of up to nine tasks, some with two outputs; who has finished, and what is still held."""
    program, items = Program("random"), []
    for t in range(draw(st.integers(1, 9))):
        read = draw(st.lists(st.sampled_from(items), max_size=3, unique=True)) if items else []
        made = [f"x{t}", f"y{t}"][: draw(st.integers(1, 2))]
        program.task(inputs=read, outputs=dict.fromkeys(made, 1.0), name=f"t{t}")
        items += made
    for item in items:
        if draw(st.booleans()):
            program.output(item)
    graph = program.graph
    done = [draw(st.booleans()) for _ in range(graph.n_tasks)]
    held = [done[graph.producer[i]] and draw(st.booleans()) for i in range(graph.n_items)]
    return graph, held, done


def can_end(graph: Graph, held: list[bool], to_run: set[int]) -> bool:
    """Whether, if exactly these tasks run, each finds its inputs and all results are there at last."""
    there = {i for i in range(graph.n_items) if held[i]}
    left = set(to_run)
    while True:
        able = {t for t in left if there.issuperset(graph.reads_of(t).tolist())}
        if not able:
            break
        left -= able
        there.update(item for t in able for item in graph.writes_of(t).tolist())
    return not left and all(i in there for i in range(graph.n_items) if graph.result[i])


@given(losses())
@settings(deadline=None)
def test_no_smaller_set_of_tasks_is_enough(case: tuple[Graph, list[bool], list[bool]]) -> None:
    graph, held, done = case
    found = must_run_again(graph, held, done)
    missing = {t for t in range(graph.n_tasks) if not done[t]}
    assert can_end(graph, held, missing | found)
    finished = [t for t in range(graph.n_tasks) if done[t]]
    fewer = (missing.union(chosen) for n in range(len(found)) for chosen in combinations(finished, n))
    assert not any(can_end(graph, held, chosen) for chosen in fewer)


def chain() -> Program:
    program = Program("chain")
    program.task(outputs={"x": 1.0}, name="a")
    program.task(inputs=["x"], outputs={"y": 1.0}, name="b")
    program.task(inputs=["y"], name="c")
    return program


def test_copies_that_moved_and_copies_only_the_engine_knows_count() -> None:
    before = [TaskFinished(1.0, "a", "h0", 0.0), TaskFinished(2.0, "b", "h0", 1.0)]
    lost = HostLeft(2.5, "h0")
    assert ran_again(chain(), [*before, lost]) == (0, 2)
    assert ran_again(chain(), [*before, DataMoved(1.5, "x", "h0", "h1", 1.2, 1.0), lost]) == (0, 1)
    assert ran_again(chain(), [*before, lost], [{"y": ["h2"]}]) == (0, 0)
    assert ran_again(chain(), [*before, lost], [{"y": ["h0"]}]) == (0, 2)  # a copy on the lost host itself


def test_what_ran_again_counts_as_finished_at_the_next_loss() -> None:
    again = [TaskFinished(3.0, "a", "h1", 2.6), TaskFinished(4.0, "b", "h1", 3.0)]
    events = [
        TaskFinished(1.0, "a", "h0", 0.0),
        TaskFinished(2.0, "b", "h0", 1.0),
        HostLeft(2.5, "h0"),
        *again,
    ]
    assert ran_again(chain(), [*events, HostLeft(4.5, "h1")]) == (2, 4)
