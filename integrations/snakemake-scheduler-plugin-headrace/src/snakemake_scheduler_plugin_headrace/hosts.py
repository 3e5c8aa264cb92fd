"""The hosts on which jobs run: from a platform file, or from a list of names and speeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headrace.model.errors import UsageError
from headrace.model.network import build_network
from headrace.model.platform import Host, Platform


@dataclass(frozen=True)
class Lab:
    """Hosts, and how long data takes between them."""

    hosts: tuple[Host, ...]
    speed: dict[str, float]
    network: Any = None

    def room(self, host: Host) -> dict[str, float]:
        """What a host has of the resources that the platform limits, by Snakemake's names.

        >>> lab = Lab((Host("a", memory=2e9), Host("b", resources={"gpu": 1})), {})
        >>> lab.room(lab.hosts[0]), lab.room(lab.hosts[1])
        ({'gpu': 0, 'mem_mb': 2000.0}, {'gpu': 1})
        """
        named = sorted({name for each in self.hosts for name in each.resources})
        found: dict[str, float] = {name: host.resources.get(name, 0) for name in named}
        return found | ({"mem_mb": host.memory / 1e6} if host.memory < float("inf") else {})

    def seconds(self, source: str, target: str, size: float) -> float:
        """Seconds to move bytes from host to host; 0 if they share a file system, or nothing is known."""
        if self.network is None or source == target or source not in self.speed or size <= 0:
            return 0.0
        number = {host.name: k for k, host in enumerate(self.hosts)}
        places = self.network.host_place
        taken = float(self.network.seconds(int(places[number[source]]), int(places[number[target]]), size))
        return taken if taken < float("inf") else 0.0


def read_lab(platform: str | None, hosts: str | None) -> Lab | None:
    """The hosts of a platform file or of a list; None if neither is given.

    >>> lab = read_lab(None, "fast=4x2,slow=1")
    >>> [(host.name, host.speed, host.cores) for host in lab.hosts]
    [('fast', 4.0, 2), ('slow', 1.0, 1)]
    """
    if platform is not None and hosts is not None:
        raise UsageError("both a platform and hosts are given", hint="give one of them")
    if platform is not None:
        read = Platform.read(platform)
        rated = tuple(
            replace(host, speed=host.speed * (1 - host.load), load=0.0)
            for host in read.hosts
            if host.load < 1
        )
        if not rated:
            raise UsageError(f"no host of {platform} has any speed left", hint="lower the load of a host")
        return Lab(rated, {host.name: host.speed for host in rated}, build_network(read))
    if hosts is None:
        return None
    found = tuple(_host(text.strip()) for text in hosts.split(","))
    if len({host.name for host in found}) < len(found):
        raise UsageError(f"two hosts have the same name in {hosts!r}", hint="give each host once")
    return Lab(found, {host.name: host.speed for host in found})


def _host(text: str) -> Host:
    name, _, figures = text.partition("=")
    speed, times, cores = figures.partition("x")
    try:
        host = Host(name, float(speed), int(cores) if times else 1)
    except ValueError:
        host = Host("", 1.0, 1)
    if not name or not host.name or not 0 < host.speed < 1e9 or host.cores < 1:
        raise UsageError(
            f"{text!r} is not a host", where="hosts", hint="write name=speed, or name=speedxcores"
        )
    return host
