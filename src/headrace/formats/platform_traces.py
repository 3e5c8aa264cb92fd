"""The trace files of a platform, read and written beside the platform file."""

from __future__ import annotations

from pathlib import Path

from headrace.formats.pst_behaviour import read_behaviour, write_trace
from headrace.formats.sibling_path import sibling_path
from headrace.formats.tables import Table
from headrace.model.behaviour import Behaviour, LinkTrace, Trace
from headrace.model.errors import HeadraceError
from headrace.model.platform import Platform

MAX_TRACES = 10_000
MAX_STEPS = 20_000_000
"""Total number of steps in all traces of a platform."""


class TraceFiles:
    """Reads each file once, within limits."""

    def __init__(self, platform_file: str | Path) -> None:
        self.platform_file = platform_file
        self._read: dict[str, Behaviour] = {}
        self._steps = 0

    def host(self, table: Table, key: str = "trace") -> Trace | None:
        """The availability trace of a table, if it has one."""
        found = self._named(table, key)
        if isinstance(found, LinkTrace):
            raise table.wrong(f"{key} is the trace of a link", "use a trace with one value per step")
        if found is not None and found.peak > 1.0:
            raise table.wrong(f"{key} has the value {found.peak:g}", "give fractions from 0 to 1")
        if found is not None and not found.mean > 0:
            raise table.wrong(f"{key} is always 0", "leave the host out")
        return found

    def link(self, table: Table, key: str, latency: float) -> LinkTrace | None:
        """The bandwidth trace of a table, if it has one; a file without latencies keeps the given latency."""
        found = self._named(table, key)
        if isinstance(found, Trace):
            found = LinkTrace(found, Trace.constant(latency))
        if found is not None and not found.bandwidth.mean > 0:
            raise table.wrong(f"{key} is always 0", "leave the link out")
        return found

    def _named(self, table: Table, key: str) -> Behaviour | None:
        name = table.text(key, None)
        if name is None:
            return None
        if name not in self._read:
            if len(self._read) >= MAX_TRACES:
                raise table.wrong(f"more than {MAX_TRACES} traces", "let hosts share traces")
            try:
                behaviour = read_behaviour(sibling_path(self.platform_file, name))
            except HeadraceError as error:
                raise error.at(f"{table.where}: {key}") from None
            self._read[name] = behaviour
            self._steps += len(behaviour) if isinstance(behaviour, Trace) else len(behaviour.bandwidth)
            if self._steps > MAX_STEPS:
                raise table.wrong(f"the traces have more than {MAX_STEPS} steps in total", "use fewer steps")
        return self._read[name]


def write_traces(platform: Platform, path: str | Path) -> dict[Behaviour, str]:
    """Write each trace of a platform once, beside the platform file; returns their names."""
    stem = Path(path).name.partition(".")[0] or "platform"
    found: list[Behaviour | None] = [link.trace for link in platform.links]
    for site in platform.sites:
        found += [site.uplink_trace, *(host.trace for host in site.hosts)]
    names: dict[Behaviour, str] = {}
    for trace in found:
        if trace is not None and trace not in names:
            names[trace] = f"{stem}-{len(names) + 1}.trace"
            write_trace(trace, Path(path).parent / names[trace])
    return names
