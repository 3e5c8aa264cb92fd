"""SimGrid platform files (XML, versions 3 and 4): zones, clusters, hosts, routers, links, routes, traces of speeds.

- A host's speed in Gflop/s is its speed, so that the work of tasks is in Gflop.
- A platform of clusters becomes one of sites with links between them; any other becomes one of pairs of hosts, each
  pair with the least bandwidth and the summed latency of its route. Links that several routes share are then
  independent.
- `pstate` chooses one of several speeds; `availability` (version 3) is a constant load.
- Disks, properties, coordinates and loopbacks are ignored. Other elements, and attributes that would change the result,
  are refused by name.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from headrace.formats.files import read_file
from headrace.formats.format import Format
from headrace.formats.safe_xml import read_xml
from headrace.formats.shapes import shorten
from headrace.formats.sibling_path import sibling_path
from headrace.model.errors import BadPlatform, HeadraceError
from headrace.model.platform import Host, Platform
from headrace.model.trace import Trace

MAX_HOSTS = 100_000
FLOPS = 1e9
"""Of a host of speed 1."""
_AMOUNT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµ]*)\s*\Z", re.ASCII)
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_PREFIX |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "m": 60.0, "h": 3600.0}
_EXAMPLES = {
    "a speed": "500Mf, 2.5Gf or 1Tflops",
    "a bandwidth": "125MBps, 1Gbps or 10MiBps",
    "a time": "10s, 2ms or 50us",
    "a share": "0.5",
}
_ZONES = ("zone", "AS")
_IGNORED = ("prop", "disk", "config", "mount", "storage_type", "storage")
_OF_HOST = ("id", "speed", "power", "core", "pstate", "speed_file", "availability", "state", "coordinates")
"""Attributes that are read or change nothing: coordinates are only for a routing that is refused."""
_OF_LINK = ("id", "bandwidth", "latency", "sharing_policy", "state")
_OF_CLUSTER = (
    *("id", "prefix", "suffix", "radical", "speed", "power", "core", "bw", "lat", "sharing_policy"),
    *("bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "topology", "topo_parameters"),
    *("loopback_bw", "loopback_lat"),
)
"""A flat topology has no parameters, and data does not move within a host."""
_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")
_POLICIES = ("SHARED", "FATPIPE", *_DUPLEX)


@dataclass(frozen=True)
class WireLink:
    """A link of a SimGrid platform."""

    bandwidth: float
    latency: float
    shared: bool


@dataclass
class Zone:
    """A zone or cluster; ends of routes are hosts, routers or zones."""

    id: str
    routing: str
    hosts: dict[str, Host] = field(default_factory=dict)
    routers: set[str] = field(default_factory=set)
    zones: dict[str, Zone] = field(default_factory=dict)
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    cluster: Cluster | None = None


@dataclass(frozen=True)
class Route:
    """Links between two ends; for zones, the hosts or routers through which it leaves and enters them."""

    links: tuple[WireLink, ...]
    leaves: str = ""
    enters: str = ""


@dataclass(frozen=True)
class Cluster:
    """The private link of each host of a cluster, its backbone, and its router."""

    private: WireLink
    backbone: WireLink | None
    router: str


def read_simgrid(path: str | Path) -> Platform:
    """Read a platform: O(elements), and O(hosts squared) unless it consists of clusters."""
    from headrace.formats.simgrid_routes import platform_of_zone

    where = str(path)
    root = read_xml(path)
    if root.tag != "platform":
        raise BadPlatform(f"the document is a <{root.tag}>", where=where, hint="give a SimGrid <platform>")
    reader = _Reader(Path(path))
    try:
        _require_version(root)
        top = [reader.zone(each) for each in root if each.tag in (*_ZONES, "cluster")]
        reader.refuse_others(root, (*_ZONES, "cluster", "trace", "trace_connect"))
        if len(top) != 1:
            raise BadPlatform(
                f"{len(top)} zones at the top", hint="put them into one zone, as SimGrid requires"
            )
        for each in root.iter("trace"):
            reader.add_trace(each)
        for each in root.iter("trace_connect"):
            reader.connect(each)
        return platform_of_zone(top[0], Path(path).name.removesuffix(".gz").removesuffix(".xml"))
    except HeadraceError as error:
        raise (
            error if error.where.startswith(f"{where}: ") or error.where == where else error.at(where)
        ) from None


def _require_version(root: Element) -> None:
    version = root.get("version", "4.1")
    if version.partition(".")[0] not in ("3", "4"):
        raise BadPlatform(
            f"version is {shorten(version)}", hint="convert it to version 4.1, with simgrid_update_xml"
        )


class _Reader:
    """Reads elements; links and traces are known by their names in the whole file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.links: dict[str, WireLink] = {}
        self.halves: dict[str, WireLink] = {}
        """The directions of links that have a bandwidth for each, as routes may name them: `id_UP`, `id_DOWN`."""
        self.homes: dict[str, dict[str, Host]] = {}
        """By the name of a host, the hosts of its zone."""
        self.traces: dict[str, Trace] = {}

    def zone(self, element: Element) -> Zone:
        if element.tag == "cluster":
            return self.cluster(element)
        zone = Zone(_required(element, "id"), element.get("routing", "Full"))
        if zone.routing not in ("Full", "Floyd", "Dijkstra", "DijkstraCache", "None"):
            raise BadPlatform(
                f"routing {zone.routing!r} is not read",
                where=f"zone {zone.id!r}",
                hint="use Full, Floyd or Dijkstra",
            )
        self.refuse_others(
            element,
            (
                *_ZONES,
                "cluster",
                "host",
                "router",
                "link",
                "route",
                "zoneRoute",
                "ASroute",
                "trace",
                "trace_connect",
            ),
        )
        for each in element:
            if each.tag == "link":
                self.add_link(each)
        for each in element:
            if each.tag == "host":
                self.add_host(zone, self.host(each))
            elif each.tag == "router":
                zone.routers.add(_required(each, "id"))
            elif each.tag in (*_ZONES, "cluster"):
                inner = self.zone(each)
                zone.zones[inner.id] = inner
        for each in element:
            if each.tag in ("route", "zoneRoute", "ASroute"):
                self.add_route(zone, each)
        return zone

    def cluster(self, element: Element) -> Zone:
        zone = Zone(_required(element, "id"), "Cluster")
        where = f"cluster {zone.id!r}"
        self.refuse_unread(element, _OF_CLUSTER, where)
        topology = element.get("topology", "FLAT")
        if topology != "FLAT":
            raise BadPlatform(f"topology {topology!r} is not read", where=where, hint="use a flat cluster")
        prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
        speed = _speed(element, where)
        cores = _whole(element.get("core", "1"), where)
        for number in _radical(_required(element, "radical"), where):
            self.add_host(zone, Host(f"{prefix}{number}{suffix}", speed, cores))
        sharing = element.get("sharing_policy") or _DUPLEX[0]
        if sharing.upper() not in _DUPLEX:  # each host of a site has a port in and one out
            raise BadPlatform(
                f"sharing_policy {shorten(sharing)} of a cluster is not read",
                where=where,
                hint=f"use {_DUPLEX[0]}",
            )
        private = _link(_required(element, "bw"), _required(element, "lat"), sharing, where)
        backbone = None
        if element.get("bb_bw"):
            policy = element.get("bb_sharing_policy")
            backbone = _link(_required(element, "bb_bw"), element.get("bb_lat", "0"), policy, where)
        router = element.get("router_id") or f"{prefix}{zone.id}_router{suffix}"
        zone.cluster = Cluster(private, backbone, router)
        return zone

    def add_host(self, zone: Zone, host: Host) -> None:
        if host.name in self.homes:
            raise BadPlatform(f"two hosts are named {shorten(host.name)}", hint="give each its own name")
        if len(self.homes) >= MAX_HOSTS:
            raise BadPlatform(f"more than {MAX_HOSTS} hosts", hint="split the platform")
        zone.hosts[host.name] = host
        self.homes[host.name] = zone.hosts

    def host(self, element: Element) -> Host:
        where = f"host {shorten(element.get('id', ''))}"
        self.refuse_unread(element, _OF_HOST, where)
        name = _required(element, "id")
        speed = _speed(element, where)
        cores = _whole(element.get("core", "1"), where)
        trace = None
        if element.get("speed_file"):
            file = sibling_path(self.path, element.get("speed_file", ""))
            trace = _trace(read_file(file, limit=16_000_000).decode("utf-8", "replace"), None, str(file))
        return _with_trace(Host(name, speed, cores, load=_load(element, where)), trace)

    def add_link(self, element: Element) -> None:
        where = f"link {shorten(element.get('id', ''))}"
        self.refuse_unread(element, _OF_LINK, where)
        policy = element.get("sharing_policy")
        latency = element.get("latency", "0")
        name = _required(element, "id")
        self.links[name] = _link(_required(element, "bandwidth"), latency, policy, where)
        if policy is not None and policy.upper() in _DUPLEX:
            self.halves |= dict.fromkeys((f"{name}_UP", f"{name}_DOWN"), self.links[name])

    def add_route(self, zone: Zone, element: Element) -> None:
        ends = _required(element, "src"), _required(element, "dst")
        where = f"route {shorten(ends[0])} -> {shorten(ends[1])}"
        self.refuse_others(element, ("link_ctn",))
        both = element.get("symmetrical", "YES").upper() != "NO"
        links = []
        for each in element:
            if each.tag == "link_ctn":
                links.append(self.link(_required(each, "id"), both, where))
        known = zone.hosts.keys() | zone.routers | zone.zones.keys()
        for end in ends:
            if end not in known:
                raise BadPlatform(
                    f"there is no {shorten(end)}", where=where, hint=f"name a part of {zone.id!r}"
                )
        leaves, enters = element.get("gw_src", ""), element.get("gw_dst", "")
        zone.routes[ends] = Route(tuple(links), leaves, enters)
        if both:
            zone.routes.setdefault((ends[1], ends[0]), Route(tuple(links[::-1]), enters, leaves))

    def link(self, name: str, both: bool, where: str) -> WireLink:
        """The link that a route names; one direction of a link that `both` ways take is shared by them."""
        found = self.links.get(name)
        if found is None and name in self.halves:
            found = replace(self.halves[name], shared=both)
        if found is None:
            raise BadPlatform(f"there is no link {shorten(name)}", where=where, hint="declare it before")
        return found

    def add_trace(self, element: Element) -> None:
        name = _required(element, "id")
        if element.get("file"):
            raise BadPlatform(f"trace {name!r} is in a file", hint="put its lines into the element")
        period = element.get("periodicity")
        seconds = None if period is None else _amount(period, _TIMES, "a time", f"trace {name!r}")
        self.traces[name] = _trace(element.text or "", seconds, f"trace {name!r}")

    def connect(self, element: Element) -> None:
        kind, name, host = (_required(element, key) for key in ("kind", "trace", "element"))
        where = f"trace_connect of {shorten(host)}"
        if kind not in ("SPEED", "POWER"):
            raise BadPlatform(f"traces of {kind} are not read", where=where, hint="only those of SPEED are")
        if name not in self.traces or host not in self.homes:
            raise BadPlatform(
                f"there is no trace {name!r} or no host {host!r}", where=where, hint="declare both"
            )
        hosts = self.homes[host]
        hosts[host] = _with_trace(hosts[host], self.traces[name])

    def refuse_others(self, element: Element, known: tuple[str, ...]) -> None:
        """Elements that are neither read nor without effect."""
        for each in element:
            if each.tag not in known and each.tag not in _IGNORED:
                raise BadPlatform(
                    f"<{each.tag}> is not read",
                    where=f"<{element.tag}> {shorten(element.get('id', ''))}",
                    hint="describe it by hosts, links and routes",
                )

    def refuse_unread(self, element: Element, known: tuple[str, ...], where: str) -> None:
        """Attributes and parts that are neither read nor without effect; empty texts are SimGrid's defaults."""
        self.refuse_others(element, ())
        for name, value in element.items():
            if value and name not in known:
                raise BadPlatform(f"{name} is not read", where=where, hint="leave it out")
        state = element.get("state", "ON")
        if state != "ON":
            raise BadPlatform(
                f"state {shorten(state)} is not read", where=where, hint="leave out what is not ON"
            )


