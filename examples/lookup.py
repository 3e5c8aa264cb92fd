"""Records that are looked up one by one in a service that takes its time: a pipeline for hosts of unequal speed.

    headrace stream examples/lookup.py:app --speeds 4,4,2,1,4
    headrace stream examples/lookup.py:app --speeds 4,4,2,1,4 --routing round-robin

Records -> Lookup -> Histogram. A lookup takes 20 ms on the fastest host. With the planned proportions every copy of
Lookup is busy all the time; round-robin is as fast as its slowest copy.
"""

from __future__ import annotations

import time
import zlib

import numpy as np

from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work

RECORDS = 1_000
"""Numbers in a buffer."""
SECONDS = 0.02
"""Time of a lookup."""


class Records(Reader):
    """Sends blocks of numbers, which depend on their position alone."""

    def init(self, work: Work) -> None:
        blocks = int(work.settings["blocks"])
        self.mine = range(round(blocks * work.begin), round(blocks * work.end))

    def read(self, out: Output) -> None:
        for block in self.mine:
            time.sleep(SECONDS / 8)
            out.send(np.arange(block * RECORDS, (block + 1) * RECORDS, dtype=np.int64).tobytes())


class Lookup(Filter):
    """Asks the service for each block: the checksum of every number, modulo 16."""

    def process(self, buffer: Buffer, out: Output) -> None:
        time.sleep(SECONDS)
        numbers = np.frombuffer(buffer.data, np.int64)
        found = bytes(zlib.crc32(number.tobytes()) % 16 for number in numbers)
        out.send(found)


class Histogram(Filter):
    """How often each answer came; the result is a line for each."""

    def init(self, work: Work) -> None:
        self.counts = np.zeros(16, np.int64)

    def process(self, buffer: Buffer, out: Output) -> None:
        self.counts += np.bincount(np.frombuffer(buffer.data, np.uint8), minlength=16)

    def finalize(self, out: Output) -> None:
        out.send("".join(f"{answer} {count}\n" for answer, count in enumerate(self.counts)).encode())


def build(blocks: int = 400) -> App:
    """The application over so many blocks."""
    app = App("lookup", buffer=8 * RECORDS, units=[Unit("all", {"blocks": blocks})])
    app.filter("Records", Records)
    app.filter("Lookup", Lookup, inputs=["Records"])
    app.filter("Histogram", Histogram, inputs=["Lookup"])
    return app


app = build()
