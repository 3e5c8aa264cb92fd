"""The mixed-integer program over classes of hosts and flows between zones.

Instead of a flow for every stream and pair of hosts it has, for each class of equivalent hosts, the number of hosts
that run a filter and their total processing rate, and for each stream the flow between every pair of zones. Each host
of a class does an equal part; constraints on single hosts hold because they hold for the class. Conversely, a solution
that names hosts, averaged over each class, solves this program with the same objective, so both have the same optimum.
With F filters, S streams, G classes and Z zones there are about 2 F G + S Z² columns.

All rates are input reading rates, except flows between zones and on links, which are rates of their stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.linear import Builder, Linear
from headrace.planners.pipeline.rates import Rates


@dataclass(frozen=True, eq=False)
class Weights:
    """The objective weights as arrays."""

    host_cost: float
    spare: float
    least: Floats
    """Of each filter."""

    @staticmethod
    def of(problem: PipelineProblem) -> Weights:
        knobs = problem.knobs
        least = np.array([knobs.least_share(f.name) for f in problem.pipeline.order])
        return Weights(knobs.host_cost, knobs.spare, least)


@dataclass(frozen=True, eq=False)
class Resource:
    """Rows that limit the throughput, used to report which of them are binding."""

    kind: Literal["reader", "cpu", "port"]
    rows: Numbers
    columns: Numbers
    """The columns that provide the resource (an option, hosts in use), one for each row."""
    amount: Floats
    """What one of these adds to the right-hand side."""
    filter: int
    """The filter concerned; -1 for all filters on the host."""
    classes: Numbers
    """The class that each row concerns; -1 for none."""


@dataclass(frozen=True, eq=False)
class Compact:
    """The program, with the indices of its rows and columns."""

    rates: Rates
    classes: Classes
    strict: bool
    spare: float
    """W_F where it applies."""
    linear: Linear
    option: Numbers
    """Columns: 1 for the chosen source option."""
    read: Numbers
    """Columns: the rate of reading under each option."""
    work: Numbers
    """Columns [filters, classes]: processing rate, in terms of input read; the reader's row is not used."""
    count: Numbers
    """Columns [filters, classes] of hosts; where filters share hosts the same columns for all filters."""
    local: Numbers
    """Columns [streams, classes]: flow that stays on its host, where filters share hosts; else empty."""
    streams: Numbers
    """The streams that carry data."""
    pairs: Numbers
    """[pairs, 2] pairs of zones with a route."""
    between: Numbers
    """Columns [len(streams), len(pairs)]: flows."""
    link_rows: Numbers
    host_rows: Numbers
    """Rows that limit the number of hosts of each class."""
    copy_rows: Numbers
    """Rows that require a copy of every filter."""
    full_rows: Numbers
    """Rows whose lower limit keeps the reader at its full rate; without it they are those of the first relaxation."""
    resources: tuple[Resource, ...]
    limit: Floats
    """[filters, classes] maximum processing rate of one host, limited by cores, ports and the reader's rate."""


def host_limits(rates: Rates, classes: Classes) -> Floats:
    """Maximum rate of one host with all cores used by one filter, limited by its port: [filters, classes]."""
    with np.errstate(divide="ignore"):
        by_port = classes.port / np.maximum(rates.rate_in, rates.rate_out)[:, None]
    limit: Floats = np.minimum(np.minimum(classes.core * classes.cores, rates.most), by_port)
    return limit


def build_compact(rates: Rates, classes: Classes, weights: Weights, *, strict: bool) -> Compact:
    """Build the program with one filter per host. Comments give the numbers of the constraints in the paper."""
    b = Builder()
    k, g, n_options = rates.n_filters, classes.n, len(rates.readable)
    limit = host_limits(rates, classes)
    option, read, reader = _source_columns(b, rates, classes, weights, strict=strict)
    full_rows = reader.rows
    work = b.add_columns((k, g), high=np.where(np.arange(k)[:, None] > 0, np.inf, 0.0))
    most = np.where(np.arange(k)[:, None] > 0, classes.size, 0)
    count = b.add_columns((k, g), high=most, cost=-weights.host_cost, whole=True)
    add_totals(b, k, work, read)
    copy_rows = b.add_rows(k - 1, low=1.0)  # 7: every filter has a copy
    b.put(copy_rows[:, None], count[1:], 1.0)
    host_rows = b.add_rows(g, high=classes.size)  # 15: at most one filter on a host
    b.put(host_rows[None, :], count[1:], 1.0)
    b.put(host_rows[None, :], option[:, None], (classes.share > 0) * classes.size)
    limit_rows = b.add_rows((k - 1) * g, high=0.0).reshape(k - 1, g)  # 10, 12 for ports, 13
    b.put(limit_rows, work[1:], 1.0)
    b.put(limit_rows, count[1:], -limit[1:])
    power = classes.core * classes.cores
    if strict:  # 11
        rows = b.add_rows(k - 1, low=0.0)
        b.put(rows[:, None], count[1:], np.minimum(power, (1 + weights.spare) * rates.most)[1:])
        b.put(rows[:, None], read[None, :], np.full((1, n_options), -(1 + weights.spare)))
        full_rows = np.concatenate([full_rows, rows])
    _least_use(b, np.minimum(power, rates.most), weights, work, count, int(classes.size.sum()))
    streams, pairs, between = add_flows(b, rates)
    empty = np.empty((0, g), np.int64)
    add_balance(b, rates, classes, streams, pairs, between, read, work, empty)
    return Compact(
        rates=rates,
        classes=classes,
        strict=strict,
        spare=weights.spare if strict else 0.0,
        link_rows=add_links(b, rates, pairs, between),
        linear=b.build(),
        option=option,
        read=read,
        work=work,
        count=count,
        local=empty,
        streams=streams,
        pairs=pairs,
        between=between,
        host_rows=host_rows,
        copy_rows=copy_rows,
        full_rows=full_rows,
        resources=(reader, *_hosts_as_resources(rates, classes, limit_rows, count, limit)),
        limit=limit,
    )