def _required(element: Element, *names: str) -> str:
    for name in names:
        value = element.get(name)
        if value:
            return value
    raise BadPlatform(f"<{element.tag}> has no {names[0]}", hint=f'write {names[0]}="..."')


def _amount(text: str, units: dict[str, float], what: str, where: str) -> float:
    match = _AMOUNT.match(text)
    if match is None or match[2] not in units:
        raise BadPlatform(
            f"{shorten(text)} is not {what}", where=where, hint=f"write it as in {_EXAMPLES[what]}"
        )
    try:
        value = float(match[1]) * units[match[2]]
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e24:
        raise BadPlatform(f"{shorten(text)} is not {what}", where=where, hint="give a number of 0 or more")
    return value


_SPEEDS = {f"{p}{unit}": factor for p, factor in _PREFIX.items() for unit in ("f", "flops", "")}
_RATES = {f"{p}Bps": factor for p, factor in _PREFIX.items()}
_RATES |= {f"{p}bps": factor / 8 for p, factor in _PREFIX.items()} | {"": 1.0}


def _flops(text: str, where: str) -> float:
    """
    >>> _flops("2.5Gf", ""), _flops("1e9", "")
    (2500000000.0, 1000000000.0)
    """
    return _amount(text, _SPEEDS, "a speed", where)


