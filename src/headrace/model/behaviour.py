"""A grid that changes during a run: resources that join and leave, and their behaviour over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from headrace.model.errors import BadPlatform
from headrace.model.platform import Host, Platform, Site
from headrace.model.trace import LinkTrace, Trace, TraceTable, pack

__all__ = [
    "AddCluster",
    "AddHost",
    "Behaviour",
    "Change",
    "ChangeCluster",
    "ChangeHost",
    "GridEvent",
    "GridScript",
    "LinkTrace",
    "RemoveCluster",
    "RemoveHost",
    "Trace",
    "TraceTable",
    "grid_script",
    "pack",
]

Behaviour: TypeAlias = Trace | LinkTrace
"""For a host, its availability as a share of each core from 0 to 1; for a cluster, its link."""


@dataclass(frozen=True, slots=True)
class AddCluster:
    """A cluster joins, without hosts; its link behaves as `behaviour` from value `offset` on."""

    time: float
    cluster: str
    behaviour: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AddHost:
    """A host joins a cluster that is present."""

    time: float
    cluster: str
    host: str
    behaviour: str
    offset: int = 0
    arch: int = 0
    """Its architecture: the index of the run time that applies, for tasks with several."""


@dataclass(frozen=True, slots=True)
class RemoveCluster:
    """A cluster leaves with all its hosts. Its files are unreachable until it is added again."""

    time: float
    cluster: str


@dataclass(frozen=True, slots=True)
class RemoveHost:
    """A host leaves; tasks running there fail. The files of its cluster stay."""

    time: float
    host: str


@dataclass(frozen=True, slots=True)
class ChangeHost:
    """The behaviour of a host changes."""

    time: float
    host: str
    behaviour: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ChangeCluster:
    """The behaviour of a cluster's link changes."""

    time: float
    cluster: str
    behaviour: str
    offset: int = 0


GridEvent: TypeAlias = AddCluster | AddHost | RemoveCluster | RemoveHost | ChangeHost | ChangeCluster


class Change(NamedTuple):
    """One change to one resource, with its trace aligned to the time of the change.

    `name` is a host, or for links a cluster (site). `up` and `trace` carry a trace, `down` does not.
    """

    time: float
    what: Literal["host-up", "host-down", "host-trace", "link-up", "link-down", "link-trace"]
    name: str
    behaviour: Behaviour | None = None


@dataclass(frozen=True, eq=False)
class GridScript:
    """A platform with every resource that ever joins it, and the events by which they join, leave and change.

    `platform` numbers sites and hosts for the whole run: clusters in order of their first appearance,
    then hosts within them. Speeds, loads and bandwidths in it are means of the first behaviour of each
    resource, for static planners. `events` are sorted by time, simultaneous ones in the order given.
    `ignored` lists the events without effect, and why.
    """

    platform: Platform
    events: tuple[GridEvent, ...]
    behaviours: Mapping[str, Behaviour]
    ignored: tuple[str, ...] = ()
    changes: tuple[Change, ...] = field(default=(), repr=False)
    """The events per resource; events without effect are omitted."""

    def present(self, time: float) -> tuple[str, ...]:
        """Hosts present just after all events at `time`, in platform order."""
        up: set[str] = set()
        for change in self.changes:
            if change.time > time:
                break
            if change.what == "host-up":
                up.add(change.name)
            elif change.what == "host-down":
                up.discard(change.name)
        return tuple(host.name for host in self.platform.hosts if host.name in up)

    def start(self) -> Platform:
        """The platform at time 0, as a static planner sees it."""
        here = set(self.present(0.0))
        if not here:
            raise BadPlatform(
                "no host is present at time 0", where=self.platform.name, hint="add one at time 0"
            )
        gone = [host.name for host in self.platform.hosts if host.name not in here]
        return self.platform.without(gone) if gone else self.platform


ORIGIN = "origin"


