"""The mixed-integer program over groups of hosts and flows between zones, for one source option.

Instead of a flow for every stream and pair of hosts it has, for each class of equivalent hosts, the number of hosts
that run a filter and their total processing rate, and for each stream the flow between every pair of zones. Each host
of a class does an equal part; constraints on single hosts hold because they hold for the class. Conversely, a solution
that names hosts, averaged over each class, solves this program with the same objective, so both have the same optimum.
Flows between zones run on the arcs of the network. With F filters, S streams, G groups, Z zones and L arcs there are
about 2 F G + S (3 Z + L) columns.

The reader may be slowed down. A deployment in which it is not is the special case of the strict form, so this program
covers both, and its bound holds for both. All rates are input reading rates, except flows between zones and on links,
which are rates of their stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.groups import Groups
from headrace.planners.pipeline.linear import Builder, Linear
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights


@dataclass(frozen=True, eq=False)
class Resource:
    """Rows that limit the throughput, used to report which of them are binding."""

    kind: Literal["reader", "cpu", "port", "reserve"]
    rows: Numbers
    columns: Numbers
    """The columns that provide the resource (hosts in use), one for each row; empty for the reader."""
    amount: Floats
    """What one of these adds to the right-hand side, below 0 in rows with a lower limit; for the reader, its rate."""
    filter: int
    """The filter concerned; -1 for all filters on the host."""
    groups: Numbers
    """The group that each row concerns; -1 for none."""


@dataclass(frozen=True, eq=False)
class NetColumns:
    """Columns of flows between and inside zones, or their values in a solution."""

    streams: Numbers
    """The streams that carry data."""
    inside: NDArray[Any]
    """[streams, zones] flows inside a zone."""
    sent: NDArray[Any]
    """[streams, zones] flows that leave a zone."""
    received: NDArray[Any]
    """[streams, commodities, zones] flows that come from other zones."""
    arc: NDArray[Any]
    """[streams, commodities, arcs]"""

    def values(self, x: Floats) -> NetColumns:
        """The flows of a solution."""
        columns = (self.inside, self.sent, self.received, self.arc)
        return NetColumns(self.streams, *(np.maximum(x[c], 0.0) for c in columns))


@dataclass(frozen=True, eq=False)
class Compact:
    """The program, with the indices of its rows and columns."""

    rates: Rates
    zone: Numbers
    """Of each group."""
    linear: Linear
    read: Numbers
    """The column of the reading rate, alone in an array."""
    work: Numbers
    """Columns [filters, groups]: processing rate, in terms of input read; the reader's row is not used."""
    count: Numbers
    """Columns [filters, groups] of units; where filters share hosts the same columns for all filters."""
    local: Numbers
    """Columns [streams, groups]: flow that stays on its host, where filters share hosts; else empty."""
    net: NetColumns
    link_rows: Numbers
    total_rows: Numbers
    """[filters - 1] every filter processes all input."""
    balance_rows: Numbers
    """[streams that carry data, 2, zones] what a zone sends and receives."""
    copy_rows: Numbers
    """Rows that require a copy of every filter, where a host has one filter."""
    resources: tuple[Resource, ...]
    constant: float
    """Part of the objective that does not depend on the solution: the cost of reading hosts."""