def _speed(element: Element, where: str) -> float:
    """The speed that `pstate` chooses among those given."""
    speeds = [_flops(text, where) / FLOPS for text in _required(element, "speed", "power").split(",")]
    text = element.get("pstate") or "0"
    number = text.removesuffix(".0")  # SimGrid's default is written 0.0
    if not number.isdecimal() or len(number) > 9 or int(number) >= len(speeds):
        raise BadPlatform(
            f"pstate is {shorten(text)}", where=where, hint=f"give a whole number from 0 to {len(speeds) - 1}"
        )
    return speeds[int(number)]


def _load(element: Element, where: str) -> float:
    """What the constant availability of a file of version 3 leaves to others."""
    text = element.get("availability") or "1"
    share = _amount(text, {"": 1.0}, "a share", where)
    if not 0 < share <= 1:
        raise BadPlatform(
            f"availability is {shorten(text)}", where=where, hint="give a share above 0, at most 1"
        )
    return 1.0 - share


def _link(bandwidth: str, latency: str, policy: str | None, where: str) -> WireLink:
    """A link; in SimGrid, `SHARED` links share one bandwidth for both directions."""
    rate, delay = _amount(bandwidth, _RATES, "a bandwidth", where), _amount(latency, _TIMES, "a time", where)
    if rate <= 0:
        raise BadPlatform(f"bandwidth is {bandwidth}", where=where, hint="give a bandwidth above 0")
    sharing = (policy or "SHARED").upper()
    if sharing not in _POLICIES:
        raise BadPlatform(
            f"sharing_policy {shorten(policy)} is not read",
            where=where,
            hint=f"use one of {', '.join(_POLICIES)}",
        )
    return WireLink(rate, delay, sharing == "SHARED")


