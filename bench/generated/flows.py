"""Seeded deployment problems small enough to plan in a moment, for comparing plans with what happens."""

from __future__ import annotations

import numpy as np

from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site


def flow_case(seed: int) -> PipelineProblem:
    """2 to 5 filters, a chain or with a fork and a join; every fifth case lets filters share hosts.

    >>> case = flow_case(3)
    >>> len(case.platform.hosts), [f.name for f in case.pipeline.filters]
    (6, ['f0', 'f1', 'f2', 'f3', 'f4'])
    """
    rng = np.random.default_rng(seed)
    platform = _random_platform(rng)
    count = int(rng.integers(2, 6))
    filters = [FilterProfile("f0", 10.0, float(rng.uniform(50, 150)))] + [
        FilterProfile(f"f{k}", float(rng.uniform(1, 60)), float(rng.uniform(5, 300))) for k in range(1, count)
    ]
    streams = None
    if count >= 4 and rng.integers(2):
        ends = [(0, 1), (0, 2), (1, 3), (2, 3), *((k, k + 1) for k in range(3, count - 1))]
        streams = [Stream(f"f{a}", f"f{b}") for a, b in ends]
    names = [h.name for h in platform.hosts]
    sources = []
    for option in range(int(rng.integers(1, 4))):
        readers = rng.choice(names, int(rng.integers(1, min(4, len(names) - count + 1))), replace=False)
        shares = rng.dirichlet(np.full(len(readers), 5.0))
        sources.append(Source(f"o{option}", dict(zip(readers.tolist(), shares.tolist(), strict=True))))
    pipeline = Pipeline("random", filters, streams, sources)
    return PipelineProblem(pipeline, platform, Knobs(host_cost=0.01), several_per_host=seed % 5 == 4)


def _random_platform(rng: np.random.Generator) -> Platform:
    """1 to 3 clusters of 6 to 14 hosts of four powers, some loaded, some with four cores."""
    powers = rng.uniform(0.5, 3.0, 4).round(2).tolist()
    sites = []
    for s in range(int(rng.integers(1, 4))):
        hosts = tuple(
            Host(
                f"s{s}h{i}",
                float(rng.choice(powers)),
                int(rng.choice([1, 1, 1, 4])),
                load=float(rng.choice([0, 0, 0.5])),
            )
            for i in range(int(rng.integers(6, 15)))
        )
        sites.append(Site(f"s{s}", hosts, bandwidth=float(rng.uniform(8e6, 40e6))))
    links = tuple(
        Link(f"s{a}", f"s{b}", float(rng.uniform(2e6, 20e6)), shared=bool(rng.integers(2)))
        for a in range(len(sites))
        for b in range(a)
    )
    return Platform(tuple(sites), links=links)