def grid_script(
    events: Sequence[GridEvent],
    behaviours: Mapping[str, Behaviour],
    *,
    name: str = "grid",
    places: Sequence[str] = (),
) -> GridScript:
    """Check the consistency of events and derive the platform: O(events log events).

    `places` gives the file position of each event, for error messages.

    The origin is a separate site that only holds data; each cluster shares one file system and has
    one link to the origin, which carries one transfer at a time.

    >>> grid = grid_script(
    ...     [AddCluster(0, "c", "net"), AddHost(0, "c", "h", "cpu"), RemoveHost(9, "h")],
    ...     {"net": LinkTrace(Trace.constant(1e4), Trace.constant(0.1)), "cpu": Trace.constant(0.7)},
    ... )
    >>> grid.present(0), grid.present(9), [c.what for c in grid.changes]
    (('h',), (), ['link-up', 'host-up', 'host-down'])
    >>> grid.start().hosts[0].load, grid.start().sites[1].uplink
    (0.30000000000000004, 10000.0)
    """
    order = sorted(range(len(events)), key=lambda k: events[k].time)
    ordered = tuple(events[k] for k in order)
    ledger = _Ledger(behaviours, name)
    for k in order:
        ledger.place = places[k] if places else name
        ledger.note(events[k])
    return GridScript(ledger.platform(), ordered, behaviours, tuple(ledger.ignored), tuple(ledger.changes))


