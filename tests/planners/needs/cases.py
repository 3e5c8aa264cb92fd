"""Small problems whose tasks need memory and GPUs."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.model.program import Program
from headrace.testing.generate import NETWORKS, SHAPES, random_platform, random_program
from headrace.testing.needs import with_random_needs


def one_host(cores: int, memory: float = float("inf"), **resources: int) -> Platform:
    return Platform((Site("a", (Host("h", 1.0, cores, memory=memory, resources=resources),)),))


def program_of(*tasks: tuple[float, float, int]) -> Program:
    """Independent tasks: work, memory and GPUs."""
    program = Program("needs")
    for number, (work, memory, gpus) in enumerate(tasks):
        program.task(
            None, work=work, memory=memory, resources={"gpu": gpus} if gpus else None, name=f"t{number}"
        )
    return program


def small_case(seed: int, contention: Contention = "none") -> Problem:
    """3 to 6 tasks on 2 or 3 hosts of several cores."""
    random = np.random.default_rng([seed, 23])
    tasks, hosts = int(random.integers(3, 7)), int(random.integers(2, 4))
    graph = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)]).graph
    network = NETWORKS[seed // 5 % len(NETWORKS)]
    platform = random_platform(seed, network, contention=contention, hosts=hosts)
    return Problem(*with_random_needs(graph, platform, seed, spare=hosts), seed=seed)
