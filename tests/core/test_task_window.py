"""Fewer tasks than there are: at random or by shared file, and always such that they can be planned."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.task_window import reduced
from headrace.model.graph import Graph, make_graph


def random_graph(seed: int, layers: int = 4) -> Graph:
    """Tasks read some of what earlier ones make, and some of a few files from outside."""
    rng = np.random.default_rng(seed)
    n, files = int(rng.integers(5, 40)), 4
    reads, ptr = [], [0]
    for task in range(n):
        some = rng.permutation(task)[: int(rng.integers(0, 3))] if task and layers > 1 else []
        mine = [files + int(t) for t in some] + rng.permutation(files)[: int(rng.integers(0, 3))].tolist()
        reads += mine
        ptr.append(len(reads))
    return make_graph(
        work=np.ones(n),
        size=rng.choice([0.0, 1.0, 5.0], files + n),
        producer=[-1] * files + list(range(n)),
        read_ptr=ptr,
        reads=reads,
    )


@pytest.mark.parametrize("how", ["random", "shared-file"])
@pytest.mark.parametrize("seed", range(20))
def test_what_a_chosen_task_reads_is_made_by_one_that_is_chosen_or_not_left(how: str, seed: int) -> None:
    graph = random_graph(seed)
    rng = np.random.default_rng([seed, 1])
    done = set()
    for task in graph.order.tolist():  # a part of the program is done already
        makers = {int(graph.producer[i]) for i in graph.reads_of(task).tolist()} - {-1}
        if makers <= done and rng.random() < 0.4:
            done.add(task)
    left = np.array([t for t in range(graph.n_tasks) if t not in done], np.int32)
    limit = int(rng.integers(1, len(left) + 1))
    chosen = reduced(graph, left, limit, how, rng)  # type: ignore[arg-type]
    assert len(set(chosen.tolist())) == limit
    for task in chosen.tolist():
        makers = {int(graph.producer[i]) for i in graph.reads_of(task).tolist()} - {-1}
        assert makers <= set(chosen.tolist()) | done


def test_random_is_random_and_repeats_with_its_seed() -> None:
    sweep = random_graph(3, layers=1)
    left = np.arange(sweep.n_tasks, dtype=np.int32)
    drawn = [
        sorted(reduced(sweep, left, 5, "random", np.random.default_rng(seed)).tolist()) for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    counts = np.zeros(sweep.n_tasks)
    for seed in range(400):
        counts[reduced(sweep, left, 5, "random", np.random.default_rng(seed))] += 1
    expected = 400 * 5 / sweep.n_tasks
    assert np.all(np.abs(counts - expected) < 6 * np.sqrt(expected)), "each as often as any other"


@pytest.mark.parametrize("seed", range(20))
def test_by_shared_file_is_what_the_definition_says(seed: int) -> None:
    graph = random_graph(seed)
    left = np.arange(graph.n_tasks, dtype=np.int32)
    users = {i: sum(i in graph.reads_of(t).tolist() for t in left.tolist()) for i in range(graph.n_items)}

    def key(task: int) -> tuple[int, int, int, int]:
        shared = [i for i in graph.reads_of(task).tolist() if users[i] > 1 and graph.size[i] > 0]
        largest = max(shared, key=lambda i: graph.size[i], default=-1)
        return int(graph.level[task]), -users.get(largest, 0), largest, task

    limit = graph.n_tasks // 2
    expected = sorted(left.tolist(), key=key)[:limit]
    assert reduced(graph, left, limit, "shared-file", np.random.default_rng(0)).tolist() == expected
