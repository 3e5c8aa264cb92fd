"""The clusters of figure 11 with varying hosts and links, for experiments on estimates and planning events."""

from __future__ import annotations

from typing import Literal, TypeAlias

from headrace.experiment.distribution import constant, uniform
from headrace.experiment.generate import SweepSpec, generate_sweep
from headrace.experiment.grids import ClusterSpec, GridSpec, SeriesSpec, generate_grid
from headrace.model.behaviour import AddHost, GridScript, RemoveHost, grid_script
from headrace.model.program import Program
from headrace.reproductions.figure_11 import KB

Stability: TypeAlias = Literal["stable", "changing loads", "half unstable", "unstable"]
STABILITIES: tuple[Stability, ...] = ("stable", "changing loads", "half unstable", "unstable")
CLUSTERS = ((4, 0.8), (6, 0.6), (12, 0.3))
"""Hosts of each cluster, and their mean availability."""
LENGTH = 3 * 3600.0
"""Series repeat after this time; no host joins or leaves later."""
STAYS, AWAY = 1500.0, 300.0
"""Mean seconds for which an unstable host is present, and absent."""
CHUNKS, TASKS_IN_CHUNK = 8, 25
SHARED_KB = 1200.0


def sweep(seed: int, *, tasks_in_chunk: int = TASKS_IN_CHUNK, result_kb: float = 10.0) -> Program:
    """Half of the tasks of figure 11, in chunks that share a file, with results of about `result_kb` KB.

    >>> sweep(0).graph.n_tasks
    200
    """
    fifth = 0.2 * result_kb * KB
    spec = SweepSpec(
        tasks=CHUNKS * tasks_in_chunk,
        files=CHUNKS,
        shared=constant(SHARED_KB * KB),
        output_size=uniform(result_kb * KB - fifth, result_kb * KB + fifth),
    )
    return generate_sweep(spec, seed)


def walking_grid(seed: int, spread: float = 0.4, period: float = 300.0) -> GridScript:
    """A grid whose hosts and links follow random walks around their means.

    >>> grid = walking_grid(0)
    >>> len(grid.platform.hosts), grid.platform.hosts[0].trace.steady
    (22, False)
    """
    walk = SeriesSpec("walk", spread, period)
    clusters = tuple(ClusterSpec(n, share, 10 * KB, load=walk, traffic=walk) for n, share in CLUSTERS)
    return generate_grid(GridSpec(clusters, until=LENGTH), seed, "walking")


def unstable_grid(stability: Stability, seed: int) -> GridScript:
    """The clusters with hosts and links that follow random walks, and hosts that leave and return.

    stable: neither; changing loads: all follow walks, none leaves; half unstable: both, in the last cluster
    (12 of 22 hosts) only; unstable: both, everywhere.

    >>> [len(unstable_grid(s, 0).changes) > 25 for s in STABILITIES]
    [False, False, True, True]
    """
    walk, steady = SeriesSpec("walk", 0.5, 150.0), SeriesSpec()
    shaky = {"stable": 0, "half unstable": 1}.get(stability, len(CLUSTERS))
    first = len(CLUSTERS) - shaky
    clusters = tuple(
        ClusterSpec(
            n, share, 10 * KB, load=walk if c >= first else steady, traffic=walk if c >= first else steady
        )
        for c, (n, share) in enumerate(CLUSTERS)
    )
    made = generate_grid(GridSpec(clusters, up=STAYS, down=AWAY, until=LENGTH), seed, stability)
    leaves = range(first, len(CLUSTERS)) if stability != "changing loads" else ()
    sites = {f"c{c}" for c in leaves}
    moving = {host.name for site in made.platform.sites for host in site.hosts if site.name in sites}
    events = [
        event
        for event in made.events
        if event.time == 0.0 or not isinstance(event, AddHost | RemoveHost) or event.host in moving
    ]
    return grid_script(events, made.behaviours, name=stability)
