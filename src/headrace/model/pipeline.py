"""A pipeline: filters connected by streams, with each filter's measurements from a trial run.

Volumes are in megabytes (10⁶ bytes) and rates in megabytes per second, as in the weights of `Knobs`;
bandwidths of platforms and segments are in bytes per second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

from headrace.model.arguments import checked_path, short
from headrace.model.errors import BadProgram, UsageError
from headrace.model.platform import Host, Platform
from headrace.model.units import plural

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1e6
READER_KIND = "reader"
"""Hosts may have a speed for this kind: how fast they read, limited by CPU and disk."""
RouteChoice = Literal["any", "quickest"]
SHARE_TOLERANCE = 1e-6
"""Tolerance for the sum of a source's shares, which are then normalised to 1."""


@dataclass(frozen=True, slots=True)
class FilterProfile:
    """A filter, with the measurements of one copy on a dedicated host in the trial run."""

    name: str
    seconds: float
    """T: time to process the whole input."""
    volume: float = 0.0
    """V: megabytes produced on each of its streams, unless the stream overrides it."""
    power: float = 1.0
    """The power of the host it ran on."""
    kind: str = ""
    """Kind for host speeds; defaults to the filter's name, or `reader` for the reader."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The data that filter `source` sends to filter `target`."""

    source: str
    target: str
    volume: float | None = None
    """Megabytes in the trial run; None: the volume of the source filter."""


@dataclass(frozen=True, slots=True)
class Source:
    """One option for reading the input: the hosts that read, each with its share of the input."""

    name: str
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Knobs:
    """Tunable weights of LPSched."""

    host_cost: float = 0.01
    """W_X: cost of using a host, as the MB/s over all streams that it must add to be worthwhile."""
    cross: float = 1.0
    """W_C: weight of flows between clusters; flows within a cluster have weight 1."""
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """W_C for individual pairs of clusters (or within one), overriding the above."""
    spare: float = 0.0
    """W_F: spare computing power, as a share of what the reader's rate requires."""
    least: float = 0.0
    """W_MIN: minimum utilisation of a host in use."""
    least_of: Mapping[str, float] = field(default_factory=dict)
    """W_MIN for individual filters."""

    def weight(self, source: str, target: str) -> float:
        """
        >>> Knobs(cross=0.5, weights={("a", "b"): 0.9}).weight("b", "a")
        0.5
        """
        plain = 1.0 if source == target else self.cross
        return self.weights.get((source, target), plain)

    def least_share(self, name: str) -> float:
        return self.least_of.get(name, self.least)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Pipeline:
    """Filters and streams: an acyclic graph with one reader, the filter without incoming streams.

    Without `streams` the filters form a chain in the order given.

    >>> averager = Pipeline("averager", [
    ...     FilterProfile("read", seconds=53.2, volume=32.0),
    ...     FilterProfile("add", seconds=106.4, volume=3.2),
    ...     FilterProfile("average", seconds=31.9),
    ... ])
    >>> averager.reader.name, [(s.source, s.target) for s in averager.streams]
    ('read', [('read', 'add'), ('add', 'average')])
    >>> averager.volumes, averager.inflow("average")
    ((32.0, 3.2), 3.2)
    """

    name: str
    filters: tuple[FilterProfile, ...]
    streams: tuple[Stream, ...] = ()
    sources: tuple[Source, ...] = ()
    knobs: Knobs = field(default_factory=Knobs)

    def __init__(
        self,
        name: str,
        filters: Iterable[FilterProfile],
        streams: Iterable[Stream] | None = None,
        sources: Iterable[Source] = (),
        knobs: Knobs | None = None,
    ) -> None:
        filters = _all_of(FilterProfile, filters, "filters")
        if streams is None:
            streams = [Stream(a.name, b.name) for a, b in pairwise(filters)]
        for key, value in (
            ("name", name),
            ("filters", filters),
            ("streams", _all_of(Stream, streams, "streams")),
            ("sources", _all_of(Source, sources, "sources")),
            ("knobs", knobs or Knobs()),
        ):
            object.__setattr__(self, key, value)
        _validate(self)

    def __repr__(self) -> str:
        found = f"{plural(len(self.filters), 'filter')}, {plural(len(self.streams), 'stream')}"
        return f"<Pipeline {self.name!r}: {found}>"

    @cached_property
    def index(self) -> dict[str, int]:
        return {f.name: k for k, f in enumerate(self.filters)}

    @cached_property
    def reader(self) -> FilterProfile:
        fed = {s.target for s in self.streams}
        return next(f for f in self.filters if f.name not in fed)

    @cached_property
    def order(self) -> tuple[FilterProfile, ...]:
        """The filters in topological order, starting with the reader; ties in the order given."""
        left = {f.name: sum(s.target == f.name for s in self.streams) for f in self.filters}
        order: list[FilterProfile] = []
        while len(order) < len(self.filters):
            ready = next((f for f in self.filters if left.get(f.name) == 0), None)
            if ready is None:
                raise self._wrong(
                    f"the filters {', '.join(sorted(left))} form a cycle",
                    "remove a stream that closes the cycle",
                )
            order.append(ready)
            del left[ready.name]
            for stream in self.streams:
                if stream.source == ready.name:
                    left[stream.target] -= 1
        return tuple(order)

    @cached_property
    def volumes(self) -> tuple[float, ...]:
        """Megabytes of each stream in the trial run."""
        return tuple(
            self.filters[self.index[s.source]].volume if s.volume is None else s.volume for s in self.streams
        )

    def inflow(self, name: str) -> float:
        """Megabytes a filter received in the trial run; for the reader, megabytes read."""
        if name == self.reader.name:
            return self.reader.volume
        return sum(v for s, v in zip(self.streams, self.volumes, strict=True) if s.target == name)

    def kind(self, name: str) -> str:
        """The kind that selects the speed of hosts for this filter."""
        profile = self.filters[self.index[name]]
        return profile.kind or (READER_KIND if name == self.reader.name else name)

    def with_sources(self, sources: Iterable[Source]) -> Pipeline:
        """The same pipeline with other sources."""
        return Pipeline(self.name, self.filters, self.streams, sources, self.knobs)

    @staticmethod
    def read(path: str | Path) -> Pipeline:
        """Read a pipeline file (INI or TOML)."""
        from headrace.formats.loading import load_pipeline

        return load_pipeline(checked_path(path))

    def _wrong(self, problem: str, hint: str, where: str = "") -> BadProgram:
        return BadProgram(problem, where=f"pipeline {self.name!r}{where}", hint=hint)


