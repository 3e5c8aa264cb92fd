"""Seeded small deployment problems of every sort, and the paper's machines and applications."""

from __future__ import annotations

import numpy as np

from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site


def small(seed: int, *, most_hosts: int = 12, several: bool = False) -> PipelineProblem:
    """2-12 hosts in 1-3 clusters, 2-5 filters, 1-3 sources; links shared, not shared or uplinks."""
    rng = np.random.default_rng(seed)
    n_hosts = int(rng.integers(2, most_hosts + 1))
    n_clusters = int(rng.integers(1, min(3, n_hosts) + 1))
    powers = rng.uniform(0.5, 2.0, size=3) if rng.random() < 0.7 else rng.uniform(0.5, 2.0, size=n_hosts)
    cluster_of = np.sort(
        np.concatenate([np.arange(n_clusters), rng.integers(0, n_clusters, n_hosts - n_clusters)])
    )
    many_cores = rng.random() < 0.25
    hosts = [
        Host(
            f"h{j}",
            speed=float(rng.choice(powers)),
            cores=int(rng.integers(1, 4)) if many_cores else 1,
            kinds={"reader": 1.5} if rng.random() < 0.1 else {},
            load=0.5 if rng.random() < 0.1 else 0.0,
        )
        for j in range(n_hosts)
    ]
    uplinks = n_clusters > 1 and rng.random() < 0.3
    sites = [
        Site(
            f"c{c}",
            tuple(h for h, at in zip(hosts, cluster_of, strict=True) if at == c),
            bandwidth=None if rng.random() < 0.1 else float(rng.choice([2e6, 5e6, 20e6, 1e8])),
            uplink=float(rng.choice([1e6, 5e6, 2e7])) if uplinks else None,
        )
        for c in range(n_clusters)
    ]
    links = [
        Link(
            f"c{a}",
            f"c{b}",
            float(rng.choice([0.5e6, 2e6, 1e7])),
            shared=bool(rng.random() < 0.5),
            oneway=bool(rng.random() < 0.1),
        )
        for a in range(n_clusters)
        for b in range(a + 1, n_clusters)
        if not uplinks
    ]
    segments = {"c0": float(rng.choice([3e6, 2e7]))} if rng.random() < 0.15 else {}
    pipeline = random_pipeline(rng, [h.name for h in hosts])
    knobs = Knobs(
        host_cost=float(rng.choice([0.0, 0.01, 0.1, 0.5])),
        cross=float(rng.choice([1.0, 1.0, 0.8, 1.2])),
        spare=float(rng.choice([0.0, 0.0, 0.2])),
        least=0.0 if several else float(rng.choice([0.0, 0.0, 0.3, 0.7])),
    )
    return PipelineProblem(
        pipeline, Platform(tuple(sites), tuple(links)), knobs, several_per_host=several, segments=segments
    )


def random_pipeline(rng: np.random.Generator, hosts: list[str]) -> Pipeline:
    """A chain or, one time in four, a graph with fan-out and fan-in."""
    n = int(rng.integers(2, 6))
    filters = [FilterProfile("f0", float(rng.uniform(5, 30)), 100.0, float(rng.uniform(0.8, 1.2)))]
    for k in range(1, n):
        seconds = 0.0 if rng.random() < 0.05 else float(rng.uniform(2, 60))
        volume = 0.0 if rng.random() < 0.1 else float(rng.uniform(5, 200))
        filters.append(FilterProfile(f"f{k}", seconds, volume, float(rng.uniform(0.8, 1.2))))
    streams = None
    if n > 2 and rng.random() < 0.25:
        streams = [Stream(f"f{int(rng.integers(0, k))}", f"f{k}") for k in range(1, n)]
        for k in range(2, n):
            other = f"f{int(rng.integers(0, k))}"
            if rng.random() < 0.5 and all((s.source, s.target) != (other, f"f{k}") for s in streams):
                streams.append(Stream(other, f"f{k}", float(rng.uniform(0, 50))))
    sources = []
    for i in range(int(rng.integers(1, 4))):
        readers = rng.choice(hosts, size=int(rng.integers(1, min(3, len(hosts)) + 1)), replace=False)
        parts = rng.uniform(0.2, 1.0, len(readers)) if rng.random() < 0.5 else np.ones(len(readers))
        sources.append(
            Source(f"s{i}", {str(h): float(p / parts.sum()) for h, p in zip(readers, parts, strict=True)})
        )
    return Pipeline("random", filters, streams, sources)


FAST, SLOW, MARYLAND, OHIO = 1.4745, 0.9912, 1.29105, 1.85466


def ufmg(*, without: tuple[int, ...] = (), loaded: tuple[int, ...] = (), readers: bool = False) -> Platform:
    """The machines MG1 to MG19 in three clusters; `readers`: the fast ones read three times as fast."""

    def host(i: int) -> Host:
        kinds = {"reader": 3.0 if i <= 8 else 1.0} if readers else {}
        return Host(f"MG{i}", FAST if i <= 8 else SLOW, load=0.5 if i in loaded else 0.0, kinds=kinds)

    ranges = (range(1, 9), range(9, 13), range(13, 20))
    return Platform(
        tuple(
            Site(f"ufmg{c}", tuple(host(i) for i in r if i not in without), bandwidth=12.5e6, uplink=12.5e6)
            for c, r in enumerate(ranges, 1)
        )
    )


def averager(ratio: float, *sources: tuple[int, ...], readers: bool = False) -> Pipeline:
    """GridArrayAverager, the adder with `ratio` times the reader's work; each source split evenly."""
    return Pipeline(
        "averager",
        [
            FilterProfile("reader", 53.2, 32.0, 3.0 if readers else FAST),
            FilterProfile("adder", 53.2 * ratio, 3.2, FAST),
            FilterProfile("averager", 31.92, 0.0, FAST),
        ],
        sources=[Source("+".join(f"MG{i}" for i in s), {f"MG{i}": 1 / len(s) for i in s}) for s in sources],
    )


def microscope() -> Pipeline:
    trial = (
        ("reader", 6, 100),
        ("decompress", 244, 650),
        ("clip", 42, 480),
        ("zoom", 35, 90),
        ("view", 7, 0),
    )
    return Pipeline(
        "microscope",
        [FilterProfile(name, t, v, MARYLAND) for name, t, v in trial],
        sources=[Source("MD1", {"MD1": 1.0})],
        knobs=Knobs(host_cost=0.1),
    )


def maryland(*, ohio: float | None = None) -> Platform:
    """48 machines MD; with 24 machines OH behind a shared link of so many MB/s if given."""
    sites = [Site("maryland", tuple(Host(f"MD{i}", MARYLAND) for i in range(1, 49)), bandwidth=12.5e6)]
    links = []
    if ohio is not None:
        sites.append(Site("ohio", tuple(Host(f"OH{i}", OHIO) for i in range(1, 25)), bandwidth=12.5e6))
        links.append(Link("maryland", "ohio", ohio * 1e6, shared=True))
    return Platform(tuple(sites), tuple(links))
