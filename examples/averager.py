"""The average of a long list of numbers: a reader, adders, an averager (1 x weight x 1).

    headrace trial examples/averager.py:app -o averager.ini

The reader parses a text file, the adder sums the numbers ten by ten, the averager divides the sum of all
by their count. The adder's work can be made any multiple of the reader's, to see how many copies of it a
planner takes: the same sums are computed again and again.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work

BLOCK = 20_000
"""Numbers in a buffer."""
GROUP = 10
"""Numbers that the adder makes one sum of: it sends a tenth of what it gets."""
PASSES = 80
"""Rounds of summing that take the adder about as long as the reader takes to parse the same numbers."""


def numbers(first: int, count: int) -> NDArray[np.float64]:
    """Numbers first, first + 1, ... of the list, which is the same for every reader."""
    index = np.arange(first, first + count, dtype=np.float64)
    return np.round(np.sin(index * 0.7) * 1000 + index % 17, 4)


class ArrayReader(Reader):
    """Parses a text file of numbers, one a line, and sends them block by block."""

    def prepare(self, work: Work) -> None:
        total = int(work.settings["numbers"])
        self.first = round(total * work.begin)
        self.count = round(total * work.end) - self.first
        self.file: Path = work.folder / "numbers.txt"
        with self.file.open("w") as file:
            for begin in range(self.first, self.first + self.count, BLOCK):
                block = numbers(begin, min(BLOCK, self.first + self.count - begin))
                file.write("".join(f"{value:.4f}\n" for value in block.tolist()))

    def read(self, out: Output) -> None:
        block: list[float] = []
        with self.file.open() as file:
            for line in file:
                block.append(float(line))
                if len(block) == BLOCK:
                    out.send(np.array(block).tobytes())
                    block.clear()
        if block:
            out.send(np.array(block).tobytes())


class ArrayAdder(Filter):
    """Sums groups of ten numbers, in as many rounds as its weight asks for."""

    def __init__(self, weight: float) -> None:
        self.rounds = max(1, round(weight * PASSES))

    def process(self, buffer: Buffer, out: Output) -> None:
        block = np.frombuffer(buffer.data)
        table = np.zeros((GROUP, math.ceil(len(block) / GROUP)))
        table.T.flat[: len(block)] = block
        for _ in range(self.rounds):
            sums = exact_sums(table)
        out.send(struct.pack("<q", len(block)) + sums.tobytes())


def exact_sums(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each column, with the rounding errors of the additions summed apart."""
    total = table[0].copy()
    lost = np.zeros_like(total)
    for row in table[1:]:
        new = total + row
        part = new - total
        lost += (total - (new - part)) + (row - part)
        total = new
    return total + lost


class ArrayAverager(Filter):
    """The average of all numbers; its result is their count and the average, as text."""

    def init(self, work: Work) -> None:
        self.count = 0
        self.total = 0.0

    def process(self, buffer: Buffer, out: Output) -> None:
        (count,) = struct.unpack_from("<q", buffer.data)
        self.count += count
        self.total = math.fsum([self.total, *np.frombuffer(buffer.data, offset=8).tolist()])

    def finalize(self, out: Output) -> None:
        if self.count:
            out.send(f"{self.count} {self.total / self.count!r}".encode())


def build(weight: float = 5.0, count: int = 1_000_000) -> App:
    """The application 1 x weight x 1 over so many numbers."""
    app = App("averager", buffer=8 * BLOCK, units=[Unit("all", {"numbers": count})])
    app.filter("ArrayReader", ArrayReader)
    app.filter("ArrayAdder", partial(ArrayAdder, weight), inputs=["ArrayReader"])
    app.filter("ArrayAverager", ArrayAverager, inputs=["ArrayAdder"])
    return app


app = build()
