"""The numbers of a deployment problem as arrays over filters, streams, hosts, zones and source options."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.errors import BadProgram, NoPlan
from headrace.model.graph import Bools, Floats
from headrace.model.link_graph import NO_LINK, link_graph, link_labels
from headrace.model.network import Network
from headrace.model.pipeline import MEGABYTE, PipelineProblem
from headrace.planners.pipeline.arcs import Arcs, Incidence, find_arcs

MAX_ZONE_PAIRS = 250_000
"""Maximum number of pairs of zones; the program has one flow variable per stream and pair."""


AHEAD = 1e6
"""A reader counts as at most this many times as fast as all hosts together are with the slowest filter. It is
throttled in any case, and the solver cannot tell larger ratios from infinite ones."""
LEAST_RATE, MOST_RATE = 1e-15, 1e15
"""MB/s at which a pipeline can be planned: the solver weighs them against the cost of hosts."""
MOST_GROWTH, MOST_GROWTH_SHARED = 1e12, 1e8
"""Maximum MB on a stream for each MB read, and if filters share hosts."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates of a deployment problem. Filters are numbered in pipeline order, the reader first. All rates, including
    those of later filters, are expressed as input reading rates. Rates, ports and links are in multiples of `unit`, so
    that the solver sees numbers near 1 whatever the size of the data."""

    unit: float
    """MB/s; a power of 2."""
    core: Floats
    """[filters, hosts] processing rate of one core; inf for filters without work."""
    cores: Floats
    """Cores of each host; the reader has one."""
    port: Floats
    """Bandwidth of each host's port, per direction; inf if there is none."""
    zone: Numbers
    """The zone of each host: its site, or in a pairwise network itself."""
    stream_source: Numbers
    stream_target: Numbers
    stream_rate: Floats
    """MB on each stream for each MB read."""
    rate_in: Floats
    """MB into each filter for each MB read."""
    rate_out: Floats
    share: Floats
    """[options, hosts] share of the input."""
    readable: Floats
    """Maximum rate of each option, at most `AHEAD` times what the hosts can process."""
    weight: Floats
    """[zones, zones] W_C per unit of flow."""
    quickest: Incidence
    """What flows load on their quickest routes."""
    arcs: Arcs
    """The ways that flows may take."""
    capacity: Floats
    """Capacity of each link and segment."""
    link_names: tuple[str, ...]
    routed: Floats
    """[zones, zones] 1 if there is a route and both zones have hosts."""

    @property
    def n_filters(self) -> int:
        return len(self.core)

    @property
    def most(self) -> float:
        """The largest rate that any option delivers."""
        return float(self.readable.max())

    def only(self, option: int) -> Rates:
        """The same with one of the source options."""
        return replace(
            self, share=self.share[option : option + 1], readable=self.readable[option : option + 1]
        )

    @property
    def reader_rate(self) -> Floats:
        """The rate of each option as limited by the ports of its readers."""
        with np.errstate(divide="ignore", invalid="ignore"):
            by_port = np.where(self.share > 0, self.port / (self.share * self.rate_out[0]), np.inf)
        limited: Floats = np.minimum(self.readable, by_port.min(axis=1))
        return limited


def find_rates(problem: PipelineProblem) -> Rates:
    """O(filters * hosts + options * hosts + zones squared)."""
    pipeline, platform = problem.pipeline, problem.platform
    order = [f.name for f in pipeline.order]
    number = {name: k for k, name in enumerate(order)}
    hosts = platform.hosts
    network = platform.network
    zone = network.zone[network.host_place].astype(np.int64)
    read = pipeline.reader.volume
    profiles = pipeline.order
    powers = platform.speeds([pipeline.kind(name) for name in order])
    seconds = np.array([f.seconds for f in profiles])
    trial_power = np.array([f.power for f in profiles])
    cores = np.array([float(h.cores) for h in hosts])
    with np.errstate(divide="ignore", over="ignore"):
        core = (read / (seconds * trial_power))[:, None] * powers
        stream_rate = np.array(pipeline.volumes) / read
    _require_growth(problem, stream_rate)
    source = np.array([number[s.source] for s in pipeline.streams], np.int64)
    target = np.array([number[s.target] for s in pipeline.streams], np.int64)
    rate_in = np.bincount(target, stream_rate, len(order)).astype(np.float64)
    rate_out = np.bincount(source, stream_rate, len(order)).astype(np.float64)
    place = {h.name: j for j, h in enumerate(hosts)}
    share = np.zeros((len(problem.sources), len(hosts)))
    for i, option in enumerate(problem.sources):
        for host, part in option.shares.items():
            share[i, place[host]] = part
    with np.errstate(divide="ignore", over="ignore"):
        readable = np.min(np.where(share > 0, core[0] / np.where(share > 0, share, 1.0), np.inf), axis=1)
        together = np.sum(core[1:] * cores, axis=1)
    full = float(readable.max())
    readable = np.minimum(readable, AHEAD * together.min())
    _require_rate(problem, full, float(readable.max()), together)
    unit = 2.0 ** math.floor(math.log2(float(readable.max())) - 3)
    return Rates(
        unit=unit,
        core=core / unit,
        cores=cores,
        port=network.port[network.host_place] / (MEGABYTE * unit),
        zone=zone,
        stream_source=source,
        stream_target=target,
        stream_rate=stream_rate,
        rate_in=rate_in,
        rate_out=rate_out,
        share=share,
        readable=readable / unit,
        **_between_zones(problem, zone, unit),
    )


