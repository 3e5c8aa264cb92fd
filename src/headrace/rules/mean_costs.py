"""Run and transfer times on average hosts: what a rule sees of tasks without a host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.graph import Floats, Graph
from headrace.model.platform import Platform


class MeanTransfer(NamedTuple):
    """Means over all pairs of different hosts with a route; 0 for two hosts at one place."""

    latency: float
    seconds_per_byte: float

    def seconds(self, size: Floats) -> Floats:
        return np.where(size > 0, self.latency + size * self.seconds_per_byte, 0.0)


def mean_run_seconds(graph: Graph, platform: Platform) -> Floats:
    """The mean run time of each task over all hosts: O(tasks + classes * hosts)."""
    seconds: Floats = graph.work * (1.0 / platform.rates(graph)).mean(axis=1)[graph.speed_class]
    return seconds


def mean_transfer(platform: Platform) -> MeanTransfer:
    """O(places log places + g^2), g kinds of places: places of one zone with equal ports and hosts are alike."""
    network = platform.network
    hosts_at = np.bincount(network.host_place, minlength=network.n_places).astype(np.float64)
    used = np.flatnonzero(hosts_at)
    kinds, places = np.unique(
        np.column_stack((network.zone[used], 1.0 / network.port[used], hosts_at[used])),
        axis=0,
        return_counts=True,
    )
    zone, port_slowness, hosts = kinds[:, 0].astype(np.intp), kinds[:, 1], kinds[:, 2]
    latency = seconds = pairs = 0.0
    for i in range(len(kinds)):
        bandwidth = network.route_bandwidth[zone[i], zone]
        with np.errstate(divide="ignore"):
            slowness = np.maximum(np.maximum(port_slowness[i], port_slowness), 1.0 / bandwidth)
        count = places[i] * hosts[i] * np.where(bandwidth > 0, hosts * places, 0.0)
        count[i] = hosts[i] ** 2 * places[i] * (places[i] - 1) if bandwidth[i] > 0 else 0.0
        latency += float((count * network.route_latency[zone[i], zone])[count > 0].sum())
        seconds += float((count * slowness)[count > 0].sum())
        pairs += float(count.sum() + places[i] * hosts[i] * (hosts[i] - 1))
    return MeanTransfer(latency / pairs, seconds / pairs) if pairs else MeanTransfer(0.0, 0.0)


def path_lengths(graph: Graph, run_seconds: Floats, transfer: MeanTransfer) -> Floats:
    """The longest path from the start of each task to the end of an output, on average hosts (HEFT's upward rank).

    length(t) = run time(t) + max over readers s of (time to send all that s reads from t + length(s)).
    O(tasks + reads).
    """
    n = graph.n_tasks
    maker = graph.producer[graph.reads].astype(np.int64)
    reader = np.repeat(np.arange(n), np.diff(graph.read_ptr))
    inner = maker >= 0
    pairs, pair = np.unique(reader[inner] * n + maker[inner], return_inverse=True)
    size = np.bincount(pair.reshape(-1), weights=graph.size[graph.reads[inner]], minlength=len(pairs))
    ptr = np.searchsorted(pairs // max(n, 1), np.arange(n + 1)).tolist()
    makers, seconds = (pairs % max(n, 1)).tolist(), transfer.seconds(size.astype(np.float64)).tolist()
    length = run_seconds.tolist()
    below = [0.0] * n
    for task in reversed(graph.order.tolist()):
        length[task] += below[task]
        for k in range(ptr[task], ptr[task + 1]):
            below[makers[k]] = max(below[makers[k]], seconds[k] + length[task])
    return np.array(length, np.float64)
