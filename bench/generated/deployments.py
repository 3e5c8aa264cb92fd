"""Small deployment problems with several sources, and the same problems with one thing more."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site

More = Literal["source", "host", "link"]


def several_sources(seed: int, *, wishes: bool = False) -> PipelineProblem:
    """2 to 4 sources on 5 to 14 hosts in 1 to 3 clusters, which links join or not; with `wishes` W_F and W_MIN.

    >>> problem = several_sources(0)
    >>> len(problem.sources) >= 2, problem.knobs.least
    (True, 0.0)
    """
    random = np.random.default_rng([seed, 14])
    filters = int(random.integers(3, 6))
    clusters = int(random.integers(1, 4))
    sites = []
    for c in range(clusters):
        machines = tuple(
            Host(
                f"c{c}n{j}", float(random.choice([0.5, 1.0, 1.5, 2.0, 3.0])), int(random.choice([1, 1, 1, 2]))
            )
            for j in range(int(random.integers(4, 7)) if clusters < 3 else int(random.integers(2, 5)))
        )
        sites.append(Site(f"c{c}", machines, bandwidth=float(random.choice([5e6, 20e6, 100e6]))))
    links = [
        Link(f"c{a}", f"c{b}", float(random.choice([1e6, 5e6, 20e6])), shared=bool(random.random() < 0.5))
        for a in range(clusters)
        for b in range(a + 1, clusters)
        if random.random() < 0.8
    ]
    profiles = [FilterProfile("f0", float(random.uniform(4, 20)), 100.0)]
    profiles += [
        FilterProfile(f"f{k}", float(random.uniform(2, 60)), float(random.uniform(5, 150)))
        for k in range(1, filters)
    ]
    names = [h.name for s in sites for h in s.hosts]
    sources = [_source(random, f"s{i}", names) for i in range(int(random.integers(2, 5)))]
    knobs = Knobs(
        host_cost=float(random.choice([0.0, 0.01, 0.05, 0.3])),
        cross=float(random.choice([1.0, 1.0, 0.9])),
        spare=float(random.choice([0.0, 0.2])) if wishes else 0.0,
        least=float(random.choice([0.0, 0.4, 0.8])) if wishes else 0.0,
    )
    platform = Platform(tuple(sites), tuple(links), name=f"case {seed}", isolated=True)
    return PipelineProblem(Pipeline(f"case {seed}", profiles, sources=sources, knobs=knobs), platform, knobs)


def _source(random: np.random.Generator, name: str, hosts: list[str]) -> Source:
    readers = random.choice(hosts, int(random.integers(1, 4)), replace=False)
    parts = random.uniform(0.3, 1.0, len(readers))
    return Source(name, {str(h): float(p / parts.sum()) for h, p in zip(readers, parts, strict=True)})


def with_more(problem: PipelineProblem, what: More, seed: int) -> PipelineProblem | None:
    """The problem with one more source, host or link; None where a link cannot be added.

    Routes are fixed by the platform: a new link may attract traffic that went elsewhere, which is a different network
    and not a larger one. Only links are added that leave all present routes as they are.
    """
    random = np.random.default_rng([seed, 15])
    platform = problem.platform
    if what == "source":
        sources = [*problem.sources, _source(random, "more", [h.name for h in platform.hosts])]
        return replace(problem, pipeline=problem.pipeline.with_sources(sources))
    if what == "host":
        at = int(random.integers(len(platform.sites)))
        host = Host("more", float(random.uniform(0.3, 3.0)), int(random.choice([1, 2])))
        sites = [replace(s, hosts=(*s.hosts, host)) if i == at else s for i, s in enumerate(platform.sites)]
        return replace(problem, platform=replace(platform, sites=tuple(sites)))
    if len(platform.sites) < 2:
        return None
    a, b = random.choice(len(platform.sites), 2, replace=False)
    link = Link(f"c{a}", f"c{b}", float(random.choice([1e6, 5e6, 20e6])))
    larger = replace(platform, links=(*platform.links, link))
    return replace(problem, platform=larger) if _same_routes(platform, larger) else None


def _same_routes(before: Platform, after: Platform) -> bool:
    """Whether every route of the first platform has the same links in the second."""
    one, two = before.network, after.network
    places = range(one.n_places)
    return all(
        [one.link_names[link] for link in one.route(p, q)]
        == [two.link_names[link] for link in two.route(p, q)]
        for p in places
        for q in places
        if one.bandwidth(p, q) > 0
    )


def all_different(hosts: int, clusters: int, *, seed: int, shape: str = "star") -> PipelineProblem:
    """No two hosts alike, also not in what they do best; `shape` is that of the network: star, uplinks, tree or mesh.

    >>> len(all_different(60, 4, seed=1).platform.hosts)
    60
    """
    random = np.random.default_rng([seed, 16])
    sizes = random.multinomial(hosts - 2 * clusters, random.dirichlet(np.full(clusters, 2.0))) + 2
    names = [f"f{k}" for k in range(int(random.integers(4, 7)))]
    sites = []
    for c, size in enumerate(sizes.tolist()):
        speed = random.lognormal(0.0, 0.5, size)
        factor = random.uniform(0.6, 1.6, (size, len(names)))
        machines = tuple(
            Host(
                f"c{c}h{j}",
                float(speed[j]),
                int(random.choice([1, 2, 4])),
                kinds={name: float(speed[j] * factor[j, k]) for k, name in enumerate(names[1:], 1)},
            )
            for j in range(size)
        )
        port = float(random.choice([12.5e6, 125e6]))
        uplink = float(random.choice([50e6, 125e6, 1.25e9])) if shape == "uplinks" else None
        sites.append(Site(f"c{c}", machines, bandwidth=port, uplink=uplink))
    links = []
    if shape != "uplinks":
        for c in range(1, clusters):
            to = 0 if shape == "star" else (c - 1) // 3
            links.append(Link(f"c{to}", f"c{c}", float(random.choice([12.5e6, 125e6, 500e6]))))
        if shape == "mesh":
            links += [
                Link(f"c{c}", f"c{(c + 7) % clusters}", float(random.choice([25e6, 250e6])), shared=True)
                for c in range(0, clusters, 2)
                if clusters > 8
                and c != ((c + 7) % clusters - 1) // 3
                and ((c + 7) % clusters) != (c - 1) // 3
            ]
    profiles = [FilterProfile(names[0], 2.0, 100.0)]
    profiles += [
        FilterProfile(name, float(random.uniform(20, 400)), float(random.uniform(20, 250)))
        for name in names[1:]
    ]
    sources = []
    for i in range(3):
        here = sites[int(random.integers(clusters))].hosts
        readers = here[: max(1, min(len(here) - 1, hosts // 200))]
        sources.append(Source(f"s{i}", {h.name: 1.0 / len(readers) for h in readers}))
    pipeline = Pipeline("chain", profiles, sources=sources)
    return PipelineProblem(pipeline, Platform(tuple(sites), tuple(links), name=f"{hosts} different hosts"))
