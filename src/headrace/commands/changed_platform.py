"""A platform with one change, as `--what-if` asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.commands.what_if import Change, find_link
from headrace.model.errors import NoPlan, UsageError
from headrace.model.hub import possibly_isolated
from headrace.model.platform import Host, Link, Pairs, Platform, Site

HUB = "hub"
"""The other end of an uplink: `link SITE-hub`."""


def changed_platform(platform: Platform, change: Change) -> Platform:
    """The platform after a change.

    Raises UsageError for names that it does not have, and NoPlan if no host would be left.

    >>> from headrace.commands.what_if import parse_change
    >>> lab = Platform((Site("a", (Host("n"),), storage=5.0), Site("b")), (Link("a", "b", 10.0),))
    >>> changed_platform(lab, parse_change("link b-a x2")).links[0].bandwidth
    20.0
    >>> [host.name for host in changed_platform(lab, parse_change("host n")).hosts]
    ['n', 'n+1']
    """
    if change.operation == "remove":
        return _without(possibly_isolated(platform), change)  # what is left need not be connected
    if change.kind == "link":
        return _with_link(platform, change)
    if change.kind == "host":
        return _with_host(platform, change)
    site = _site(platform, change)
    if change.kind == "disk":
        changed = replace(site, storage=_more(site.storage, change))
    else:
        changed = replace(site, hosts=_with_cores(site, change))
    return _replaced(platform, site, changed)


def _without(platform: Platform, change: Change) -> Platform:
    """Without a host, link or site. Where the origin was a host of a site with one file system, it is now that site."""
    if change.kind == "link":
        return _with_link(platform, change)
    _require_hosts_besides(platform, change)
    if change.kind == "site":
        return _without_site(platform, _site(platform, change))
    fewer = platform.without([_host(platform, change)[1].name])
    if platform.origin is None or fewer.origin is not None:
        return fewer
    place = platform.network.place_names[platform.place_of[platform.origin]]
    return replace(fewer, origin=place if place in fewer.place_of else None)


def _require_hosts_besides(platform: Platform, change: Change) -> None:
    """Raise NoPlan if all hosts of the platform are what a change removes."""
    named = [h.name if change.kind == "host" else s.name for s in platform.sites for h in s.hosts]
    if named and set(named) == {change.name}:
        raise NoPlan("no host would be left", where="--what-if", hint="keep a host that can run the tasks")


def _more(value: float, change: Change) -> float:
    return value * change.amount if change.operation == "multiply" else value + change.amount


def _site(platform: Platform, change: Change) -> Site:
    for site in platform.sites:
        if site.name == change.name:
            return site
    raise _unknown("site", change, [s.name for s in platform.sites])


def _unknown(kind: str, change: Change, known: list[str]) -> UsageError:
    return UsageError(
        f"there is no {kind} {change.name!r}",
        where=f"--what-if {str(change)!r}",
        hint=f"use one of {', '.join(known[:8])}",
    )


def _replaced(platform: Platform, old: Site, new: Site) -> Platform:
    return replace(platform, sites=tuple(new if s is old else s for s in platform.sites))


def _with_cores(site: Site, change: Change) -> tuple[Host, ...]:
    """Cores times a factor, rounded down but never to 0, or this many more, which the hosts get in turn."""
    if not site.hosts:
        raise UsageError(
            f"site {site.name!r} has no hosts",
            where=f"--what-if {str(change)!r}",
            hint="name a site with hosts",
        )
    if change.operation == "multiply":
        return tuple(replace(h, cores=max(1, math.floor(h.cores * change.amount + 1e-9))) for h in site.hosts)
    each, rest = divmod(int(change.amount), len(site.hosts))
    return tuple(replace(h, cores=h.cores + each + (k < rest)) for k, h in enumerate(site.hosts))


def _host(platform: Platform, change: Change) -> tuple[Site, Host]:
    """The host that a change names, and its site."""
    for site in platform.sites:
        for host in site.hosts:
            if host.name == change.name:
                return site, host
    raise _unknown("host", change, [h.name for h in platform.hosts])


def _with_host(platform: Platform, change: Change) -> Platform:
    """With one more host like this one, or with this one faster."""
    site, host = _host(platform, change)
    if change.operation == "multiply":
        kinds = {kind: speed * change.amount for kind, speed in host.kinds.items()}
        faster = replace(host, speed=host.speed * change.amount, kinds=kinds)
        return _replaced(
            platform, site, replace(site, hosts=tuple(faster if h is host else h for h in site.hosts))
        )
    return _one_more(platform, site, host)


def _one_more(platform: Platform, site: Site, host: Host) -> Platform:
    """One more host like this one, after the other hosts of its site."""
    names = {h.name for h in platform.hosts} | {s.name for s in platform.sites}
    number = next(k for k in range(1, len(names) + 2) if f"{host.name}+{k}" not in names)
    twin = replace(host, name=f"{host.name}+{number}")
    sites = tuple(replace(s, hosts=(*s.hosts, twin)) if s is site else s for s in platform.sites)
    return replace(platform, sites=sites, pairs=_pairs_with_twin(platform, site, host))


def _pairs_with_twin(platform: Platform, site: Site, host: Host) -> Pairs | None:
    """The links of the twin are those of the host; between the two, the fastest of these."""
    if platform.pairs is None:
        return None
    hosts = list(platform.hosts)
    at, twin = hosts.index(host), hosts.index(site.hosts[-1]) + 1
    order = [*range(twin), at, *range(twin, len(hosts))]
    pick = np.ix_(order, order)
    bandwidth, latency = platform.pairs.bandwidth[pick], platform.pairs.latency
    others = np.delete(platform.pairs.bandwidth[at], at)
    here = order.index(at)
    bandwidth[here, twin] = bandwidth[twin, here] = float(others.max(initial=0.0)) or 1.0
    return Pairs(bandwidth, latency[pick] if isinstance(latency, np.ndarray) else latency)


def _with_link(platform: Platform, change: Change) -> Platform:
    """Other bandwidth between two sites, in both directions, or of a site's uplink; or without them."""
    if platform.pairs is not None:
        raise UsageError(
            "the platform has a link for every pair of hosts, and none between sites",
            where=f"--what-if {str(change)!r}",
            hint="change a host",
        )
    uplinks = {s.name for s in platform.sites if s.uplink is not None}
    joined = {frozenset((link.source, link.target)) for link in platform.links}

    def known(a: str, b: str) -> bool:
        return frozenset((a, b)) in joined or (b == HUB and a in uplinks)

    a, b = find_link(change.name, known, [s.name for s in platform.sites])
    removed = change.operation == "remove"
    if frozenset((a, b)) not in joined:
        site = next(s for s in platform.sites if s.name == a)
        assert site.uplink is not None
        uplink = None if removed else _more(site.uplink, change)
        return _replaced(platform, site, replace(site, uplink=uplink))

    def changed(link: Link) -> Link:
        return replace(link, bandwidth=_more(link.bandwidth, change))

    return _links(platform, lambda link: {link.source, link.target} == {a, b}, None if removed else changed)


def _links(
    platform: Platform, chosen: Callable[[Link], bool], change: Callable[[Link], Link] | None
) -> Platform:
    """The chosen links changed, or removed."""
    kept = [
        (change(link) if change is not None else None) if chosen(link) else link for link in platform.links
    ]
    return replace(platform, links=tuple(link for link in kept if link is not None))


def _without_site(platform: Platform, site: Site) -> Platform:
    """Without a site, its hosts and its links."""
    fewer = _links(platform, lambda link: site.name in (link.source, link.target), None)
    lost = platform.without([h.name for h in site.hosts])
    origin = None if platform.origin == site.name else lost.origin
    sites = tuple(s for s in lost.sites if s.name != site.name)
    return replace(lost, sites=sites, links=fewer.links, origin=origin)