class _Ledger:
    """Which resources exist and which are present, and the effect of each event."""

    def __init__(self, behaviours: Mapping[str, Behaviour], name: str) -> None:
        self.behaviours = behaviours
        self.name = name
        self.place = name
        """File position of the current event."""
        self.first_link: dict[str, LinkTrace] = {}
        self.first_host: dict[str, Host] = {}
        self.cluster_of: dict[str, str] = {}
        self.up: dict[str, dict[str, None]] = {}
        """Clusters that are present, each with its present hosts."""
        self.changes: list[Change] = []
        self.ignored: list[str] = []

    def note(self, event: GridEvent) -> None:
        if not (math.isfinite(event.time) and event.time >= 0):
            raise self.wrong(event, f"its time is {event.time}", "give a time of 0 or more")
        match event:
            case AddCluster():
                self._add_cluster(event)
            case AddHost():
                self._add_host(event)
            case RemoveCluster(cluster=cluster):
                if self._there(event, cluster in self.up, cluster in self.first_link, "cluster", cluster):
                    for host in self.up.pop(cluster):
                        self._change(event, "host-down", host)
                    self._change(event, "link-down", cluster)
            case RemoveHost(host=host):
                if self._there(event, self._host_up(host), host in self.first_host, "host", host):
                    del self.up[self.cluster_of[host]][host]
                    self._change(event, "host-down", host)
            case ChangeHost(host=host):
                trace = self._host_trace(event)
                if self._there(event, self._host_up(host), host in self.first_host, "host", host):
                    self._change(event, "host-trace", host, trace.starting(event.time, event.offset))
            case ChangeCluster(cluster=cluster):
                link = self._link_trace(event)
                if self._there(event, cluster in self.up, cluster in self.first_link, "cluster", cluster):
                    self._change(event, "link-trace", cluster, link.starting(event.time, event.offset))

    def platform(self) -> Platform:
        """Every cluster and host that ever joins."""
        if not self.first_host:
            raise BadPlatform("no host is ever added", where=self.name, hint="add a cluster and a host to it")
        origin = ORIGIN
        while origin in self.first_link or origin in self.first_host:
            origin += "_"
        members: dict[str, list[Host]] = {cluster: [] for cluster in self.first_link}
        for host, cluster in self.cluster_of.items():
            members[cluster].append(self.first_host[host])
        sites = [
            Site(
                cluster,
                tuple(members[cluster]),
                uplink=link.bandwidth.mean,
                uplink_latency=link.latency.mean,
                uplink_trace=link,
            )
            for cluster, link in self.first_link.items()
        ]
        return Platform((Site(origin), *sites), contention="fifo", origin=origin, name=self.name)

    def wrong(self, event: GridEvent, problem: str, hint: str) -> BadPlatform:
        what = f"{type(event).__name__} at {event.time:g} s"
        return BadPlatform(f"{what}: {problem}", where=self.place, hint=hint)

    def _add_cluster(self, event: AddCluster) -> None:
        link = self._link_trace(event)
        if event.cluster in self.up:
            raise self.wrong(event, f"cluster {event.cluster!r} is already present", "remove it first")
        if event.cluster not in self.first_link:
            self._positive(event, link.bandwidth.mean, "bandwidth")
            self.first_link[event.cluster] = link.starting(event.time, event.offset)
        self.up[event.cluster] = {}
        self._change(event, "link-up", event.cluster, link.starting(event.time, event.offset))

    def _add_host(self, event: AddHost) -> None:
        trace = self._host_trace(event)
        if event.cluster not in self.up:
            raise self.wrong(
                event, f"there is no cluster {event.cluster!r} at that time", "add the cluster first"
            )
        if self._host_up(event.host):
            raise self.wrong(event, f"host {event.host!r} is already present", "remove it first")
        if event.arch < 0:
            raise self.wrong(event, f"its architecture is {event.arch}", "give a number of 0 or more")
        known = self.first_host.get(event.host)
        if known is None:
            self._positive(event, trace.mean, "availability")
            self.cluster_of[event.host] = event.cluster
            running = trace.starting(event.time, event.offset)
            self.first_host[event.host] = Host(
                event.host, load=1.0 - trace.mean, trace=running, arch=event.arch
            )
        elif self.cluster_of[event.host] != event.cluster or known.arch != event.arch:
            raise self.wrong(
                event,
                f"host {event.host!r} was in cluster {self.cluster_of[event.host]!r}, architecture {known.arch}",
                "add it back unchanged, or use another name",
            )
        self.up[event.cluster][event.host] = None
        self._change(event, "host-up", event.host, trace.starting(event.time, event.offset))

    def _host_up(self, host: str) -> bool:
        return host in self.up.get(self.cluster_of.get(host, ""), ())

    def _there(self, event: GridEvent, up: bool, known: bool, what: str, name: str) -> bool:
        """Whether the event has an effect; a name that was never added is an error."""
        if not known:
            raise self.wrong(event, f"there is no {what} {name!r}", f"add the {what} first")
        if not up:
            self.ignored.append(f"{type(event).__name__} at {event.time:g} s: {what} {name!r} is not present")
        return up

    def _positive(self, event: GridEvent, mean: float, what: str) -> None:
        if not mean > 0:
            raise self.wrong(event, f"its {what} is always 0", "add it when it can be used")

    def _host_trace(self, event: AddHost | ChangeHost) -> Trace:
        found = self._behaviour(event)
        if not isinstance(found, Trace):
            raise self.wrong(event, f"{event.behaviour!r} describes a link", "name the behaviour of a host")
        if found.peak > 1.0:
            raise self.wrong(event, f"{event.behaviour!r} has {found.peak} > 1", "give shares of a core")
        return found

    def _link_trace(self, event: AddCluster | ChangeCluster) -> LinkTrace:
        found = self._behaviour(event)
        if not isinstance(found, LinkTrace):
            raise self.wrong(event, f"{event.behaviour!r} describes a host", "name the behaviour of a link")
        return found

    def _behaviour(self, event: AddCluster | AddHost | ChangeHost | ChangeCluster) -> Behaviour:
        if event.behaviour not in self.behaviours:
            raise self.wrong(event, f"there is no behaviour {event.behaviour!r}", "add its file")
        if event.offset < 0:
            raise self.wrong(event, f"its offset is {event.offset}", "give the index of a value, from 0")
        return self.behaviours[event.behaviour]

    def _change(
        self,
        event: GridEvent,
        what: Literal["host-up", "host-down", "host-trace", "link-up", "link-down", "link-trace"],
        name: str,
        behaviour: Behaviour | None = None,
    ) -> None:
        self.changes.append(Change(event.time, what, name, behaviour))
