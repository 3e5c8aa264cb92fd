"""Seeded problems of co-scheduling: small ones with whole numbers, a production, a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program


def small_case(seed: int, *, tight: bool) -> tuple[Program, Platform]:
    """Up to 6 jobs and 3 sites, all numbers whole; with tight disks a site holds little more than one job needs."""
    random = np.random.default_rng(seed)
    sites = int(random.integers(2, 4))
    jobs = int(random.integers(2, 7)) if not tight else int(random.integers(2, 5))
    names = [f"s{k}" for k in range(sites)]
    program = Program(f"small{seed}")
    need = [0] * sites
    largest = 0
    for k in range(jobs):
        source, goal = int(random.integers(sites)), int(random.integers(sites))
        size, out = int(random.integers(1, 4)), int(random.integers(1, 4))
        program.input(f"in{k}", size=size, sites=[names[source]])
        made = program.task(
            None,
            inputs=[f"in{k}"],
            outputs={f"out{k}": size and out},
            work=int(random.integers(1, 7)),
            name=f"j{k}",
        )
        program.output(made, sites=[names[goal]])
        need[source] += size
        need[goal] += out
        largest = max(largest, size + out)
    room = [max(n, largest) + int(random.integers(0, 2)) if tight else math.inf for n in need]
    cores = random.integers(1, 3, sites)
    platform = Platform(
        tuple(
            Site(
                name, (Host(f"h{k}", cores=int(cores[k])),) if k or sites == 2 else (), storage=float(room[k])
            )
            for k, name in enumerate(names)
        ),
        tuple(
            Link(names[a], names[b], 1.0 / int(random.integers(1, 3)), oneway=True)
            for a in range(sites)
            for b in range(sites)
            if a != b and (random.random() < 0.8 or b == (a + 1) % sites)
        ),
        contention="fifo",
        routing="links",
        name=f"small{seed}",
    )
    return program, platform


def production(
    jobs: int, slowdown: float, seed: int = 0, cores: Sequence[int] = (16, 4), storage: float = math.inf
) -> tuple[Program, Platform]:
    """The paper's set-up in small: a store, a local and a remote site; the remote links get slower."""
    random = np.random.default_rng(seed)
    program = Program("production")
    for k in range(jobs):
        work, size, out = (
            float(np.clip(random.normal(m, m / 4), m / 5, 1.8 * m)) for m in (3000.0, 5.0, 10.0)
        )
        program.input(f"in{k}", size=size, sites=["store"])
        made = program.task(None, inputs=[f"in{k}"], outputs={f"out{k}": out}, work=work, name=f"j{k}")
        program.output(made, sites=["store"])
    platform = Platform(
        (
            Site("store"),
            Site("local", (Host("farm", cores=cores[0]),)),
            Site("remote", (Host("cluster", cores=cores[1]),), storage=storage),
        ),
        (Link("store", "local", math.inf), Link("store", "remote", 1.0 / slowdown)),
        contention="fifo",
        routing="links",
        name="star",
    )
    return program, platform


def grid(
    jobs: int, seed: int = 0, sites: int = 10, links: int = 40, storage: float = math.inf
) -> tuple[Program, Platform]:
    """Sites of different size and speed (two only store), one-way links, jobs with two sources and one goal."""
    random = np.random.default_rng(seed)
    names = [f"s{k}" for k in range(sites)]
    ring = [(k, (k + 1) % sites) for k in range(sites)]
    more: set[tuple[int, int]] = set()
    while len(ring) + len(more) < links:
        a, b = (int(x) for x in random.integers(0, sites, 2))
        if a != b and (a, b) not in ring:
            more.add((a, b))
    platform = Platform(
        tuple(
            Site(
                name,
                (
                    Host(
                        f"pool-{name}", cores=int(random.integers(5, 40)), speed=float(random.uniform(0.5, 2))
                    ),
                )
                if k > 1
                else (),
                storage=storage,
            )
            for k, name in enumerate(names)
        ),
        tuple(
            Link(names[a], names[b], float(random.uniform(0.5, 2.0)) / 4, oneway=True)
            for a, b in [*ring, *sorted(more)]
        ),
        contention="fifo",
        routing="links",
        name="grid",
    )
    program = Program("grid")
    for k in range(jobs):
        sources = sorted({names[int(x)] for x in random.integers(0, sites, 2)})
        program.input(f"in{k}", size=float(random.uniform(2, 20)), sites=sources)
        made = program.task(
            None,
            inputs=[f"in{k}"],
            outputs={f"out{k}": float(random.uniform(2, 20))},
            work=float(random.uniform(1000, 6000)),
            name=f"j{k}",
        )
        program.output(made, sites=[names[int(random.integers(sites))]])
    return program, platform


def rich_case(seed: int) -> tuple[Program, Platform]:
    """Up to 4 jobs that read each other's results; several destinations, shared files, cores, releases, deadlines.

    All numbers are whole. Disks hold little more than the initial files and one job.
    """
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 5))
    names = [f"s{k}" for k in range(count)]

    def some(least: int) -> list[str]:
        return [names[k] for k in sorted(random.choice(count, int(random.integers(least, count + 1)), False))]

    program = Program(f"rich{seed}")
    first = dict.fromkeys(names, 0)
    for k in range(2):
        at = some(1)
        size = int(random.integers(1, 4))
        program.input(f"shared{k}", size=size, sites=at)
        for name in at:
            first[name] += size
    jobs = int(random.integers(2, 5))
    for k in range(jobs):
        inputs = [f"shared{int(random.integers(2))}"]
        inputs += [f"out{m}" for m in range(k) if random.random() < 0.5]
        if random.random() < 0.5:
            at = [names[int(random.integers(count))]]
            size = int(random.integers(2, 6))
            inputs.append(f"own{k}")
            program.input(f"own{k}", size=size, sites=at)
            first[at[0]] += size
        made = program.task(
            None,
            inputs=inputs,
            outputs={f"out{k}": int(random.integers(1, 4))},
            work=2 * int(random.integers(1, 4)),
            cores=int(random.integers(1, 3)),
            release=float(random.integers(0, 5)) if random.random() < 0.3 else 0.0,
            deadline=float(random.integers(12, 30)) if random.random() < 0.3 else math.inf,
            name=f"j{k}",
        )
        if random.random() < 0.8:
            program.output(made, sites=some(2))
    return program, _rich_platform(random, names, first, jobs)


def _rich_platform(
    random: np.random.Generator, names: list[str], first: dict[str, int], jobs: int
) -> Platform:
    bare = int(random.integers(len(names))) if random.random() < 0.4 else -1
    return Platform(
        tuple(
            Site(
                name,
                ()
                if k == bare
                else tuple(
                    Host(f"h{k}{m}", cores=2 + int(random.integers(2)), speed=float(random.integers(1, 3)))
                    for m in range(1 + int(random.random() < 0.3))
                ),
                storage=float(first[name] + int(random.integers(2, 4 + 2 * jobs)))
                if random.random() < 0.7
                else math.inf,
            )
            for k, name in enumerate(names)
        ),
        tuple(
            Link(names[a], names[b], 1.0 / int(random.integers(1, 4)), shared=bool(random.random() < 0.5))
            for a in range(len(names))
            for b in range(a)
            if random.random() < 0.4 or b == a - 1
        ),
        contention="fifo",
        routing="links",
        name="rich",
    )
