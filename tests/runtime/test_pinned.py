"""Assignments are carried out: results, hosts, order, events."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.errors import BadProgram, NoPlan, UsageError
from headrace.model.events import DataMoved, Event, Started
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster

from .tasks import Lazy, OneHost, Online, RoundRobin, add, finished, increment, layered, one, split


@pytest.mark.parametrize("scheduler", [RoundRobin(), Online(), None], ids=["planned", "online", "engine"])
def test_result_is_right(cluster: Cluster, scheduler: object) -> None:
    program, answer = layered(6, 5, 0.0)
    outcome = cluster.execute(program, scheduler, timeout=60)  # type: ignore[arg-type]
    assert outcome.results == {"answer": answer}
    assert outcome.errors == ()
    assert outcome.failure is None


def test_every_task_runs_on_its_host(cluster: Cluster) -> None:
    program, _ = layered(20, 8, 0.0)
    hosts = [h.name for h in cluster.platform.hosts]
    planned = {program.graph.task_names[t]: hosts[i % 3] for i, t in enumerate(program.graph.order.tolist())}
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert {e.task: e.host for e in finished(outcome.events)} == planned


def test_observe_hears_each_finish_once_and_in_time(cluster: Cluster) -> None:
    program, _ = layered(10, 4, 0.0)
    heard: list[Event] = []
    outcome = cluster.execute(program, RoundRobin(), heard.append, timeout=60)
    assert heard == list(outcome.events)
    assert heard[0] == Started(0.0)
    assert sorted(e.task for e in finished(heard)) == sorted(program.tasks)
    assert all(0 <= e.start <= e.time <= outcome.makespan for e in finished(heard))
    assert set(outcome.measured) == set(program.tasks)


def test_ranks_order_tasks_of_one_worker(cluster: Cluster) -> None:
    program = Program("ranks")
    for i in range(30):
        program.task(one, outputs=[f"x{i}"], name=f"t{i}")
    ranks = {f"t{i}": float((i * 7) % 30) for i in range(30)}
    outcome = cluster.execute(program, OneHost("w1", ranks), timeout=60)
    order = [e.task for e in sorted(finished(outcome.events), key=lambda e: e.start)]
    assert order == sorted(ranks, key=lambda task: ranks[task])


def test_an_item_moves_once_per_worker(cluster: Cluster) -> None:
    program = Program("fan")
    big = program.input("big", value=np.zeros(200_000))
    program.task(np.sum, inputs=[big], outputs=["start"], name="a")
    for i in range(12):
        program.task(np.add, inputs=[big, "start"], outputs=[f"x{i}"], name=f"t{i}")
        program.task(np.sum, inputs=[f"x{i}"], outputs=[f"s{i}"], name=f"u{i}")
        program.output(f"s{i}")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    moves = [e for e in outcome.events if isinstance(e, DataMoved) and e.item == "big"]
    assert sorted(e.target for e in moves) == sorted({"w0", "w1", "w2"} - {moves[0].source})
    assert all(e.size == 1_600_000 and e.start <= e.time for e in moves)


def test_only_the_output_that_is_read_moves(cluster: Cluster) -> None:
    program = Program("several")
    program.task(np.divmod, inputs=[program.input("n", value=np.full(9000, 17)), program.input("d", value=5)],
                 outputs=["quotient", "rest"], name="divmod")  # fmt: skip
    program.task(np.sum, inputs=["rest"], outputs=["total"], name="sum")
    program.task(np.max, inputs=["quotient"], outputs=["most"], name="max")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert outcome.results == {"total": 18000, "most": 3}
    moved = [(e.item, e.target) for e in outcome.events if isinstance(e, DataMoved)]
    assert ("rest", "w1") in moved
    assert ("quotient", "w1") not in moved


def test_several_outputs_and_unread_ones(cluster: Cluster) -> None:
    program = Program("split")
    program.task(split, inputs=[program.input("text", value="one two three")], outputs=["head", "tail"])
    program.output("tail")
    assert cluster.execute(program, RoundRobin(), timeout=60).results == {"tail": "two three"}


def test_a_wrong_number_of_outputs_is_an_error(cluster: Cluster) -> None:
    program = Program("three")
    program.task(split, inputs=[program.input("t", value="a b")], outputs=["x", "y", "z"], name="s")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert "returned 2 values, but has 3 outputs" in outcome.errors[0].error


def test_after_orders_without_data(cluster: Cluster) -> None:
    program = Program("after")
    program.task(np.zeros, inputs=[program.input("n", value=100_000)], outputs=["zeros"], name="first")
    program.task(one, outputs=["x"], name="second", after=["first"])
    program.output("x")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    first, second = (next(e for e in finished(outcome.events) if e.task == t) for t in ("first", "second"))
    assert first.time <= second.start
    assert "zeros" not in [e.item for e in outcome.events if isinstance(e, DataMoved)]


def test_tasks_that_nobody_reads_run_too(cluster: Cluster) -> None:
    program = Program("ends")
    program.task(one, outputs=["x"], name="wanted")
    program.task(one, outputs=["y"], name="unread")
    program.task(one, name="no output")
    program.output("x")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert outcome.results == {"x": 1}
    assert {e.task for e in finished(outcome.events)} == {"wanted", "unread", "no output"}


def test_an_input_may_be_a_result(cluster: Cluster) -> None:
    program = Program("through")
    x = program.input("x", value=5)
    program.task(increment, inputs=[x], outputs=["y"])
    program.output("x")
    program.output("y")
    assert cluster.execute(program, None, timeout=60).results == {"x": 5, "y": 6}


def test_an_empty_program_has_an_outcome(cluster: Cluster) -> None:
    assert cluster.execute(Program("empty"), RoundRobin(), timeout=60).makespan == 0.0


def test_a_scheduler_that_leaves_tasks_without_host_ends_the_run(cluster: Cluster) -> None:
    program, _ = layered(2, 3, 0.0)
    with pytest.raises(NoPlan, match="ready tasks have no host"):
        cluster.execute(program, Lazy(), timeout=60)


def test_an_unknown_host_ends_the_run(cluster: Cluster) -> None:
    program, _ = layered(2, 2, 0.0)
    with pytest.raises(NoPlan, match="'w9', which"):
        cluster.execute(program, OneHost("w9", {}), timeout=60)


def test_bare_numbers_cannot_run(cluster: Cluster) -> None:
    program = Program("numbers")
    program.task(work=1.0, name="t")
    with pytest.raises(UsageError, match=r"no function or command.*emulate"):
        cluster.execute(program, RoundRobin())
    program = Program("sizes")
    program.task(add, inputs=[program.input("x", size=10)], outputs=["y"])
    with pytest.raises(BadProgram, match="size but no content"):
        cluster.execute(program, RoundRobin())
