"""Hosts grouped by place and speed, and the kind of network that connects them, for batch planners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.problem import ProblemArrays
from headrace.model.graph import Bools, Floats, Ints
from headrace.model.network import EVERYWHERE, Network
from headrace.planners.batch.records import FREE_LINKS, OWN_LINKS, SHARED_LINKS, STAR, HostGroups


def host_groups(network: Network, arrays: ProblemArrays) -> HostGroups:
    """O(hosts * kinds * log hosts + zones^2 * route)."""
    rate = arrays.hosts.rate
    places, host_place = np.unique(network.host_place, return_inverse=True)
    key = np.concatenate((host_place[None, :], rate)).T
    _, first, same = np.unique(key, axis=0, return_index=True, return_inverse=True)
    host_group = same.reshape(-1)
    group_hosts = np.argsort(host_group, kind="stable")
    group_place = host_place[first]
    counts = np.bincount(group_place, minlength=len(places))
    _, cluster = np.unique(network.site[places], return_inverse=True)
    back = _paths(network, places, to_origin=True)
    into = _paths(network, places, to_origin=False)
    star = _star_links(network, places)
    return HostGroups(
        network=_kind_of_network(network, arrays.network.exclusive_links, star),
        places=places.astype(np.int64),
        host_place=host_place.astype(np.int64),
        host_group=host_group.astype(np.int64),
        place_group=np.concatenate(([0], np.cumsum(counts))),
        group_rate=np.ascontiguousarray(rate[:, first]),
        group_ptr=np.concatenate(([0], np.cumsum(np.bincount(host_group)))),
        group_hosts=group_hosts.astype(np.int64),
        cluster=cluster.astype(np.int64),
        back_latency=back.latency,
        back_bandwidth=back.bandwidth,
        in_link=np.full(len(places), -1, np.int64) if star is None else star.astype(np.int64),
        in_latency=into.latency,
        in_bandwidth=into.bandwidth,
        busy_latency=into.latency * network.store_and_forward,
    )


class _Paths(NamedTuple):
    latency: Floats
    bandwidth: Floats


def _paths(network: Network, places: Ints, *, to_origin: bool) -> _Paths:
    """Latency and bandwidth between the origin and each place."""
    latency, bandwidth = np.zeros(len(places)), np.full(len(places), np.inf)
    if network.origin != EVERYWHERE:
        for k, place in enumerate(places.tolist()):
            ends = (place, network.origin) if to_origin else (network.origin, place)
            latency[k], bandwidth[k] = network.latency(*ends), network.bandwidth(*ends)
    return _Paths(latency, bandwidth)


def _kind_of_network(network: Network, exclusive: bool, star: Ints | None) -> int:
    if not exclusive:
        return FREE_LINKS
    ports = (network.out_port >= 0) | (network.in_port >= 0)
    uses = np.bincount(network.route_links, minlength=network.n_links)
    if not ports.any() and len(np.unique(network.zone)) == network.n_places and uses.max(initial=0) <= 1:
        return OWN_LINKS
    return SHARED_LINKS if star is None else STAR


def _star_links(network: Network, places: Ints) -> Ints | None:
    """The link from the origin to each place, if each place has its own link that every route to it uses; else None.

    In such a network an input at the origin is always sent from there: no copy elsewhere is ever faster.
    """
    if network.origin == EVERYWHERE:
        return None
    if (network.out_port[places] >= 0).any() or (network.in_port[places] >= 0).any():
        return None
    links = np.full(len(places), -1, np.int32)
    for k, place in enumerate(places.tolist()):
        route = network.route(network.origin, place)
        if (
            place != network.origin
            and len(route) == 1
            and np.isfinite(network.bandwidth(network.origin, place))
        ):
            links[k] = route[0]
        elif place != network.origin:
            return None
    used = links[links >= 0]
    if len(np.unique(used)) < len(used) or not _never_quicker(network, places, links).all():
        return None
    return links


def _never_quicker(network: Network, places: Ints, links: Ints) -> Bools:
    """For every pair of places: whether the route uses the target's link and is no faster than the origin's."""
    zones, origin = len(network.route_bandwidth), network.zone[network.origin]
    zone = network.zone[places]
    own = np.full(zones, -2, np.int64)
    own[zone] = links
    pair = np.repeat(np.arange(zones * zones), np.diff(network.route_ptr))
    hits = np.bincount(pair[network.route_links == own[pair % zones]], minlength=zones * zones) > 0
    through = hits.reshape(zones, zones)[np.ix_(zone, zone)]
    bandwidth, latency = (
        network.route_bandwidth[np.ix_(zone, zone)],
        network.route_latency[np.ix_(zone, zone)],
    )
    slower = (bandwidth <= network.route_bandwidth[origin, zone]) & (
        latency >= network.route_latency[origin, zone]
    )
    fine: Bools = (through & slower) | (bandwidth == 0) | np.eye(len(places), dtype=bool)
    fine[:, zone == origin] = True
    return fine