def build_compact(rates: Rates, groups: Groups, weights: Weights) -> Compact:
    """Build the program with one filter per host. Comments give the numbers of the constraints in the paper."""
    b = Builder()
    k, g = rates.n_filters, groups.n
    read, reader = add_reader(b, rates)
    runs = (np.arange(k)[:, None] > 0) & (groups.share[None, :] == 0) & (groups.limit > 0)
    work = b.add_columns((k, g), high=np.where(runs, np.inf, 0.0))
    count = b.add_columns((k, g), high=np.where(runs, groups.size, 0), cost=-groups.cost, whole=True)
    total_rows = add_totals(b, k, work, read)
    copy_rows = b.add_rows(k - 1, low=1.0)  # 7: every filter has a copy
    b.put(copy_rows[:, None], count[1:], 1.0)
    b.put(b.add_rows(g, high=groups.size)[None, :], count[1:], 1.0)  # 15: at most one filter on a host
    limit_rows = b.add_rows((k - 1) * g, high=0.0).reshape(k - 1, g)  # 10, 12 for ports, 13
    b.put(limit_rows, work[1:], 1.0)
    b.put(limit_rows, count[1:], -groups.limit[1:])
    reserves: list[Resource] = []
    if weights.spare > 0:  # 11
        rows = b.add_rows(k - 1, low=0.0)
        b.put(rows[:, None], count[1:], groups.reserve[1:])
        b.put(rows, read, -(1 + weights.spare))
        reserves = [
            Resource("reserve", np.full(g, rows[f - 1]), count[f], -groups.reserve[f], f, np.arange(g))
            for f in range(1, k)
        ]
    _least_use(b, groups, weights, work, count)
    net = add_flows(b, rates)
    share = zone_shares(rates, groups.zone, groups.share * groups.size)
    balance_rows = add_balance(b, rates, groups.zone, share, net, read, work)
    return Compact(
        rates=rates,
        zone=groups.zone,
        link_rows=add_links(b, rates, net),
        total_rows=total_rows,
        balance_rows=balance_rows,
        copy_rows=copy_rows,
        linear=b.build(),
        read=read,
        work=work,
        count=count,
        local=np.empty((0, g), np.int64),
        net=net,
        resources=(reader, *_hosts_as_resources(groups, limit_rows, count), *reserves),
        constant=-weights.host_cost * int((groups.size * groups.per)[groups.reading].sum()),
    )


def zone_shares(rates: Rates, zone: Numbers, share: Floats) -> Floats:
    """The part of the input that is read in each zone, from the parts of groups."""
    return np.bincount(zone, share, len(rates.weight)).astype(np.float64)


def add_reader(b: Builder, rates: Rates) -> tuple[Numbers, Resource]:
    """5': the reader runs at most at its rate, and its ports carry what it reads."""
    rate = rates.reader_rate
    read = b.add_columns((1,))
    rows = b.add_rows(1, high=rate)
    b.put(rows, read, 1.0)
    return read, Resource("reader", rows, np.empty(0, np.int64), rate, 0, np.full(1, -1))


def _hosts_as_resources(groups: Groups, rows: Numbers, count: Numbers) -> Iterator[Resource]:
    """For each filter, the groups limited by their cores and those limited by their ports."""
    for k in range(1, len(groups.limit)):
        by_cpu = groups.limit[k] >= groups.power[k] * (1 - 1e-12)
        for kind, which in (("cpu", np.flatnonzero(by_cpu)), ("port", np.flatnonzero(~by_cpu))):
            yield Resource(kind, rows[k - 1, which], count[k, which], groups.limit[k, which], k, which)  # type: ignore[arg-type]


def add_totals(b: Builder, k: int, work: Numbers, read: Numbers) -> Numbers:
    """Every filter processes all input; this also covers streams that carry no data."""
    rows = b.add_rows(k - 1, low=0.0, high=0.0)
    b.put(rows[:, None], work[1:], 1.0)
    b.put(rows, read, -1.0)
    return rows


def _least_use(b: Builder, groups: Groups, weights: Weights, work: Numbers, count: Numbers) -> None:
    """14: a host in use has at least the minimum utilisation, unless it is the filter's only host."""
    n_hosts = int((groups.size * groups.per).sum())
    for k in range(1, len(groups.power)):
        if weights.least[k] == 0:
            continue
        least = weights.least[k] * groups.power[k]
        only = b.add_columns((1,), high=1.0, whole=True)
        rows = b.add_rows(groups.n, low=0.0)
        b.put(rows, work[k], 1.0)
        b.put(rows, count[k], -least)
        b.put(rows, only, least)
        row = b.add_rows(1, high=n_hosts)
        b.put(row, count[k], groups.per)
        b.put(row, only, n_hosts - 1)


