"""The program in which filters share hosts: each takes a share of a host's cores and of its port.

Hosts of a class that are in use have equal rates, because averaging them changes neither flows nor costs. Data sent to
the next filter on the same host does not use the port. W_X is paid per host, not per filter.
"""

from __future__ import annotations

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.compact import (
    Compact,
    Resource,
    add_balance,
    add_flows,
    add_links,
    add_totals,
    zone_shares,
)
from headrace.planners.pipeline.linear import Builder
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights


def build_shared(rates: Rates, classes: Classes, weights: Weights) -> Compact:
    """As `build_compact`, with integer numbers of hosts and fractional shares of filters."""
    b = Builder()
    k, g = rates.n_filters, classes.n
    read = b.add_columns((1,))
    reads = classes.reads[0] > 0
    used = b.add_columns(
        (g,),
        low=np.where(reads, classes.size, 0),
        high=classes.size,
        cost=-weights.host_cost - classes.extra_cost[1],
        whole=True,
    )
    reader_rows = b.add_rows(1, high=rates.readable)  # 5'
    b.put(reader_rows, read, 1.0)
    work = b.add_columns((k, g), high=np.where(np.arange(k)[:, None] > 0, np.inf, 0.0))
    streams, pairs, between = add_flows(b, rates)
    local = b.add_columns(
        (len(rates.stream_rate), g),
        high=np.where(rates.stream_rate > 0, np.inf, 0.0)[:, None],
        cost=rates.weight[classes.zone, classes.zone][None, :],
    )
    add_totals(b, k, work, read)
    cores = _cores(b, rates, classes, weights, read, work, used)
    ports = [
        _ports(b, rates, classes, ends, read, work, local, used)
        for ends in (rates.stream_source, rates.stream_target)
    ]
    share = zone_shares(rates, classes.zone, classes.share[0] * classes.size)
    add_balance(b, rates, classes.zone, share, streams, pairs, between, read, work, local)
    none = np.empty(0, np.int64)
    return Compact(
        rates=rates,
        zone=classes.zone,
        link_rows=add_links(b, rates, pairs, between),
        copy_rows=none,
        linear=b.build(),
        read=read,
        work=work,
        count=np.broadcast_to(used, (k, g)),
        local=local,
        streams=streams,
        pairs=pairs,
        between=between,
        resources=(
            Resource("reader", reader_rows, none, rates.readable, 0, np.full(1, -1)),
            cores,
            *ports,
        ),
        constant=0.0,
    )


def _busy(rates: Rates, classes: Classes) -> Floats:
    """[filters, classes] cores needed per unit of reading rate."""
    with np.errstate(divide="ignore"):
        busy: Floats = 1.0 / classes.core
    return busy


def _cores(
    b: Builder,
    rates: Rates,
    classes: Classes,
    weights: Weights,
    read: Numbers,
    work: Numbers,
    used: Numbers,
) -> Resource:
    """10 and 11: every host keeps the spare share of its cores free."""
    busy = _busy(rates, classes)
    rows = b.add_rows(classes.n, high=0.0)
    b.put(rows[None, :], work[1:], busy[1:] * (1.0 + weights.spare))
    b.put(rows, read, classes.share[0] * classes.size * busy[0])
    b.put(rows, used, -classes.cores)
    for k in range(1, rates.n_filters):  # 13: a filter that takes no time also runs on a host in use
        if np.isinf(classes.core[k]).any():
            present = b.add_rows(classes.n, high=0.0)
            b.put(present, work[k], 1.0)
            b.put(present, used, -rates.most)
    return Resource("cpu", rows, used, classes.cores, -1, np.arange(classes.n))


def _ports(
    b: Builder,
    rates: Rates,
    classes: Classes,
    ends: Numbers,
    read: Numbers,
    work: Numbers,
    local: Numbers,
    used: Numbers,
) -> Resource:
    """12 for ports, per direction: data that leaves its host uses the port. Only data produced there can stay."""
    limited = np.flatnonzero(np.isfinite(classes.port))
    port = b.add_rows(len(limited), high=0.0)
    b.put(port, used[limited], -classes.port[limited])
    for e in np.flatnonzero(rates.stream_rate > 0).tolist():
        rate = rates.stream_rate[e]
        stays = b.add_rows(classes.n, high=0.0)
        b.put(stays, local[e], 1.0)
        b.put(port, local[e, limited], -1.0)
        if ends[e] == 0:
            amount = classes.share[0] * classes.size * rate
            b.put(stays, read, -amount)
            b.put(port, read, amount[limited])
        else:
            b.put(stays, work[ends[e]], -rate)
            b.put(port, work[ends[e], limited], rate)
    return Resource("port", port, used[limited], classes.port[limited], -1, limited)
