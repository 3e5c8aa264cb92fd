"""Random schedules, complete or partial, for tests of the evaluation of rules.

Schedules need not be valid: rules speak about any. All times are multiples of 1/4, so that sums are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from headrace.model.graph import Floats, Graph, Ints, LabelColumn, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.rules.attributes import RELATIONS
from headrace.rules.relations import Relations
from headrace.rules.tree import RelationName, Type


class Schedule(NamedTuple):
    host: Ints
    start: Floats
    finish: Floats


def random_relations(seed: int, *, tasks: int = 8, hosts: int = 3, partial: bool = True) -> Relations:
    """The relations of a random program, platform and schedule."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, tasks)
    platform = Platform(
        (
            Site("uw", (Host("h0", 2.0, memory=1e9, price=2.0), Host("h1", load=0.25, watts=8.0)), 1e6),
            Site(
                "osu", tuple(Host(f"h{i}", cores=2, price=1.0) for i in range(2, max(hosts, 3))), uplink=1e6
            ),
        ),
        links=(),
        origin="uw",
    )
    n = len(platform.hosts)
    host = rng.integers(-1 if partial else 0, n, tasks).astype(np.int32)
    start = rng.integers(0, 12, tasks) / 4.0
    return Relations(graph, platform, Schedule(host, start, start + rng.integers(1, 9, tasks) / 4.0))


def random_graph(rng: np.random.Generator, tasks: int) -> Graph:
    names = [f"{('FFT', 'sobel', 'fft')[int(rng.integers(3))]}.{i}" for i in range(tasks)]
    reads = [[int(i) for i in range(t) if rng.random() < 0.3] for t in range(tasks)]
    size = np.where(rng.random(tasks) < 0.2, np.nan, rng.integers(0, 5, tasks) * 1e5)
    labelled = np.flatnonzero(rng.random(tasks) < 0.6).astype(np.int32)
    return make_graph(
        work=rng.integers(1, 9, tasks) / 4.0,
        size=size,
        producer=np.arange(tasks),
        read_ptr=np.cumsum([0, *(len(r) for r in reads)]),
        reads=[item for each in reads for item in each],
        kind=rng.integers(0, 2, tasks),
        kinds=("paint", "draw"),
        task_names=names,
        cores=rng.integers(1, 3, tasks),
        deadline=np.where(rng.random(tasks) < 0.5, np.inf, 4.0),
        labels={"region": LabelColumn(labelled, tuple("ab"[t % 2] for t in labelled.tolist()))},
    )


NUMERIC: dict[RelationName, list[str]] = {
    relation: [a.name for a in attributes.values() if a.type in (Type.NUMBER, Type.TIME, Type.SIZE)]
    for relation, attributes in RELATIONS.items()
}
TEXTS: dict[RelationName, list[str]] = {
    relation: [a.name for a in attributes.values() if a.type is Type.TEXT]
    for relation, attributes in RELATIONS.items()
}
seeds = st.integers(0, 2**32 - 1)
