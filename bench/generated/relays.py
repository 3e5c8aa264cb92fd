"""Seeded cases in which it matters from which copy, and over which relay, data is sent."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.model.platform import Contention, Host, Link, Platform, Site
from headrace.model.program import Program

RelayShape: TypeAlias = Literal["bag", "inputs", "stages", "pairs", "rounds", "mixed"]
RELAY_SHAPES: tuple[RelayShape, ...] = get_args(RelayShape)
MB = 1e6


def relay_case(
    seed: int, shape: RelayShape, contention: Contention = "fair", *, graph: bool = False
) -> tuple[Program, Platform]:
    """Large shared items, read by many tasks at 2 to 4 sites of hosts with their own disks.

    Sites are behind slow uplinks or, with `graph`, joined by slow links in a ring with a relay that has no
    hosts. Ports inside a site are 10 to 100 times as fast, so that a good plan sends an item to each site once.

    - bag: a first task makes one item, all others read it;
    - inputs: several inputs from outside, each read by many tasks;
    - stages: each stage's tasks read one item that the stage before made;
    - pairs: every task reads two of several shared inputs;
    - rounds: a small item is collected and sent round again and again, beside a large one;
    - mixed: shared inputs, an item for all made from them, and results that return.

    >>> program, platform = relay_case(1, "bag", "fifo")
    >>> platform.contention, all(site.bandwidth for site in platform.sites if site.hosts)
    ('fifo', True)
    """
    rng = np.random.default_rng([seed, RELAY_SHAPES.index(shape), 61])
    platform = _graph_of_sites(rng, contention) if graph else _behind_uplinks(rng, contention)
    program = Program(f"{shape}-{seed}")
    {
        "bag": _bag,
        "inputs": _inputs,
        "stages": _stages,
        "pairs": _pairs,
        "rounds": _rounds,
        "mixed": _mixed,
    }[shape](program, rng)
    return program, platform


def _sites(rng: np.random.Generator) -> list[Site]:
    port = float(rng.uniform(50, 125)) * MB
    return [
        Site(
            f"s{s}",
            tuple(
                Host(f"s{s}h{h}", float(np.round(rng.uniform(0.5, 2.0), 2)))
                for h in range(int(rng.integers(2, 6)))
            ),
            bandwidth=port,
            latency=float(rng.choice([0.0, 0.001])),
        )
        for s in range(int(rng.integers(2, 5)))
    ]


def _behind_uplinks(rng: np.random.Generator, contention: Contention) -> Platform:
    sites = [
        Site(site.name, site.hosts, site.bandwidth, site.latency, uplink=float(rng.uniform(1, 8)) * MB)
        for site in _sites(rng)
    ]
    origin = "s0h0" if rng.random() < 0.5 else "store"
    if origin == "store":
        sites.append(Site("store"))
    return Platform(tuple(sites), contention=contention, origin=origin, name=f"uplinks-{contention}")


def _graph_of_sites(rng: np.random.Generator, contention: Contention) -> Platform:
    sites = [*_sites(rng), Site("relay")]
    names = [site.name for site in sites]
    links = tuple(
        Link(
            a, b, float(rng.uniform(1, 8)) * MB, float(rng.uniform(0, 0.05)), shared=bool(rng.random() < 0.5)
        )
        for a, b in zip(names, [*names[1:], names[0]], strict=True)
    )
    return Platform(tuple(sites), links, contention=contention, origin="s0h0", name=f"graph-{contention}")


def _large(rng: np.random.Generator) -> float:
    return float(np.round(rng.uniform(5, 100), 1)) * MB


def _small(rng: np.random.Generator) -> float:
    return float(np.round(rng.uniform(5, 50))) * 1e3


def _readers(
    program: Program, rng: np.random.Generator, count: int, stem: str, items: list[str]
) -> list[str]:
    """Tasks that read all these items; the names of what they make."""
    made = []
    for k in range(count):
        program.task(
            name=f"{stem}{k}",
            inputs=items,
            outputs={f"{stem}{k}.out": _small(rng)},
            work=float(np.round(rng.uniform(5, 40), 1)),
        )
        made.append(f"{stem}{k}.out")
    return made


def _bag(program: Program, rng: np.random.Generator) -> None:
    program.task(name="prepare", outputs={"db": _large(rng)}, work=1.0)
    _readers(program, rng, int(rng.integers(20, 41)), "t", ["db"])


def _inputs(program: Program, rng: np.random.Generator) -> None:
    for f in range(int(rng.integers(2, 5))):
        program.input(f"file{f}", size=_large(rng))
        _readers(program, rng, int(rng.integers(8, 16)), f"f{f}t", [f"file{f}"])


def _stages(program: Program, rng: np.random.Generator) -> None:
    item = program.input("stage0", size=_large(rng)).name
    for s in range(1, int(rng.integers(3, 5))):
        made = _readers(program, rng, int(rng.integers(8, 14)), f"s{s}t", [item])
        item = f"stage{s}"
        program.task(name=f"merge{s}", inputs=made, outputs={item: _large(rng)}, work=2.0)


def _pairs(program: Program, rng: np.random.Generator) -> None:
    files = [program.input(f"file{f}", size=_large(rng)).name for f in range(4)]
    for k in range(int(rng.integers(20, 36))):
        chosen = rng.choice(len(files), size=2, replace=False).tolist()
        _readers(program, rng, 1, f"t{k}.", [files[f] for f in sorted(chosen)])


def _rounds(program: Program, rng: np.random.Generator) -> None:
    big = program.input("mesh", size=_large(rng)).name
    item = program.input("state0", size=_small(rng)).name
    for r in range(1, int(rng.integers(3, 6))):
        made = _readers(program, rng, int(rng.integers(6, 12)), f"r{r}t", [big, item])
        item = f"state{r}"
        program.task(name=f"collect{r}", inputs=made, outputs={item: _small(rng)}, work=1.0)


def _mixed(program: Program, rng: np.random.Generator) -> None:
    raw = [program.input(f"raw{f}", size=_large(rng)).name for f in range(2)]
    made = [name for f, item in enumerate(raw) for name in _readers(program, rng, 6, f"raw{f}t", [item])]
    program.task(name="index", inputs=made, outputs={"index": _large(rng)}, work=3.0)
    last = _readers(program, rng, int(rng.integers(15, 26)), "t", ["index", raw[0]])
    for name in last[::3]:
        program.output(name)
