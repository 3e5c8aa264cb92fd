"""A cluster behind unequal links: Dask, and Headrace with nothing described and with the links described.

    python -m bench.namespaces [--runs 3] [--megabytes 8]

Four workers in network namespaces with links of 100, 100, 10 and 100 Mbit/s and speeds 4, 2, 2, 1. Needs root. It takes
five minutes. "Ahead" is the share of the time of transfers in which their target also computed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tests.runtime.namespaces import lab

import headrace as hr
from bench.spending import spend
from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.machines import MachineLinks, platform_of_machines
from headrace.model.platform import Host
from headrace.runtime.cluster import Cluster
from headrace.runtime.measured import measured_platform, workers_of
from headrace.runtime.probe import probe_speeds

RATES = ("100mbit", "100mbit", "10mbit", "100mbit")
SPEEDS = (4.0, 2.0, 2.0, 1.0)
STRETCH = 20.0
KINDS = ("nothing described", "links described", "best", "one host", "dask")


def program_of(megabytes: float) -> hr.Program:
    """Layers of tasks that exchange items of this size."""
    program = hr.Program("layers")
    size = int(megabytes * 1e6)
    row = [
        program.task(
            partial(spend, 2.0 / STRETCH, size), kind="make", name=f"m{k}", outputs={f"a{k}": size}, work=2.0
        )
        for k in range(6)
    ]
    for level in range(2):
        row = [
            program.task(
                partial(spend, 4.0 / STRETCH, size),
                kind="mix",
                name=f"x{level}.{k}",
                inputs=[row[k], row[(k + 1) % 6]],
                outputs={f"b{level}.{k}": size},
                work=4.0,
            )
            for k in range(6)
        ]
    program.output(
        program.task(
            partial(spend, 0.5 / STRETCH, 10), kind="end", name="end", inputs=row, outputs={"r": 10}, work=0.5
        )
    )
    return program


def described() -> hr.Platform:
    rates = [float(rate.removesuffix("mbit")) * 1e6 / 8 * 0.95 for rate in RATES]
    hosts = {f"m{k}": [Host(f"n{k}", speed)] for k, speed in enumerate(SPEEDS)}
    links = [MachineLinks(f"m{k}", up=rate, down=rate, latency=1e-3) for k, rate in enumerate(rates)]
    return platform_of_machines(hosts, links, "lab")


def ahead(events: Iterable[Event]) -> float:
    """The share of the time of transfers in which the target executed a task."""
    seen = tuple(events)
    runs = [e for e in seen if isinstance(e, TaskFinished)]
    moves = {(e.target, e.start, e.time) for e in seen if isinstance(e, DataMoved)}
    total = sum(finish - start for _, start, finish in moves)
    overlap = sum(
        max(0.0, min(finish, run.time) - max(start, run.start))
        for target, start, finish in sorted(moves)
        for run in runs
        if run.host == target
    )
    return overlap / total if total else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=8.0)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    program = program_of(options.megabytes)
    with tempfile.TemporaryDirectory() as folder, lab(RATES, Path(folder), SPEEDS, STRETCH) as made:
        plain = measured_platform(workers_of(made.client), probe_speeds(made.client), (), made.address)
        print("speeds", {h.name: h.speed for h in plain.hosts})
        cluster = Cluster(made.client, plain, links_assumed=True)
        known = {"platform": described()}
        for name, settings in zip(
            KINDS,
            (
                {},
                known,
                {"scheduler": "best", **known},
                {"scheduler": "single-host", **known},
                {"scheduler": "dask"},
            ),
            strict=True,
        ):
            if options.only not in (None, name):
                continue
            with tempfile.TemporaryDirectory() as home:
                for _ in range(options.runs):
                    done = hr.run(program, cluster, record=home, output=home, **settings)
                    planned = f", planned {done.plan.makespan:.1f} s" if done.plan else ""
                    print(
                        f"{name:18} {done.makespan:.1f} s{planned}; ahead {ahead(done.outcome.events):.0%};"
                        f" links {done.sources.links}; engine {done.sources.engine}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
