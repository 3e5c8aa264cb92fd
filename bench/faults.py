"""Simulated runs under faults, all judged: python -m bench.faults --seeds 2000."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator

from headrace.testing.fault_runs import fault_case, violations_of
from headrace.testing.faults import PROFILES


def judged(seed: int) -> tuple[int, list[str]]:
    """The runs of a seed under all profiles: how many, and what was wrong."""
    wrong = []
    for profile in PROFILES:
        case = fault_case(seed, profile)
        found = violations_of(case)
        if found:
            wrong.append(f"{profile}, {case}: {found[0]} ({len(found)} in all)")
    return len(PROFILES), wrong


def main(seeds: int, first: int = 0, processes: int = 2) -> int:
    """Every seed under every profile; how many runs broke a rule."""
    began = time.perf_counter()
    runs = broken = 0
    for done, (count, wrong) in enumerate(_spread(range(first, first + seeds), processes), 1):
        runs += count
        broken += len(wrong)
        for line in wrong:
            print(line, flush=True)
        if done % 100 == 0:
            print(f"{done} of {seeds} seeds, {broken} runs broke a rule", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - began
    print(f"{runs} runs, {seeds} seeds x {len(PROFILES)} profiles: {broken} broke a rule; {seconds:.0f} s")
    return broken


def _spread(seeds: range, processes: int) -> Iterator[tuple[int, list[str]]]:
    if processes < 2:
        yield from map(judged, seeds)
        return
    judged(0)  # compiled and cached once, not by every process
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(judged, seeds, chunksize=20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    sys.exit(1 if main(given.seeds, given.first, given.processes) else 0)
