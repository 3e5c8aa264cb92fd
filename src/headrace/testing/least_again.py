"""How few tasks need to run again after losses: the oracle for recovery."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.program import Program


def ran_again(program: Program, events: Sequence[Event]) -> tuple[int, int]:
    """How many executions of a run were repeated, and the least number that its losses made necessary.

    At each loss, the least set is a closure: a finished task must run again if one of its outputs has no copy left on
    a host, and the output is a result or is read by a task that has not finished or must run again. Copies count where
    they were made or sent to, as if nothing was ever dropped. O(losses * (tasks + reads)).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> _ = program.task(None, outputs={"x": 1.0}, name="a"), program.task(None, inputs=["x"], name="b")
    >>> a, again = TaskFinished(1.0, "a", "h0", 0.0), TaskFinished(3.0, "a", "h1", 2.0)
    >>> ran_again(program, [a, HostLeft(1.5, "h0"), again, TaskFinished(4.0, "b", "h1", 3.0)])
    (1, 1)
    """
    graph = program.graph
    number = {name: t for t, name in enumerate(graph.task_names)}
    item_number = {name: i for i, name in enumerate(graph.item_names)}
    held: list[set[str]] = [set() for _ in graph.item_names]
    for i, name in enumerate(graph.item_names):
        if name not in program.data:
            held[i].add("everywhere")  # a signal, once given, is not lost
    done = [False] * graph.n_tasks
    repeated = least = 0
    finished: set[int] = set()
    for event in events:
        match event:
            case TaskFinished(task=task, host=host):
                t = number[task]
                repeated += t in finished
                finished.add(t)
                done[t] = True
                for item in graph.writes_of(t).tolist():
                    held[item].add(host)
            case DataMoved(item=item, target=target) if item in item_number:
                held[item_number[item]].add(target)
            case HostLeft(host=host):
                for hosts in held:
                    hosts.discard(host)
                lost = _must_run_again(graph, held, done)
                least += len(lost)
                for t in lost:
                    done[t] = False
    return repeated, least


def _must_run_again(graph: Graph, held: Sequence[set[str]], done: Sequence[bool]) -> set[int]:
    """The closure of lost data that is still needed, from the last task back to the first."""
    again: set[int] = set()
    for t in reversed(graph.order.tolist()):
        if not done[t]:
            continue
        for item in graph.writes_of(t).tolist():
            if held[item]:
                continue
            readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]].tolist()
            if graph.result[item] or any(not done[r] or r in again for r in readers):
                again.add(t)
    return again
