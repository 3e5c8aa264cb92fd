"""Problems that several tests of planners share."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Pairs, Platform, Site

OWN = Path(__file__).parent.parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "dags"


def read_dag(path: Path) -> Graph:
    dag = json.loads(gzip.decompress(path.read_bytes()))
    return graph_of(dag["cost"], dag["edges"])


def read_net(path: Path) -> Platform:
    net = json.loads(gzip.decompress(path.read_bytes()))
    bandwidth = np.ones((net["h"], net["h"]))
    for i, row in enumerate(net["bw"]):
        bandwidth[i, i + 1 :] = row
        bandwidth[i + 1 :, i] = row
    return Platform.pairwise(net["speed"], bandwidth)


def graph_of(cost: list[float], edges: list[tuple[int, int, float]]) -> Graph:
    """Tasks with these costs; each edge (from, to, size) is an item of its own."""
    edges = sorted(edges, key=lambda e: e[1])
    counts = np.bincount([e[1] for e in edges], minlength=len(cost))
    return make_graph(
        work=cost,
        size=[e[2] for e in edges],
        producer=[e[0] for e in edges],
        read_ptr=np.concatenate(([0], np.cumsum(counts))),
        reads=np.arange(len(edges)),
    )


# The example of the HEFT and CPOP paper: run times of ten tasks on three processors, and communication.
EXAMPLE_TIMES = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10),
    (13, 16, 9), (7, 15, 11), (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
EXAMPLE_EDGES = (
    (0, 1, 18), (0, 2, 12), (0, 3, 9), (0, 4, 11), (0, 5, 14), (1, 7, 19), (1, 8, 16), (2, 6, 23),
    (3, 7, 27), (3, 8, 23), (4, 8, 13), (5, 7, 15), (6, 9, 17), (7, 9, 11), (8, 9, 13),
)  # fmt: skip


def example_of_the_paper() -> tuple[Graph, Platform]:
    """Each task is a kind of its own, so that hosts can have any run time for it."""
    plain = graph_of([1.0] * 10, [(a, b, float(size)) for a, b, size in EXAMPLE_EDGES])
    kinds = tuple(f"k{t}" for t in range(10))
    graph = make_graph(
        work=plain.work,
        size=plain.size,
        producer=plain.producer,
        read_ptr=plain.read_ptr,
        reads=plain.reads,
        kind=np.arange(10),
        kinds=kinds,
    )
    hosts = tuple(
        Host(f"p{h}", kinds={kinds[t]: 1.0 / EXAMPLE_TIMES[t][h] for t in range(10)}) for h in range(3)
    )
    return graph, Platform((Site("all", hosts),), pairs=Pairs(np.ones((3, 3))))