@dataclass(frozen=True, eq=False)
class PipelineProblem:
    """A pipeline to be deployed on a platform: sites are clusters, and each host of a site has its own port.

    Latencies and the platform's `contention` are ignored: flows are steady, and links limit their sum.
    """

    pipeline: Pipeline
    platform: Platform
    knobs: Knobs = field(default_factory=Knobs)
    several_per_host: bool = False
    """Filters may share a host, each with a share of its cores; otherwise a host runs one filter on all cores."""
    segments: Mapping[str, float] = field(default_factory=dict)
    """Sites whose hosts share one medium, with its total bandwidth in bytes/s."""
    routes: RouteChoice = "any"
    """`any`: flows between two sites may be divided among routes; `quickest`: they take that of the platform."""

    def __post_init__(self) -> None:
        _validate_problem(self)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The source options, with shares normalised to 1; by default the platform's origin reads."""
        given = self.pipeline.sources
        if not given:
            assert self.platform.origin is not None
            given = (Source(self.platform.origin, {self.platform.origin: 1.0}),)
        return tuple(
            replace(s, shares={h: v / sum(s.shares.values()) for h, v in s.shares.items() if v > 0})
            for s in given
        )

    @cached_property
    def hosts(self) -> dict[str, Host]:
        return {h.name: h for h in self.platform.hosts}

    @cached_property
    def cluster(self) -> dict[str, str]:
        """The site of each host."""
        return {h.name: s.name for s in self.platform.sites for h in s.hosts}

    def power(self, filter_name: str, host: str) -> float:
        """Power of one core of a host for a filter, net of load."""
        return self.hosts[host].speed_for(self.pipeline.kind(filter_name))

    def capacity(self, filter_name: str, host: str) -> float:
        """Rate of one core of a host, in MB/s of the data read by the reader; inf for no work.

        Filters are compared by this rate: the input rate of a filter itself is this times its `inflow`,
        divided by the reader's volume.
        """
        profile = self.pipeline.filters[self.pipeline.index[filter_name]]
        if profile.seconds == 0:
            return math.inf
        read = self.pipeline.reader.volume
        return read / profile.seconds * self.power(filter_name, host) / profile.power

    def readable(self, source: Source) -> float:
        """MB/s that an option can deliver: readers finish together, so the slowest relative to its share decides."""
        reader = self.pipeline.reader.name
        return min(self.capacity(reader, host) / share for host, share in source.shares.items())


