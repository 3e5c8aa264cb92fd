"""Quotes of experiments against the time that they take: is the time in the quoted interval?"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from headrace.quoting import quote
from headrace.sweeping import sweep

_PROGRAM = """import time

import headrace as hr


def prepare(x, size={size}):
    time.sleep({prepare})
    return bytes(size)


def work(data, n=1):
    time.sleep({base} + {slope} * n ** {power})
    return n


def judge(n):
    time.sleep({judge})
    return float(n)


program = hr.Program("timed")
x = program.input("x", value=1)
data = program.task(prepare, inputs=[x], outputs=["data"], name="prepare")
made = program.task(work, inputs=[data], outputs=["made"], name="work")
score = program.task(judge, inputs=[made], outputs=["score"], name="judge")
"""
_TOML = """name = "timed"
program = "timed.py:program"
[replace.x]
with = {inputs}
[set.work]
n = {numbers}
"""
_SPEEDS = (None, [2.0, 1.0], [4.0, 2.0, 1.0, 1.0])


@dataclass
class Quotes:
    """Quoted and real times."""

    rows: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def inside(self) -> int:
        return sum(low <= real <= high for low, _, high, real in self.rows)

    def __str__(self) -> str:
        lines = [
            f"  quoted {middle:.2f} s ({low:.2f} to {high:.2f}), real {real:.2f} s{_mark(low <= real <= high)}"
            for low, middle, high, real in self.rows
        ]
        return "\n".join([*lines, f"{self.inside} of {len(self.rows)} real times are in the quoted interval"])


def _mark(inside: bool) -> str:
    return "" if inside else "  *"


def quotes(folder: Path, count: int, seed: int) -> Quotes:
    """Experiments with random programs: three smaller ones make the history, then one is quoted and executed."""
    found = Quotes()
    for number in range(count):
        rng = random.Random(seed * 1000 + number)
        case = folder / f"case-{number}"
        case.mkdir()
        times = {
            "size": rng.choice([100, 10_000, 1_000_000]), "prepare": round(rng.uniform(0.01, 0.3), 3),
            "base": round(rng.uniform(0.0, 0.1), 3), "slope": round(rng.uniform(0.005, 0.05), 4),
            "power": rng.choice([0.5, 1.0, 1.5]), "judge": round(rng.uniform(0.0, 0.1), 3),
        }  # fmt: skip
        (case / "timed.py").write_text(_PROGRAM.format(**times))
        speeds = _SPEEDS[number % len(_SPEEDS)]
        options = {"record": case / "home", "workers": 2 if speeds is None else None, "speeds": speeds}
        options |= {"stretch": 1.0 if speeds is None else max(speeds)}
        for first in (0, 10, 20):
            numbers = sorted(rng.sample(range(1, 20), 4))
            _execute(case, list(range(first, first + 2)), numbers, options)
        inputs = list(range(100, 100 + rng.randint(2, 5)))
        numbers = sorted(rng.sample(range(1, 24), rng.randint(3, 8)))
        file = _write(case, inputs, numbers)
        told = quote(file, **options)
        done = sweep(file, **options)
        assert done.run is not None
        found.rows.append((told.low, told.seconds, told.high, done.run.makespan))
    return found


def _write(case: Path, inputs: list[int], numbers: list[int]) -> Path:
    file = case / "timed.toml"
    file.write_text(_TOML.format(inputs=inputs, numbers=numbers))
    return file


def _execute(case: Path, inputs: list[int], numbers: list[int], options: dict[str, object]) -> None:
    done = sweep(_write(case, inputs, numbers), **options)  # type: ignore[arg-type]
    assert done.failure is None, done.failure
