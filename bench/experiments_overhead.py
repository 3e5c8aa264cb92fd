"""What identity, storing and recording cost: points that do nothing, beside a plain Dask map; and merging."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headrace.runtime.cluster import Cluster, open_local
from headrace.sweeping import sweep

_PROGRAM = """import headrace as hr


def nothing(x, n=0):
    return n


program = hr.Program("idle")
x = program.input("x", value=1)
made = program.task(nothing, inputs=[x], outputs=["made"], name="work", work=0.0001)
"""
_CHAIN = """import headrace as hr


def step(x, n=0):
    return x


program = hr.Program("chain")
item = program.input("x", value=1)
for k in range(10):
    item = program.task(step, inputs=[item], outputs=[f"o{k}"], name=f"t{k}")
"""


@dataclass
class Overhead:
    """Seconds."""

    points: int
    dask: float
    sweep: float
    planned: float
    again: float

    def __str__(self) -> str:
        each = 1000 * (self.sweep - self.dask) / self.points
        return (
            f"{self.points} points that do nothing: Dask map {self.dask:.2f} s, sweep with Dask's scheduling "
            f"{self.sweep:.2f} s ({self.sweep / self.dask:.2f} times, {each:.2f} ms a task more), planned sweep "
            f"{self.planned:.2f} s ({self.planned / self.dask:.2f} times); again, all reused: {self.again:.2f} s"
        )


def overhead(folder: Path, points: int, rounds: int = 3) -> Overhead:
    """The best of some rounds, alternately, on the same two workers."""
    (folder / "idle.py").write_text(_PROGRAM)
    file = folder / "idle.toml"
    plain, swept, planned, again = [], [], [], []
    with open_local(2) as cluster:
        for number in range(rounds):
            first = 1 + 2 * number * points
            began = time.perf_counter()
            futures = cluster.client.map(_nothing, range(first, first + points), pure=False)
            cluster.client.gather(futures)
            plain.append(time.perf_counter() - began)
            del futures
            swept.append(_timed(file, first, points, cluster, 0, "dask"))
            planned.append(_timed(file, first + points, points, cluster, 0, "auto"))
            again.append(_timed(file, first, points, cluster, points, "auto"))
    return Overhead(points, min(plain), min(swept), min(planned), min(again))


def _timed(file: Path, first: int, points: int, cluster: Cluster, reused: int, scheduler: str) -> float:
    text = 'program = "idle.py:program"\n[set.work]\nn = {{ from = {}, to = {}, steps = {} }}\n'
    file.write_text(text.format(first, first + points - 1, points))
    began = time.perf_counter()
    done = sweep(file, cluster, record=file.parent / "home", scheduler=scheduler, learn=False)
    taken = time.perf_counter() - began
    assert done.reused == reused
    assert done.failure is None
    return taken


def _nothing(n: int) -> int:
    return n


@dataclass
class Merging:
    points: int
    distinct: int
    seconds: float
    gigabytes: float

    def __str__(self) -> str:
        return (
            f"{self.points} combinations of 10 tasks, {self.distinct} distinct: merged and quoted in "
            f"{self.seconds:.1f} s and {self.gigabytes:.2f} GB"
        )


def merging(folder: Path, points: int) -> str:
    """Merge and quote, once with common prefixes and once with none, each in a process of its own."""
    (folder / "chain.py").write_text(_CHAIN)
    sides = max(2, round(points ** (1 / 5)))
    text = 'program = "chain.py:program"\n'
    for k in (1, 3, 5, 7, 9):
        text += f"[set.t{k}]\nn = {{ from = 1, to = {sides}, steps = {sides} }}\n"
    (folder / "prefixes.toml").write_text(text)
    (folder / "none.toml").write_text(
        f'program = "chain.py:program"\n[set.t0]\nn = {{ from = 1, to = {points}, steps = {points} }}\n'
    )
    lines = []
    for name in ("prefixes", "none"):
        argv = [
            sys.executable,
            "-m",
            "bench.experiments_overhead",
            str(folder / f"{name}.toml"),
            str(folder / "home"),
        ]
        lines.append(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip())
    return "\n".join(lines)


def _merge_here(file: str, home: str) -> Merging:
    from headrace.quoting import quote

    began = time.perf_counter()
    told = quote(file, record=home, workers=2)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return Merging(told.points, told.tasks, time.perf_counter() - began, used)


if __name__ == "__main__":
    print(_merge_here(*sys.argv[1:]))
