"""Filters of applications that tests build. Every copy imports this file: it has to be quick."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work

LIMIT = 2000
TABLES = [bytes((byte * 7 + k) % 256 for byte in range(256)) for k in range(8)]


class Numbers(Reader):
    """Sends its share of the buffers of a unit; their sizes and streams depend on the unit alone."""

    def __init__(self, streams: Sequence[str]) -> None:
        self.streams = streams

    def init(self, work: Work) -> None:
        sizes = work.settings["sizes"]
        self.mine = range(round(len(sizes) * work.begin), round(len(sizes) * work.end))
        self.sizes, self.name = sizes, work.name

    def read(self, out: Output) -> None:
        for i in self.mine:
            data = random.Random(f"{self.name}{i}").randbytes(self.sizes[i])
            for stream in self.streams:
                out.send(data, stream)


class Mix(Filter):
    """Sends, for each buffer, as many others as its first byte says; what they are depends on the buffer alone.

    With `ends` each copy also sends an empty buffer at the end of a unit, so that results depend on their number.
    """

    def __init__(self, streams: Sequence[str], most: int, ends: bool = True) -> None:
        self.streams, self.most, self.ends = streams, most, ends

    def init(self, work: Work) -> None:
        self.count = 0

    def process(self, buffer: Buffer, out: Output) -> None:
        assert isinstance(buffer.data, bytes)
        self.count += 1
        times = buffer.data[0] % (self.most + 1) if buffer.data else 1
        for k in range(times):
            changed = buffer.data[: LIMIT - 1].translate(TABLES[(k + len(buffer.stream)) % 8])
            for stream in self.streams:
                out.send(changed + bytes([k]), stream)

    def finalize(self, out: Output) -> None:
        for stream in self.streams:
            if stream and self.ends:
                out.send(b"", stream)


class Collect(Filter):
    """Its results are what it gets, but for the empty buffers of `finalize`, one per copy."""

    def process(self, buffer: Buffer, out: Output) -> None:
        if buffer.data:
            out.send(buffer.stream.encode() + b":" + buffer.data[: LIMIT // 2])


class Raises(Filter):
    """Fails on the first buffer of a unit, or dies there, as long as a file does not exist."""

    def __init__(self, unit: str, mark: Path, dies: bool = False) -> None:
        self.unit, self.mark, self.dies = unit, mark, dies

    def init(self, work: Work) -> None:
        self.name = work.name

    def process(self, buffer: Buffer, out: Output) -> None:
        if self.name == self.unit and not self.mark.exists():
            self.mark.touch()
            if self.dies:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("no good")
        out.send(buffer.data)


class Slow(Filter):
    """Another filter that takes 2 ms longer for each buffer."""

    def __init__(self, make: Callable[[], Filter]) -> None:
        self.inner = make()

    def init(self, work: Work) -> None:
        self.inner.init(work)

    def process(self, buffer: Buffer, out: Output) -> None:
        time.sleep(0.002)
        self.inner.process(buffer, out)

    def finalize(self, out: Output) -> None:
        self.inner.finalize(out)


def build(shape: str, filters: int, most: int, units: Sequence[Sequence[int]], *, ends: bool = True) -> App:
    """A chain of so many filters, or a diamond with so many branches, between a reader and a collector."""
    app = App("made", buffer=LIMIT, units=[Unit(f"u{i}", {"sizes": list(s)}) for i, s in enumerate(units)])
    middle = [f"f{i}" for i in range(filters)]
    if shape == "chain":
        names = ["read", *middle, "collect"]
        pairs = list(itertools.pairwise(names))
    else:
        pairs = [("read", name) for name in middle] + [(name, "collect") for name in middle]
        pairs.append(("read", "collect"))
    out = {name: [f"{a}-{b}" for a, b in pairs if a == name] for name in ("read", *middle)}
    app.filter("read", partial(Numbers, out["read"]))
    for name in middle:
        app.filter(name, partial(Mix, out[name], most, ends))
    app.filter("collect", Collect)
    for a, b in pairs:
        app.stream(a, b)
    return app


class Arrays(Reader):
    """Sends numpy arrays, and changes each of them right after sending it."""

    def init(self, work: Work) -> None:
        self.count = int(work.settings["count"])

    def read(self, out: Output) -> None:
        block = np.zeros((50, 100))
        for number in range(self.count):
            block[:] = number
            out.send(block)
            block[:] = -1


class Sums(Filter):
    """The value of each array, after a pause for the slow ones; fails if an array has two values."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause

    def process(self, buffer: Buffer, out: Output) -> None:
        values = np.frombuffer(buffer.data)
        if self.pause:
            time.sleep(self.pause)
        assert values.min() == values.max()
        out.send(b"%d" % values[0])


def arrays(count: int, pause: float = 0.0) -> App:
    app = App("arrays", buffer=40_000, units=[Unit("a", {"count": count})])
    app.filter("read", Arrays)
    app.filter("sum", partial(Sums, pause), inputs=["read"])
    return app


class Changing(Filter):
    """Takes 10 ms for each buffer; the first copy of it four times as long after its first buffers."""

    def init(self, work: Work) -> None:
        self.first, self.count = work.begin == 0.0, 0

    def process(self, buffer: Buffer, out: Output) -> None:
        self.count += 1
        time.sleep(0.04 if self.first and self.count > 20 else 0.01)
        out.send(buffer.data[:1])


def changing(count: int) -> App:
    app = App("changing", buffer=40_000, units=[Unit("a", {"count": count})])
    app.filter("read", Arrays)
    app.filter("change", Changing, inputs=["read"])
    return app


class Flood(Reader):
    """Sends many buffers of 20 kB."""

    def init(self, work: Work) -> None:
        self.count = int(work.settings["count"])

    def read(self, out: Output) -> None:
        for number in range(self.count):
            out.send(number.to_bytes(4, "big") * 5_000)


class Pass(Filter):
    def process(self, buffer: Buffer, out: Output) -> None:
        out.send(bytes(buffer.data))


class Drop(Filter):
    """Has no results."""


def flood(count: int) -> App:
    app = App("flood", buffer=20_000, units=[Unit("a", {"count": count})])
    app.filter("read", Flood)
    app.filter("pass", Pass, inputs=["read"])
    app.filter("drop", Drop, inputs=["pass"])
    return app


class Steady(Reader):
    """Sends numbered buffers, after a pause each."""

    def __init__(self, seconds: float, size: int) -> None:
        self.seconds, self.size = seconds, size

    def init(self, work: Work) -> None:
        count = int(work.settings["count"])
        self.mine = range(round(count * work.begin), round(count * work.end))
        self.name = work.name

    def read(self, out: Output) -> None:
        for number in self.mine:
            time.sleep(self.seconds)
            out.send(f"{self.name} {number}".encode().ljust(self.size))


class Lasting(Filter):
    """Passes buffers on, after a pause each."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def process(self, buffer: Buffer, out: Output) -> None:
        time.sleep(self.seconds)
        out.send(buffer.data)
