"""Existing Dask code on workers of speeds 4, 2, 1, 1: Dask alone, and inside `headrace.dask.steering`.

    python -m bench.dask_steering [--repeats 3] [--others] [--only NAME] [--no-ops]

Speeds are emulated: a task that used c CPU seconds lasts c * stretch / speed, inside what Dask measures. Runs of both
take turns. "first" is a block with an empty record, "again" the next one with what it measured. Needs dask[dataframe].
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import headrace.dask
from bench.dask_paced import collect_garbage, pace_tasks
from bench.dask_programs import OTHERS, PROGRAMS, Program
from bench.tools import geometric_mean, print_rows
from headrace.runtime.cluster import Cluster, open_local

SPEEDS = (4.0, 2.0, 1.0, 1.0)
STRETCH = 96.0
TASKS = 1000
WARM_UPS = 2


def timed(program: Program, client: Any) -> tuple[float, Any]:
    """Seconds and the value, with the client as the current one: without it, data frames are not shuffled in memory."""
    with client.as_current():
        began = time.perf_counter()
        value = program(client)
        return time.perf_counter() - began, value


def compare(program: Program, client: Any, repeats: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds by Dask, in a first block and in the next one; all results must be the same."""
    alone, first, again = [], [], []
    for _ in range(repeats):
        seconds, expected = timed(program, client)
        alone.append(seconds)
        with tempfile.TemporaryDirectory() as folder:
            for times in (first, again):
                with headrace.dask.steering(client, record=folder):
                    seconds, value = timed(program, client)
                times.append(seconds)
                assert np.array_equal(value, expected) or np.allclose(value, expected, rtol=1e-12), (
                    value,
                    expected,
                )
    return alone, first, again


def nothing(number: int) -> None:
    return None


def no_ops(cluster: Cluster, repeats: int) -> tuple[float, float]:
    """Least seconds for 1,000 tasks that do nothing, by Dask and steered."""
    client, alone, steered = cluster.client, [], []

    def once() -> float:
        began = time.perf_counter()
        client.gather(client.map(nothing, range(TASKS), pure=False))
        return time.perf_counter() - began

    once()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            alone.append(once())
            with headrace.dask.steering(client, record=folder):
                steered.append(once())
    return min(alone), min(steered)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--others", action="store_true", help="the programs that were kept aside")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--no-ops", action="store_true", help="only the tasks that do nothing")
    options = parser.parse_args(list(arguments))
    warnings.simplefilter("error", headrace.dask.SteeringWarning)
    programs = {n: p for n, p in (OTHERS if options.others else PROGRAMS).items() if options.only in n}
    with open_local(speeds=SPEEDS, stretch=STRETCH) as cluster:
        cluster.client.run(pace_tasks)
        if not options.no_ops:
            rows = []
            for name, program in programs.items():
                for _ in range(WARM_UPS):
                    timed(program, cluster.client)
                cluster.client.run(collect_garbage)
                alone, first, again = compare(program, cluster.client, options.repeats)
                rows.append(
                    (name, median(alone), median(first), median(again),
                     median(alone) / median(first), median(alone) / median(again),
                     min(a / f for a, f in zip(alone, first, strict=True)),
                     min(a / f for a, f in zip(alone, again, strict=True)))
                )  # fmt: skip
                print(rows[-1], file=sys.stderr, flush=True)
            print_rows(
                (
                    "program",
                    "Dask, s",
                    "first, s",
                    "again, s",
                    "Dask / first",
                    "Dask / again",
                    "worst first",
                    "worst again",
                ),
                rows,
            )
            means = [geometric_mean([row[k] for row in rows]) for k in (4, 5)]  # type: ignore[misc]
            print(f"geometric means: first {means[0]:.3f}, again {means[1]:.3f}\n")
        alone_s, steered_s = no_ops(cluster, max(options.repeats, 3))
        print(
            f"{TASKS} tasks that do nothing: Dask {alone_s:.3f} s, steered {steered_s:.3f} s,"
            f" {1e3 * (steered_s - alone_s) / TASKS:+.3f} ms a task"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
