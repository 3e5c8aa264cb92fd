"""Heuristic placements: one host per filter, or all hosts in proportion to trial times."""

from __future__ import annotations

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.disaggregate import HostFlows
from headrace.planners.pipeline.rates import Rates


def trial_work(problem: PipelineProblem) -> Floats:
    """Time of each filter, in order, in the trial run on a host of power 1."""
    return np.array([f.seconds * f.power for f in problem.pipeline.order])


def near_reader(rates: Rates, option: int) -> Numbers:
    """Hosts that do not read under an option: those in a reader's zone first, otherwise in platform order."""
    readers = rates.share[option] > 0
    near = np.isin(rates.zone, rates.zone[readers])
    free = np.flatnonzero(~readers)
    return free[np.argsort(~near[free], kind="stable")]


def powerful_first(rates: Rates, option: int) -> Numbers:
    """Hosts that do not read under an option, the most powerful first; ties in platform order."""
    free = np.flatnonzero(rates.share[option] == 0)
    power = (1.0 / (1.0 / rates.core[1:, free]).sum(axis=0)) * rates.cores[free]
    return free[np.argsort(-power, kind="stable")]


def proportional_counts(parts: Floats, hosts: int) -> Numbers:
    """Numbers of hosts in proportion to `parts`, at least one each, by the largest-remainder method.

    Raises NoPlan if there are fewer hosts than parts.

    >>> proportional_counts(np.array([244.0, 42.0, 35.0, 7.0]), 47).tolist()
    [35, 6, 5, 1]
    """
    if len(parts) > hosts:
        raise NoPlan(
            f"{len(parts)} filters besides the reader need a host, but only {hosts} hosts are free",
            hint="add hosts, or let filters share hosts",
        )
    total = float(parts.sum())
    wanted = parts / total * hosts if total > 0 else np.full(len(parts), hosts / len(parts))
    counts = np.maximum(np.floor(wanted).astype(np.int64), 1)
    while counts.sum() < hosts:
        counts[np.argmax(wanted - counts)] += 1
    while counts.sum() > hosts:
        over = np.where(counts > 1, counts - wanted, -np.inf)
        counts[np.argmax(over)] -= 1
    return counts


def place(rates: Rates, option: int, hosts: Numbers, counts: Numbers, order: Numbers) -> Numbers:
    """[filters, hosts] 1 where a filter runs: filters in `order` take the next of `hosts`."""
    placed = np.zeros(rates.core.shape, np.int64)
    placed[0] = rates.share[option] > 0
    start = 0
    for k in order.tolist():
        placed[k, hosts[start : start + counts[k - 1]]] = 1
        start += counts[k - 1]
    return placed


def even_flows(rates: Rates, option: int, placed: Numbers) -> HostFlows:
    """Distribute the flow evenly over the cores of each filter's hosts: the slowest host, port or link limits all.

    O(filters * hosts + streams * zones squared).
    """
    share = placed * rates.cores
    share = share / share.sum(axis=1, keepdims=True)
    share[0] = rates.share[option]
    capacity = rates.core * np.where(np.arange(len(share))[:, None] > 0, rates.cores, 1.0)
    n_zones = len(rates.weight)
    by_zone = np.zeros((len(share), n_zones))
    for k in range(len(share)):
        by_zone[k] = np.bincount(rates.zone, share[k], n_zones)
    flow = (
        rates.stream_rate[:, None, None]
        * by_zone[rates.stream_source][:, :, None]
        * by_zone[rates.stream_target][:, None, :]
    )
    way = rates.quickest
    load = np.bincount(way.row, flow.sum(axis=0)[way.source, way.target], len(rates.capacity))
    used_in = (share * rates.rate_in[:, None]).sum(axis=0)
    used_out = (share * rates.rate_out[:, None]).sum(axis=0)
    limits = [(capacity, share), (rates.port, used_in), (rates.port, used_out), (rates.capacity, load)]
    throughput = min(float(np.min(have[use > 0] / use[use > 0], initial=np.inf)) for have, use in limits)
    if np.any(flow.sum(axis=0)[rates.routed == 0] > 0):
        throughput = 0.0
    return HostFlows(
        option,
        throughput,
        placed,
        share * throughput,
        flow * throughput,
        np.zeros((len(rates.stream_rate), len(rates.zone))),
    )