def _whole(text: str, where: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= 10**6:
        raise BadPlatform(f"core is {shorten(text)}", where=where, hint="give a whole number of 1 or more")
    return int(text)


def _radical(text: str, where: str) -> list[int]:
    """
    >>> _radical("0-2,7", "")
    [0, 1, 2, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(first) > 9 or len(last) > 9:
            raise BadPlatform(f"radical is {shorten(text)}", where=where, hint="write it as in 0-9,12")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            hint = f"write {last}-{first}"
            raise BadPlatform(f"radical {shorten(part)} counts downwards", where=where, hint=hint)
        if len(found) + len(numbers) > MAX_HOSTS:
            raise BadPlatform(f"more than {MAX_HOSTS} hosts", where=where, hint="split the platform")
        found += numbers
    return found


def _trace(text: str, period: float | None, where: str) -> Trace:
    """Lines of a time and a share of the speed; `PERIODICITY` or `LOOPAFTER` and a time may come first."""
    rows: list[tuple[float, float]] = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if len(words) == 2 and words[0] in ("PERIODICITY", "LOOPAFTER"):
            period = _amount(words[1], _TIMES, "a time", where)
        elif words:
            try:
                time, share = map(float, words)
            except ValueError:
                raise BadPlatform(
                    f"{shorten(line)} is not a time and a value", where=where, hint="as in `10 0.5`"
                ) from None
            rows.append((time, share))
    if not rows:
        raise BadPlatform("it has no values", where=where, hint="give lines such as `10 0.5`")
    if rows[0][0] > 0:
        rows.insert(0, (0.0, 1.0))
    # SimGrid waits `periodicity` after the last value before it begins again.
    length = rows[-1][0] + period if period and period > 0 else math.inf
    return Trace(np.array([t for t, _ in rows]), np.array([v for _, v in rows]), length=length)


def _with_trace(host: Host, trace: Trace | None) -> Host:
    if trace is None:
        return host
    if host.trace is None and host.load:
        raise BadPlatform(
            "availability is not read together with a trace",
            where=f"host {shorten(host.name)}",
            hint="leave one of them out",
        )
    values: dict[str, Any] = {"load": min(max(0.0, 1.0 - trace.mean), 0.999), "trace": trace}
    return Host(host.name, host.speed, host.cores, **values)


def _is_simgrid(head: bytes) -> bool:
    return head.startswith(b"<") and b"<platform" in head


FORMATS = (
    Format("simgrid", "platform", "SimGrid XML", suffixes=(".xml",), sniff=_is_simgrid, read=read_simgrid),
)
