"""Columns of the relations against plain Python on the definitions."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings

from headrace.rules.relations import Relations
from headrace.rules.tree import RelationName, Type
from rules.eval_cases import random_relations, seeds


def column(relations: Relations, relation: RelationName, name: str) -> list[float | str | None]:
    found = relations.column(relation, name)
    return [
        None if not found.known[i] else found.word(i) if found.words is not None else float(found.values[i])
        for i in range(found.length)
    ]


@given(seeds)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_columns_of_tasks_and_processors(seed: int) -> None:
    r = random_relations(seed)
    graph, hosts = r.graph, r.platform.hosts
    on = [[t for t in range(graph.n_tasks) if r.host[t] == h] for h in range(len(hosts))]
    seconds = [float(r.finish[t] - r.start[t]) for t in range(graph.n_tasks)]
    complete = all(h >= 0 for h in r.host)
    assert column(r, "proc", "proc-task-count") == [len(tasks) for tasks in on]
    assert column(r, "proc", "proc-total-running-time") == [sum(seconds[t] for t in tasks) for tasks in on]
    assert column(r, "proc", "proc-finish-time") == [
        max(float(r.finish[t]) for t in tasks) if tasks else 0.0 if complete else None for tasks in on
    ]
    cost = [
        sum(seconds[t] * graph.cores[t] * hosts[h].price / 3600 for t in on[h]) for h in range(len(hosts))
    ]
    assert column(r, "proc", "proc-cost") == pytest.approx(cost)
    assert column(r, "proc", "proc-utilization") == [100 * host.load for host in hosts]
    rate = [[host.speed_for(kind) for host in hosts] for kind in graph.kinds]
    mean = [sum(graph.work[t] / s for s in rate[graph.kind[t]]) / len(hosts) for t in range(graph.n_tasks)]
    wanted = [seconds[t] if r.host[t] >= 0 else mean[t] for t in range(graph.n_tasks)]
    assert column(r, "task", "task-exec-time") == pytest.approx(wanted)
    assert column(r, "task", "task-name") == [name.partition(".")[0] for name in graph.task_names]


@given(seeds)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_transfer_times_and_path_lengths(seed: int) -> None:
    r = random_relations(seed, tasks=6)
    graph, network = r.graph, r.platform.network
    place = network.host_place.tolist()
    hosts = range(len(place))
    pairs = [(place[a], place[b]) for a in hosts for b in hosts if a != b]

    def mean(size: float) -> float:
        return sum(network.seconds(a, b, size) for a, b in pairs) / len(pairs)

    edges = [(int(graph.producer[i]), t, int(i)) for t in range(6) for i in graph.reads_of(t)]
    wanted = []
    for maker, reader, item in edges:
        a, b = int(r.host[maker]), int(r.host[reader])
        size = float(graph.size[item])
        wanted.append(network.seconds(place[a], place[b], size) if min(a, b) >= 0 else mean(size))
    assert column(r, "dep", "dep-from") == [maker for maker, _, _ in edges]
    assert column(r, "dep", "non-local-comm-time") == pytest.approx(wanted)

    @cache
    def length(task: int) -> float:
        after = [mean(float(graph.size[i])) + length(s) for m, s, i in edges if m == task]
        return float(r.mean_run_seconds[task]) + max(after, default=0.0)

    assert column(r, "task", "task-path-length") == pytest.approx([length(t) for t in range(6)])


def test_labels_are_texts_or_numbers() -> None:
    import headrace as hr

    program = hr.Program()
    program.task(work=1.0, labels={"my_region": "12", "size": 3})
    program.task(work=1.0, labels={"my_region": "north"})
    r = Relations(program.graph, hr.Platform.pairwise([1.0], bandwidth=1e6))
    assert column(r, "task", "label-my-region") == ["12", "north"]
    number = r.column("task", "label-my-region", Type.NUMBER)
    assert (number.values[0], number.known.tolist()) == (12.0, [True, False])
    assert column(r, "task", "label-size") == ["3", None]
