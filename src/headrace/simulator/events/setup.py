"""Set up the grid of a simulated run from a platform and its scripted changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace.core.state import CoordinatorState, StaticProblem
from headrace.model.behaviour import Change
from headrace.model.graph import Floats, Graph
from headrace.model.platform import Platform
from headrace.model.trace import LinkTrace, Trace, pack
from headrace.simulator.events.grid_state import GridState, make_grid_state


class Setup(NamedTuple):
    """The initial grid, and the traces and links that changes refer to."""

    grid: GridState
    traces: list[Trace]
    """All traces that hosts and links follow, now or later; the fields below index this table."""
    of_change: list[tuple[int, int]]
    """The trace of each change, and its latency trace if it concerns a link; -1 for none."""
    links: dict[str, tuple[int, ...]]
    """The links that a change names."""


def set_up_grid(
    real: Graph,
    platform: Platform,
    problem: StaticProblem,
    state: CoordinatorState,
    changes: Sequence[Change],
) -> Setup:
    """Build the grid with the initial traces of hosts and links and those that changes introduce."""
    traces: list[Trace] = []

    def number(trace: Trace | None) -> int:
        if trace is None:
            return -1
        traces.append(trace)
        return len(traces) - 1

    followed_later = {c.name for c in changes if isinstance(c.behaviour, Trace)}
    shares = [
        Trace.constant(1.0 - host.load) if host.trace is None and host.name in followed_later else host.trace
        for host in platform.hosts
    ]
    host_trace = np.array([number(share) for share in shares], np.int32)
    links = platform.network.n_links
    link_trace, link_delay = np.full(links, -1, np.int32), np.full(links, -1, np.int32)
    for link, followed in platform.network.link_trace.items():
        link_trace[link] = number(followed.bandwidth)
        link_delay[link] = number(followed.latency)
    of_change: list[tuple[int, int]] = []
    for change in changes:
        behaviour = change.behaviour
        if isinstance(behaviour, LinkTrace):
            of_change.append((number(behaviour.bandwidth), number(behaviour.latency)))
        else:
            of_change.append((number(behaviour), -1))
    grid = make_grid_state(
        real,
        platform,
        problem,
        state,
        rate=_true_rates(platform, real, changes),
        table=pack(traces),
        host_trace=host_trace,
        link_trace=link_trace,
        link_delay=link_delay,
        link_delay_mean=_static_delays(platform),
    )
    return Setup(grid, traces, of_change, _trace_links(platform))


def _true_rates(platform: Platform, real: Graph, changes: Sequence[Change]) -> Floats:
    """Speed of each host for each speed class while it is wholly available; hosts with a trace have no other load."""
    rates = platform.rates(real)
    named = {c.name for c in changes if isinstance(c.behaviour, Trace)}
    for h, host in enumerate(platform.hosts):
        if host.trace is not None or host.name in named:
            rates[:, h] /= 1.0 - host.load
    return rates


def _static_delays(platform: Platform) -> Floats:
    """What each link contributes to the latency of routes over it, which its trace replaces."""
    network = platform.network
    if platform.pairs is not None:
        return np.asarray(network.route_latency[~np.eye(network.n_places, dtype=np.bool_)])
    own = {f"{site.name} uplink": site.uplink_latency for site in platform.sites}
    for link in platform.links:
        own[f"{link.source} -> {link.target}"] = link.latency
        if not link.oneway:
            own[f"{link.target} -> {link.source}"] = link.latency
    return np.array([own.get(name, 0.0) for name in network.link_names])


def _trace_links(platform: Platform) -> dict[str, tuple[int, ...]]:
    """The links that a change names: a site's uplink, or a link by its own name."""
    names = platform.network.link_names
    links: dict[str, tuple[int, ...]] = {name: (k,) for k, name in enumerate(names)}
    for site in platform.sites:
        if f"{site.name} uplink" in links:
            links[site.name] = links[f"{site.name} uplink"]
    return links
