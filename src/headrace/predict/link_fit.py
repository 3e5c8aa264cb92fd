"""Fit the links of a platform, however it is described, to the transfers of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from headrace.model.platform import Link, Pairs, Platform, Site
from headrace.predict.links import LARGE, Transfer

_ENOUGH = 3
_UNDISTURBED = 0.8


def fit_links(platform: Platform, transfers: Iterable[Transfer]) -> tuple[Platform, int]:
    """The platform with the bandwidths of its links as transfers achieved them, and how many links were fitted.

    A transfer tells about the slowest link of its route. Its rate over that link's bandwidth is a factor, and the
    link gets a high quantile of its factors, since others may have disturbed most transfers. All ports of a site have
    one bandwidth. Links with fewer than 3 large transfers stay. O(transfers * route length).

    >>> lab = Platform((Site("s", Platform.pairwise([1, 1], bandwidth=1).hosts, bandwidth=1e6),))
    >>> fitted, links = fit_links(lab, [Transfer("h0", "h1", k, k + 2.0, 1e6) for k in range(3)])
    >>> fitted.sites[0].bandwidth, links
    (500000.0, 1)
    """
    network = platform.network
    if not network.link_names:
        return platform, 0
    site_of = {
        f"{host.name} {way}": site.name
        for site in platform.sites
        for host in site.hosts
        for way in ("in", "out")
    }
    factors: dict[str, list[float]] = {}
    for source, target, seconds, size in _requests(transfers):
        if source not in platform.place_of or target not in platform.place_of or size < LARGE:
            continue
        a, b = platform.place_of[source], platform.place_of[target]
        route = network.route(a, b)
        busy = seconds - network.latency(a, b)
        if not route or busy <= 0:
            continue
        slowest = min(route, key=lambda link: (network.link_bandwidth[link], link))
        name = network.link_names[slowest]
        rate = size / busy
        factors.setdefault(site_of.get(name, name), []).append(rate / float(network.link_bandwidth[slowest]))
    scale = {name: float(np.quantile(of, _UNDISTURBED)) for name, of in factors.items() if len(of) >= _ENOUGH}
    return _scaled(platform, scale), len(scale)


def _requests(transfers: Iterable[Transfer]) -> list[tuple[str, str, float, float]]:
    """Source, target, seconds and bytes of each request; items of one request have the same times."""
    total: dict[tuple[str, str, float, float], float] = {}
    for moved in transfers:
        if moved.finish > moved.start:
            key = (moved.source, moved.target, moved.start, moved.finish)
            total[key] = total.get(key, 0.0) + moved.size
    return [(source, target, finish - start, size) for (source, target, start, finish), size in total.items()]


def _scaled(platform: Platform, scale: dict[str, float]) -> Platform:
    def site(one: Site) -> Site:
        bandwidth = None if one.bandwidth is None else one.bandwidth * scale.get(one.name, 1.0)
        uplink = None if one.uplink is None else one.uplink * scale.get(f"{one.name} uplink", 1.0)
        return replace(one, bandwidth=bandwidth, uplink=uplink)

    def link(one: Link) -> Link:
        there = scale.get(f"{one.source} -> {one.target}")
        back = None if one.oneway else scale.get(f"{one.target} -> {one.source}")
        both = [factor for factor in (there, back) if factor is not None]
        return replace(one, bandwidth=one.bandwidth * (max(both) if both else 1.0))

    pairs = platform.pairs
    if pairs is not None:
        names = [host.name for host in platform.hosts]
        factor = np.array([[scale.get(f"{a} -> {b}", 1.0) for b in names] for a in names])
        pairs = Pairs(pairs.bandwidth * factor, pairs.latency)
    return replace(
        platform,
        sites=tuple(map(site, platform.sites)),
        links=tuple(map(link, platform.links)),
        pairs=pairs,
    )
