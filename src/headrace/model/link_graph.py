"""The links between sites as a graph, for flows that may take any route."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from headrace.model.hub import sites_at_hub
from headrace.model.network import Network

if TYPE_CHECKING:
    from headrace.model.platform import Platform

NO_LINK = -1
"""The link of a site that is joined to the hub without a limit."""


class Edge(NamedTuple):
    """One direction of a link."""

    tail: int
    """A site by number; the hub comes after the last site."""
    head: int
    link: int
    """Its number in the network, or NO_LINK; both directions of a shared link have the same number."""
    bandwidth: float
    latency: float


def link_graph(platform: Platform) -> tuple[Edge, ...]:
    """All links between sites and to the hub, in both directions: O(sites + links).

    >>> from headrace.model.platform import Host, Link, Platform, Site
    >>> sites = Site("a", (Host("x"),)), Site("b", (Host("y"),))
    >>> [edge[:3] for edge in link_graph(Platform(sites, (Link("a", "b", 1e6),)))]
    [(0, 1, 0), (1, 0, 1)]
    """
    sites, network = platform.sites, platform.network
    hub = len(sites)
    index = {s.name: i for i, s in enumerate(sites)}
    number = int((network.out_port >= 0).sum() + (network.in_port >= 0).sum())
    at_hub = sites_at_hub(platform)
    edges: list[Edge] = []
    for i, site in enumerate(sites):
        if site.uplink is not None:
            there = Edge(i, hub, number, site.uplink, site.uplink_latency)
            edges += [there, there._replace(tail=hub, head=i)]
            number += 1
        elif site.name in at_hub:
            there = Edge(i, hub, NO_LINK, math.inf, 0.0)
            edges += [there, there._replace(tail=hub, head=i)]
    for link in platform.links:
        there = Edge(index[link.source], index[link.target], number, link.bandwidth, link.latency)
        edges.append(there)
        number += 1
        if not link.oneway:
            back = there._replace(tail=there.head, head=there.tail)
            edges.append(back if link.shared else back._replace(link=number))
            number += not link.shared
    assert number == network.n_links
    return tuple(edges)


def link_labels(network: Network) -> tuple[str, ...]:
    """Unique names of all links: of several with the same name, all but the first have a number.

    >>> from headrace.model.platform import Host, Link, Platform, Site
    >>> sites = Site("a", (Host("x"),)), Site("b", (Host("y"),))
    >>> two = Link("a", "b", 1e6, oneway=True), Link("a", "b", 2e6, oneway=True)
    >>> link_labels(Platform(sites, two).network)
    ('a -> b', 'a -> b (2)')
    """
    labels: dict[str, None] = {}
    for name in network.link_names:
        label, number = name, 1
        while label in labels:
            number += 1
            label = f"{name} ({number})"
        labels[label] = None
    return tuple(labels)
