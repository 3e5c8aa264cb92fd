"""Platforms as TOML: sites with hosts and links, or hosts with a bandwidth for every pair."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.platform_traces import TraceFiles, write_traces
from headrace.formats.shapes import shorten
from headrace.formats.tables import Table, as_number, as_quantity
from headrace.formats.toml_text import parse_toml
from headrace.model.behaviour import Behaviour
from headrace.model.errors import BadPlatform, HeadraceError
from headrace.model.graph import Floats
from headrace.model.needs import checked_resources
from headrace.model.platform import Contention, Host, Link, Pairs, Platform, Routing, Site

MAX_BYTES = 64_000_000
MAX_HOSTS = 100_000
MAX_SITES = 2_000
MAX_PAIRED_HOSTS = 2_000
"""A matrix over all pairs of more hosts would take too much memory."""

_TOML_LINE = re.compile(
    rb"""^[ \t]*(?:\[\[?[ \t]*[A-Za-z_]['"\w. -]*\]|(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*[.=])""", re.MULTILINE
)
_TOP = ["name", "contention", "routing", "isolated", "origin", "site", "host", "link", "pairs"]
_SITE = [
    "name", "host", "bandwidth", "latency", "uplink", "uplink_latency", "storage", "uplink_trace", "shared_folders",
]  # fmt: skip
_HOST = [
    "name",
    "count",
    "speed",
    "cores",
    "kinds",
    "load",
    "memory",
    "resources",
    "trace",
    "arch",
    "price",
    "watts",
]
_LINK = ["from", "to", "bandwidth", "latency", "shared", "oneway", "trace"]
_PAIRS = ["bandwidth", "latency"]


def read_platform(path: str | Path) -> Platform:
    """Read a platform: O(hosts), plus O(pairs) or O(sites squared) for its network.

    Hosts at the top level without [pairs] form one site, named after the platform, with a shared file system. The
    network is built as well, so that missing routes are reported here.
    """
    where = str(path)
    top = Table(parse_toml(read_file(path, limit=MAX_BYTES), where), where, error=BadPlatform)
    top.require_known(_TOP)
    name = top.text("name", Path(path).name.partition(".")[0] or "platform")
    traces = TraceFiles(path)
    sites = _sites(top, name, traces)
    pairs = (
        _pairs(top.with_values(top.table("pairs"), f"{where}: [pairs]"), sites)
        if "pairs" in top.values
        else None
    )
    links = tuple(_link(table, traces) for table in top.tables("link", "link", _link_label))
    try:
        platform = Platform(
            sites,
            links,
            pairs,
            cast(Contention, top.text("contention", "none")),
            top.text("origin", None),
            name,
            cast(Routing, top.text("routing", "quickest")),
            top.flag("isolated"),
        )
        _ = platform.network
    except HeadraceError as error:
        raise error.at(where) from None
    return platform


def write_platform(platform: Platform, path: str | Path) -> None:
    """Write a platform as TOML that `read_platform` reads back to an equal one.

    Traces are written first, to separate files beside it.
    """
    try:
        text = "\n".join(_lines(platform, write_traces(platform, path))) + "\n"
    except HeadraceError as error:
        raise error.at(str(path)) from None
    write_file(path, encode_text(text, str(path)))


def platform_text(platform: Platform) -> str:
    """A platform as TOML, without its traces: the values that planners assume instead of them stay."""
    sites = tuple(
        replace(site, uplink_trace=None, hosts=tuple(replace(host, trace=None) for host in site.hosts))
        for site in platform.sites
    )
    plain = replace(platform, sites=sites, links=tuple(replace(link, trace=None) for link in platform.links))
    return "\n".join(_lines(plain, {})) + "\n"


def _named(entry: dict[str, Any]) -> str:
    return shorten(entry["name"]) if "name" in entry else ""


def _link_label(entry: dict[str, Any]) -> str:
    return f"{shorten(entry['from'])} -> {shorten(entry['to'])}" if {"from", "to"} <= entry.keys() else ""


def _sites(top: Table, name: str, traces: TraceFiles) -> tuple[Site, ...]:
    tables = top.tables("site", "site", _named)
    loose = top.tables("host", "host", _named)
    if tables and loose:
        raise top.wrong("both [[site]] and top-level [[host]]", "put the hosts under [[site.host]]")
    if len(tables) > MAX_SITES:
        raise top.wrong(f"{len(tables)} sites, more than {MAX_SITES}", "merge nearby sites")
    hosts_of = [table.tables("host", "site.host", _named) for table in tables] or [loose]
    _check_counts(top, hosts_of)
    if not tables:
        hosts = tuple(host for table in loose for host in _hosts(table, traces))
        while any(host.name == name for host in hosts):
            name += "-site"
        return (Site(name, hosts),)
    return tuple(_site(table, hosts, traces) for table, hosts in zip(tables, hosts_of, strict=True))


def _check_counts(top: Table, hosts_of: list[list[Table]]) -> None:
    """Refuse excessive numbers of hosts before any is built."""
    limit = MAX_PAIRED_HOSTS if "pairs" in top.values else MAX_HOSTS
    total = 0
    for table in (table for hosts in hosts_of for table in hosts):
        count = table.whole("count", 1)
        total += count
        if total > limit:
            what = "hosts with [pairs]" if limit == MAX_PAIRED_HOSTS else "hosts"
            raise table.wrong(f"count = {count} makes {total} hosts", f"at most {limit} {what}")


def _site(table: Table, hosts: list[Table], traces: TraceFiles) -> Site:
    table.require_known(_SITE)
    uplink, latency = table.quantity("uplink", "rate", None), table.quantity("uplink_latency", "time", None)
    trace = traces.link(table, "uplink_trace", latency or 0.0)
    if trace is not None:
        uplink = trace.bandwidth.mean if uplink is None else uplink
        latency = trace.latency.mean if latency is None else latency
    return Site(
        _required_text(table, "name"),
        tuple(host for entry in hosts for host in _hosts(entry, traces)),
        bandwidth=table.quantity("bandwidth", "rate", None),
        latency=table.quantity("latency", "time", 0.0),
        uplink=uplink,
        uplink_latency=latency or 0.0,
        storage=table.quantity("storage", "size", math.inf),
        uplink_trace=trace,
        shared_folders=_folders(table),
    )


def _folders(table: Table) -> tuple[str, ...]:
    given = table.values.get("shared_folders", [])
    if not isinstance(given, list) or not all(
        isinstance(each, str) and each.startswith("/") for each in given
    ):
        raise table.wrong(f"shared_folders is {given!r}", 'give absolute paths, such as ["/data"]')
    return tuple(given)


def _hosts(table: Table, traces: TraceFiles) -> Iterator[Host]:
    table.require_known(_HOST)
    trace = traces.host(table)
    load = 0.0 if trace is None else max(0.0, 1.0 - trace.mean)
    name = _required_text(table, "name")
    kinds = {kind: as_number(speed, f"kinds.{kind}", table) for kind, speed in table.table("kinds").items()}
    arch = table.whole("arch", 0, least=0)
    resources = checked_resources(table.table("resources"), table.where, BadPlatform)
    names = [f"{name}{i + 1}" for i in range(table.whole("count", 1))] if "count" in table.values else [name]
    for each in names:
        yield Host(
            each,
            speed=table.number("speed", 1.0),
            cores=table.whole("cores", 1),
            kinds=kinds,
            load=table.number("load", load),
            memory=table.quantity("memory", "size", math.inf),
            trace=trace,
            arch=arch,
            price=table.number("price", 0.0),
            watts=table.number("watts", 0.0),
            resources=resources,
        )


def _link(table: Table, traces: TraceFiles) -> Link:
    table.require_known(_LINK)
    endless = table.values.get("bandwidth") == math.inf
    bandwidth = math.inf if endless else table.quantity("bandwidth", "rate", None)
    latency = table.quantity("latency", "time", None)
    trace = traces.link(table, "trace", latency or 0.0)
    if trace is not None:
        bandwidth = trace.bandwidth.mean if bandwidth is None else bandwidth
        latency = trace.latency.mean if latency is None else latency
    if bandwidth is None:
        raise table.wrong("bandwidth is missing", 'give a rate, such as bandwidth = "10 Mbit/s"')
    return Link(
        _required_text(table, "from"),
        _required_text(table, "to"),
        bandwidth,
        latency=latency or 0.0,
        shared=table.flag("shared"),
        oneway=table.flag("oneway"),
        trace=trace,
    )


def _pairs(table: Table, sites: tuple[Site, ...]) -> Pairs:
    table.require_known(_PAIRS)
    if "bandwidth" not in table.values:
        raise table.wrong("bandwidth is missing", "give one value, or one row of values per host")
    n = sum(len(site.hosts) for site in sites)
    bandwidth = _matrix(table, "bandwidth", "rate", n)
    latency = _matrix(table, "latency", "time", n) if "latency" in table.values else 0.0
    full = np.array(np.broadcast_to(bandwidth, (n, n)))
    np.fill_diagonal(full, 0.0)
    return Pairs(full, latency)


def _matrix(table: Table, key: str, what: str, n: int) -> Floats | float:
    """One value for all pairs, or n rows of n values; the diagonal is ignored."""
    value = table.values[key]
    if not isinstance(value, list):
        return as_quantity(value, what, key, table)
    if len(value) != n:
        raise table.wrong(f"{key} has {len(value)} rows for {n} hosts", "give one row per host")
    matrix = np.zeros((n, n))
    for i, row in enumerate(value):
        if not isinstance(row, list) or len(row) != n:
            got = len(row) if isinstance(row, list) else shorten(row)
            raise table.wrong(f"{key}[{i}] has {got} values for {n} hosts", "give one value per host")
        matrix[i] = [as_quantity(cell, what, f"{key}[{i}][{j}]", table) for j, cell in enumerate(row)]
    return matrix


def _required_text(table: Table, key: str) -> str:
    value = table.text(key, None)
    if value is None:
        raise table.wrong(f"{key} is missing", f'add {key} = "..."')
    return value


def _lines(platform: Platform, traces: dict[Behaviour, str]) -> Iterator[str]:
    yield f"name = {_quoted(platform.name)}"
    yield f"contention = {_quoted(platform.contention)}"
    if platform.routing != "quickest":
        yield f"routing = {_quoted(platform.routing)}"
    if platform.isolated:
        yield "isolated = true"
    if platform.origin is not None:
        yield f"origin = {_quoted(platform.origin)}"
    for site in platform.sites:
        yield from ("", "[[site]]", f"name = {_quoted(site.name)}")
        yield from _numbers(site, ("bandwidth", "latency", "uplink", "uplink_latency", "storage"), Site("x"))
        if site.shared_folders:
            yield f"shared_folders = [{', '.join(map(_quoted, site.shared_folders))}]"
        yield from _trace("uplink_trace", site.uplink_trace, traces)
        if site.uplink_trace is not None and not site.uplink_latency:
            yield "uplink_latency = 0.0"
        for host in site.hosts:
            yield from ("", "[[site.host]]", f"name = {_quoted(host.name)}")
            yield from _numbers(host, ("speed", "cores", "memory", "arch", "price", "watts"), Host("x"))
            if host.load or host.trace is not None:
                yield f"load = {_number(host.load, 'load')}"
            yield from _trace("trace", host.trace, traces)
            if host.kinds:
                kinds = ", ".join(f"{_quoted(kind)} = {_number(v, kind)}" for kind, v in host.kinds.items())
                yield f"kinds = {{ {kinds} }}"
            if host.resources:
                counts = ", ".join(f"{_quoted(name)} = {count}" for name, count in host.resources.items())
                yield f"resources = {{ {counts} }}"
    for link in platform.links:
        yield from ("", "[[link]]", f"from = {_quoted(link.source)}", f"to = {_quoted(link.target)}")
        yield f"bandwidth = {'inf' if link.bandwidth == math.inf else _number(link.bandwidth, 'bandwidth')}"
        yield from _numbers(link, ("latency", "shared", "oneway"), Link("x", "y", 1.0))
        yield from _trace("trace", link.trace, traces)
        if link.trace is not None and not link.latency:
            yield "latency = 0.0"
    if platform.pairs is not None:
        yield from ("", "[pairs]")
        bandwidth = platform.pairs.bandwidth.astype(np.float64)
        np.fill_diagonal(bandwidth, 0.0)  # may hold anything, even nan
        yield f"bandwidth = {_written(bandwidth, 'bandwidth')}"
        yield f"latency = {_written(np.asarray(platform.pairs.latency, np.float64), 'latency')}"


def _trace(key: str, trace: Behaviour | None, names: dict[Behaviour, str]) -> Iterator[str]:
    if trace is not None:
        yield f"{key} = {_quoted(names[trace])}"


def _numbers(value: object, keys: tuple[str, ...], plain: object) -> Iterator[str]:
    """The attributes that differ from their defaults."""
    for key in keys:
        number = getattr(value, key)
        if number != getattr(plain, key):
            yield f"{key} = {_number(number, key)}"


def _number(value: float, key: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not math.isfinite(value):
        raise BadPlatform(f"{key} is {value}", hint="a platform file can only hold finite numbers")
    return repr(value if isinstance(value, int) else float(value))


def _written(values: Floats, key: str) -> str:
    if values.ndim == 0:
        return _number(float(values), key)
    return "[" + ", ".join(_written(row, key) for row in values) + "]"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes, and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_toml(head: bytes) -> bool:
    """Any TOML: more specific formats are asked first."""
    if head.startswith(b"{") or (head.startswith(b"[") and not _TOML_LINE.match(head)):
        return False  # JSON
    return _TOML_LINE.search(head) is not None or (head.startswith(b"#") and b"\0" not in head)


FORMATS = (
    Format(
        "toml",
        "platform",
        "a platform as TOML",
        suffixes=(".toml",),
        sniff=_is_toml,
        read=read_platform,
        write=write_platform,
    ),
)
