"""The live table of a stream run: a row for each filter, redrawn on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.runtime.streams.counters import STATES
from headrace.runtime.streams.progress import Progress

Observe = Callable[[Progress], None]
HEADERS = ("filter", "copies", "buffers", "MB/s", "planned MB/s", "busy", "queue", "now")
_LINE_SECONDS = 10.0


def filter_rows(progress: Progress) -> list[list[str]]:
    """What each filter has done so far: input rates, and for readers what they send."""
    seconds = max(time.monotonic() - progress.since, 1e-9)
    rows = []
    for name in dict.fromkeys(copy.filter for copy in progress.plan.copies):
        copies = [progress.copies.get(c.copy) for c in progress.plan.copies if c.filter == name]
        known = [counters for counters in copies if counters is not None]
        if not known:
            continue
        side = "in" if any(counters["buffers_in"] for counters in known) else "out"
        size = sum(counters[f"bytes_{side}"] for counters in known)
        planned = progress.plan.inflow(name)
        states = [STATES[counters["state"]] for counters in known]
        rows.append(
            [
                name,
                str(len(copies)),
                f"{sum(counters[f'buffers_{side}'] for counters in known):,}",
                f"{size / 1e6 / seconds:.4g}",
                "" if planned is None else f"{planned:.4g}",
                f"{sum(counters['busy_ns'] for counters in known) / 1e9 / seconds / len(known):.0%}",
                str(sum(counters["backlog"] for counters in known)),
                max(sorted(set(states)), key=states.count),
            ]
        )
    return rows


@contextmanager
def live_table() -> Iterator[Observe]:
    """A table on a terminal; elsewhere a line every ten seconds."""
    if not sys.stderr.isatty():
        yield _Lines().observe
        return
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:

        def observe(progress: Progress) -> None:
            table = Table(*HEADERS)
            for row in filter_rows(progress):
                table.add_row(*row)
            live.update(table)

        yield observe


class _Lines:
    """Prints the progress now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def observe(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._next and now >= self._next:
            rates = ", ".join(f"{row[0]} {row[3]} MB/s" for row in filter_rows(progress))
            sys.stderr.write(f"{rates}; {progress.committed} units committed\n")
        if not self._next or now >= self._next:
            self._next = now + _LINE_SECONDS