def _require_growth(problem: PipelineProblem, stream_rate: Floats) -> None:
    """Refuse volumes that are too different for one linear program."""
    pipeline = problem.pipeline
    most = MOST_GROWTH_SHARED if problem.several_per_host else MOST_GROWTH
    for stream, volume, rate in zip(pipeline.streams, pipeline.volumes, stream_rate.tolist(), strict=True):
        if not rate <= most:
            raise BadProgram(
                f"{volume:g} MB for {pipeline.reader.volume:g} MB read",
                where=f"pipeline {pipeline.name!r}, stream {stream.source!r} -> {stream.target!r}",
                hint=f"check both volumes: at most {most:g} MB for each MB read",
            )


def _require_rate(problem: PipelineProblem, full: float, most: float, together: Floats) -> None:
    """Refuse rates that no machine has: a time, a volume or a power is wrong, or in another unit."""
    if LEAST_RATE <= most <= MOST_RATE:
        return
    pipeline = problem.pipeline
    slowest = pipeline.order[1 + int(np.argmin(together))]
    throttled = most < LEAST_RATE and most < full
    profile = slowest if throttled else pipeline.reader
    rate = float(together.min()) if throttled else full
    raise BadProgram(
        f"{profile.seconds:g} s for {pipeline.reader.volume:g} MB read at power {profile.power:g}: "
        f"{'all hosts together' if throttled else 'the reader'} would process {rate:g} MB/s",
        where=f"pipeline {pipeline.name!r}, filter {profile.name!r}",
        hint=f"check time, volume and power: rates from {LEAST_RATE:g} to {MOST_RATE:g} MB/s can be planned",
    )


def _between_zones(problem: PipelineProblem, zone: Numbers, unit: float) -> dict[str, Any]:
    platform = problem.platform
    network = platform.network
    n = len(network.route_bandwidth)
    inhabited = np.zeros(n, bool)
    inhabited[zone] = True
    if int(inhabited.sum()) ** 2 > MAX_ZONE_PAIRS:
        raise NoPlan(
            f"{int(inhabited.sum())} clusters are too many for one linear program",
            where=platform.name,
            hint=f"merge clusters that are close: at most {math.isqrt(MAX_ZONE_PAIRS)}",
        )
    routed = (network.route_bandwidth > 0) & inhabited[:, None] & inhabited[None, :]
    names = [s.name for s in platform.sites]
    if platform.pairs is not None:  # every host is a separate zone
        names = [problem.cluster[h.name] for h in platform.hosts]
    weight = np.array([[problem.knobs.weight(a, b) for b in names] for a in names]) * unit
    links = {link: row for row, link in enumerate(sorted({*_carriers(problem), *_used(network, routed)}))}
    labels = link_labels(network) or tuple(f"link {link}" for link in range(network.n_links))
    capacity = [float(network.link_bandwidth[link]) / MEGABYTE for link in links]
    rows, ends = _quickest(network, routed, links)
    for site, bandwidth in problem.segments.items():
        for a, b in np.argwhere(routed).tolist():
            if site in (names[a], names[b]):
                rows.append(len(capacity))
                ends.append((a, b))
        capacity.append(bandwidth / MEGABYTE)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    quickest = Incidence(np.array(rows, np.int64), pairs[:, 0], pairs[:, 1])
    return {
        "weight": weight,
        "quickest": quickest,
        "capacity": np.array(capacity) / unit,
        "link_names": (*(labels[link] for link in links), *(f"segment of {s}" for s in problem.segments)),
        "routed": routed.astype(np.float64),
        "arcs": find_arcs(problem, routed, weight, links, quickest),
    }


def _carriers(problem: PipelineProblem) -> list[int]:
    """Links that flows may use besides those of the quickest routes."""
    if problem.routes == "quickest" or problem.platform.pairs is not None:
        return []
    return [edge.link for edge in link_graph(problem.platform) if edge.link != NO_LINK]


def _used(network: Network, routed: Bools) -> set[int]:
    return {link for a, b in np.argwhere(routed).tolist() for link in _route(network, a, b)}


def _route(network: Network, a: int, b: int) -> list[int]:
    at = a * len(network.route_bandwidth) + b
    route: list[int] = network.route_links[network.route_ptr[at] : network.route_ptr[at + 1]].tolist()
    return route


def _quickest(
    network: Network, routed: Bools, links: dict[int, int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Rows of the links of every quickest route, each with the two zones."""
    rows: list[int] = []
    ends: list[tuple[int, int]] = []
    for a, b in np.argwhere(routed).tolist():
        for link in _route(network, a, b):
            rows.append(links[link])
            ends.append((a, b))
    return rows, ends
