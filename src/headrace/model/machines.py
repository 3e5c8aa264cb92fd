"""Platforms of machines that exchange data over a switch, each machine with one or several workers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from headrace.model.platform import Host, Link, Platform, Site

ASSUMED_BANDWIDTH = 125e6
"""Bandwidth of a machine of which nothing is known: 1 Gbit/s."""
ASSUMED_LATENCY = 1e-3
ASSUMED_INSIDE = 1e9
"""Bandwidth between two workers of one machine of which nothing is known: copying over loopback."""
SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class MachineLinks:
    """Bandwidths in bytes/s and latencies in seconds of one machine; None: not known."""

    machine: str
    up: float | None = None
    """From the machine to others."""
    down: float | None = None
    """From others to the machine."""
    latency: float | None = None
    """Of a transfer to or from another machine."""
    inside: float | None = None
    """Between two workers of the machine."""
    inside_latency: float | None = None


def platform_of_machines(
    workers: Mapping[str, Sequence[Host]], links: Iterable[MachineLinks], name: str
) -> Platform:
    """A platform: one site for each machine, linked to a switch in both directions; transfers queue at each link.

    Figures that are not known are the median of the known ones, or else assumed. A single machine is one site.

    >>> lab = platform_of_machines({"a": [Host("w0")], "b": [Host("w1")]}, [MachineLinks("a", up=1e6)], "lab")
    >>> [(link.source, link.bandwidth) for link in lab.links], lab.contention
    ([('a', 1000000.0), ('switch', 125000000.0), ('b', 1000000.0), ('switch', 125000000.0)], 'fifo')
    """
    known = {link.machine: link for link in links}
    measured = [known.get(machine, MachineLinks(machine)) for machine in workers]
    taken = {host.name for hosts in workers.values() for host in hosts}
    site_names = [_free(machine, taken) for machine in workers]
    inside = _filled([m.inside for m in measured], ASSUMED_INSIDE)
    inside_latency = _filled([m.inside_latency for m in measured], ASSUMED_LATENCY)
    if len(workers) == 1:
        (hosts,) = workers.values()
        return Platform((Site(site_names[0], tuple(hosts), inside[0], inside_latency[0]),), name=name)
    up = _filled([m.up for m in measured], ASSUMED_BANDWIDTH)
    down = _filled([m.down for m in measured], ASSUMED_BANDWIDTH)
    latency = _filled([m.latency for m in measured], ASSUMED_LATENCY)
    switch = _free(SWITCH, taken)
    sites, pairs = [], []
    for k, (site, hosts) in enumerate(zip(site_names, workers.values(), strict=True)):
        # The ports of workers are also on the way to other machines: they must not be what limits it.
        port = max(inside[k], up[k], down[k])
        own = min(inside_latency[k], latency[k] / 2) if len(hosts) > 1 else 0.0
        sites.append(Site(site, tuple(hosts), bandwidth=port, latency=own))
        pairs.append(Link(site, switch, up[k], latency[k] / 2 - own, oneway=True))
        pairs.append(Link(switch, site, down[k], latency[k] / 2 - own, oneway=True))
    # The switch keeps no data: a plan cannot leave copies there.
    return Platform((*sites, Site(switch, storage=0.0)), tuple(pairs), contention="fifo", name=name)


def _filled(values: Sequence[float | None], assumed: float) -> list[float]:
    known = [value for value in values if value is not None and math.isfinite(value)]
    usual = median(known) if known else assumed
    return [usual if value is None or not math.isfinite(value) else value for value in values]


def _free(name: str, taken: set[str]) -> str:
    """A name that nothing else has; it is then taken."""
    while name in taken:
        name = f"machine {name}"
    taken.add(name)
    return name
