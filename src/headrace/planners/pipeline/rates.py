"""The numbers of a deployment problem as arrays over filters, streams, hosts, zones and source options."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats
from headrace.model.pipeline import MEGABYTE, PipelineProblem

MAX_ZONE_PAIRS = 250_000
"""Maximum number of pairs of zones; the program has one flow variable per stream and pair."""


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
    """Maximum rate of each option."""
    weight: Floats
    """[zones, zones] W_C per unit of flow."""
    link_rows: Numbers
    """Links and segments, by number, ..."""
    link_from: Numbers
    """... each with the zones between which it carries flows."""
    link_to: Numbers
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
    with np.errstate(divide="ignore"):
        core = (read / (seconds * trial_power))[:, None] * powers
    stream_rate = np.array(pipeline.volumes) / read
    source = np.array([number[s.source] for s in pipeline.streams], np.int64)
    target = np.array([number[s.target] for s in pipeline.streams], np.int64)
    rate_in = np.bincount(target, stream_rate, len(order)).astype(np.float64)
    rate_out = np.bincount(source, stream_rate, len(order)).astype(np.float64)
    place = {h.name: j for j, h in enumerate(hosts)}
    share = np.zeros((len(problem.sources), len(hosts)))
    for i, option in enumerate(problem.sources):
        for host, part in option.shares.items():
            share[i, place[host]] = part
    with np.errstate(divide="ignore"):
        readable = np.min(np.where(share > 0, core[0] / np.where(share > 0, share, 1.0), np.inf), axis=1)
    unit = 2.0 ** math.floor(math.log2(float(readable.max())) - 3)
    return Rates(
        unit=unit,
        core=core / unit,
        cores=np.array([float(h.cores) for h in hosts]),
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
    weight = np.array([[problem.knobs.weight(a, b) for b in names] for a in names])
    start = network.route_ptr[:-1].reshape(n, n)
    stop = network.route_ptr[1:].reshape(n, n)
    rows: list[int] = []
    ends: list[tuple[int, int]] = []
    number: dict[int, int] = {}
    for a, b in np.argwhere(routed).tolist():
        for link in network.route_links[start[a, b] : stop[a, b]].tolist():
            rows.append(number.setdefault(link, len(number)))
            ends.append((a, b))
    capacity = [float(network.link_bandwidth[link]) / MEGABYTE for link in number]
    labels = [network.link_names[link] if network.link_names else f"link {link}" for link in number]
    for site, bandwidth in problem.segments.items():
        for a, b in np.argwhere(routed).tolist():
            if site in (names[a], names[b]):
                rows.append(len(capacity))
                ends.append((a, b))
        capacity.append(bandwidth / MEGABYTE)
        labels.append(f"segment of {site}")
    return {
        "weight": weight * unit,
        "link_rows": np.array(rows, np.int64),
        "link_from": np.array([a for a, _ in ends], np.int64),
        "link_to": np.array([b for _, b in ends], np.int64),
        "capacity": np.array(capacity) / unit,
        "link_names": tuple(labels),
        "routed": routed.astype(np.float64),
    }
