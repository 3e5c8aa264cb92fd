"""A platform that grows during a run: the same state with one more host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.core.state import (
    ABSENT,
    BALANCED,
    COPIES,
    PLANNED_REQUESTS,
    PRESENT,
    RECORD_FIELDS,
    REQUESTS,
    TRANSFERS,
    CoordinatorState,
    StaticProblem,
)
from headrace.core.transitions.copies import link_records
from headrace.model.graph import Ints
from headrace.model.platform import Host, Pairs, Platform

_BY_TASK = (
    "missing_inputs", "absent_inputs", "assigned", "done", "rank", "reserved", "in_order", "predicted", "queue_next",
    "queue_previous", "startable_next", "startable_previous", "startable", "run_host", "run_core", "run_start",
    "duplicate_host", "duplicate_core", "duplicate_start", "ran_on", "ran_for", "gate_running",
)  # fmt: skip
_BY_ITEM = (
    "exists", "copy_count", "pending_readers", "delivered", "size", "to_replicate", "to_replicate_at", "stack",
)  # fmt: skip
_BY_HOST = (
    "host_up", "queue_length", "queue_head", "queue_tail", "startable_head", "startable_tail", "busy_cores", "backlog",
    "last_completion", "load", "idle_hosts", "crowded_hosts", "load_position", "running", "start_sum",
)  # fmt: skip


def with_host(platform: Platform, host: Host) -> Platform:
    """The platform with one more host, the last: in the last site that has hosts, connected as the others are.

    In a pairwise network its links have the median bandwidth and latency of the others. O(hosts^2) there.

    >>> lab = with_host(Platform.pairwise([2.0, 1.0], bandwidth=1e6), Host("new", 4.0))
    >>> [h.name for h in lab.hosts], lab.network.bandwidth(0, 2)
    (['h0', 'h1', 'new'], 1000000.0)
    """
    last = max(k for k, site in enumerate(platform.sites) if site.hosts)
    sites = [
        replace(site, hosts=(*site.hosts, host)) if k == last else site
        for k, site in enumerate(platform.sites)
    ]
    pairs = platform.pairs
    if pairs is not None:
        pairs = Pairs(_padded(pairs.bandwidth), _padded(pairs.latency))
    return replace(platform, sites=tuple(sites), pairs=pairs)


def _padded(values: Any) -> Any:
    """A matrix of pairs with one more row and column, of the median of the others."""
    if not isinstance(values, np.ndarray) or values.ndim != 2:
        return values
    others = values[~np.eye(len(values), dtype=bool)]
    typical = float(np.median(others)) if len(others) else float(values[0, 0])
    return np.pad(values, ((0, 1), (0, 1)), constant_values=typical)


def grown_state(
    problem: StaticProblem, old: CoordinatorState, fresh: CoordinatorState, places: Ints
) -> CoordinatorState:
    """The state of a run on a platform with one more host, which is not up yet: O(tasks + copies).

    `problem` and `fresh` are those of the start of a run on the new platform; `places` has the new number of each
    old place. Only for workers with their own queues: requests and transfers, which they do not need, are dropped.
    """
    state = fresh._replace(
        **{name: getattr(old, name).copy() for name in (*_BY_TASK, *_BY_ITEM)}, counters=old.counters.copy()
    )
    hosts, cores = len(old.host_up), len(old.core_task)
    for name in _BY_HOST:
        getattr(state, name)[:hosts] = getattr(old, name)[:hosts]
    for name in (
        "queue_head",
        "queue_tail",
        "queue_length",
    ):  # the last queue holds ready tasks without a host
        values = getattr(state, name)
        values[hosts + 1], values[hosts] = getattr(old, name)[hosts], 0 if name == "queue_length" else -1
    state.host_up[hosts] = 0
    state.load[hosts] = BALANCED
    state.core_task[:cores] = old.core_task
    state.need_used[: len(old.need_used)] = old.need_used
    state.place_up[:] = 1
    state.place_up[places] = old.place_up
    state.storage_used[:] = 0
    state.storage_used[: len(old.storage_used)] = old.storage_used
    for name in ("holder", "replica"):
        values = getattr(old, name)
        getattr(state, name)[:] = np.where(values >= 0, places[np.maximum(values, 0)], -1)
    own = problem.host_place[hosts]
    if problem.place_host[own] == hosts:
        state.place_up[own] = 0
    state.counters[REQUESTS] = state.counters[TRANSFERS] = state.counters[PLANNED_REQUESTS] = 0
    return _with_copies(old, state, places)


def _with_copies(old: CoordinatorState, state: CoordinatorState, places: Ints) -> CoordinatorState:
    """The copy records at the new places; those that were only requested are absent."""
    used, capacity = int(old.counters[COPIES]), len(old.copy_item)
    records = {name: getattr(old, name).copy() for name in RECORD_FIELDS}
    records["copy_place"][:used] = places[old.copy_place[:used]]
    records["copy_status"][:used][old.copy_status[:used] != PRESENT] = ABSENT
    records["copy_request"][:] = -1
    records["copy_outgoing"][:] = -1
    records["copy_relayed"][:] = 0
    lists: dict[str, Any] = {
        "item_copies": np.full(len(old.item_copies), -1, np.int32),
        "copy_next": np.full(capacity, -1, np.int32),
        "copy_table": np.full(len(old.copy_table), -1, np.int32),
    }
    link_records(
        lists["item_copies"], records["copy_item"], records["copy_place"], lists["copy_next"], lists["copy_table"],
        used,
    )  # fmt: skip
    return state._replace(**records, **lists)
