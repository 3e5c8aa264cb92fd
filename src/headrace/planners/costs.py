"""What tasks and transfers take on average machines."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Ints


def mean_costs(problem: Problem, hosts: Ints | None = None) -> tuple[Floats, float, float]:
    """Mean run time of each task over hosts; mean latency and mean seconds per byte over pairs of hosts.

    Only the given hosts count, all if none are given; pairs without a route do not. O(tasks + places^2).
    """
    graph, network = problem.graph, problem.platform.network
    rates, host_place = problem.platform.rates(graph.kinds), network.host_place
    if hosts is not None:
        rates, host_place = rates[:, hosts], host_place[hosts]
    cost = graph.work * (1.0 / rates).mean(axis=1)[graph.kind]
    weight = np.bincount(host_place, minlength=network.n_places).astype(np.float64)
    used = np.flatnonzero(weight)
    zone, slowness, weight = network.zone[used], 1.0 / network.port[used], weight[used]
    latency = seconds = pairs = 0.0
    for i in range(len(used)):
        bandwidth = network.route_bandwidth[zone[i], zone]
        count = weight[i] * np.where(bandwidth > 0, weight, 0.0)
        pairs += count.sum() - weight[i]
        count[i] = 0.0
        with np.errstate(divide="ignore"):
            slowest = np.maximum(np.maximum(slowness[i], slowness), 1.0 / bandwidth)
        latency += float((count * network.route_latency[zone[i], zone]).sum())
        seconds += float((count[count > 0] * slowest[count > 0]).sum())
    return (cost, latency / pairs, seconds / pairs) if pairs > 0 else (cost, 0.0, 0.0)
