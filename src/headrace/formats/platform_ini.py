"""Platforms for pipelines as INI: clusters, hosts and the links between clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.formats.format import Format
from headrace.formats.sections import (
    ARROW,
    Section,
    is_ini,
    plain_name,
    read_sections,
    write_sections,
)
from headrace.model.errors import BadFile, BadPlatform, HeadraceError
from headrace.model.hub import possibly_isolated, sites_at_hub
from headrace.model.pipeline import MEGABYTE, READER_KIND
from headrace.model.platform import Host, Link, Platform, Site

MAX_HOSTS = 100_000
MAX_CLUSTERS = 2_000
_RANGE = re.compile(r"(.*?)([0-9]{1,9})\.\.([0-9]{1,9})\Z")
_CLUSTER = ("bandwidth", "shared", "uplink")
_HOST = ("cluster", "power", "reader_power", "cores", "load")
_LINK = ("bandwidth", "shared", "oneway")


@dataclass(frozen=True, eq=False)
class Machines:
    """A platform, and the bandwidth in bytes/s of clusters that are a single shared medium."""

    platform: Platform
    segments: Mapping[str, float] = field(default_factory=dict)


def read_machines(path: str | Path) -> Machines:
    """Read a platform for pipelines from an INI file."""
    sections = read_sections(path)
    clusters = [s for s in sections if s.kind == "cluster"]
    hosts: dict[str, list[Host]] = {c.name: [] for c in clusters}
    if len(clusters) > MAX_CLUSTERS:
        raise BadFile(f"{len(clusters)} clusters", where=str(path), hint=f"at most {MAX_CLUSTERS}")
    links = []
    name = Path(path).name.partition(".")[0] or "platform"
    total = 0
    for section in sections:
        if section.kind == "platform":
            section.require_known(("name",))
            name = section.text("name", name)
        elif section.kind == "host":
            total += len(_names(section))
            if total > MAX_HOSTS:
                raise section.wrong(f"this makes {total} hosts", f"at most {MAX_HOSTS}")
            hosts[_cluster_of(section, clusters)].extend(_hosts(section))
        elif section.kind == "link":
            section.require_known(_LINK)
            source, target = section.ends()
            bandwidth = section.mega("bandwidth", "rate") * MEGABYTE
            links.append(
                Link(source, target, bandwidth, shared=section.flag("shared"), oneway=section.flag("oneway"))
            )
        elif section.kind != "cluster":
            raise section.wrong("unknown section", "one of platform, cluster, host, link")
    sites = [_site(c, tuple(hosts[c.name])) for c in clusters]
    try:
        platform = _joined(Platform(tuple(sites), tuple(links), name=name))
        _ = platform.network
    except HeadraceError as error:
        raise error.at(str(path)) from None
    segments = {s.name: s.bandwidth for s, c in zip(sites, clusters, strict=True) if c.flag("shared")}
    return Machines(platform, {k: v for k, v in segments.items() if v is not None})


def write_machines(machines: Machines, path: str | Path) -> None:
    """Write a platform as INI that `read_machines` reads back to an equal one.

    The format has no latencies, storage, memory, prices, watts or traces: a platform that has any is refused.
    """
    write_sections(path, _sections(machines, path), "a platform for pipelines")


def _cluster_of(section: Section, clusters: list[Section]) -> str:
    known = [c.name for c in clusters]
    name = section.text("cluster", known[0] if len(known) == 1 else "")
    if name not in known:
        raise section.wrong(f"no such cluster: {name!r}", f"one of {', '.join(known[:8])}")
    return name


def _hosts(section: Section) -> Iterator[Host]:
    section.require_known(_HOST, "power ")
    if not section.name:
        raise section.wrong("a host has no name", "write [host NAME]")
    kinds = {k.removeprefix("power "): section.number(k) for k in section.values if k.startswith("power ")}
    if "reader_power" in section.values:
        kinds[READER_KIND] = section.number("reader_power")
    for name in _names(section):
        yield Host(
            name,
            speed=section.number("power", 1.0),
            cores=section.whole("cores", 1, most=10**6),
            kinds=kinds,
            load=section.number("load", 0.0),
        )


def _names(section: Section) -> list[str]:
    """One host, or with `[host MG9..12]` the hosts MG9, MG10, MG11 and MG12."""
    match = _RANGE.match(section.name)
    if match is None:
        return [section.name]
    first, last = int(match[2]), int(match[3])
    if not 0 <= last - first < MAX_HOSTS:
        raise section.wrong(
            f"{first} to {last} is not a range of hosts",
            f"use an increasing range of at most {MAX_HOSTS} hosts",
        )
    return [f"{match[1]}{i}" for i in range(first, last + 1)]


def _joined(platform: Platform) -> Platform:
    """Clusters with neither link nor uplink are at the hub of those with one; all others may be isolated."""
    if not sites_at_hub(platform):
        return replace(platform, isolated=True)
    try:
        _ = platform.network
    except BadPlatform:
        return possibly_isolated(platform)
    return platform


def _site(section: Section, hosts: tuple[Host, ...]) -> Site:
    section.require_known(_CLUSTER)
    if not section.name:
        raise section.wrong("a cluster has no name", "write [cluster NAME]")
    rates = {
        key: section.mega(key, "rate") * MEGABYTE if key in section.values else None
        for key in ("bandwidth", "uplink")
    }
    if section.flag("shared") and rates["bandwidth"] is None:
        raise section.wrong("a shared cluster needs a bandwidth", "add bandwidth = ...")
    return Site(section.name, hosts, bandwidth=rates["bandwidth"], uplink=rates["uplink"])


def _sections(machines: Machines, path: str | Path) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    platform = machines.platform
    lost = platform.pairs is not None or any(
        s.latency or s.uplink_latency or s.storage != float("inf") for s in platform.sites
    )
    lost |= any(link.latency for link in platform.links) or platform.origin is not None
    lost |= any(h.memory != float("inf") or h.trace is not None for h in platform.hosts)
    lost |= any(h.price or h.watts or h.resources for h in platform.hosts)
    lost |= platform.isolated and bool(sites_at_hub(replace(platform, isolated=False)))
    if lost:
        raise BadFile(
            "INI cannot express pairs, latencies, storage, memory, resources, prices, watts, traces, an origin, or "
            "clusters without an uplink that are isolated from others with one",
            where=str(path),
            hint="write TOML instead",
        )
    yield "platform", "", {"name": plain_name(platform.name, path)}
    for site in platform.sites:
        values: dict[str, object] = {}
        if site.bandwidth is not None:
            values["bandwidth"] = site.bandwidth / MEGABYTE
        if site.uplink is not None and site.uplink != float("inf"):  # without a rate it is at the hub
            values["uplink"] = site.uplink / MEGABYTE
        if site.name in machines.segments:
            values["shared"] = True
        yield "cluster", plain_name(site.name, path), values
        for host in site.hosts:
            yield "host", plain_name(host.name, path), _host_values(host, site.name)
    for link in platform.links:
        name = f"{link.source}{ARROW}{link.target}"
        values = {"bandwidth": link.bandwidth / MEGABYTE, "shared": link.shared, "oneway": link.oneway}
        yield "link", name, values


def _host_values(host: Host, cluster: str) -> dict[str, object]:
    values: dict[str, object] = {"cluster": cluster, "power": host.speed}
    if host.cores != 1:
        values["cores"] = host.cores
    if host.load:
        values["load"] = host.load
    return values | {f"power {kind}": speed for kind, speed in host.kinds.items()}


def _read_platform(path: str | Path) -> Platform:
    return read_machines(path).platform


def _write_platform(platform: Platform, path: Path) -> None:
    write_machines(Machines(platform), path)


FORMATS = (
    Format(
        "ini",
        "platform",
        "clusters for pipelines as INI",
        suffixes=(".ini",),
        sniff=is_ini,
        read=_read_platform,
        write=_write_platform,
    ),
)