def _validate(pipeline: Pipeline) -> None:
    wrong = pipeline._wrong
    if len(pipeline.filters) < 2:
        raise wrong(f"it has {len(pipeline.filters)} filters", "give a reader and at least one more filter")
    for name, count in Counter(f.name for f in pipeline.filters).items():
        if count > 1:
            raise wrong(f"{count} filters are called {name!r}", "give each filter its own name")
    for f in pipeline.filters:
        where = f", filter {f.name!r}"
        if not (math.isfinite(f.seconds) and f.seconds >= 0 and math.isfinite(f.volume) and f.volume >= 0):
            raise wrong(f"time is {f.seconds}, volume {f.volume}", "give 0 or more", where)
        if not (math.isfinite(f.power) and f.power > 0):
            raise wrong(f"power is {f.power}", "give the power of the trial host, above 0", where)
    known = ", ".join(f.name for f in pipeline.filters)
    for s in pipeline.streams:
        where = f", stream {s.source!r} -> {s.target!r}"
        for end in (s.source, s.target):
            if end not in pipeline.index:
                raise wrong(f"there is no filter {end!r}", f"use one of {known}", where)
        if s.volume is not None and not (math.isfinite(s.volume) and s.volume >= 0):
            raise wrong(f"volume is {s.volume}", "give 0 or more", where)
    for ends, count in Counter((s.source, s.target) for s in pipeline.streams).items():
        if count > 1:
            raise wrong(f"{count} streams connect {ends[0]!r} to {ends[1]!r}", "merge them into one")
    for name in pipeline.knobs.least_of:
        if name not in pipeline.index:
            raise wrong(f"there is no filter {name!r} to give a least share", f"use one of {known}")
    _ = pipeline.order  # finds cycles
    _validate_reader(pipeline)


def _all_of(kind: type, given: Iterable[Any], what: str) -> tuple[Any, ...]:
    found = tuple(given)
    wrong = next((each for each in found if not isinstance(each, kind)), None)
    if wrong is not None:
        raise UsageError(f"{short(wrong)} among the {what} of a pipeline", hint=f"give {kind.__name__}(...)")
    return found


def _validate_reader(pipeline: Pipeline) -> None:
    wrong = pipeline._wrong
    readers = [f.name for f in pipeline.filters if all(s.target != f.name for s in pipeline.streams)]
    if len(readers) != 1:
        raise wrong(
            f"{len(readers)} filters have no stream into them: {', '.join(readers)}",
            "only one filter reads the input; connect the others to it",
        )
    if not (pipeline.reader.seconds > 0 and pipeline.reader.volume > 0):
        raise wrong(
            f"the reader took {pipeline.reader.seconds} s for {pipeline.reader.volume} MB",
            "give values above 0: its rate is the target of the plan",
            f", filter {pipeline.reader.name!r}",
        )
    for name, count in Counter(s.name for s in pipeline.sources).items():
        if count > 1:
            raise wrong(f"{count} sources are called {name!r}", "give each its own name")
    for source in pipeline.sources:
        where, shares = f", source {source.name!r}", source.shares
        for host, share in shares.items():
            if not (math.isfinite(share) and share >= 0):
                raise wrong(f"the share of {host!r} is {share}", "give a share from 0 to 1", where)
        if abs(sum(shares.values()) - 1.0) > SHARE_TOLERANCE:
            raise wrong(f"the shares sum to {sum(shares.values()):.9g}", "make them sum to 1", where)


def _validate_problem(problem: PipelineProblem) -> None:
    where = f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}"
    sites = {s.name for s in problem.platform.sites}
    if not problem.pipeline.sources and problem.platform.origin not in problem.hosts:
        raise UsageError(
            "the pipeline has no source", where=where, hint="give a source: the hosts that can read the input"
        )
    for source in problem.pipeline.sources:
        for host in source.shares:
            if host not in problem.hosts:
                raise UsageError(
                    f"there is no host {host!r}",
                    where=f"{where}: source {source.name!r}",
                    hint="name hosts of the platform",
                )
    for site, bandwidth in problem.segments.items():
        if site not in sites or not bandwidth > 0:
            raise UsageError(
                f"a segment {site!r} of {bandwidth} bytes/s",
                where=where,
                hint="name a site, and a rate above 0",
            )
    if problem.routes not in get_args(RouteChoice):
        raise UsageError(f"routes {problem.routes!r}", where=where, hint="use any or quickest")
    knobs = problem.knobs
    for what, value, top in (
        ("W_X (host_cost)", knobs.host_cost, math.inf),
        ("W_C (cross)", knobs.cross, math.inf),
        ("W_F (spare)", knobs.spare, math.inf),
        ("W_MIN (least)", knobs.least, 1.0),
        *((f"W_MIN of {name!r}", value, 1.0) for name, value in knobs.least_of.items()),
        *((f"W_C of {a!r} to {b!r}", value, math.inf) for (a, b), value in knobs.weights.items()),
    ):
        if not (math.isfinite(value) and 0 <= value <= top):
            raise UsageError(
                f"{what} is {value}", where=where, hint=f"give 0 or more{', at most 1' * (top == 1)}"
            )
    for pair in knobs.weights:
        for site in pair:
            if site not in sites:
                raise UsageError(f"there is no cluster {site!r}", where=f"{where}: W_C", hint="name a site")
    for name in knobs.least_of:
        if name not in problem.pipeline.index:
            raise UsageError(f"there is no filter {name!r}", where=f"{where}: W_MIN", hint="name a filter")
