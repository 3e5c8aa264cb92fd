"""How few tasks need to run again after losses: the oracle for recovery."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.program import Program


def ran_again(
    program: Program, events: Sequence[Event], copies: Sequence[Mapping[str, Collection[str]]] = ()
) -> tuple[int, int]:
    """How many executions of a run were repeated, and the least number that its losses made necessary.

    Copies count where they were made or sent to, as if nothing was ever dropped. Events do not tell of all copies:
    replicas, and inputs of tasks that have not finished. `copies` has, for each loss in turn, the hosts that hold each
    item right after it, as the engine knows them. O(losses * (tasks + reads)).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> _ = program.task(None, outputs={"x": 1.0}, name="a"), program.task(None, inputs=["x"], name="b")
    >>> a, again = TaskFinished(1.0, "a", "h0", 0.0), TaskFinished(3.0, "a", "h1", 2.0)
    >>> events = [a, HostLeft(1.5, "h0"), again, TaskFinished(4.0, "b", "h1", 3.0)]
    >>> ran_again(program, events), ran_again(program, events, [{"x": ["h2"]}])
    ((1, 1), (1, 0))
    """
    graph = program.graph
    number = {name: t for t, name in enumerate(graph.task_names)}
    item_number = {name: i for i, name in enumerate(graph.item_names)}
    held: list[set[str]] = [set() for _ in graph.item_names]
    for i, name in enumerate(graph.item_names):
        if name not in program.data:
            held[i].add("everywhere")  # a signal, once given, is not lost
    done = [False] * graph.n_tasks
    repeated = least = losses = 0
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
                for name, hosts in (copies[losses] if losses < len(copies) else {}).items():
                    held[item_number[name]].update(hosts)
                for holders in held:
                    holders.discard(host)
                losses += 1
                lost = must_run_again(graph, [bool(hosts) for hosts in held], done)
                least += len(lost)
                for t in lost:
                    done[t] = False
    return repeated, least


def must_run_again(graph: Graph, held: Sequence[bool], done: Sequence[bool]) -> set[int]:
    """The fewest finished tasks that must run again, given which items are held by anyone.

    A finished task must run again if one of its outputs is not held, and the output is a result or is read by a task
    that has not finished or must run again: one pass from the last task back to the first.
    """
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
