"""The remaining graph of a program: the tasks that still have to be placed, and the items they read and write."""

from __future__ import annotations

import numpy as np

from headrace.model.graph import OUTSIDE, Bools, Floats, Graph, Ints, LabelColumn, SpeedClasses, make_graph


def remaining_graph(
    graph: Graph, keep: Bools, work: Floats | None = None, size: Floats | None = None
) -> tuple[Graph, Ints]:
    """The subgraph of the tasks to keep, and their numbers in the whole graph: O(tasks + reads + items).

    Items keep their numbers; items produced by omitted tasks become inputs from outside. `work` and `size` are
    estimates for all tasks and items that replace the graph's figures.

    >>> g = make_graph(work=[1, 2], size=[8.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
    >>> rest, old = remaining_graph(g, np.array([False, True]))
    >>> rest.work.tolist(), rest.producer.tolist(), old.tolist()
    ([2.0], [-1], [1])
    """
    old = np.flatnonzero(keep).astype(np.int32)
    renumber = np.full(graph.n_tasks, OUTSIDE, np.int32)
    renumber[old] = np.arange(len(old), dtype=np.int32)
    counts = np.diff(graph.read_ptr)[old]
    ptr = np.concatenate(([0], np.cumsum(counts)))
    at = np.repeat(graph.read_ptr[old] - ptr[:-1], counts) + np.arange(int(ptr[-1]))
    producer = np.where(graph.producer >= 0, renumber[graph.producer], OUTSIDE).astype(np.int32)
    rest = make_graph(
        work=(graph.work if work is None else work)[old],
        size=np.where(graph.unknown_size, np.nan, graph.size) if size is None else size,
        producer=producer,
        read_ptr=ptr,
        reads=graph.reads[at],
        kind=graph.kind[old],
        kinds=graph.kinds,
        result=graph.result,
        task_names=tuple(graph.task_names[t] for t in old.tolist()),
        item_names=graph.item_names,
        name=graph.name,
        cores=graph.cores[old],
        release=graph.release[old],
        deadline=graph.deadline[old],
        initial_locations=graph.initial_locations,
        destinations=graph.destinations,
        classes=SpeedClasses(graph.speed_class[old], graph.class_kind, graph.arch_speeds),
        needs=graph.needs.of_tasks(old),
        labels={name: _renumbered(column, renumber) for name, column in graph.labels.items()},
    )
    return rest, old


def _renumbered(column: LabelColumn, renumber: Ints) -> LabelColumn:
    """A label of the tasks that are kept."""
    kept = renumber[column.tasks] >= 0
    return LabelColumn(
        renumber[column.tasks[kept]], tuple(v for v, k in zip(column.values, kept, strict=True) if k)
    )
