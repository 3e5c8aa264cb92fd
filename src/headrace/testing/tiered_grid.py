"""Seeded grids of three tiers with small disks and shared files, as problems of co-scheduling."""

from __future__ import annotations

import numpy as np

from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program

SIZES = (200, 1000, 5000)
"""Numbers of jobs of the problems that are used for measurements."""
SMALL_SITES = 5
_GB = 1e9
_DISK = 10.4 * _GB
"""Bytes of disk for each core at a small site: little more than the files of one job."""


def tiered_grid(jobs: int, seed: int = 0) -> tuple[Program, Platform]:
    """A tape store, two large sites with unlimited disks, and five small sites whose disks hold few files.

    The number of cores and the bandwidth grow with the square root of the number of jobs. Two fifths of the jobs read
    a file that others read as well; results go to the tape store or to one of the large sites. O(jobs).

    >>> program, platform = tiered_grid(40, seed=3)
    >>> program.graph.n_tasks, [site.name for site in platform.sites][:3], len(platform.sites)
    (40, ['tape', 't10', 't11'], 8)
    """
    random = np.random.default_rng([seed, jobs])
    return _jobs(jobs, random), _platform((jobs / SIZES[0]) ** 0.5, random)


def _jobs(jobs: int, random: np.random.Generator) -> Program:
    program = Program(f"tiered-{jobs}")
    shared = max(2, jobs // 10)
    where = (["tape"], ["t10"], ["t11"], ["t10", "t11"], ["t11", "tape"], ["t10", "tape"])
    for k in range(shared):
        at = ["tape"] if random.random() < 0.6 else where[int(random.integers(3, 6))]
        program.input(f"shared{k}", size=0.2 * _GB * int(random.integers(10, 41)), sites=at)
    for k in range(jobs):
        at = where[int(random.choice(6, p=(0.3, 0.2, 0.3, 0.1, 0.05, 0.05)))]
        program.input(f"in{k}", size=0.2 * _GB * int(random.integers(5, 26)), sites=at)
        inputs = [f"in{k}"]
        if random.random() < 0.4:
            inputs.insert(0, f"shared{int(random.integers(shared))}")
        made = program.task(
            None,
            inputs=inputs,
            outputs={f"out{k}": 0.2 * _GB * int(random.integers(3, 31))},
            work=float(random.integers(200, 1001)),
            name=f"job{k}",
        )
        program.output(made, sites=["tape"] if random.random() < 0.6 else ["t10", "t11"])
    return program


def _platform(scale: float, random: np.random.Generator) -> Platform:
    def cores(number: float) -> int:
        return max(1, round(number * scale))

    large = [cores(8), cores(8)]
    small = [cores(int(random.integers(2, 6))) for _ in range(SMALL_SITES)]
    sites = [Site("tape")]
    sites += [Site(f"t1{k}", (Host(f"t1{k}h", cores=large[k]),)) for k in range(2)]
    sites += [
        Site(
            f"t2{k}",
            (Host(f"t2{k}h", cores=small[k], speed=float(random.choice((1.0, 1.0, 1.0, 2.0)))),),
            storage=_DISK * max(2, small[k]),
        )
        for k in range(SMALL_SITES)
    ]
    rate = 1e6 * scale
    links = [Link("tape", "t10", 200 * rate, shared=False), Link("tape", "t11", 100 * rate, shared=False)]
    links.append(Link("t10", "t11", 200 * rate, shared=True))
    for k in range(SMALL_SITES):
        home = int(random.integers(2))
        speed = float(random.choice((40, 50))) * rate
        links.append(Link(f"t1{home}", f"t2{k}", speed, shared=bool(random.integers(2))))
        if random.random() < 0.4:
            links.append(Link(f"t1{1 - home}", f"t2{k}", 20 * rate, shared=bool(random.integers(2))))
    return Platform(tuple(sites), tuple(links), contention="fifo", routing="links", name="tiers")
