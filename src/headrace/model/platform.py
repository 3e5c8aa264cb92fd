"""A platform: sites with hosts, storage and links, and how data moves between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headrace.model.arguments import as_float, checked_path, checked_workers, short
from headrace.model.deferred import deferred
from headrace.model.errors import BadPlatform, HeadraceError
from headrace.model.graph import Floats, Graph
from headrace.model.needs import checked_resources
from headrace.model.network import Network, build_network
from headrace.model.trace import LinkTrace, Trace
from headrace.model.units import plural, quantity

if TYPE_CHECKING:
    from pathlib import Path

Contention = Literal["none", "fifo", "fair"]
_LOOPBACK_BANDWIDTH = 1e9
"""Approximate rate of data exchange between local workers: copying and pickling over loopback."""
_LOOPBACK_LATENCY = 1e-3
"""Approximate overhead of requesting an item from another worker, whatever its size."""
_MOST_CORES = 2**31 - 1
"""Arrays count the cores of a host in 32 bits."""
Routing = Literal["quickest", "links"]
ROUTINGS: tuple[Routing, ...] = ("quickest", "links")
CONTENTIONS: tuple[Contention, ...] = ("none", "fifo", "fair")


@dataclass(frozen=True, slots=True)
class Host:
    """A machine: a task with work w takes w / (speed * (1 - load)) seconds on one of its cores."""

    name: str
    speed: float = 1.0
    cores: int = 1
    kinds: Mapping[str, float] = field(default_factory=dict)
    """Speed for tasks of these kinds, overriding `speed`; combined with architecture-dependent run times."""
    load: float = 0.0
    """Share of each core used by others; with a trace, the value that planners assume."""
    memory: float = math.inf
    """Bytes that tasks can use at the same time; inf: any amount."""
    trace: Trace | None = None
    """Available share of each core over time; simulations use it instead of 1 - load."""
    arch: int = 0
    """Its architecture: the index of the run time that applies, for tasks with several."""
    price: float = 0.0
    """Price of one core for an hour, in any currency."""
    watts: float = 0.0
    """Power that one busy core draws."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """How many it has of what tasks can need by name, such as GPUs; none of what is not listed."""

    def __post_init__(self) -> None:
        _read_units(self, f"host {self.name!r}", memory="size")
        if self.resources:
            resources = checked_resources(self.resources, f"host {self.name!r}", BadPlatform)
            object.__setattr__(self, "resources", resources)
        _require_numbers(self, f"host {self.name!r}", "speed", "load", "cores", "arch", "price", "watts")
        _require_speeds(self.kinds, f"host {self.name!r}")
        _require_trace(self.trace, f"host {self.name!r}")

    def speed_for(self, kind: str) -> float:
        """
        >>> Host("a", speed=2.0, kinds={"fft": 6.0}, load=0.5).speed_for("fft")
        3.0
        """
        return self.kinds.get(kind, self.speed) * (1.0 - self.load)


@dataclass(frozen=True, slots=True)
class Site:
    """A group of nearby hosts; a site without hosts only holds data.

    With a `bandwidth`, every host stores its own data and transfers it through its own full-duplex port.
    Without one, the hosts share a file system: data on one of them is available to all.
    """

    name: str
    hosts: tuple[Host, ...] = ()
    bandwidth: float | None = None
    latency: float = 0.0
    uplink: float | None = None
    """Bandwidth of the site's link to the hub, shared by both directions."""
    uplink_latency: float = 0.0
    storage: float = math.inf
    uplink_trace: LinkTrace | None = None
    """The uplink over time; `uplink` and `uplink_latency` are then the values that planners assume."""
    shared_folders: tuple[str, ...] = ()
    """Absolute paths of folders that its hosts and the client of a run see alike: inputs are read there in place."""

    def __post_init__(self) -> None:
        where = f"site {self.name!r}"
        object.__setattr__(self, "hosts", _all_of(Host, self.hosts, where))
        _read_units(
            self,
            where,
            bandwidth="rate",
            latency="time",
            uplink="rate",
            uplink_latency="time",
            storage="size",
        )


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two sites, in both directions unless `oneway`.

    `shared`: both directions share one resource; otherwise they are independent.
    """

    source: str
    target: str
    bandwidth: float
    latency: float = 0.0
    shared: bool = False
    oneway: bool = False
    trace: LinkTrace | None = None
    """The link over time; `bandwidth` and `latency` are then the values that planners assume."""

    def __post_init__(self) -> None:
        _read_units(self, f"link {self.source!r} -> {self.target!r}", bandwidth="rate", latency="time")


@dataclass(frozen=True, eq=False)
class Pairs:
    """A dedicated link between each pair of hosts: bandwidth[i, j] in bytes/s."""

    bandwidth: Floats
    latency: Floats | float = 0.0


@dataclass(frozen=True, eq=False)
class Platform:
    """Where programs run: sites with hosts, and the network between them.

    >>> lab = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> [h.name for h in lab.hosts], lab.contention
    (['h0', 'h1'], 'none')
    >>> lab.network.seconds(0, 1, 5e5)
    0.5
    """

    sites: tuple[Site, ...]
    links: tuple[Link, ...] = ()
    pairs: Pairs | None = None
    contention: Contention = "none"
    origin: str | None = None
    """The host or site that holds external inputs and receives results; None: available everywhere."""
    name: str = "platform"
    routing: Routing = "quickest"
    """`quickest`: a transfer takes the quickest route, which may pass through sites. `links`: a transfer only goes
    to a neighbouring site; a longer route needs several transfers, with a copy at each site in between."""
    isolated: bool = False
    """Whether sites may be without any connection to others; without it they are taken for a mistake."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", _all_of(Site, self.sites, self.name))
        object.__setattr__(self, "links", _all_of(Link, self.links, self.name))
        _validate(self)

    def __repr__(self) -> str:
        hosts, sites = plural(len(self.hosts), "host"), plural(len(self.sites), "site")
        return f"<Platform {self.name!r}: {hosts} at {sites}, contention {self.contention}>"

    def _repr_html_(self) -> str:
        html: str = deferred("platform_html")(self)
        return html

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, site by site."""
        return tuple(host for site in self.sites for host in site.hosts)

    @cached_property
    def network(self) -> Network:
        """The array form of places, links and routes, built once."""
        return build_network(self)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each site or host name; for a site, that of its first host."""
        network = self.network
        places = {name: place for place, name in enumerate(network.place_names)}
        for host, place in zip(self.hosts, network.host_place.tolist(), strict=True):
            places.setdefault(host.name, place)
        for site in self.sites:
            if site.hosts:
                places.setdefault(site.name, places[site.hosts[0].name])
        return places

    def speeds(self, kinds: Sequence[str]) -> Floats:
        """Speed of each host for each kind of task, net of load: [kinds, hosts]."""
        speeds = np.tile([host.speed * (1.0 - host.load) for host in self.hosts], (len(kinds), 1))
        for j, host in enumerate(self.hosts):
            for i, kind in enumerate(kinds) if host.kinds else ():
                speeds[i, j] = host.speed_for(kind)
        return speeds

    def rates(self, graph: Graph) -> Floats:
        """Speed of each host for each speed class of a program's tasks, net of load: [classes, hosts]."""
        rates = self.speeds(graph.kinds)[graph.class_kind]
        if graph.arch_speeds.shape[1]:
            rates *= self._arch_factors(graph.arch_speeds)
        return rates

    def _arch_factors(self, arch_speeds: Floats) -> Floats:
        """[classes, hosts] speed factors; 1 for classes whose run times do not depend on the architecture."""
        arch = np.array([host.arch for host in self.hosts])
        missing = max(0, int(arch.max()) + 1 - arch_speeds.shape[1])
        known = np.pad(arch_speeds, ((0, 0), (0, missing)), constant_values=np.nan)
        known[np.isnan(known).all(axis=1)] = 1.0
        factors: Floats = known[:, arch]
        if np.isnan(factors).any():
            row, host = np.argwhere(np.isnan(factors))[0]
            raise BadPlatform(
                f"there is a host of architecture {arch[host]}, but the program has run times only for 0 to "
                f"{np.count_nonzero(~np.isnan(known[row])) - 1}",
                hint="give a run time for each architecture of the platform",
            )
        return factors

    def without(self, lost: Iterable[str]) -> Platform:
        """The same platform after these hosts have left.

        >>> Platform.pairwise([2.0, 1.0, 1.0], bandwidth=1e6).without(["h1"]).hosts[1].name
        'h2'
        """
        gone = set(lost)
        keep = [i for i, host in enumerate(self.hosts) if host.name not in gone]
        sites = tuple(replace(s, hosts=tuple(h for h in s.hosts if h.name not in gone)) for s in self.sites)
        # Where hosts had disks of their own, these have left with the last one.
        emptied = {
            s.name
            for s, left in zip(self.sites, sites, strict=True)
            if s.bandwidth is not None and s.hosts and not left.hosts
        }
        sites = tuple(replace(s, storage=0.0) if s.name in emptied else s for s in sites)
        pairs = self.pairs
        if pairs is not None:
            latency = pairs.latency
            if isinstance(latency, np.ndarray):
                latency = latency[np.ix_(keep, keep)]
            pairs = Pairs(pairs.bandwidth[np.ix_(keep, keep)], latency)
        origin = None if self.origin in gone | emptied else self.origin
        return replace(self, sites=sites, pairs=pairs, origin=origin)

    @staticmethod
    def pairwise(
        speeds: Iterable[float],
        bandwidth: Any,
        *,
        latency: float | str = 0.0,
        contention: Contention = "none",
        cores: int = 1,
        origin: str | None = None,
    ) -> Platform:
        """The classic model: hosts h0, h1, ... and a dedicated link between each pair.

        `bandwidth` (bytes/s) is one number for all pairs, or a matrix; `latency` is in seconds. Either may be a text
        with a unit, such as "1 Gbit/s".
        """
        try:
            hosts = tuple(Host(f"h{i}", float(s), cores) for i, s in enumerate(speeds))
        except (TypeError, ValueError, OverflowError):
            raise BadPlatform(
                f"speeds is {short(speeds)}", where="pairwise", hint="give a list of numbers"
            ) from None
        latency = _quantity(latency, "time", "latency", "pairwise")
        pairs = Pairs(_pair_matrix(bandwidth, len(hosts)), latency)
        return Platform((Site("all", hosts),), pairs=pairs, contention=contention, origin=origin)

    @staticmethod
    def read(path: str | Path) -> Platform:
        """Read a platform file: TOML, or a grid description at time 0."""
        platform: Platform = deferred("load_platform")(checked_path(path))
        return platform

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write the platform to a file, in the format that its suffix selects: TOML, INI or a grid description (.pst).

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Platform.pairwise([2.0, 1.0], bandwidth="1 MB/s").write(f"{folder}/lab.toml")
        ...     [host.speed for host in Platform.read(f"{folder}/lab.toml").hosts]
        [2.0, 1.0]
        """
        deferred("write_platform_as")(self, checked_path(path), format)

    @staticmethod
    def probe(client: Any, name: str = "cluster", *, say: Callable[[str], None] | None = None) -> Platform:
        """Measure a Dask cluster: a CPU benchmark on every worker, and bandwidth and latency of sampled pairs.

        `client` is a connected `distributed.Client`; Headrace must be installed on its workers. Every machine becomes
        a site, linked to a switch. It takes a few seconds, at most about 12; after the first, progress is given to
        `say`, or shown on a terminal.
        """
        platform: Platform = deferred("probe_platform")(client, name, say=say)
        return platform

    @staticmethod
    def local(
        workers: int | None = None,
        *,
        speeds: Sequence[float] | None = None,
        cores: int = 1,
        memory: float | str = math.inf,
        resources: Mapping[str, int] | None = None,
    ) -> Platform:
        """This machine with one worker per core: w0, w1, ..., or w0-4x, w1-2x, ... with speeds.

        Every worker has its own memory and resources, as much as is given here, and exchanges data with the others over
        loopback.

        >>> [h.name for h in Platform.local(speeds=[4, 1]).hosts]
        ['w0-4x', 'w1-1x']
        """
        import os

        if speeds is None:
            number = checked_workers(workers) or os.cpu_count() or 1
            hosts = tuple(Host(f"w{i}", cores=cores) for i in range(number))
        else:
            given: Any = speeds
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise BadPlatform(
                    f"speeds is {speeds!r}", where="local", hint="give a list, such as [4, 2, 1, 1]"
                )
            for speed in speeds:
                _require_number(speed, "a speed", "local")
            hosts = tuple(Host(f"w{i}-{s:g}x", float(s), cores) for i, s in enumerate(speeds))
        room: dict[str, Any] = {"memory": memory, "resources": resources or {}}
        hosts = tuple(replace(host, **room) for host in hosts)
        site = Site("this-machine", hosts, bandwidth=_LOOPBACK_BANDWIDTH, latency=_LOOPBACK_LATENCY)
        return Platform((site,), name="local")


def _pair_matrix(bandwidth: Any, hosts: int) -> Floats:
    """The bandwidth of each pair of hosts, from one for all of them or from a matrix of just that shape."""
    try:
        if np.ndim(bandwidth) == 0:
            return np.full((hosts, hosts), _quantity(bandwidth, "rate", "bandwidth", "pairwise"))
        matrix = np.array(bandwidth, np.float64)
        if matrix.shape == (hosts, hosts):
            return matrix
    except (TypeError, ValueError, OverflowError):
        pass
    raise BadPlatform(
        f"bandwidth is {short(bandwidth)} for {plural(hosts, 'host')}",
        where="pairwise",
        hint='give a number of bytes/s, a text such as "1 Gbit/s", '
        f"or a matrix of {hosts} rows of {plural(hosts, 'number')}",
    )


def _quantity(value: Any, kind: str, what: str, where: str) -> float:
    """A number, or a text with a unit; other values and unknown units are a `BadPlatform`."""
    if not isinstance(value, str):
        _require_number(value, what, where)
        return float(value)
    try:
        return quantity(value, kind)
    except HeadraceError as error:
        raise BadPlatform(f"{what}: {error.problem}", where=where, hint=error.hint) from None


def _read_units(record: Any, where: str, **kinds: str) -> None:
    """Replace texts with units by numbers, in place."""
    for what, kind in kinds.items():
        value = getattr(record, what)
        if value is None and record.__dataclass_fields__[what].default is not None:
            raise BadPlatform(f"{what} is None", where=where, hint=f"give a {kind}, or leave it out")
        if value is not None and type(value) is not float:
            object.__setattr__(record, what, _quantity(value, kind, what, where))


def _require_numbers(record: Any, where: str, *fields: str) -> None:
    for what in fields:
        _require_number(getattr(record, what), what, where)


def _require_number(value: Any, what: str, where: str) -> None:
    if as_float(value) is None:
        raise BadPlatform(f"{what} is {short(value)}", where=where, hint="give a number")


def _require_speeds(kinds: object, where: str) -> None:
    if not isinstance(kinds, Mapping):
        hint = 'give a speed for each kind, such as {"fft": 3.0}'
        raise BadPlatform(f"kinds is {short(kinds)}", where=where, hint=hint)
    for kind, speed in kinds.items():
        _require_number(speed, f"speed for {kind!r}", where)


def _require_trace(trace: object, where: str) -> None:
    if trace is not None and not isinstance(trace, Trace):
        hint = "give a Trace, or name the file of a trace in a platform file"
        raise BadPlatform(f"trace is {short(trace)}", where=where, hint=hint)


def _all_of(kind: type, given: Any, where: str) -> tuple[Any, ...]:
    """A tuple of records of one kind, from a list or tuple."""
    name = kind.__name__
    if isinstance(given, str | kind) or not isinstance(given, Iterable):
        raise BadPlatform(
            f"expected a list of {name}, not {given!r}", where=where, hint=f"write [{name}(...), ...]"
        )
    found = tuple(given)
    for each in found:
        if not isinstance(each, kind):
            raise BadPlatform(f"{each!r} is not a {name}", where=where, hint=f"write {name}(...)")
    return found


def _validate(platform: Platform) -> None:
    """Reject invalid values, naming the value and its location."""
    _validate_whole(platform)
    for site in platform.sites:
        _validate_site(platform, site)
        for host in site.hosts:
            _validate_host(platform, host)
    sites = {site.name for site in platform.sites}
    for link in platform.links:
        _validate_link(platform, link, sites)
    if platform.pairs is not None:
        _validate_pairs(platform, platform.pairs)


def _wrong(platform: Platform, problem: str, where: str, hint: str) -> BadPlatform:
    return BadPlatform(problem, where=f"{platform.name}: {where}", hint=hint)


def _validate_whole(platform: Platform) -> None:
    """Settings of the platform, names, and the origin."""

    def wrong(problem: str, hint: str) -> BadPlatform:
        return _wrong(platform, problem, "top level", hint)

    if platform.contention not in CONTENTIONS:
        raise wrong(f"contention is {platform.contention!r}", "use none, fifo or fair")
    if platform.routing not in ROUTINGS:
        raise wrong(f"routing is {platform.routing!r}", "use quickest or links")
    if not any(site.hosts for site in platform.sites):
        raise wrong("there is no host", "add a [[site]] with a [[site.host]]")
    names = Counter(s.name for s in platform.sites)
    names.update(h.name for s in platform.sites for h in s.hosts)
    for name, count in names.items():
        if not name or not isinstance(name, str):
            raise wrong(f"a site or host is named {short(name)}", 'give a text, such as "node1"')
        if count > 1:
            raise wrong(f"the name {name!r} is used {count} times", "give each site and host its own name")
    if platform.origin is not None and platform.origin not in names:
        raise wrong(
            f"origin {platform.origin!r} is neither a host nor a site",
            f'name one, or add [[site]] name = "{platform.origin}" (a site without hosts only holds data)',
        )


def _validate_site(platform: Platform, site: Site) -> None:
    where = f"site {site.name!r}"
    for what, value in (("bandwidth", site.bandwidth), ("uplink", site.uplink)):
        if value is not None and not value > 0:
            hint = 'give a rate above 0, such as "100 Mbit/s"'
            raise _wrong(platform, f"{what} is {value}", where, hint)
    for what, value in (
        ("latency", site.latency),
        ("uplink_latency", site.uplink_latency),
        ("storage", site.storage),
    ):
        if not value >= 0:
            raise _wrong(platform, f"{what} is {value}", where, "give a value of 0 or more")


def _validate_host(platform: Platform, host: Host) -> None:
    def wrong(problem: str, hint: str) -> BadPlatform:
        return _wrong(platform, problem, f"host {host.name!r}", hint)

    for kind, speed in (("speed", host.speed), *host.kinds.items()):
        if not (math.isfinite(speed) and speed > 0):
            raise wrong(f"speed is {speed} ({kind})", "give a speed above 0")
    if not 0 <= host.load < 1:
        raise wrong(f"load is {host.load}", "give a share from 0 up to, not including, 1")
    if not 1 <= host.cores <= _MOST_CORES or host.cores % 1:
        raise wrong(f"cores is {short(host.cores)}", f"give a whole number from 1 to {_MOST_CORES:,}")
    if host.arch < 0:
        raise wrong(f"arch is {host.arch}", "give 0 or more")
    for what, value in (("price", host.price), ("watts", host.watts)):
        if not (math.isfinite(value) and value >= 0):
            raise wrong(f"{what} is {value}", "give a finite number of 0 or more")
    if not host.memory >= 0:
        raise wrong(f"memory is {host.memory}", "give a number of bytes, 0 or more")
    if host.trace is not None and host.trace.peak > 1.0:
        raise wrong(f"its trace has {host.trace.peak}", "give shares of a core, up to 1")


def _validate_link(platform: Platform, link: Link, sites: AbstractSet[str]) -> None:
    def wrong(problem: str, hint: str) -> BadPlatform:
        return _wrong(platform, problem, f"link {link.source!r} -> {link.target!r}", hint)

    for end in (link.source, link.target):
        if end not in sites:
            raise wrong(f"there is no site {end!r}", f"use one of {', '.join(sorted(sites)[:8])}")
    if link.source == link.target:
        raise wrong("it connects a site to itself", "use the site's bandwidth instead")
    if not (link.bandwidth > 0 and link.latency >= 0):
        raise wrong(f"bandwidth is {link.bandwidth}, latency {link.latency}", "give a bandwidth above 0")


def _validate_pairs(platform: Platform, pairs: Pairs) -> None:
    def wrong(problem: str, hint: str) -> BadPlatform:
        return _wrong(platform, problem, "[pairs]", hint)

    if platform.links or any(s.uplink is not None or s.bandwidth is not None for s in platform.sites):
        raise wrong(
            "a pairwise network cannot be combined with site bandwidths, uplinks or links",
            "describe the network in one way",
        )
    n = sum(len(s.hosts) for s in platform.sites)
    if pairs.bandwidth.shape != (n, n):
        raise wrong(
            f"bandwidth is {pairs.bandwidth.shape} for {n} hosts", "give one row and one column per host"
        )
    off = ~np.eye(n, dtype=bool)
    if not np.all(pairs.bandwidth[off] > 0):
        i, j = np.argwhere((~(pairs.bandwidth > 0)) & off)[0]
        raise wrong(
            f"bandwidth from host {i} to host {j} is {pairs.bandwidth[i, j]}",
            "give a bandwidth above 0 for each pair of hosts",
        )
    if not np.all(np.asarray(pairs.latency) >= 0):
        raise wrong("a latency is negative", "give 0 or more")
