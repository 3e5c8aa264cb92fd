"""Disaggregate a solution for classes and zones to single hosts: filters of each host and flows between hosts.

Hosts of a class that run the same filter have equal rates. Flows between two zones are divided along a line: the
outputs of all senders are laid end to end, and so are the inputs of all receivers; each stretch that a sender and a
receiver share is a flow between them. Sums for every host and every pair of zones are as planned, so all constraints
hold, and there are at most as many flows as senders, receivers and pairs of zones together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.deployment import Flow, Placement
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.rounding import Whole, flow_matrix

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

    def scaled(self, factor: float) -> HostFlows:
        """The same placement with less flow."""
        return replace(
            self,
            throughput=self.throughput * factor,
            work=self.work * factor,
            zone_flow=self.zone_flow * factor,
            local=self.local * factor,
        )


def disaggregate(program: Compact, classes: Classes, x: Floats) -> HostFlows:
    """The solution of a compact program over classes by hosts: O(filters * hosts + streams * zones squared)."""
    rates = program.rates
    throughput = float(x[program.read[0]])
    counts = np.rint(x[program.count]).astype(np.int64)
    done = np.maximum(x[program.work], 0.0)
    if not len(program.local):
        whole = Whole(0.0, throughput, counts, done, flow_matrix(program, x))
        return spread(rates, classes, whole)
    placed, work = _readers(rates, throughput)
    local = np.zeros((len(rates.stream_rate), len(rates.zone)))
    members = _members(classes)
    for g in np.flatnonzero(counts[0] > 0).tolist():
        hosts = members[g][: counts[0, g]]
        work[1:, hosts] = done[1:, g, None] / counts[0, g]
        placed[1:, hosts] = (done[1:, g, None] > DUST * throughput).astype(np.int64)
        local[:, hosts] = np.maximum(x[program.local[:, g]], 0.0)[:, None] / counts[0, g]
    _place_idle(placed)
    return HostFlows(0, throughput, placed, work, flow_matrix(program, x), local)


def spread(rates: Rates, classes: Classes, whole: Whole) -> HostFlows:
    """A solution by classes with one filter on each host, by hosts: the first hosts of a class run the first filter."""
    placed, work = _readers(rates, whole.throughput)
    members = _members(classes)
    for g, k in np.argwhere((whole.counts[1:] > 0).T).tolist():
        first = int(whole.counts[1 : k + 1, g].sum())
        hosts = members[g][first : first + whole.counts[k + 1, g]]
        work[k + 1, hosts] = whole.work[k + 1, g] / whole.counts[k + 1, g]
        placed[k + 1, hosts] = 1
    local = np.zeros((len(rates.stream_rate), len(rates.zone)))
    return HostFlows(0, whole.throughput, placed, work, whole.zone_flow, local)


def _readers(rates: Rates, throughput: float) -> tuple[Numbers, Floats]:
    placed = np.zeros(rates.core.shape, np.int64)
    work = np.zeros(rates.core.shape)
    work[0] = rates.share[0] * throughput
    placed[0] = rates.share[0] > 0
    return placed, work


def _members(classes: Classes) -> list[Numbers]:
    return np.split(np.argsort(classes.of_host, kind="stable"), np.cumsum(classes.size)[:-1])


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
