"""The hosts that the list scheduler may choose for each task, and the cost by which it chooses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import ProblemArrays
from headrace.model.graph import Bools, Floats, Ints


class HostConstraints(NamedTuple):
    """The hosts allowed for each task, and the criterion for the best one."""

    hosts: Int64s
    """The hosts allowed, ascending."""
    places: Int64s
    """Their places, each once."""
    fixed: Ints
    """The only host of each task, or -1 for any allowed one."""
    stay: Bools
    """Tasks that go to an allowed host with all their inputs, if there is one."""
    extra: Floats
    """[1 or tasks, places] added to the cost of a task at a place; a single row applies to all tasks."""
    link_price: Floats
    """[1 or zones, 1 or zones] added to the cost for each second of transfers of inputs between two zones, if links are
    exclusive."""
    earliest_start: bool
    """True: the cost is the start, ties by finish. False: the cost is the finish."""


def host_constraints(
    problem: ProblemArrays,
    *,
    hosts: Ints | None = None,
    fixed: Ints | None = None,
    stay: Bools | None = None,
    extra: Floats | None = None,
    link_price: Floats | None = None,
    earliest_start: bool = False,
) -> HostConstraints:
    """Constraints on the host of each task, and the cost to minimise; by default the finish, on any host.

    Args:
        problem: The problem's arrays.
        hosts: The hosts allowed; None: all.
        fixed: The host of each task; -1: any, as for a task that needs more cores than its host has.
        stay: Tasks that go to a host with all their inputs, if there is one.
        extra: [tasks, places] added to the cost.
        link_price: [zones, zones] added to the cost for each second of a transfer, at least 0.
        earliest_start: Minimise the start instead of the finish.
    """
    n, n_places = len(problem.tasks.work), len(problem.network.zone)
    allowed = np.arange(len(problem.hosts.place)) if hosts is None else np.sort(hosts).astype(np.int64)
    if fixed is not None:
        fixed = np.where(problem.tasks.cores <= np.diff(problem.hosts.core_ptr)[fixed], fixed, -1)
    return HostConstraints(
        hosts=allowed,
        places=np.unique(problem.hosts.place[allowed]),
        fixed=np.full(n, -1, np.int32) if fixed is None else fixed.astype(np.int32),
        stay=np.zeros(n, np.bool_) if stay is None else stay,
        extra=np.zeros((1, n_places)) if extra is None or not len(extra) else extra,
        link_price=np.zeros((1, 1)) if link_price is None else link_price,
        earliest_start=earliest_start,
    )
