"""When processors can take the next task, for tasks of one core and of several."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.arrays.problem import HostArrays
from headrace.planners.batch.records import Availability, HostGroups


@leaf
def take_cores(
    hosts: HostArrays, available: Availability, host: int, needed: int, arrival: float, duration: float
) -> tuple[int, float]:
    """Append a task to the cores of a host that are free first, ties by number: the lowest of them, and the start.

    O(cores * needed).
    """
    low, high = hosts.core_ptr[host], hosts.core_ptr[host + 1]
    last, start = -1, -np.inf
    for _ in range(needed):  # the next core by (time, number) after (start, last)
        core, time = -1, np.inf
        for other in range(low, high):
            free = max(arrival, available.core[other])
            if (free > start or (free == start and other > last)) and (core < 0 or free < time):
                core, time = other, free
        last, start = core, time
    first, taken = -1, 0
    for other in range(low, high):
        free = max(arrival, available.core[other])
        if free < start or (free == start and other <= last):
            first = other if taken == 0 else first
            taken += 1
            available.core[other] = start + duration
    return first, start


@entry
def update_availability(hosts: HostArrays, groups: HostGroups, available: Availability, host: int) -> None:
    """Update the free times of a host and its group: O(cores + hosts of the group).

    O(cores^2) for tasks that hold several cores.
    """
    group = groups.host_group[host]
    for c in range(len(available.needed)):
        available.host[c, host] = _free_from(hosts, available, host, available.needed[c])
        first, second = np.inf, np.inf
        for i in range(groups.group_ptr[group], groups.group_ptr[group + 1]):
            time = available.host[c, groups.group_hosts[i]]
            second = min(second, max(time, first))
            first = min(first, time)
        available.first[c, group], available.second[c, group] = first, second


@leaf
def _free_from(hosts: HostArrays, available: Availability, host: int, needed: int) -> float:
    """When the first `needed` cores of a host are free; inf if it has fewer."""
    least = np.inf
    for core in range(hosts.core_ptr[host], hosts.core_ptr[host + 1]):
        time = available.core[core]
        if time >= least:
            continue
        free = 1
        if needed > 1:
            free = 0
            for other in range(hosts.core_ptr[host], hosts.core_ptr[host + 1]):
                free += 1 if available.core[other] <= time else 0
        if free >= needed:
            least = time
    return least
