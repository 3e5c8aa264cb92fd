"""Order between tasks as part of the graph: the same graph as one that is built with it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays.levels import compiled_order_and_level
from headrace.model.constraints import Levels, with_order
from headrace.model.errors import BadProgram
from headrace.model.graph import Graph, LabelColumn, make_graph, order_and_level


def random_graph(rng: np.random.Generator, tasks: int) -> Graph:
    items = int(rng.integers(0, 3 * tasks))
    producer = rng.integers(-1, tasks, items)
    reads: list[int] = []
    read_ptr = [0]
    for task in range(tasks):
        earlier = np.flatnonzero(producer < task)
        reads += rng.permutation(earlier)[: int(rng.integers(0, 4))].tolist()
        read_ptr.append(len(reads))
    size = np.where(rng.random(items) < 0.2, np.nan, rng.integers(0, 9, items))
    labels = {"x": LabelColumn(np.array([0], np.int32), ("one",))}
    return make_graph(
        work=rng.random(tasks), size=size, producer=producer, read_ptr=read_ptr, reads=reads, labels=labels
    )


def built_with(graph: Graph, pairs: np.ndarray) -> Graph:
    """The graph with an item of 0 bytes from each first task to its second tasks, built from scratch."""
    first, signal = np.unique(pairs[:, 0], return_inverse=True)
    reader = np.concatenate((np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr)), pairs[:, 1]))
    item = np.concatenate((graph.reads, graph.n_items + signal.reshape(-1)))
    more = len(first)
    return make_graph(
        work=graph.work,
        size=np.concatenate((np.where(graph.unknown_size, np.nan, graph.size), np.zeros(more))),
        producer=np.concatenate((graph.producer, first)),
        read_ptr=np.concatenate(([0], np.cumsum(np.bincount(reader, minlength=graph.n_tasks)))),
        reads=item[np.argsort(reader, kind="stable")],
        result=np.concatenate((graph.result, np.zeros(more, np.bool_))),
        labels=graph.labels,
    )


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 12),
    derived=st.sampled_from([order_and_level, compiled_order_and_level]),
)
def test_ordered_graph_is_the_graph_built_with_the_order(seed: int, count: int, derived: Levels) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 15)))
    pairs = np.unique(rng.integers(0, graph.n_tasks, (count, 2)), axis=0)
    try:
        wanted = built_with(graph, pairs)
    except BadProgram:
        with pytest.raises(BadProgram, match="circle"):
            with_order(graph, pairs.astype(np.int32), derived)
        return
    found = with_order(graph, pairs.astype(np.int32), derived)
    for field in fields(Graph):
        a, b = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert a.tolist() == b.tolist(), field.name
    assert found.labels == graph.labels
    assert found.initial_locations.ptr.tolist() == wanted.initial_locations.ptr.tolist()
    assert len(found.item_names) == found.n_items
