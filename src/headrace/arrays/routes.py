"""Routes between places for compiled loops: the links of each route and how long a transfer takes.

A place is where data can be stored: a host, or a site whose hosts share a file system. A zone is a site (in a pairwise
network, a host). A route from one place to another consists of the sender's outgoing port, the links between the two
zones and the receiver's incoming port.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import leaf
from headrace.model.graph import Floats, Ints
from headrace.model.platform import Platform


class NetworkArrays(NamedTuple):
    """A network as arrays for compiled loops."""

    zone: Int64s
    """The zone of each place."""
    port: Floats
    """Bandwidth of each place's port; inf where there is none."""
    out_port: Int64s
    in_port: Int64s
    """The link of each place's outgoing and incoming port; -1 where there is none."""
    route_ptr: Ints
    route_links: Ints
    """Links between zones a and b are route_links[route_ptr[a * zones + b] : route_ptr[a * zones + b + 1]]."""
    route_bandwidth: Floats
    """[zones, zones] minimum bandwidth of those links: inf without links, 0 if there is no route."""
    route_latency: Floats
    """[zones, zones] latency of the whole route."""
    link_free_at: Floats
    """When each link becomes available."""
    origin: int
    """The place of inputs from outside and of results; -1: inputs are everywhere and results stay."""
    exclusive_links: bool
    """Whether a link is busy with one transfer at a time,"""
    link_bandwidth: Floats
    """each for its size over the bandwidth of the link,"""
    store_and_forward: bool
    """or until it has finished."""


def network_arrays(platform: Platform, link_free_at: Floats) -> NetworkArrays:
    """The arrays of a platform's network: O(places)."""
    network = platform.network
    return NetworkArrays(
        zone=network.zone.astype(np.int64),
        port=network.port,
        out_port=network.out_port.astype(np.int64),
        in_port=network.in_port.astype(np.int64),
        route_ptr=network.route_ptr,
        route_links=network.route_links,
        route_bandwidth=network.route_bandwidth,
        route_latency=network.route_latency,
        link_free_at=link_free_at,
        origin=network.origin,
        exclusive_links=platform.contention != "none",
        link_bandwidth=network.link_bandwidth,
        store_and_forward=network.store_and_forward,
    )


def longest_route(network: NetworkArrays) -> int:
    """The largest number of links on any route, ports included."""
    return int(np.diff(network.route_ptr).max(initial=0)) + 2


@leaf
def transfer_seconds(network: NetworkArrays, source: int, target: int, size: float) -> float:
    """Duration of a transfer that shares no link; inf if there is no route."""
    if source == target or size == 0.0:
        return 0.0
    a, b = network.zone[source], network.zone[target]
    bandwidth = min(network.port[source], network.route_bandwidth[a, b], network.port[target])
    if bandwidth <= 0.0:
        return np.inf
    return network.route_latency[a, b] + size / bandwidth


@leaf
def links_between(network: NetworkArrays, source: int, target: int, links: Int64s) -> int:
    """Write the links of a route into `links`; returns their number."""
    count = 0
    if network.out_port[source] >= 0:
        links[count] = network.out_port[source]
        count += 1
    pair = network.zone[source] * network.route_bandwidth.shape[0] + network.zone[target]
    for i in range(network.route_ptr[pair], network.route_ptr[pair + 1]):
        links[count] = network.route_links[i]
        count += 1
    if network.in_port[target] >= 0:
        links[count] = network.in_port[target]
        count += 1
    return count


@leaf
def busy_links(
    network: NetworkArrays, source: int, target: int, size: float, links: Int64s, seconds: Floats
) -> int:
    """Write the links of a route, and how long a transfer keeps each of them busy; returns their number."""
    count = links_between(network, source, target, links)
    whole = transfer_seconds(network, source, target, size) if network.store_and_forward else 0.0
    for i in range(count):
        seconds[i] = whole if network.store_and_forward else size / network.link_bandwidth[links[i]]
    return count


@leaf
def lower_arrivals(
    network: NetworkArrays, source: int, ready: float, size: float, places: Int64s, arrival: Floats
) -> None:
    """Lower `arrival` at these places to the time at which an item that is ready at `source` can arrive from there.

    As `transfer_seconds`, with everything that depends only on the source computed outside the loop.
    """
    zone, port = network.zone[source], network.port[source]
    bandwidths, latencies = network.route_bandwidth[zone], network.route_latency[zone]
    for place in places:
        there = network.zone[place]
        bandwidth = min(port, bandwidths[there], network.port[place])
        at = ready
        if place != source:
            at = ready + (latencies[there] + size / bandwidth) if bandwidth > 0.0 else np.inf
        arrival[place] = min(arrival[place], at)
