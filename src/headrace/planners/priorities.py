"""Priorities of tasks, and the orders that follow from them."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Graph, Ints
from headrace.planners.costs import mean_costs
from headrace.planners.kernels.ranks import upward_ranks
from headrace.planners.kernels.ready_queue import ready_order


def upward(problem: Problem, hosts: Ints | None = None) -> Floats:
    """The longest path from each task to the end, itself included, on average machines (of `hosts`, or all).

    O(tasks + reads + places^2).
    """
    graph = problem.graph
    cost, latency, seconds = mean_costs(problem, hosts)
    rank: Floats = upward_ranks(
        graph.order, cost, graph.read_ptr, graph.reads, graph.producer, graph.size, latency, seconds
    )
    return rank


def by_rank(graph: Graph, rank: Floats) -> Ints:
    """Tasks by falling rank; ties in topological order. O(tasks log tasks)."""
    position = np.empty(graph.n_tasks, np.int64)
    position[graph.order] = np.arange(graph.n_tasks)
    return np.lexsort((position, -rank)).astype(np.int32)


def from_ready_queue(graph: Graph, priority: Floats) -> Ints:
    """Tasks as they leave a queue of ready ones, highest priority first; ties in topological order.

    O((tasks + reads) log tasks).
    """
    chosen: Ints = ready_order(
        graph.order,
        priority,
        graph.read_ptr,
        graph.reads,
        graph.producer,
        graph.write_ptr,
        graph.writes,
        graph.reader_ptr,
        graph.readers,
    )
    return chosen
