"""The cases of `bench.gap`: recorded workflows, generated ones that nothing was tuned on, and small ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.sweep import layered, pairwise
from bench.tools import instances, read_dag, read_network
from headrace.core.scheduler import Problem
from headrace.experiment.dataflow import fft, jacobi, matmul
from headrace.experiment.generate import SweepSpec, generate_sweep
from headrace.formats.loading import load_platform
from headrace.formats.wfformat import read_program
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

EXAMPLES = Path(__file__).parents[1] / "examples"
CONTENDED = ("lab", "sites")
SMALL_NETWORKS = ("ports", "uplinks", "sites", "pairs")


class Case(NamedTuple):
    name: str
    where: str
    problem: Problem


def platforms() -> dict[str, Platform]:
    """Two contended platforms, the second with three sites and speeds per kind, and one without contention."""
    return {
        "lab": load_platform(str(EXAMPLES / "lab.toml")),
        "sites": load_platform(str(EXAMPLES / "sites.toml")),
        "wf32": read_network("wf32"),
    }


def recorded(on: tuple[str, ...], only: str, contention: Contention | None = None) -> Iterator[Case]:
    """Every recorded workflow on these platforms; `contention` replaces that of the contended ones."""
    for where, platform in platforms().items():
        if where not in on:
            continue
        if contention is not None and where in CONTENDED:
            platform = replace(platform, contention=contention)
        for path in instances():
            if only in path.name:
                yield Case(path.name.split(".")[0], where, Problem(read_program(path).graph, platform))


def held_out(only: str, contention: Contention = "fifo") -> Iterator[Case]:
    """Programs and platforms of Headrace's own generators, with seeds that are used nowhere else."""
    programs = [
        jacobi(6, pieces=24, order=8192, ratio=20.0),
        fft(2**20, pieces=32, ratio=30.0),
        matmul(),
        generate_sweep(SweepSpec(tasks=300, files=24), 911),
        *(
            random_program(912 + k, tasks=250, shape=shape)
            for k, shape in enumerate(("layered", "fork-join"))
        ),
    ]
    for k, program in enumerate(programs):
        for seed in (921, 922):
            if only in program.name:
                platform = replace(generated_platform(seed + 10 * k), contention=contention)
                yield Case(program.name, platform.name, Problem(program.graph, platform))


def generated_platform(seed: int) -> Platform:
    """Two to four sites behind uplinks of 30 to 1,000 Mbit/s, with speeds per kind; inputs are at another site."""
    random = np.random.default_rng([seed, 77])
    kinds = ("jacobi", "butterfly", "multiply", "cut", "filter", "stitch")
    sites = []
    for s in range(int(random.integers(2, 5))):
        speeds = {kind: float(random.uniform(0.5, 4)) for kind in kinds if random.random() < 0.5}
        hosts = [
            Host(f"s{s}h{h}", float(random.uniform(0.5, 3)), cores=int(random.integers(1, 9)), kinds=speeds)
            for h in range(int(random.integers(2, 9)))
        ]
        megabits = 10 ** random.uniform(1.5, 3)
        sites.append(
            Site(f"s{s}", tuple(hosts), bandwidth=1.25e8, latency=2e-4, uplink=1.25e5 * megabits,
                 uplink_latency=float(random.uniform(1e-3, 3e-2)))
        )  # fmt: skip
    store = Site("store", bandwidth=1.25e9, uplink=1.25e8)
    return Platform((store, *sites), contention="fifo", origin="store", name=f"generated-{seed}")


def layered_graphs(only: str) -> Iterator[Case]:
    """Layered graphs of 3,000 and 10,000 tasks, three inputs each, on 64 to 256 hosts with a link for each pair."""
    for tasks in (3000, 10_000):
        yield from (case for case in [_recorded_layers(tasks)] if only in case.name)
        for hosts in (64, 128, 256):
            name = f"layers-{tasks}"
            if only in name:
                yield Case(name, f"pairs-{hosts}", Problem(layered(tasks), pairwise(hosts)))


def _recorded_layers(tasks: int) -> Case:
    return Case(f"dag-square-{tasks}", "h64", Problem(read_dag(tasks), read_network("h64")))


def medium(count: int) -> Iterator[Case]:
    """60 tasks on 10 hosts without contention, and 30 tasks on 6 hosts with fifo links.

    Random programs on all kinds of network, and layered graphs on pairs of hosts, where data takes as long as tasks.
    """
    sizes: tuple[tuple[Contention, int, int], ...] = (("none", 60, 10), ("fifo", 30, 6))
    for contention, tasks, hosts in sizes:
        for seed in range(count):
            program = random_program(7000 + seed, tasks, SHAPES[seed % len(SHAPES)])
            platform = random_platform(
                7000 + seed, NETWORKS[seed // 2 % len(NETWORKS)], contention=contention, hosts=hosts,
                origin=ORIGINS[seed % len(ORIGINS)],
            )  # fmt: skip
            yield Case(program.name, platform.name, Problem(program.graph, platform))
        dense = replace(pairwise(hosts), contention=contention)
        yield Case(f"layers-{tasks}", f"pairs-{hosts}-{contention}", Problem(layered(tasks), dense))


def small(count: int) -> Iterator[Case]:
    """8 to 14 tasks on 3 or 4 hosts with fifo links, on all kinds of network."""
    for seed in range(count):
        random = np.random.default_rng([seed, 78])
        shape = ("layered", "fork-join", "random", "chain", "sweep")[seed % 5]
        program = random_program(5000 + seed, tasks=int(random.integers(8, 15)), shape=shape)  # type: ignore[arg-type]
        platform = random_platform(
            5000 + seed, SMALL_NETWORKS[seed % 4], contention="fifo", hosts=int(random.integers(3, 5)),  # type: ignore[arg-type]
            origin=("none", "host", "site")[seed % 3],  # type: ignore[arg-type]
        )  # fmt: skip
        yield Case(program.name, platform.name, Problem(program.graph, platform))
