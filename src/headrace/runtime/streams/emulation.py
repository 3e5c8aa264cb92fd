"""Emulated hosts and networks on one machine: slower powers by sleeping, ports and links by token buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.model.errors import UsageError
from headrace.model.pipeline import READER_KIND
from headrace.model.platform import Platform
from headrace.runtime.filters import App
from headrace.runtime.streams.specs import Emulation, Ports


def emulate_speeds(pairs: Iterable[tuple[str, str]], speeds: Mapping[str, float]) -> Emulation:
    """Hosts of these relative speeds, for filters on hosts; the fastest is this machine.

    >>> emulate_speeds([("add", "a"), ("add", "b")], {"a": 4.0, "b": 1.0}).factors
    {('add', 'a'): 1.0, ('add', 'b'): 4.0}
    """
    most = max(speeds.values())
    factors = {(name, host): most / speeds[host] for name, host in pairs}
    return Emulation(factors, text=f"speeds {', '.join(f'{s:g}' for s in speeds.values())}")


def emulate_platform(
    app: App,
    pairs: Iterable[tuple[str, str]],
    platform: Platform,
    powers: Mapping[str, float],
    folder: Path,
    slower: float = 1.0,
) -> Emulation:
    """The hosts, ports and links of a platform, for these filters on hosts.

    `powers`: for each filter, the power of this machine, on the scale of the platform's speeds. `slower`: all
    powers and bandwidths are divided by this, so that hosts faster than this machine can be emulated, too.
    `folder`: for the files of the ports.
    """
    hosts = {host.name: host for host in platform.hosts}
    factors: dict[tuple[str, str], float] = {}
    for name, host in pairs:
        if host not in hosts:
            raise UsageError(
                f"there is no host {host!r}",
                where=platform.name,
                hint="give the platform of the deployment",
            )
        kind = name if app.into(name) else READER_KIND
        factor = slower * powers[name] / hosts[host].speed_for(kind)
        if factor < 1 - 1e-9:
            raise UsageError(
                f"{host} is {1 / factor:.3g} times as fast as this machine for {name!r}",
                where=platform.name,
                hint=f"add --slower {slower / factor * 1.01:.3g}",
            )
        factors[name, host] = factor
    text = f"{platform.name}: powers, ports and links" + (
        f", {slower:g} times as slow" if slower != 1 else ""
    )
    return Emulation(factors, _Network(platform, folder, slower), text)


class _Network:
    """The ports and links between two hosts, as files and rates."""

    def __init__(self, platform: Platform, folder: Path, slower: float) -> None:
        self._network = platform.network
        self._place = {h.name: int(self._network.host_place[j]) for j, h in enumerate(platform.hosts)}
        self._folder = folder
        self._slower = slower

    def __call__(self, source: str, target: str) -> Ports:
        a, b = self._place[source], self._place[target]
        if a == b:
            return ()
        return tuple(
            (str(self._folder / f"link{link}"), float(self._network.link_bandwidth[link]) / self._slower)
            for link in self._network.route(a, b)
        )
