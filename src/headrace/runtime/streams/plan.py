"""Which copies of an application run where, and how they share its flows: checked before anything starts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headrace.formats.sections import Section, read_sections, split_arrow
from headrace.model.deployment import Deployment
from headrace.model.errors import BadFile, BadPlan, UsageError
from headrace.runtime.filters import App

SHARE_TOLERANCE = 1e-6
MOST_COPIES = 2_000
"""Each copy is a process, with a connection to each copy of the filters before and after it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The copies of one filter on one host, and their share of its work."""

    filter: str
    host: str
    copies: int
    share: float


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """One copy."""

    copy: int
    """Its number among all copies."""
    filter: str
    host: str
    begin: float
    end: float
    """The share of the filter's work before this copy, and with it."""
    name: str


@dataclass(frozen=True)
class StreamPlan:
    """Copies, hosts and flows of an application. Build it with `make_plan`, which checks it."""

    app_name: str
    places: tuple[Place, ...]
    flows: Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
    """For source and target filter: MB/s from host to host."""
    throughput: float | None = None
    """MB/s read, as planned; None without a plan."""

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """All hosts in use, in the order of the filters."""
        return tuple(dict.fromkeys(place.host for place in self.places))

    @cached_property
    def copies(self) -> tuple[CopyPlace, ...]:
        """Every copy, filter by filter."""
        found: list[CopyPlace] = []
        for name in dict.fromkeys(place.filter for place in self.places):
            begin, number = 0.0, 0
            for place in self.of(name):
                for _ in range(place.copies):
                    number += 1
                    end = begin + place.share / place.copies
                    label = f"{name} {number} on {place.host}"
                    found.append(CopyPlace(len(found), name, place.host, begin, end, label))
                    begin = end
            if found:  # rounding must not lose the end of the input
                last = found[-1]
                found[-1] = CopyPlace(last.copy, name, last.host, last.begin, 1.0, last.name)
        return tuple(found)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Filters and the hosts they run on."""
        return [(place.filter, place.host) for place in self.places]

    def of(self, name: str) -> list[Place]:
        return [place for place in self.places if place.filter == name]

    def inflow(self, name: str) -> float | None:
        """MB/s that a filter receives as planned, or reads; None without a plan."""
        if self.throughput is None:
            return None
        into = [rates for ends, rates in self.flows.items() if ends[1] == name]
        return math.fsum(rate for rates in into for rate in rates.values()) if into else self.throughput

    def without(self, lost: str, hosts: Sequence[str]) -> StreamPlan:
        """The plan after the loss of a host: its work goes to the other hosts of its filters, or else to the host
        with the fewest copies; flows become proportional to the shares."""
        places = [place for place in self.places if place.host != lost]
        for gone in (place for place in self.places if place.host == lost):
            others = [place for place in places if place.filter == gone.filter]
            if others:
                scale = sum(place.share for place in others)
                for place in others:
                    share = place.share / scale if scale > 0 else 1.0 / len(others)
                    places[places.index(place)] = Place(place.filter, place.host, place.copies, share)
            else:
                load = {host: sum(p.copies for p in places if p.host == host) for host in hosts}
                places.append(Place(gone.filter, min(hosts, key=load.__getitem__), gone.copies, 1.0))
        order = {place.filter: i for i, place in reversed(list(enumerate(self.places)))}
        places.sort(key=lambda place: order[place.filter])
        flows = {
            ends: {
                (a.host, b.host): a.share * b.share * math.fsum(rates.values())
                for a in places
                if a.filter == ends[0]
                for b in places
                if b.filter == ends[1]
            }
            for ends, rates in self.flows.items()
        }
        return StreamPlan(self.app_name, tuple(places), flows, self.throughput)

    def weights(self, source: CopyPlace, target: str) -> list[float]:
        """For each copy of the target filter, its part of what this copy sends there; all alike without a flow."""
        rates = self.flows.get((source.filter, target), {})
        count = {place.host: place.copies for place in self.of(target)}
        copies = [copy for copy in self.copies if copy.filter == target]
        weights = [rates.get((source.host, copy.host), 0.0) / count[copy.host] for copy in copies]
        return weights if math.fsum(weights) > 0 else [1.0] * len(copies)


def make_plan(
    app: App,
    places: Iterable[Place],
    flows: Mapping[tuple[str, str], Mapping[tuple[str, str], float]],
    throughput: float | None = None,
    where: str = "deployment",
) -> StreamPlan:
    """A plan for this application, or an error that says what does not fit."""
    order = {name: i for i, name in enumerate(app.order)}
    places = tuple(places)
    for place in places:
        if place.filter not in order:
            raise BadPlan(
                f"the application has no filter {place.filter!r}",
                where=where,
                hint=f"use a deployment of {app.name!r}: its filters are {', '.join(app.order)}",
            )
    plan = StreamPlan(
        app.name, tuple(sorted(places, key=lambda place: order[place.filter])), flows, throughput
    )
    _check_totals(plan, where)
    _check_places(app, plan, where)
    _check_flows(app, plan, where)
    return plan


def even_plan(app: App, copies: Mapping[str, int], hosts: Sequence[str]) -> StreamPlan:
    """This many copies of each filter (1 by default), assigned to the hosts in turn, with equal flows.

    >>> from headrace.runtime.filters import Filter, Reader
    >>> app = App("two")
    >>> _ = app.filter("read", Reader), app.filter("add", Filter, inputs=["read"])
    >>> [(c.filter, c.host) for c in even_plan(app, {"add": 2}, ["a", "b"]).copies]
    [('read', 'a'), ('add', 'b'), ('add', 'a')]
    """
    for name, count in copies.items():
        if name not in app.filters or count < 1:
            raise UsageError(
                f"{count} copies of {name!r}",
                where=app.name,
                hint="give 1 or more, for a filter of the application",
            )
    dealt: dict[tuple[str, str], int] = {}
    turn = 0
    for name in app.order:
        for _ in range(copies.get(name, 1)):
            key = (name, hosts[turn % len(hosts)])
            dealt[key] = dealt.get(key, 0) + 1
            turn += 1
    total = {name: copies.get(name, 1) for name in app.order}
    places = [Place(name, host, count, count / total[name]) for (name, host), count in dealt.items()]
    flows = {
        (s.source, s.target): {
            (a.host, b.host): a.share * b.share
            for a in places
            if a.filter == s.source
            for b in places
            if b.filter == s.target
        }
        for s in app.streams
    }
    return make_plan(app, places, flows)


def plan_of(app: App, deployment: Deployment) -> StreamPlan:
    """The plan of a deployment."""
    flows: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    for flow in deployment.flows:
        flows[flow.source_filter, flow.target_filter][flow.source, flow.target] = flow.rate
    places = [Place(p.filter, p.host, p.copies, p.share) for p in deployment.placements]
    return make_plan(app, places, flows, deployment.throughput, f"deployment by {deployment.planner}")


def read_plan(app: App, path: str | Path) -> StreamPlan:
    """The plan of a deployment file, as `headrace deploy -o` writes it. It needs neither pipeline nor platform."""
    sections = read_sections(path)
    top = next((s for s in sections if s.kind == "deployment"), None)
    if top is None:
        raise BadFile(
            "no [deployment] section", where=str(path), hint="give a file that `headrace deploy -o` wrote"
        )
    places: list[Place] = []
    flows: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for section in sections:
        if section.kind == "copies":
            places += [_place(section, host) for host in section.values]
        elif section.kind == "flow":
            flows[section.ends()] = {
                split_arrow(ends, section): section.number(ends) for ends in section.values
            }
    return make_plan(app, places, flows, top.number("throughput"), str(path))


def _place(section: Section, host: str) -> Place:
    copies, _, share = str(section.text(host, "")).partition(",")
    pair = Section(section.kind, section.name, {"copies": copies, "share": share}, section.file)
    return Place(section.name, host, pair.whole("copies", 1, most=MOST_COPIES), pair.number("share"))


def _check_totals(plan: StreamPlan, where: str) -> None:
    if sum(place.copies for place in plan.places) > MOST_COPIES:
        raise BadPlan(f"more than {MOST_COPIES:,} copies", where=where, hint="use fewer")
    if plan.throughput is not None and not (math.isfinite(plan.throughput) and plan.throughput > 0):
        raise BadPlan(
            f"the throughput is {plan.throughput:g} MB/s", where=where, hint="give a number above 0"
        )


def _check_places(app: App, plan: StreamPlan, where: str) -> None:
    for name in app.order:
        places = plan.of(name)
        if not places:
            raise BadPlan(
                f"filter {name!r} has no copies", where=where, hint="plan the deployment for this application"
            )
        if len({place.host for place in places}) < len(places):
            raise BadPlan(f"filter {name!r} is placed twice on one host", where=where, hint="merge the two")
        for place in places:
            if place.copies < 1 or not (math.isfinite(place.share) and place.share >= 0):
                raise BadPlan(
                    f"{place.copies} copies of {name!r} on {place.host!r} with share {place.share:g}",
                    where=where,
                    hint="give at least one copy and a share from 0 to 1",
                )
        total = math.fsum(place.share for place in places)
        if abs(total - 1.0) > SHARE_TOLERANCE:
            raise BadPlan(
                f"the shares of {name!r} sum to {total:.9g}", where=where, hint="make them sum to 1"
            )


def _check_flows(app: App, plan: StreamPlan, where: str) -> None:
    joined = {(stream.source, stream.target) for stream in app.streams}
    for ends in sorted(set(plan.flows) | joined):
        stream = f"{ends[0]} -> {ends[1]}"
        if ends not in joined:
            raise BadPlan(
                f"the application has no stream {stream}", where=where, hint="plan it for this application"
            )
        if ends not in plan.flows:
            raise BadPlan(f"stream {stream} has no flow", where=where, hint="plan it for this application")
        _check_stream(plan, ends, stream, where)


def _check_stream(plan: StreamPlan, ends: tuple[str, str], stream: str, where: str) -> None:
    """Both ends of every flow exist, and each host has the part that its share of the work requires."""
    rates = plan.flows[ends]
    total = math.fsum(rates.values())
    for side, name in enumerate(ends):
        hosts = {place.host: place.share for place in plan.of(name)}
        moved = dict.fromkeys(hosts, 0.0)
        for pair, rate in rates.items():
            if pair[side] not in hosts:
                raise BadPlan(
                    f"a flow on {stream} needs {name!r} on {pair[side]!r}, where it has no copy",
                    where=where,
                    hint="remove the flow, or add the copy",
                )
            if not (math.isfinite(rate) and rate >= 0):
                raise BadPlan(f"a flow on {stream} of {rate:g}", where=where, hint="give 0 or more")
            moved[pair[side]] += rate
        for host, share in hosts.items():
            if abs(moved[host] - share * total) > 1e-6 * total + 1e-9:
                raise BadPlan(
                    f"{name!r} on {host!r} has {moved[host]:.6g} of {total:.6g} MB/s on {stream}, "
                    f"but {share:.6g} of the work",
                    where=where,
                    hint="the flows of a host must be its share of the whole",
                )
