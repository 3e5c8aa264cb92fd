"""The clusters of figure 11 with hosts and links that change: for experiments with estimates and planning events."""

from __future__ import annotations

from typing import Literal, TypeAlias

from headrace.experiment.figures.figure_11 import KB, figure_11
from headrace.experiment.grids import ClusterSpec, GridSpec, SeriesSpec, generate_grid
from headrace.model.behaviour import AddHost, GridScript, RemoveHost, grid_script
from headrace.model.program import Program

Stability: TypeAlias = Literal["stable", "half unstable", "unstable"]
STABILITIES: tuple[Stability, ...] = ("stable", "half unstable", "unstable")
CLUSTERS = ((4, 0.8), (6, 0.6), (12, 0.3))
"""Hosts, and how much of each is available on average."""
LENGTH = 4 * 3600.0
"""Series repeat after this; no host comes or goes later."""
STAYS, AWAY = 3000.0, 600.0
"""Mean seconds for which an unstable host is there, and gone."""
SHARED_KB = 1200.0


def sweep(seed: int, shared_kb: float = SHARED_KB) -> Program:
    """The 400 tasks of figure 11 in chunks that share a file."""
    return figure_11(shared_kb, seed)[0]


def walking_grid(seed: int, spread: float = 0.4, period: float = 600.0) -> GridScript:
    """All hosts and links go up and down at random around their means.

    >>> grid = walking_grid(0)
    >>> len(grid.platform.hosts), grid.platform.hosts[0].trace.steady
    (22, False)
    """
    walk = SeriesSpec("walk", spread, period)
    clusters = tuple(ClusterSpec(n, share, 10 * KB, load=walk, traffic=walk) for n, share in CLUSTERS)
    return generate_grid(GridSpec(clusters, until=LENGTH), seed, "walking")


def unstable_grid(stability: Stability, seed: int) -> GridScript:
    """A grid where no host, those of the last cluster (12 of 22), or all hosts and links change, come and go.

    >>> [len(unstable_grid(s, 0).changes) > 25 for s in STABILITIES]
    [False, True, True]
    """
    walk, steady = SeriesSpec("walk", 0.5, 300.0), SeriesSpec()
    shaky = {"stable": 0, "half unstable": 1, "unstable": len(CLUSTERS)}[stability]
    first = len(CLUSTERS) - shaky
    clusters = tuple(
        ClusterSpec(
            n, share, 10 * KB, load=walk if c >= first else steady, traffic=walk if c >= first else steady
        )
        for c, (n, share) in enumerate(CLUSTERS)
    )
    made = generate_grid(GridSpec(clusters, up=STAYS, down=AWAY, until=LENGTH), seed, stability)
    moving = {host.name for site in made.platform.sites for host in site.hosts if site.name >= f"c{first}"}
    events = [
        event
        for event in made.events
        if event.time == 0.0 or not isinstance(event, AddHost | RemoveHost) or event.host in moving
    ]
    return grid_script(events, made.behaviours, name=stability)
