"""Seeded random programs and platforms that cover all features of the model. Always valid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.model.platform import CONTENTIONS, Contention, Host, Link, Pairs, Platform, Site
from headrace.model.program import Program

Shape: TypeAlias = Literal["layered", "fork-join", "chain", "sweep", "random"]
NetworkKind: TypeAlias = Literal["pairs", "shared-site", "ports", "uplinks", "sites"]
OriginKind: TypeAlias = Literal["none", "host", "site"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
NETWORKS: tuple[NetworkKind, ...] = get_args(NetworkKind)
ORIGINS: tuple[OriginKind, ...] = get_args(OriginKind)
KINDS = ("", "cut", "filter", "stitch")
"""Kinds of tasks in programs; hosts have specific speeds for some of them."""
_MAX_READS = 4


def random_program(seed: int, tasks: int = 12, shape: Shape = "layered") -> Program:
    """A program of this shape with external inputs, shared items, signals, zero sizes and zero work.

    About a tenth of the tasks have no work and a tenth of the items no bytes; about half of the programs
    declare their results; in the others, results are the items that no task reads. Tasks of a `sweep`
    share inputs only. O(tasks).

    >>> program = random_program(seed=1, tasks=5, shape="chain")
    >>> program.graph.n_tasks, program.graph.level.tolist()
    (5, [0, 1, 2, 3, 4])
    """
    rng = np.random.default_rng([seed, 1])
    program = Program(f"{shape}-{tasks}-{seed}")
    inputs = [program.input(f"in{i}", size=_random_size(rng)).name for i in range(int(rng.integers(1, 4)))]
    outputs: list[list[str]] = []
    for t, before in enumerate(_predecessors(rng, tasks, shape)):
        reads, after = [], []
        for p in before:
            if rng.random() < 0.15:
                after.append(f"t{p}")
            else:
                reads.append(outputs[p][int(rng.integers(len(outputs[p])))])
        if not before or rng.random() < 0.2:
            reads.append(inputs[int(rng.integers(len(inputs)))])
        made = {f"d{t}.{i}": _random_size(rng) for i in range(1 if rng.random() < 0.7 else 2)}
        program.task(
            name=f"t{t}",
            inputs=reads,
            outputs=made,
            after=after,
            kind=KINDS[int(rng.integers(len(KINDS)))],
            work=0.0 if rng.random() < 0.1 else float(rng.uniform(0.5, 20.0)),
        )
        outputs.append(list(made))
    if outputs and rng.random() < 0.5:
        for t in sorted(set(rng.integers(0, tasks, size=3).tolist())):
            program.output(outputs[t][0])
    return program


def random_platform(
    seed: int,
    network: NetworkKind = "pairs",
    *,
    contention: Contention = "none",
    hosts: int = 4,
    origin: OriginKind = "none",
    storage: float = math.inf,
) -> Platform:
    """A platform with this kind of network; hosts differ in speed, cores, kinds and load.

    `pairs`: a dedicated link for each pair of hosts. `shared-site`: one file system for all. `ports`: one
    site, each host with its own data. `uplinks`: two or three sites around a hub. `sites`: a graph of
    sites, including one without hosts, with shared and separate links, and a one-way shortcut.
    Origin `site` is a site without hosts; a pairwise network cannot have one, so there it is the site of
    the hosts, that is, the first host. Every site has the given storage.

    >>> lab = random_platform(seed=3, network="uplinks", hosts=5, origin="site", contention="fifo")
    >>> len(lab.hosts), lab.origin, lab.contention
    (5, 'store', 'fifo')
    """
    rng = np.random.default_rng([seed, 2])
    machines = [_random_host(rng, f"h{i}") for i in range(hosts)]
    sites, links = _sites_and_links(rng, network, machines, storage)
    pairs = _random_pairs(rng, hosts) if network == "pairs" else None
    at: str | None = None
    if origin == "host":
        at = machines[int(rng.integers(hosts))].name
    elif origin == "site" and pairs is not None:
        at = sites[0].name
    elif origin == "site":
        at = "store"
        sites.append(Site(at, latency=_random_latency(rng), storage=storage))
        if network != "uplinks":
            links.append(_random_link(rng, sites[0].name, at))
    return Platform(
        tuple(sites),
        tuple(links),
        pairs,
        contention=contention,
        origin=at,
        name=f"{network}-{hosts}-{contention}-{origin}-{seed}",
    )


def cases(n: int, seed: int, tasks: int = 20) -> Iterator[tuple[Program, Platform]]:
    """Programs of at most `tasks` tasks with platforms, cycling through all shapes, networks, contentions
    and origins: 15 cases cover each of these, 225 cover every combination.

    Every other platform has finite storage, large enough for a copy of everything at every host.

    >>> [(p.name, g.name) for p, g in cases(2, seed=0)][1]
    ('fork-join-11-1', 'pairs-6-fifo-none-1')
    """
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        # Shape and contention follow from `a`, network and origin from `b` and `a`: all combinations
        # occur in 15 * 15 cases, as 3 and 5 have no common divisor.
        a, b = i % 15, i // 15 % 15
        shape, contention = SHAPES[a % 5], CONTENTIONS[a % 3]
        network, origin = NETWORKS[(a // 3 + b) % 5], ORIGINS[(a // 5 + b) % 3]
        number = seed * 1_000_003 + i
        program = random_program(number, int(rng.integers(1, tasks + 1)), shape)
        hosts = int(rng.integers(1, 7))
        ample = float(program.graph.size.sum()) * (hosts + 1)
        yield (
            program,
            random_platform(
                number,
                network,
                contention=contention,
                hosts=hosts,
                origin=origin,
                storage=ample if i % 2 else math.inf,
            ),
        )


def _predecessors(rng: np.random.Generator, tasks: int, shape: Shape) -> list[list[int]]:
    """The predecessors of each task."""
    if shape == "sweep":
        return [[] for _ in range(tasks)]
    if shape == "chain":
        return [[t - 1] if t else [] for t in range(tasks)]
    if shape == "random":
        return [_some(rng, range(t)) if rng.random() < 0.9 else [] for t in range(tasks)]
    before: list[list[int]] = []
    layer: range = range(0)
    while len(before) < tasks:
        wide = shape == "layered" or len(layer) == 1
        width = min(int(rng.integers(2, 6)) if wide else 1, tasks - len(before))
        join = shape == "fork-join" and width == 1
        before.extend(list(layer) if join else _some(rng, layer) for _ in range(width))
        layer = range(len(before) - width, len(before))
    return before


def _some(rng: np.random.Generator, among: range) -> list[int]:
    count = min(len(among), int(rng.integers(1, _MAX_READS)))
    return sorted(rng.choice(np.array(among), size=count, replace=False).tolist()) if count else []


def _random_size(rng: np.random.Generator) -> float:
    return 0.0 if rng.random() < 0.1 else float(np.round(10 ** rng.uniform(3, 7)))


def _random_latency(rng: np.random.Generator) -> float:
    return 0.0 if rng.random() < 0.3 else float(rng.uniform(1e-4, 0.2))


def _random_bandwidth(rng: np.random.Generator) -> float:
    return float(10 ** rng.uniform(5, 7))


def _random_host(rng: np.random.Generator, name: str) -> Host:
    kinds = {kind: float(rng.uniform(0.5, 6.0)) for kind in KINDS[1:] if rng.random() < 0.25}
    load = float(rng.uniform(0.05, 0.6)) if rng.random() < 0.3 else 0.0
    return Host(name, float(rng.uniform(0.5, 4.0)), int(rng.integers(1, 5)), kinds, load)


def _random_link(rng: np.random.Generator, source: str, target: str, *, oneway: bool = False) -> Link:
    shared = bool(rng.random() < 0.5) and not oneway
    return Link(source, target, _random_bandwidth(rng), _random_latency(rng), shared, oneway)


def _random_pairs(rng: np.random.Generator, hosts: int) -> Pairs:
    bandwidth = 10 ** rng.uniform(5, 7, size=(hosts, hosts))
    latency = rng.uniform(0, 0.2, size=(hosts, hosts)) if rng.random() < 0.5 else _random_latency(rng)
    return Pairs(bandwidth, latency)


def _sites_and_links(
    rng: np.random.Generator, network: NetworkKind, machines: list[Host], storage: float
) -> tuple[list[Site], list[Link]]:
    """Sites with all machines; with more than one site, some share a file system and some do not."""
    count = min(len(machines), int(rng.integers(2, 4))) if network in ("uplinks", "sites") else 1
    own_data = [network == "ports" or (count > 1 and bool(rng.random() < 0.5)) for _ in range(count)]
    sites = [
        Site(
            f"s{s}",
            tuple(machines[s::count]),
            bandwidth=_random_bandwidth(rng) if own_data[s] else None,
            latency=0.0 if network == "pairs" else _random_latency(rng),
            uplink=_random_bandwidth(rng) if network == "uplinks" else None,
            uplink_latency=_random_latency(rng) if network == "uplinks" else 0.0,
            storage=storage,
        )
        for s in range(count)
    ]
    if network != "sites":
        return sites, []
    sites.append(Site("relay", storage=storage))
    links = [_random_link(rng, site.name, "relay") for site in sites[:-1]]
    if count > 1:
        links.append(_random_link(rng, "s0", "s1", oneway=True))
    return sites, links
