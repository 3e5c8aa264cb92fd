"""Generated needs: tasks that take memory and GPUs of hosts that have few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.core.estimates import with_hosts
from headrace.model.graph import Graph
from headrace.model.needs import Needs
from headrace.model.platform import Host, Platform


def with_random_needs(
    graph: Graph, platform: Platform, seed: int, *, spare: int = 1
) -> tuple[Graph, Platform]:
    """A graph whose tasks need memory, GPUs or several cores, and a platform on which all of them fit.

    Args:
        graph: Any graph.
        platform: Any platform; its hosts get other cores, a memory (most of them) and GPUs (some of them).
        seed: Of all choices.
        spare: On how many hosts, if there are as many, each task fits at least.

    >>> from headrace.testing.generate import random_platform, random_program
    >>> graph, lab = with_random_needs(random_program(1).graph, random_platform(1), 1)
    >>> graph.needs.names
    ('memory', 'gpu')
    """
    rng = np.random.default_rng([seed, 17])

    def changed(number: int, host: Host) -> Host:
        memory = float(rng.integers(4, 17)) if rng.random() < 0.8 else float("inf")
        return replace(
            host, cores=int(rng.integers(1, 5)), memory=memory, resources={"gpu": int(rng.integers(3))}
        )

    platform = with_hosts(platform, changed)
    hosts = platform.hosts
    amount, cores = np.zeros((graph.n_tasks, 2)), np.ones(graph.n_tasks, np.int32)
    for task in range(graph.n_tasks):
        some = rng.choice(len(hosts), min(spare, len(hosts)), replace=False).tolist()
        memory = min(16.0, *(hosts[h].memory for h in some))
        gpus, most = min(hosts[h].resources["gpu"] for h in some), min(hosts[h].cores for h in some)
        kinds = rng.random(3)
        amount[task, 0] = rng.integers(1, int(memory) + 1) if kinds[0] < 0.7 else 0.0
        amount[task, 1] = rng.integers(0, gpus + 1) if kinds[1] < 0.4 else 0.0
        cores[task] = rng.integers(1, most + 1) if kinds[2] < 0.2 else 1
    return replace(graph, needs=Needs(("memory", "gpu"), amount), cores=cores), platform
