"""Parameter sweeps: the set-up of figure 11 of the parameter-sweep paper, and large ones for measuring speed."""

from __future__ import annotations

import numpy as np

from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.reproductions.figure_11 import KB, TASKS_IN_CHUNK, figure_11, tasks_that_share_files

__all__ = ["figure_11", "sweep"]


def sweep(tasks: int, hosts: int, clusters: int, seed: int) -> tuple[Program, Platform]:
    """A sweep of any size: chunks of 50 tasks that share a file, on clusters with storage behind uplinks.

    Shared files have 0.1 to 10 MB, private inputs and outputs about 10 KB; uplinks carry 50 to 500 KB/s. Clusters
    have equally many hosts (the first ones take the rest), in each of one or two speeds.

    >>> program, platform = sweep(100, hosts=10, clusters=3, seed=0)
    >>> len(program.tasks), [len(s.hosts) for s in platform.sites]
    (100, [4, 3, 3, 0])
    """
    rng = np.random.default_rng([seed, 12])
    chunk = np.arange(tasks) // TASKS_IN_CHUNK
    sizes = np.round(10 ** rng.uniform(2, 4, int(chunk.max(initial=0)) + 1)) * KB
    program = tasks_that_share_files(f"sweep-{tasks}", rng, chunk.tolist(), sizes.tolist())
    sites = []
    for c in range(clusters):
        count = hosts // clusters + (c < hosts % clusters)
        speeds = np.round(rng.uniform(0.3, 2.0, 2), 2)
        machines = tuple(Host(f"c{c}h{i}", float(speeds[2 * i // count])) for i in range(count))
        sites.append(Site(f"c{c}", machines, uplink=float(np.round(rng.uniform(50, 500)) * KB)))
    name = f"{hosts}-hosts-{clusters}-clusters"
    return program, Platform((*sites, Site("origin")), contention="fifo", origin="origin", name=name)
