"""The mixed-integer program over groups of hosts and flows between zones, for one source option.

Instead of a flow for every stream and pair of hosts it has, for each class of equivalent hosts, the number of hosts
that run a filter and their total processing rate, and for each stream the flow between every pair of zones. Each host
of a class does an equal part; constraints on single hosts hold because they hold for the class. Conversely, a solution
that names hosts, averaged over each class, solves this program with the same objective, so both have the same optimum.
With F filters, S streams, G groups and Z zones there are about 2 F G + S Z² columns.

The reader may be slowed down. A deployment in which it is not is the special case of the strict form, so this program
covers both, and its bound holds for both. All rates are input reading rates, except flows between zones and on links,
which are rates of their stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.groups import Groups
from headrace.planners.pipeline.linear import Builder, Linear
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights


@dataclass(frozen=True, eq=False)
class Resource:
    """Rows that limit the throughput, used to report which of them are binding."""

    kind: Literal["reader", "cpu", "port"]
    rows: Numbers
    columns: Numbers
    """The columns that provide the resource (hosts in use), one for each row; empty for the reader."""
    amount: Floats
    """What one of these adds to the right-hand side; for the reader, its rate."""
    filter: int
    """The filter concerned; -1 for all filters on the host."""
    groups: Numbers
    """The group that each row concerns; -1 for none."""


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
    streams: Numbers
    """The streams that carry data."""
    pairs: Numbers
    """[pairs, 2] pairs of zones with a route."""
    between: Numbers
    """Columns [len(streams), len(pairs)]: flows."""
    link_rows: Numbers
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
    add_totals(b, k, work, read)
    copy_rows = b.add_rows(k - 1, low=1.0)  # 7: every filter has a copy
    b.put(copy_rows[:, None], count[1:], 1.0)
    b.put(b.add_rows(g, high=groups.size)[None, :], count[1:], 1.0)  # 15: at most one filter on a host
    limit_rows = b.add_rows((k - 1) * g, high=0.0).reshape(k - 1, g)  # 10, 12 for ports, 13
    b.put(limit_rows, work[1:], 1.0)
    b.put(limit_rows, count[1:], -groups.limit[1:])
    if weights.spare > 0:  # 11
        rows = b.add_rows(k - 1, low=0.0)
        b.put(rows[:, None], count[1:], groups.reserve[1:])
        b.put(rows, read, -(1 + weights.spare))
    _least_use(b, groups, weights, work, count)
    streams, pairs, between = add_flows(b, rates)
    share = zone_shares(rates, groups.zone, groups.share * groups.size)
    add_balance(b, rates, groups.zone, share, streams, pairs, between, read, work)
    return Compact(
        rates=rates,
        zone=groups.zone,
        link_rows=add_links(b, rates, pairs, between),
        copy_rows=copy_rows,
        linear=b.build(),
        read=read,
        work=work,
        count=count,
        local=np.empty((0, g), np.int64),
        streams=streams,
        pairs=pairs,
        between=between,
        resources=(reader, *_hosts_as_resources(groups, limit_rows, count)),
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


def add_totals(b: Builder, k: int, work: Numbers, read: Numbers) -> None:
    """Every filter processes all input; this also covers streams that carry no data."""
    rows = b.add_rows(k - 1, low=0.0, high=0.0)
    b.put(rows[:, None], work[1:], 1.0)
    b.put(rows, read, -1.0)


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


def add_flows(b: Builder, rates: Rates) -> tuple[Numbers, Numbers, Numbers]:
    streams = np.flatnonzero(rates.stream_rate > 0)
    pairs = np.argwhere(rates.routed > 0)
    cost = np.broadcast_to(rates.weight[pairs[:, 0], pairs[:, 1]], (len(streams), len(pairs)))
    return streams, pairs, b.add_columns((len(streams), len(pairs)), cost=cost)


def add_balance(
    b: Builder,
    rates: Rates,
    zone: Numbers,
    share: Floats,
    streams: Numbers,
    pairs: Numbers,
    between: Numbers,
    read: Numbers,
    work: Numbers,
    local: Numbers | None = None,
) -> None:
    """6 and 9: flow conservation: a zone's production on a stream equals its outflow, and likewise for inflow.

    `zone` is that of each column of `work`, `share` the part of the input that is read in each zone.
    """
    n_zones = len(rates.weight)
    for j, e in enumerate(streams.tolist()):
        for end, ends in ((0, rates.stream_source), (1, rates.stream_target)):
            rows = b.add_rows(n_zones, low=0.0, high=0.0)
            b.put(rows[pairs[:, end]], between[j], 1.0)
            if ends[e] == 0:
                b.put(rows, read, -rates.stream_rate[e] * share)
            else:
                b.put(rows[zone], work[ends[e]], -rates.stream_rate[e])
            if local is not None:
                b.put(rows[zone], local[e], 1.0)


def add_links(b: Builder, rates: Rates, pairs: Numbers, between: Numbers) -> Numbers:
    """12: capacities of links and segments."""
    rows = b.add_rows(len(rates.capacity), high=rates.capacity)
    number = np.full(rates.routed.shape, -1, np.int64)
    number[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    column = number[rates.link_from, rates.link_to]
    for j in range(len(between)):
        b.put(rows[rates.link_rows], between[j, column], 1.0)
    return rows
