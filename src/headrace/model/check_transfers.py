"""Plan checks: transfer durations and use of links."""

from __future__ import annotations

import numpy as np

from headrace.model.check_case import Case, Findings, Numbers, differs, overlaps
from headrace.model.check_fair import fair_finishes
from headrace.model.graph import Floats
from headrace.model.network import Network


def bandwidths(network: Network, source: Numbers, target: Numbers) -> Floats:
    """Bottleneck bandwidth of each route between different places; 0 where there is no route."""
    between = network.route_bandwidth[network.zone[source], network.zone[target]]
    least: Floats = np.minimum(np.minimum(network.port[source], between), network.port[target])
    return least


def check_transfers(case: Case, findings: Findings) -> None:
    """Transfers have the right duration under the platform's contention; under fifo they start on idle links."""
    plan, network = case.plan, case.network
    moves = np.flatnonzero(case.move_ok)
    source, target = plan.move_source[moves], plan.move_target[moves]
    start, finish, size = plan.move_start[moves], plan.move_finish[moves], case.move_size[moves]
    latency = network.route_latency[network.zone[source], network.zone[target]]
    if case.platform.contention == "fair":
        owner, link = _links_used(network, source, target)
        right = fair_finishes(start + latency, size, owner, link, network.link_bandwidth) - start
    else:
        right = latency + size / bandwidths(network, source, target)
    right = np.where(size > 0, right, 0.0)
    findings.add(
        "transfer",
        np.flatnonzero(differs(start, finish, right)),
        lambda j: (
            f"{case.move(moves[j])}: takes {float(finish[j] - start[j])!r} s, but {float(size[j])!r} bytes "
            f"under contention {case.platform.contention!r} take {float(right[j])!r} s"
        ),
    )
    if case.platform.contention == "fifo":
        _check_links(case, moves[size > 0], findings)


def _check_links(case: Case, moves: Numbers, findings: Findings) -> None:
    """A link is busy for the bytes of a transfer over its own bandwidth; with routing by links, until it finishes."""
    plan, names = case.plan, case.network.link_names
    owner, link = _links_used(case.network, plan.move_source[moves], plan.move_target[moves])
    owner = moves[owner]
    start, until = plan.move_start[owner], plan.move_finish[owner]
    if case.platform.routing != "links":
        until = start + case.move_size[owner] / case.network.link_bandwidth[link]
    before, late = overlaps(link, start, until)
    findings.add(
        "link",
        np.arange(len(late)),
        lambda j: (
            f"{case.move(owner[late[j]])}: starts while {case.move(owner[before[j]])} keeps link "
            f"{names[link[late[j]]] if names else int(link[late[j]])!r} busy, until {float(until[before[j]])!r}"
        ),
    )


def _links_used(network: Network, source: Numbers, target: Numbers) -> tuple[Numbers, Numbers]:
    """Every use of a link by a transfer between these places: (index of the transfer, link)."""
    way = network.zone[source].astype(np.int64) * len(network.route_bandwidth) + network.zone[target]
    first, counts = network.route_ptr[way], network.route_ptr[way + 1] - network.route_ptr[way]
    index = np.arange(len(source))
    between = np.repeat(index, counts)
    step = np.arange(len(between)) - np.repeat(np.cumsum(counts) - counts, counts)
    owner = np.concatenate((index, between, index))
    link = np.concatenate(
        (network.out_port[source], network.route_links[first[between] + step], network.in_port[target])
    ).astype(np.int64)
    return owner[link >= 0], link[link >= 0]
