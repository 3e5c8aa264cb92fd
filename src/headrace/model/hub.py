"""The hub where uplinks meet, and the sites that are there without an uplink of their own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.model.platform import Platform


def sites_at_hub(platform: Platform) -> frozenset[str]:
    """Sites without an uplink or a link of their own, which are where the uplinks of the others meet.

    There are none if no site has an uplink, or if sites may be isolated.

    >>> from headrace.model.platform import Host, Platform, Site
    >>> sites = Site("a", (Host("n"),), uplink=1e6), Site("b", uplink=1e6), Site("store")
    >>> sorted(sites_at_hub(Platform(sites))), sorted(sites_at_hub(Platform(sites, isolated=True)))
    (['store'], [])
    """
    if platform.isolated or all(s.uplink is None for s in platform.sites):
        return frozenset()
    linked = {end for link in platform.links for end in (link.source, link.target)}
    return frozenset(s.name for s in platform.sites if s.uplink is None and s.name not in linked)


def possibly_isolated(platform: Platform) -> Platform:
    """The same platform, where sites may be isolated; sites at the hub stay there, with unlimited uplinks.

    >>> from headrace.model.platform import Host, Platform, Site
    >>> apart = possibly_isolated(Platform((Site("a", (Host("n"),), uplink=1e6), Site("store"))))
    >>> [site.uplink for site in apart.sites]
    [1000000.0, inf]
    """
    at_hub = sites_at_hub(platform)
    sites = tuple(replace(s, uplink=math.inf) if s.name in at_hub else s for s in platform.sites)
    return replace(platform, sites=sites, isolated=True)