def _source_columns(
    b: Builder, rates: Rates, classes: Classes, weights: Weights, *, strict: bool
) -> tuple[Numbers, Numbers, Resource]:
    """4, 5 and 5': one option is chosen, and the reader runs at its rate, or at most at that rate."""
    with np.errstate(divide="ignore"):
        by_port = np.min(
            np.where(classes.share > 0, classes.port / (classes.share * rates.rate_out[0]), np.inf), axis=1
        )
    readers = ((classes.share > 0) * classes.size).sum(axis=1)
    possible = by_port >= rates.readable * (1 - 1e-12) if strict else np.ones(len(readers), bool)
    option = b.add_columns((len(readers),), high=possible, cost=-weights.host_cost * readers, whole=True)
    read = b.add_columns((len(readers),))
    b.put(b.add_rows(1, low=1.0, high=1.0), option, 1.0)
    rows = b.add_rows(len(readers), low=0.0 if strict else -np.inf, high=0.0)
    b.put(rows, read, 1.0)
    rate = rates.readable if strict else np.minimum(rates.readable, by_port)
    b.put(rows, option, -rate)
    return option, read, Resource("reader", rows, option, rate, 0, np.full(len(rows), -1))


def _hosts_as_resources(
    rates: Rates, classes: Classes, rows: Numbers, count: Numbers, limit: Floats
) -> Iterator[Resource]:
    """For each filter, the classes limited by their cores and those limited by their ports."""
    power = np.minimum(classes.core * classes.cores, rates.most)
    for k in range(1, rates.n_filters):
        by_cpu = limit[k] >= power[k]
        for kind, which in (("cpu", np.flatnonzero(by_cpu)), ("port", np.flatnonzero(~by_cpu))):
            yield Resource(kind, rows[k - 1, which], count[k, which], limit[k, which], k, which)  # type: ignore[arg-type]


def add_totals(b: Builder, k: int, work: Numbers, read: Numbers) -> None:
    """Every filter processes all input; this also covers streams that carry no data."""
    rows = b.add_rows(k - 1, low=0.0, high=0.0)
    b.put(rows[:, None], work[1:], 1.0)
    b.put(rows[:, None], read[None, :], -1.0)


def _least_use(
    b: Builder, could: Floats, weights: Weights, work: Numbers, count: Numbers, n_hosts: int
) -> None:
    """14: a host in use has at least the minimum utilisation, unless it is the filter's only host."""
    for k in range(1, len(could)):
        if weights.least[k] == 0:
            continue
        least = weights.least[k] * could[k]
        only = b.add_columns((1,), high=1.0, whole=True)
        rows = b.add_rows(len(least), low=0.0)
        b.put(rows, work[k], 1.0)
        b.put(rows, count[k], -least)
        b.put(rows, only, least)
        row = b.add_rows(1, high=n_hosts)
        b.put(row, count[k], 1.0)
        b.put(row, only, n_hosts - 1)


def add_flows(b: Builder, rates: Rates) -> tuple[Numbers, Numbers, Numbers]:
    streams = np.flatnonzero(rates.stream_rate > 0)
    pairs = np.argwhere(rates.routed > 0)
    cost = np.broadcast_to(rates.weight[pairs[:, 0], pairs[:, 1]], (len(streams), len(pairs)))
    return streams, pairs, b.add_columns((len(streams), len(pairs)), cost=cost)


def add_balance(
    b: Builder,
    rates: Rates,
    classes: Classes,
    streams: Numbers,
    pairs: Numbers,
    between: Numbers,
    read: Numbers,
    work: Numbers,
    local: Numbers,
) -> None:
    """6 and 9: flow conservation: a zone's production on a stream equals its outflow, and likewise for inflow."""
    n_zones = len(rates.weight)
    for j, e in enumerate(streams.tolist()):
        for end, ends in ((0, rates.stream_source), (1, rates.stream_target)):
            rows = b.add_rows(n_zones, low=0.0, high=0.0)
            b.put(rows[pairs[:, end]], between[j], 1.0)
            if ends[e] == 0:
                amount = -rates.stream_rate[e] * classes.share * classes.size
                b.put(rows[classes.zone][None, :], read[:, None], amount)
            else:
                b.put(rows[classes.zone], work[ends[e]], -rates.stream_rate[e])
            if len(local):
                b.put(rows[classes.zone], local[e], 1.0)


def add_links(b: Builder, rates: Rates, pairs: Numbers, between: Numbers) -> Numbers:
    """12: capacities of links and segments."""
    rows = b.add_rows(len(rates.capacity), high=rates.capacity)
    number = np.full(rates.routed.shape, -1, np.int64)
    number[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    column = number[rates.link_from, rates.link_to]
    for j in range(len(between)):
        b.put(rows[rates.link_rows], between[j, column], 1.0)
    return rows
