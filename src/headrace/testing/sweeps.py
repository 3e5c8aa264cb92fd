"""Parameter sweeps: the set-up of figure 11 of the parameter-sweep paper, and large ones for measuring speed."""

from __future__ import annotations

import numpy as np

from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program

KB = 1000.0
CHUNKS, TASKS_IN_CHUNK = 8, 50


def figure_11(shared_kb: float, seed: int, shuffled: bool = False) -> tuple[Program, Platform]:
    """400 tasks in 8 chunks, one file of `shared_kb` KB a chunk, on 3 clusters behind links of 10 KB/s.

    Clusters of 4, 6 and 12 hosts that are available by 100, 70 and 30 %. Each task has two inputs and one
    output of its own of 8 to 12 KB and runs for 90 to 110 s. `shuffled`: chunks are mixed in the order of tasks.

    >>> program, platform = figure_11(1200, seed=0)
    >>> len(program.tasks), len(platform.hosts), platform.origin
    (400, 22, 'origin')
    """
    rng = np.random.default_rng([seed, 11])
    chunk = np.repeat(np.arange(CHUNKS), TASKS_IN_CHUNK)
    if shuffled:
        rng.shuffle(chunk)
    program = _program(f"figure-11-{shared_kb:g}", rng, chunk, np.full(CHUNKS, shared_kb * KB))
    clusters = [(4, 0.0), (6, 0.3), (12, 0.7)]
    sites = [
        Site(f"c{c}", tuple(Host(f"c{c}h{i}", load=load) for i in range(hosts)), uplink=10 * KB)
        for c, (hosts, load) in enumerate(clusters)
    ]
    return program, Platform((*sites, Site("origin")), contention="fifo", origin="origin", name="figure-11")


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
    program = _program(f"sweep-{tasks}", rng, chunk, sizes)
    sites = []
    for c in range(clusters):
        count = hosts // clusters + (c < hosts % clusters)
        speeds = np.round(rng.uniform(0.3, 2.0, 2), 2)
        machines = tuple(Host(f"c{c}h{i}", float(speeds[2 * i // count])) for i in range(count))
        sites.append(Site(f"c{c}", machines, uplink=float(np.round(rng.uniform(50, 500)) * KB)))
    name = f"{hosts}-hosts-{clusters}-clusters"
    return program, Platform((*sites, Site("origin")), contention="fifo", origin="origin", name=name)


def _program(name: str, rng: np.random.Generator, chunk: np.ndarray, shared: np.ndarray) -> Program:
    """A task for each entry of `chunk`, which says whose shared file it reads."""
    program = Program(name)
    files = [program.input(f"shared{i}", size=float(size)) for i, size in enumerate(shared)]
    work = rng.uniform(90, 110, len(chunk))
    size = rng.uniform(8, 12, (len(chunk), 3)) * KB
    for t, c in enumerate(chunk.tolist()):
        own = [program.input(f"in{t}.{i}", size=float(size[t, i])) for i in range(2)]
        program.task(
            inputs=[files[c], *own],
            outputs={f"out{t}": float(size[t, 2])},
            work=float(work[t]),
            name=f"t{t}",
        )
    return program
