"""Applications that hypothesis builds, and what a run of them produces."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work
from headrace.runtime.streams.hosts import Hosts
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.supervisor import Progress, StreamOptions, Supervisor, UnitResult

LIMIT = 2000


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
    """Sends, for each buffer, as many others as its first byte says; what they are depends on the buffer alone."""

    def __init__(self, streams: Sequence[str], most: int) -> None:
        self.streams, self.most = streams, most

    def init(self, work: Work) -> None:
        self.count = 0

    def process(self, buffer: Buffer, out: Output) -> None:
        assert isinstance(buffer.data, bytes)
        self.count += 1
        times = buffer.data[0] % (self.most + 1) if buffer.data else 1
        for k in range(times):
            changed = bytes((byte * 7 + k + len(buffer.stream)) % 256 for byte in buffer.data[: LIMIT - 1])
            for stream in self.streams:
                out.send(changed + bytes([k]), stream)

    def finalize(self, out: Output) -> None:
        for stream in self.streams:
            if stream:
                out.send(b"", stream)


class Collect(Filter):
    """Its results are what it gets, but for the empty buffers of `finalize`, one per copy."""

    def process(self, buffer: Buffer, out: Output) -> None:
        if buffer.data:
            out.send(buffer.stream.encode() + b":" + buffer.data[: LIMIT // 2])


def build(shape: str, filters: int, most: int, units: Sequence[Sequence[int]]) -> App:
    """A chain of so many filters, or a diamond with so many branches, between a reader and a collector."""
    app = App("made", buffer=LIMIT, units=[Unit(f"u{i}", {"sizes": list(s)}) for i, s in enumerate(units)])
    middle = [f"f{i}" for i in range(filters)]
    if shape == "chain":
        names = ["read", *middle, "collect"]
        pairs = list(zip(names, names[1:], strict=False))
    else:
        pairs = [("read", name) for name in middle] + [(name, "collect") for name in middle]
        pairs.append(("read", "collect"))
    out = {name: [f"{a}-{b}" for a, b in pairs if a == name] for name in ("read", *middle)}
    app.filter("read", partial(Numbers, out["read"]))
    for name in middle:
        app.filter(name, partial(Mix, out[name], most))
    app.filter("collect", Collect)
    for a, b in pairs:
        app.stream(a, b)
    return app


@st.composite
def cases(draw: st.DrawFn) -> tuple[App, dict[str, int], StreamOptions]:
    """An application, copies of its filters, and options."""
    filters = draw(st.integers(0, 3))
    shape = draw(st.sampled_from(["chain", "diamond"]))
    sizes = st.lists(st.one_of(st.integers(1, 40), st.sampled_from([1, LIMIT - 1, LIMIT])), max_size=25)
    units = draw(st.lists(sizes, min_size=1, max_size=4))
    app = build(shape, filters, draw(st.integers(0, 3)), units)
    copies = {name: draw(st.integers(1, 4)) for name in app.order}
    options = StreamOptions(
        credits=draw(st.sampled_from([1, 2, 4, 16])),
        routing=draw(st.sampled_from(["planned", "round-robin", "least-loaded"])),
        work_conserving=draw(st.booleans()),
    )
    return app, copies, options


def carried_out(
    app: App, copies: dict[str, int], hosts: Hosts, options: StreamOptions | None = None
) -> tuple[Progress, list[UnitResult]]:
    units: list[UnitResult] = []
    plan = even_plan(app, copies, hosts.names)
    run = Supervisor(app, plan, hosts, options or StreamOptions(), commit=units.append)
    return run.run(), units


def multiset(units: Sequence[UnitResult]) -> Counter[bytes]:
    return Counter(data for unit in units for buffers in unit.results.values() for data in buffers)