def add_flows(b: Builder, rates: Rates) -> NetColumns:
    """Columns for the flows of streams that carry data, and their conservation at every node of the network."""
    arcs, weight = rates.arcs, rates.weight
    streams = np.flatnonzero(rates.stream_rate > 0)
    n, z, g = len(streams), len(weight), arcs.commodities
    here = np.where(arcs.inhabited, np.inf, 0.0)
    inside = b.add_columns((n, z), high=here, cost=np.broadcast_to(np.diag(weight), (n, z)))
    sent = b.add_columns((n, z), high=here)
    gain, allowed = np.zeros((g, z)), np.broadcast_to(here, (g, z))
    if arcs.by_origin:
        gain, allowed = weight, np.where(np.eye(z, dtype=bool), 0.0, allowed)
    elif not arcs.fixed:
        gain = np.broadcast_to(between_zones(rates), (1, z))
    received = b.add_columns((n, g, z), high=allowed, cost=np.broadcast_to(gain, (n, g, z)))
    arc = b.add_columns((n, g, len(arcs.tail)), cost=np.broadcast_to(arcs.weight, (n, g, len(arcs.tail))))
    nodes = b.add_rows(n * g * arcs.n_nodes, low=0.0, high=0.0).reshape(n, g, arcs.n_nodes)
    origin = np.arange(z) if arcs.by_origin else np.zeros(z, np.int64)
    b.put(nodes[:, origin, arcs.send], sent, 1.0)
    b.put(nodes[:, :, arcs.receive], received, -1.0)
    b.put(nodes[:, :, arcs.tail], arc, -1.0)
    b.put(nodes[:, :, arcs.head], arc, 1.0)
    return NetColumns(streams, inside, sent, received, arc)


def between_zones(rates: Rates) -> float:
    """W_C of flows between clusters, where it is the same for all; 0 if there is one cluster."""
    here = np.flatnonzero(rates.arcs.inhabited)
    return float(rates.weight[here[0], here[1]]) if len(here) > 1 else 0.0


def add_balance(
    b: Builder,
    rates: Rates,
    zone: Numbers,
    share: Floats,
    net: NetColumns,
    read: Numbers,
    work: Numbers,
    local: Numbers | None = None,
) -> Numbers:
    """6 and 9: flow conservation: a zone's production on a stream equals its outflow, and likewise for inflow.

    `zone` is that of each column of `work`, `share` the part of the input that is read in each zone.
    """
    n_zones = len(rates.weight)
    made = np.empty((len(net.streams), 2, n_zones), np.int64)
    for j, e in enumerate(net.streams.tolist()):
        outer = (net.sent[j][None], net.received[j])
        for i, ends in enumerate((rates.stream_source, rates.stream_target)):
            rows = made[j, i] = b.add_rows(n_zones, low=0.0, high=0.0)
            b.put(rows, net.inside[j], 1.0)
            b.put(rows[None, :], outer[i], 1.0)
            if ends[e] == 0:
                b.put(rows, read, -rates.stream_rate[e] * share)
            else:
                b.put(rows[zone], work[ends[e]], -rates.stream_rate[e])
            if local is not None:
                b.put(rows[zone], local[e], 1.0)
    return made


def add_links(b: Builder, rates: Rates, net: NetColumns) -> Numbers:
    """12: capacities of links and segments."""
    arcs = rates.arcs
    rows = b.add_rows(len(rates.capacity), high=rates.capacity)
    b.put(rows[arcs.arc_rows[0]], net.arc[:, :, arcs.arc_rows[1]], 1.0)
    b.put(rows[arcs.end_rows[0]], net.sent[:, arcs.end_rows[1]], 1.0)
    b.put(rows[arcs.end_rows[0]], net.received[:, :, arcs.end_rows[1]], 1.0)
    b.put(rows[arcs.inside_rows[0]], net.inside[:, arcs.inside_rows[1]], 1.0)
    return rows
