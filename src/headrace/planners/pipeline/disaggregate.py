"""Disaggregate a solution for classes and zones to single hosts: filters of each host and flows between hosts.

Hosts of a class that run the same filter have equal rates. Flows between two zones are divided along a line: the
outputs of all senders are laid end to end, and so are the inputs of all receivers; each stretch that a sender and a
receiver share is a flow between them. Sums for every host and every pair of zones are as planned, so all constraints
hold, and there are at most as many flows as senders, receivers and pairs of zones together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.deployment import Flow, Placement
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.rates import Rates

DUST = 1e-9
"""Flows and amounts of work below this share of the total are treated as rounding errors."""


@dataclass(frozen=True, eq=False)
class HostFlows:
    """A deployment in arrays over hosts; rates in the unit of its `Rates`."""

    option: int
    throughput: float
    placed: Numbers
    """[filters, hosts] 1 where a filter runs."""
    work: Floats
    """[filters, hosts] processing rate, in terms of input read."""
    zone_flow: Floats
    """[streams, zones, zones] flows, excluding those that stay on their host."""
    local: Floats
    """[streams, hosts] flows that stay on their host."""


def disaggregate(program: Compact, x: Floats) -> HostFlows:
    """The solution of a compact program by hosts: O(filters * hosts + streams * zones squared)."""
    rates, classes = program.rates, program.classes
    option = int(np.argmax(x[program.option]))
    throughput = float(x[program.read].sum())
    counts = np.rint(x[program.count]).astype(np.int64)
    shared = len(program.local) > 0
    placed = np.zeros(rates.core.shape, np.int64)
    work = np.zeros(rates.core.shape)
    local = np.zeros((len(rates.stream_rate), len(rates.zone)))
    work[0] = rates.share[option] * throughput
    placed[0] = rates.share[option] > 0
    members = np.split(np.argsort(classes.of_host, kind="stable"), np.cumsum(classes.size)[:-1])
    for g, k in np.argwhere((counts > 0).T).tolist():
        if k == 0:
            continue
        first = 0 if shared else int(counts[1:k, g].sum())
        hosts = members[g][first : first + counts[k, g]]
        done = max(0.0, float(x[program.work[k, g]]))
        work[k, hosts] = done / counts[k, g]
        placed[k, hosts] = 1 if not shared or done > DUST * throughput else 0
        if shared:
            local[:, hosts] = np.maximum(x[program.local[:, g]], 0.0)[:, None] / counts[k, g]
    if shared:
        _place_idle(placed)
    n_zones = len(rates.weight)
    zone_flow = np.zeros((len(rates.stream_rate), n_zones, n_zones))
    pairs = program.pairs
    zone_flow[program.streams[:, None], pairs[:, 0][None, :], pairs[:, 1][None, :]] = x[program.between]
    return HostFlows(option, throughput, placed, work, np.maximum(zone_flow, 0.0), local)


def _place_idle(placed: Numbers) -> None:
    """Place filters without flow on the reader's host, because every filter needs a copy."""
    for k in np.flatnonzero(placed.sum(axis=1) == 0).tolist():
        placed[k, np.argmax(placed[0])] = 1


def placements(problem: PipelineProblem, rates: Rates, found: HostFlows) -> tuple[Placement, ...]:
    """Placements by filter in pipeline order, then by host; the number of copies is the cores needed, at least one."""
    names = [f.name for f in problem.pipeline.order]
    hosts = problem.platform.hosts
    rate_in = rates.rate_in.copy()
    rate_in[0] = 1.0
    whole = found.throughput * rates.unit * rate_in
    made = []
    for k, h in np.argwhere(found.placed > 0).tolist():
        total = float(found.work[k].sum())
        done = float(found.work[k, h])
        busy = done / float(rates.core[k, h])
        share = done / total if total > 0 else 1.0 / int(found.placed[k].sum())
        copies = min(hosts[h].cores, max(1, int(np.ceil(busy * (1 - DUST))))) if k > 0 else 1
        made.append(Placement(names[k], hosts[h].name, copies, share, share * float(whole[k]), busy))
    return tuple(made)


