"""Predict unknown output sizes from those of finished tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Floats, Graph


@dataclass(slots=True)
class Regression:
    """Regression of output size on input size, updated pair by pair: a line, or the mean if a line explains no more.

    The line is the least-squares one. It counts when its residual variance (n - 2 degrees of freedom) is below
    that of the mean (n - 1); sizes are never negative. Adding and asking take O(1).

    >>> line = Regression()
    >>> for size in (1.0, 2.0, 4.0):
    ...     line.add(size, 10.0 + 3.0 * size)
    >>> round(line.predict(10.0), 6)
    40.0
    """

    count: int = 0
    mean_x: float = 0.0
    mean_y: float = 0.0
    _xx: float = 0.0
    _xy: float = 0.0
    _yy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a pair. Sums are kept relative to the means, for numerical accuracy."""
        self.count += 1
        dx, dy = x - self.mean_x, y - self.mean_y
        self.mean_x += dx / self.count
        self.mean_y += dy / self.count
        self._xx += dx * (x - self.mean_x)
        self._xy += dx * (y - self.mean_y)
        self._yy += dy * (y - self.mean_y)

    def predict(self, x: float) -> float:
        """The predicted size for an input of x bytes; 0 without data."""
        if self.count < 3 or self._xx <= 0:
            return self.mean_y
        slope = self._xy / self._xx
        left = max(0.0, self._yy - slope * self._xy)
        if left * (self.count - 1) >= self._yy * (self.count - 2):
            return self.mean_y
        return max(0.0, self.mean_y + slope * (x - self.mean_x))


def predicted_sizes(graph: Graph, done: Bools, measured: Floats) -> Floats:
    """Sizes of all items: measured if the producer has finished, otherwise predicted from tasks of the same kind.

    The k-th output of a task is predicted from the k-th outputs of the tasks of its kind that are done, by the
    bytes they read, which may be predicted themselves. Items from outside have the graph's figure, or the measured one
    if that is unknown; signals, and outputs of kinds without history, keep the graph's figure.
    O(items + reads).

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[1, 1], size=[9.0, 9.0], producer=[0, 1], read_ptr=[0, 0, 0], reads=[])
    >>> predicted_sizes(g, np.array([True, False]), np.array([4.0, 0.0])).tolist()
    [4.0, 4.0]
    """
    sizes: Floats = graph.size.copy()
    known = done[graph.producer] & (graph.producer >= 0)
    known |= (graph.producer < 0) & graph.unknown_size
    sizes[known] = measured[known]
    history: dict[tuple[int, int], Regression] = {}
    for task in np.flatnonzero(done).tolist():
        read = float(sizes[graph.reads_of(task)].sum())
        for k, item in enumerate(graph.writes_of(task).tolist()):
            if graph.size[item] > 0 or measured[item] > 0:
                history.setdefault((int(graph.kind[task]), k), Regression()).add(read, float(measured[item]))
    for task in graph.order[~done[graph.order]].tolist():
        read = float(sizes[graph.reads_of(task)].sum())  # as predicted, where its makers come first
        for k, item in enumerate(graph.writes_of(task).tolist()):
            line = history.get((int(graph.kind[task]), k))
            if line is not None and graph.size[item] > 0:
                sizes[item] = line.predict(read)
    return sizes
