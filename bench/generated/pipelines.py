"""Generated deployment problems of any size."""

from __future__ import annotations

import numpy as np

from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site


def mixed_machines(
    hosts: int,
    clusters: int,
    kinds: int,
    *,
    seed: int = 0,
    filters: int = 5,
    reader_speed: float = 1.0,
    uplinks: bool = False,
) -> PipelineProblem:
    """A chain of filters for many hosts in clusters around the first one, or all behind uplinks.

    Powers are drawn from `kinds` values, up to four in a cluster; with 0 kinds no two hosts are alike. The input
    lies on a hundredth of the hosts, with a second copy in another cluster.

    >>> problem = mixed_machines(40, 3, 2)
    >>> len(problem.platform.hosts), len(problem.pipeline.filters), len(problem.sources)
    (40, 5, 2)
    """
    random = np.random.default_rng(seed)
    sizes = random.multinomial(hosts - clusters, np.ones(clusters) / clusters) + 1
    powers = random.uniform(0.5, 2.5, size=max(kinds, 1))
    sites = []
    for c, size in enumerate(sizes.tolist()):
        here = random.choice(powers, size=min(4, len(powers)), replace=False)
        speeds = random.choice(here, size) if kinds else random.uniform(0.5, 2.5, size)
        machines = tuple(Host(f"c{c}h{j}", float(speed)) for j, speed in enumerate(speeds))
        port = float(random.choice([12.5e6, 125e6]))
        sites.append(Site(f"c{c}", machines, bandwidth=port, uplink=125e6 if uplinks else None))
    links = [
        Link("c0", f"c{c}", float(random.choice([12.5e6, 125e6])), shared=bool(random.random() < 0.5))
        for c in range(1, clusters if not uplinks else 1)
    ]
    seconds = [6.0 / reader_speed, *random.uniform(20, 300, filters - 1).tolist()]
    volumes = [100.0, *random.uniform(50, 300, filters - 2).tolist(), 0.0]
    profiles = [FilterProfile(f"f{k}", t, v) for k, (t, v) in enumerate(zip(seconds, volumes, strict=True))]
    sources = []
    for c in range(min(2, clusters)):
        readers = min(max(1, hosts // 100), int(sizes[c]))
        sources.append(Source(f"c{c}", {f"c{c}h{j}": 1.0 / readers for j in range(readers)}))
    return PipelineProblem(
        Pipeline(f"chain of {filters}", profiles, sources=sources),
        Platform(tuple(sites), tuple(links), name=f"{hosts} hosts"),
    )