def flows(problem: PipelineProblem, rates: Rates, found: HostFlows) -> tuple[Flow, ...]:
    """Flows between hosts, by stream, then by sender and receiver."""
    names = [f.name for f in problem.pipeline.order]
    hosts = [h.name for h in problem.platform.hosts]
    made: list[Flow] = []
    for e in np.flatnonzero(rates.stream_rate > 0).tolist():
        a, b = int(rates.stream_source[e]), int(rates.stream_target[e])
        stays = found.local[e]
        sender, receiver, rate = _host_flows(
            np.maximum(found.work[a] * rates.stream_rate[e] - stays, 0.0),
            np.maximum(found.work[b] * rates.stream_rate[e] - stays, 0.0),
            rates.zone,
            found.zone_flow[e],
        )
        here = np.flatnonzero(stays > 0)
        sender, receiver = np.concatenate([here, sender]), np.concatenate([here, receiver])
        rate = np.concatenate([stays[here], rate])
        key, inverse = np.unique(sender * len(hosts) + receiver, return_inverse=True)
        rates_of = np.bincount(inverse.ravel(), rate, len(key))
        for pair, amount in zip(key.tolist(), rates_of.tolist(), strict=True):
            if amount > 0:
                ends = divmod(pair, len(hosts))
                made.append(Flow(names[a], names[b], hosts[ends[0]], hosts[ends[1]], amount * rates.unit))
    return tuple(made)


def _host_flows(
    sent: Floats, received: Floats, zone: Numbers, between: Floats
) -> tuple[Numbers, Numbers, Floats]:
    """Senders, receivers and rates such that the totals of hosts and pairs of zones are as planned."""
    total = float(between.sum())
    blocks = np.argwhere(between > DUST * total)
    if total <= 0 or not len(blocks):
        none = np.empty(0, np.int64)
        return none, none, np.empty(0)
    amount = between[blocks[:, 0], blocks[:, 1]]
    out_host, out_block, out_part = _pieces(sent, zone, blocks[:, 0], amount)
    in_host, in_block, in_part = _pieces(received, zone, blocks[:, 1], amount)
    start = np.concatenate([[0.0], np.cumsum(amount)])
    out_end = _ends(out_block, out_part, amount, start)
    in_end = _ends(in_block, in_part, amount, start)
    cuts = np.unique(np.concatenate([[0.0], out_end, in_end]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    length = np.diff(cuts)
    i = np.minimum(np.searchsorted(out_end, middle), len(out_end) - 1)
    j = np.minimum(np.searchsorted(in_end, middle), len(in_end) - 1)
    keep = length > DUST * 1e-3 * total
    return out_host[i[keep]], in_host[j[keep]], length[keep]


def _pieces(
    amounts: Floats, zone: Numbers, block_zone: Numbers, block_amount: Floats
) -> tuple[Numbers, Numbers, Floats]:
    """Divide the amounts of each zone's hosts into the zone's blocks: host, block and size of each piece."""
    hosts: list[Numbers] = []
    blocks: list[Numbers] = []
    parts: list[Floats] = []
    for z in np.unique(block_zone).tolist():
        mine = np.flatnonzero((zone == z) & (amounts > 0))
        own = np.flatnonzero(block_zone == z)
        if not len(mine):
            continue
        host_end = np.cumsum(amounts[mine])
        block_end = np.cumsum(block_amount[own])
        host_end *= block_end[-1] / host_end[-1]
        cuts = np.unique(np.concatenate([[0.0], host_end, block_end]))
        middle = (cuts[1:] + cuts[:-1]) / 2
        hosts.append(mine[np.minimum(np.searchsorted(host_end, middle), len(mine) - 1)])
        blocks.append(own[np.minimum(np.searchsorted(block_end, middle), len(own) - 1)])
        parts.append(np.diff(cuts))
    host, block, part = np.concatenate(hosts), np.concatenate(blocks), np.concatenate(parts)
    order = np.argsort(block, kind="stable")
    return host[order], block[order], part[order]


def _ends(block: Numbers, part: Floats, amount: Floats, start: Floats) -> Floats:
    """The end of each piece on the line of consecutive blocks."""
    total = np.bincount(block, part, len(amount))
    within = np.cumsum(part) - np.concatenate([[0.0], np.cumsum(total)])[block]
    ends: Floats = start[block] + within * (amount / np.where(total > 0, total, 1.0))[block]
    return ends
