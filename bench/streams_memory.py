"""Memory, file descriptors and processes of a stream run over many minutes."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median

from bench.streams_correct import children_of
from bench.tools import print_rows
from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit
from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress
from headrace.runtime.streams.supervisor import Supervisor

SIZE = 100_000
"""Bytes of a buffer."""
SAMPLE_SECONDS = 1.0


class Paced(Reader):
    """Sends buffers at even intervals."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds = count, seconds

    def read(self, out: Output) -> None:
        began = time.monotonic()
        for number in range(self.count):
            rest = began + self.seconds * number / self.count - time.monotonic()
            if rest > 0:
                time.sleep(rest)
            out.send(number.to_bytes(4, "big") * (SIZE // 4))


class Pass(Filter):
    """Sends a copy of each buffer."""

    def process(self, buffer: Buffer, out: Output) -> None:
        out.send(bytearray(buffer.data))


class Count(Filter):
    """Keeps the number of buffers."""

    def __init__(self) -> None:
        self.buffers = 0

    def process(self, buffer: Buffer, out: Output) -> None:
        self.buffers += 1

    def finalize(self, out: Output) -> None:
        out.send(b"%d" % self.buffers)


def descriptors(pid: int | str) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Samples:
    """Resident bytes and file descriptors of each copy, about once a second."""

    def __init__(self, agent: int) -> None:
        self._agent = agent
        self._next = 0.0
        self.resident: dict[int, list[int]] = {}
        self.files: dict[int, list[int]] = {}

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + SAMPLE_SECONDS
        for pid in children_of(self._agent):
            try:
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                self.files.setdefault(pid, []).append(descriptors(pid))
                self.resident.setdefault(pid, []).append(pages * 4096)
            except (OSError, IndexError):
                continue  # it has just ended


def copy_rows(progress: Progress, samples: Samples) -> list[list[object]]:
    """Memory early and late, and file descriptors, of each copy; copies are forked in their order."""
    rows: list[list[object]] = []
    for copy, pid in zip(progress.plan.copies, sorted(samples.resident), strict=True):
        sizes, files = samples.resident[pid], samples.files[pid]
        tenth = max(1, len(sizes) // 10)
        early, late = median(sizes[tenth : 2 * tenth] or sizes), median(sizes[-tenth:])
        rows.append(
            [
                copy.name,
                progress.copies[copy.copy]["buffers_in"] or progress.copies[copy.copy]["buffers_out"],
                early / 1e6,
                late / 1e6,
                (late - early) / 1e6,
                max(sizes) / 1e6,
                f"{files[min(tenth, len(files) - 1)]}, {files[-1]}",
            ]
        )
    return rows


def memory(minutes: float, buffers: int) -> None:
    """So many buffers of 100 kB, through three filters, over so many minutes; takes as long."""
    app = App("memory", buffer=SIZE, units=[Unit("all", {})])
    app.filter("read", partial(Paced, buffers, 60.0 * minutes))
    app.filter("pass", Pass, inputs=["read"])
    app.filter("count", Count, inputs=["pass"])
    before = descriptors("self")
    with LocalHosts(["a"]) as hosts:
        agent = hosts.pids["a"]
        time.sleep(1.0)
        agent_before = descriptors(agent)
        samples = Samples(agent)
        plan = even_plan(app, {"pass": 2}, hosts.names)
        run = Supervisor(app, plan, hosts, StreamOptions(), commit=lambda unit: None, observe=samples)
        progress = run.run()
        left, agent_after = len(children_of(agent)), descriptors(agent)
    rows = copy_rows(progress, samples)
    print_rows(
        ["copy", "buffers", "MB early", "MB late", "growth, MB", "most, MB", "files early, late"], rows
    )
    print(
        f"processes left {left}; files of the agent {agent_before} before, {agent_after} after; "
        f"of the supervisor {before} before, {descriptors('self')} after"
    )
