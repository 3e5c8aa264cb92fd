"""A trial run: one copy of each filter, one after the other, each in its own process.

Filters run one at a time, so that each has the machine to itself. Data sent by one is stored in
files for the next. The trial measures the seconds of each filter, the bytes it sent on each stream, and the
power of the host, by a short fixed loop next to the filter's own work.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.model.errors import TaskFailed
from headrace.model.pipeline import MEGABYTE, FilterProfile, Pipeline, Stream
from headrace.runtime.filters import App
from headrace.runtime.packing import packer
from headrace.runtime.spool import read_spool

Clock = Literal["wall", "cpu"]
REFERENCE_SECONDS = 0.035
"""The time in which a host of power 1 completes the calibration loop (`probe.calibrate`)."""
SPOOL_BYTES = 4 * 2**30
"""Default limit on the bytes a filter may send on one stream in one unit of work."""
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_IDLE_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class FilterTrial:
    """Measurements of one filter."""

    name: str
    wall: float
    """Seconds in its own init, process, finalize or read; writing buffers to files is excluded."""
    cpu: float
    """CPU seconds of the same."""
    power: float
    """Power of the host, relative to one that completes the calibration loop in REFERENCE_SECONDS."""
    bytes_in: int
    buffers_in: int
    buffers_out: int
    sent: dict[str, int]
    """Bytes on each outgoing stream; for a filter without one, the results under ""."""

    @property
    def bytes_out(self) -> int:
        return sum(self.sent.values())

    def seconds(self, clock: Clock) -> float:
        return self.wall if clock == "wall" else self.cpu


@dataclass(frozen=True)
class Trial:
    """Measurements of a trial run, in topological order of the filters."""

    app: App
    filters: tuple[FilterTrial, ...]
    results: dict[str, list[bytes]]
    """The buffers sent by filters without outgoing streams."""
    clock: Clock = "wall"

    def pipeline(self) -> Pipeline:
        """The input of planners: seconds, megabytes and power of each filter, without sources."""
        volume: dict[tuple[str, str], float] = {}
        for stream in self.app.streams:
            ends = (stream.source, stream.target)
            sent = next(f.sent for f in self.filters if f.name == stream.source)[stream.name]
            volume[ends] = volume.get(ends, 0.0) + sent / MEGABYTE
        return Pipeline(
            self.app.name,
            [
                FilterProfile(f.name, f.seconds(self.clock), f.bytes_out / MEGABYTE, f.power)
                for f in self.filters
            ],
            [Stream(*ends, megabytes) for ends, megabytes in volume.items()],
        )

    @property
    def notes(self) -> list[str]:
        """Warnings about the reliability of the measurements."""
        return [
            f"{f.name} had no CPU for {1 - f.cpu / f.wall:.0%} of its time: it waited for files or for other "
            "work on this machine; --clock cpu counts CPU time alone"
            for f in self.filters
            if self.clock == "wall" and f.wall > 0.01 and f.cpu < (1 - _IDLE_SHARE) * f.wall
        ]


def trial(
    app: App,
    *,
    repeats: int = 1,
    clock: Clock = "wall",
    spool: int = SPOOL_BYTES,
    folder: str | Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Trial:
    """Run each filter of the application alone and measure it.

    `repeats`: how often each filter runs; its fastest round counts. `spool`: maximum bytes per stream
    and unit of work. `folder`: where files are stored (by default the system's temporary folder); they
    are removed at the end. Needs disk space for all data sent.
    """
    home = Path(tempfile.mkdtemp(prefix="headrace-trial-", dir=folder))
    try:
        with packer() as pack:
            (home / "app").write_bytes(pack(app, app.name))
        measured: list[FilterTrial] = []
        for name in app.order:
            tell(f"filter {name} ({len(measured) + 1} of {len(app.order)})")
            measured.append(_run(app, name, home, repeats, spool))
        return Trial(app, tuple(measured), _results(app, home), clock)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(app: App, name: str, home: Path, repeats: int, spool: int) -> FilterTrial:
    """Start the filter's process, wait for it, read its report."""
    settings = {"filter": name, "folder": str(home), "limit": spool, "repeats": repeats, "path": sys.path}
    process = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.trial_process", json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=2,  # output of filters must not mix with our results
        env=dict(os.environ) | dict.fromkeys(_ONE_THREAD, "1"),
        # Separate process group: Ctrl-C reaches only us, and we end it with all that it started.
        start_new_session=True,
    )
    try:
        code = process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    report = _report(home / "report")
    where = f"{app.name}: filter {name!r}"
    if report is None or "problem" in report:
        report = report or {
            "problem": f"its process exited with {code}",
            "hint": "see its output above",
        }
        raise TaskFailed(report["problem"], where=report.get("where") or where, hint=report["hint"])
    power = REFERENCE_SECONDS / report.pop("calibration")
    return FilterTrial(name=name, power=power, **report)


def _report(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    report: dict[str, Any] = json.loads(file.read_text())
    file.unlink()
    return report


def _results(app: App, home: Path) -> dict[str, list[bytes]]:
    from headrace.runtime.trial_process import spool_file

    ends = [(number, name) for number, name in enumerate(app.filters) if not app.out_of(name)]
    return {
        name: [
            data
            for unit in range(len(app.units))
            for data in read_spool(spool_file(home, unit, number, "result"), app.buffer)
        ]
        for number, name in ends
    }
