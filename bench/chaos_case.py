"""Random programs whose results are known: what `bench.chaos` runs."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TypeAlias

from headrace.model.program import Program

Value: TypeAlias = int | bytes
_PRIME = 1_000_003
_LARGE = 200_000
"""Bytes of a large value."""


def work(seconds: float, number: int, *values: Value) -> int:
    """What a task does: a wait, and a number that depends on everything before it."""
    time.sleep(seconds)
    return made_of(number, values)


def two(seconds: float, number: int, *values: Value) -> tuple[int, int]:
    """The same with two outputs."""
    made = work(seconds, number, *values)
    return made, made + 1


def large(seconds: float, number: int, *values: Value) -> bytes:
    """The same as many bytes: the number, and zeros."""
    return as_large(work(seconds, number, *values))


def as_large(number: int) -> bytes:
    """A number as a large value."""
    return number.to_bytes(8, "little") + bytes(_LARGE)


def made_of(number: int, values: tuple[Value, ...]) -> int:
    """The number that a task makes of its own and those that it reads.

    >>> made_of(5, (1, as_large(2)))
    98
    """
    read = [int.from_bytes(value[:8], "little") if isinstance(value, bytes) else value for value in values]
    return (31 * sum(read) + number) % _PRIME


@dataclass(frozen=True)
class Case:
    """A random program with its right results."""

    program: Program
    results: dict[str, Value]


def random_case(rng: random.Random) -> Case:
    """Levels of tasks that read what earlier levels made; a few have two outputs, a few only wait for another."""
    program = Program(f"chaos-{rng.randrange(10**6)}")
    values: dict[str, Value] = {}
    made: list[str] = []
    for level in range(rng.randint(4, 8)):
        row: list[str] = []
        for k in range(rng.randint(3, 8)):
            read = rng.sample(made, min(len(made), rng.randint(1, 4))) if made else []
            row += _add_task(program, f"t{level}.{k}", read, values, rng)
        made = [*row, *rng.sample(made, min(3, len(made)))]
    return Case(program, {item.name: values[item.name] for item in program.results()})


def _add_task(
    program: Program, name: str, read: list[str], values: dict[str, Value], rng: random.Random
) -> list[str]:
    """Add a task and the values that it makes; returns its outputs."""
    number, seconds = rng.randrange(1000), rng.choice([0.0, 0.02, 0.1, 0.3])
    given = [program.input(f"s{name}", value=seconds), program.input(f"n{name}", value=number)]
    after = [rng.choice(list(program.tasks))] if program.tasks and rng.random() < 0.1 else []
    function = rng.choices([work, two, large], [6, 2, 2])[0]
    outputs = [f"x{name}", f"y{name}"] if function is two else [f"x{name}"]
    program.task(
        function, inputs=[*given, *read], outputs=outputs, name=name, after=after, work=seconds + 0.01
    )
    result = made_of(number, tuple(values[item] for item in read))
    values |= dict(zip(outputs, (result, result + 1), strict=False))
    if function is large:
        values[outputs[0]] = as_large(result)
    return outputs


PROGRAM = """
import random
from bench.chaos_case import random_case

program = random_case(random.Random({seed})).program
"""
"""A file that defines the program of a seed, for `headrace run`."""
