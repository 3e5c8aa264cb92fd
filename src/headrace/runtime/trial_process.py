"""One filter of a trial run: `python -m headrace.runtime.trial_process '{...}'`.

It runs as long as its standard input is open. Measurements are written to a file as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from headrace.model.errors import HeadraceError
from headrace.runtime.filters import App, Buffer, Reader, Sendable, Sender, Work, cycle, flat, in_turn
from headrace.runtime.packing import unpack
from headrace.runtime.probe import calibrate
from headrace.runtime.spool import SpoolWriter, read_spool
from headrace.runtime.worker_process import end_with_parent

T = TypeVar("T")
_TRACE_LINES = 12


class Watch:
    """A stopwatch for wall and CPU seconds that can be paused."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.cpu = 0.0

    def start(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._wall
        self.cpu += time.process_time() - self._cpu

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def outside(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items; the time to produce them is excluded."""
        source = iter(items)
        while True:
            with self.paused():
                item = next(source, None)
            if item is None:
                return
            yield item


class SpoolOutput(Sender):
    """Writes buffers to files, outside the measured time."""

    def __init__(self, app: App, name: str, writers: dict[str, SpoolWriter], watch: Watch) -> None:
        super().__init__(app, name)
        self._writers = writers
        self._watch = watch

    def send(self, data: Sendable, stream: str = "") -> None:
        with self._watch.paused():
            data = flat(data)
            self._writers[self.checked(data, stream)].append(data)


def spool_file(folder: Path, unit: int, number: int, kind: str) -> Path:
    """The file of a stream's buffers, or of a filter's results, for one unit."""
    return folder / f"{kind}{number}.{unit}"


def main() -> None:
    """Run the filter and write a report."""
    settings = json.loads(sys.argv[1])
    sys.path += [folder for folder in settings["path"] if folder not in sys.path]
    folder = Path(settings["folder"])
    threading.Thread(target=end_with_parent, args=(str(folder),), daemon=True).start()
    try:
        report = run_filter(unpack((folder / "app").read_bytes()), settings["filter"], folder, settings)
    except Exception as error:
        report = _failure(error)
    (folder / "report").write_text(json.dumps(report))


def run_filter(app: App, name: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Run all units of one filter for the requested number of rounds; the fastest counts."""
    before = calibrate()
    rounds = [_round(app, name, folder, settings) for _ in range(settings["repeats"])]
    best = min(rounds, key=lambda measured: float(measured["wall"]))
    return best | {"calibration": min(before, calibrate())}


def _round(app: App, name: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    watch = Watch()
    copy = app.make(name)
    sent: dict[str, int] = {}
    counts = {"buffers_in": 0, "bytes_in": 0, "buffers_out": 0}
    for number, unit in enumerate(app.units):
        writers = _writers(app, name, folder, number, settings["limit"])
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            work = Work(unit.name, unit.settings, Path(scratch))
            if isinstance(copy, Reader):
                copy.prepare(work)
                forget_cached(work.folder)
            incoming = _counted(_incoming(app, name, folder, number), counts)
            watch.start()
            cycle(copy, work, watch.outside(incoming), SpoolOutput(app, name, writers, watch))
            watch.stop()
        for stream, writer in writers.items():
            writer.close()
            sent[stream] = sent.get(stream, 0) + writer.size
            counts["buffers_out"] += writer.buffers
    return {"wall": watch.wall, "cpu": watch.cpu, "sent": sent} | counts


def forget_cached(folder: Path) -> None:
    """Evict prepared files from the page cache, where supported, so that they are read from disk."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _writers(app: App, name: str, folder: Path, unit: int, limit: int) -> dict[str, SpoolWriter]:
    """A file for each outgoing stream; without any, one for results, under ""."""
    where = f"{app.name}: filter {name!r}"
    streams = {s.name: number for number, s in enumerate(app.streams) if s.source == name}
    if not streams:
        file = spool_file(folder, unit, list(app.filters).index(name), "result")
        return {"": SpoolWriter(file, limit, where)}
    return {
        stream: SpoolWriter(spool_file(folder, unit, number, "stream"), limit, where)
        for stream, number in streams.items()
    }


def _incoming(app: App, name: str, folder: Path, unit: int) -> Iterator[Buffer]:
    """Buffers sent by preceding filters, round-robin over streams."""

    def buffers(stream: str, number: int) -> Iterator[Buffer]:
        for data in read_spool(spool_file(folder, unit, number, "stream"), app.buffer):
            yield Buffer(stream, data)

    files = [buffers(s.name, number) for number, s in enumerate(app.streams) if s.target == name]
    return in_turn(files)


def _counted(buffers: Iterable[Buffer], counts: dict[str, int]) -> Iterator[Buffer]:
    for buffer in buffers:
        counts["buffers_in"] += 1
        counts["bytes_in"] += len(buffer.data)
        yield buffer


def _failure(error: Exception) -> dict[str, Any]:
    if isinstance(error, HeadraceError):
        return {"problem": error.problem, "where": error.where, "hint": error.hint}
    trace = "".join(traceback.format_exception(error)).strip().splitlines()[-_TRACE_LINES:]
    return {"problem": "it raised an error:\n" + "\n".join(trace), "where": "", "hint": ""}


if __name__ == "__main__":
    main()
