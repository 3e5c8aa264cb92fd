"""A platform as a PST grid description, if that can express it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from headrace.model.behaviour import AddCluster, AddHost, Behaviour, GridEvent, GridScript, grid_script
from headrace.model.errors import BadPlatform
from headrace.model.platform import Host, Platform, Site
from headrace.model.trace import LinkTrace, Trace


def grid_of(platform: Platform) -> GridScript:
    """The grid in which every site with hosts is a cluster from time 0 on: O(hosts).

    PST has hosts of one core, whose speeds differ only by architecture, and clusters that share a file system behind
    one link to the origin; any other platform is refused. Traces become behaviours.

    >>> lab = Platform(
    ...     (Site("home"), Site("uw", (Host("a", load=0.25), Host("b")), uplink=1e4)), contention="fifo", origin="home"
    ... )
    >>> [type(event).__name__ for event in grid_of(lab).events], sorted(grid_of(lab).behaviours)
    (['AddCluster', 'AddHost', 'AddHost'], ['link-of-uw', 'share-100', 'share-75'])
    """
    _require_origin(platform)
    behaviours: dict[str, Behaviour] = {}
    events: list[GridEvent] = []
    for site in platform.sites:
        if not site.hosts:
            continue
        link, first = _from_its_beginning(_link_of(site, platform), platform, site.name)
        events.append(AddCluster(0.0, site.name, _known(link, behaviours, f"link-of-{site.name}"), first))
        for host in site.hosts:
            share, first = _from_its_beginning(_share_of(host, platform), platform, host.name)
            name = f"share-of-{host.name}"
            if isinstance(share, Trace) and share.steady:
                name = f"share-{100 * share.peak:.15g}"
            events.append(
                AddHost(0.0, site.name, host.name, _known(share, behaviours, name), first, host.arch)
            )
    return grid_script(events, behaviours, name=platform.name)


def _known(behaviour: Behaviour, behaviours: dict[str, Behaviour], name: str) -> str:
    """The name of an equal behaviour, or a new name."""
    name = "".join(letter if letter.isalnum() or letter in "-_.% " else "_" for letter in name)
    while behaviours.get(name, behaviour) != behaviour:
        name += "_"
    behaviours[name] = behaviour
    return name


def _from_its_beginning(behaviour: Behaviour, platform: Platform, who: str) -> tuple[Behaviour, int]:
    """The series without an offset, and the index of its value at time 0."""
    series = (behaviour,) if isinstance(behaviour, Trace) else behaviour
    moving = next((one for one in series if not one.steady), series[0])
    at = moving.offset % moving.length if moving.repeats else moving.offset
    found = np.flatnonzero(moving.time == at)
    if len(found) == 0:
        raise _refused(platform, who, "starts between two steps of its trace")
    whole = [replace(one, offset=0.0) for one in series]
    return (whole[0] if len(whole) == 1 else LinkTrace(*whole)), int(found[0])


def _require_origin(platform: Platform) -> None:
    origin = next((site for site in platform.sites if site.name == platform.origin), None)
    if platform.pairs is not None or platform.links or platform.contention != "fifo":
        raise _refused(platform, "", "has links other than one fifo uplink from each site to the origin")
    if origin is None or origin.hosts or origin.uplink is not None or origin.bandwidth is not None:
        raise _refused(platform, "", "has no origin that is a separate site without hosts and limits")


def _link_of(site: Site, platform: Platform) -> LinkTrace:
    if site.uplink is None or site.bandwidth is not None or site.storage < math.inf:
        raise _refused(platform, f"site {site.name}", "is not a single file system behind one uplink")
    if site.uplink_trace is not None:
        return site.uplink_trace
    return LinkTrace(Trace.constant(site.uplink), Trace.constant(site.uplink_latency))


def _share_of(host: Host, platform: Platform) -> Trace:
    if host.cores != 1 or host.speed != 1.0 or host.kinds:
        raise _refused(platform, f"host {host.name}", "has more than one core, or a speed other than 1")
    if host.resources or host.memory < math.inf:
        raise _refused(platform, f"host {host.name}", "has a limited memory or named resources")
    if host.price or host.watts:
        raise _refused(platform, f"host {host.name}", "has a price or watts")
    return host.trace or Trace.constant(1.0 - host.load)


def _refused(platform: Platform, part: str, problem: str) -> BadPlatform:
    where = f"{platform.name}: {part}" if part else platform.name
    return BadPlatform(
        f"{problem}, which a grid description cannot express", where=where, hint="keep it as platform TOML"
    )
