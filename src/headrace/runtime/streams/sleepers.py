"""An application that behaves as a pipeline was measured: filters that sleep for their time and send their volume."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from headrace.model.pipeline import MEGABYTE, PipelineProblem
from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Work


@dataclass(frozen=True)
class Scale:
    """How a pipeline is made small enough to be tried."""

    buffers: int
    """Buffers that the readers send."""
    faster: float
    """All times are divided by this."""
    smaller: float
    """All volumes are divided by this."""

    @property
    def bandwidth(self) -> float:
        """The factor on bandwidths that leaves the time of a transfer in proportion."""
        return self.faster / self.smaller


class SleepingReader(Reader):
    """Sends a buffer on each stream after each pause."""

    def __init__(self, seconds: float, count: int, sizes: dict[str, int]) -> None:
        self.seconds, self.count, self.sizes = seconds, count, sizes

    def init(self, work: Work) -> None:
        self.mine = range(round(self.count * work.begin), round(self.count * work.end))

    def read(self, out: Output) -> None:
        for _ in self.mine:
            time.sleep(self.seconds)
            for stream, size in self.sizes.items():
                out.send(bytes(size), stream)


class Sleeper(Filter):
    """Sleeps in proportion to what it gets, and sends in proportion, one buffer on each stream."""

    def __init__(self, seconds_per_byte: float, ratios: dict[str, float]) -> None:
        self.seconds_per_byte, self.ratios = seconds_per_byte, ratios

    def process(self, buffer: Buffer, out: Output) -> None:
        time.sleep(self.seconds_per_byte * len(buffer.data))
        for stream, ratio in self.ratios.items():
            out.send(bytes(round(ratio * len(buffer.data))), stream)


def sleeping_app(problem: PipelineProblem, scale: Scale) -> tuple[App, dict[str, float]]:
    """The application, and for each filter the power of a host on which it sleeps for exactly its time.

    That is the most powerful host of the platform: emulation makes all others slower.
    """
    pipeline = problem.pipeline
    reader = pipeline.reader.name
    volume = dict(zip(((s.source, s.target) for s in pipeline.streams), pipeline.volumes, strict=True))
    size = pipeline.reader.volume * MEGABYTE / scale.smaller / scale.buffers
    largest = max((v / pipeline.reader.volume * size for v in volume.values()), default=size)
    app = App(pipeline.name, buffer=int(largest * 1.1) + 64)
    powers: dict[str, float] = {}
    for profile in pipeline.order:
        name = profile.name
        powers[name] = max(problem.power(name, host) for host in problem.hosts)
        seconds = profile.seconds * profile.power / powers[name] / scale.faster
        out = {f"{name}-{b}": v for (a, b), v in volume.items() if a == name}
        if name == reader:
            sizes = {stream: round(v / pipeline.reader.volume * size) for stream, v in out.items()}
            app.filter(name, partial(SleepingReader, seconds / scale.buffers, scale.buffers, sizes))
            continue
        taken = pipeline.inflow(name)
        per_byte = seconds / (taken * MEGABYTE / scale.smaller)
        ratios = {stream: v / taken for stream, v in out.items()}
        inputs = [s.source for s in pipeline.streams if s.target == name]
        app.filter(name, partial(Sleeper, per_byte, ratios), inputs=inputs)
    return app, powers
