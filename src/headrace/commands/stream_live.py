"""`headrace stream --live`: the state of a run as lines of JSON, for programs that watch it."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.runtime.filters import App
from headrace.runtime.streams.progress import Progress
from headrace.runtime.streams.summary import CopyUse, FlowUse, summarize

PAUSE = 1.0
"""Seconds between two lines."""
WINDOW = 3.0
"""Rates are those of the latest seconds."""
_Moment = tuple[float, int, dict[tuple[str, ...], float]]


class LiveRates:
    """Rates of the latest seconds, from totals since the start of the present copies."""

    def __init__(self, app: App, slower: float = 1.0) -> None:
        self._app, self._slower = app, slower
        self._moments: deque[_Moment] = deque()

    def state(self, progress: Progress) -> dict[str, Any]:
        """Planned and measured MB/s of every flow, and what each copy does; O(copies + flows)."""
        summary = summarize(self._app, progress, slower=self._slower)
        now = summary.copy_seconds
        totals: dict[tuple[str, ...], float] = {flow[:4]: flow.measured * now for flow in summary.flows}
        totals |= {("busy", use.name): use.busy * now for use in summary.copies}
        if self._moments and self._moments[-1][1] != summary.redeployments:
            self._moments.clear()  # other copies, whose totals begin again
        self._moments.append((now, summary.redeployments, totals))
        while len(self._moments) > 2 and self._moments[1][0] <= now - WINDOW:
            self._moments.popleft()
        return {
            "seconds": summary.seconds,
            "units": summary.units,
            "rate": progress.rate(WINDOW) / 1e6,
            "planned": summary.planned,
            "adaptations": summary.adaptations,
            "redeployments": summary.redeployments,
            "restarts": summary.restarts,
            "flows": [self._flow(flow) for flow in summary.flows],
            "copies": [self._copy(use) for use in summary.copies],
        }

    def _latest(self, key: tuple[str, ...], otherwise: float) -> float:
        """The increase of a total for each second of the window; the average so far at the start."""
        first, last = self._moments[0], self._moments[-1]
        if last[0] - first[0] < 0.5 * PAUSE or key not in first[2]:
            return otherwise
        return max(0.0, last[2][key] - first[2][key]) / (last[0] - first[0])

    def _flow(self, flow: FlowUse) -> dict[str, Any]:
        return flow._asdict() | {"measured": self._latest(flow[:4], flow.measured)}

    def _copy(self, use: CopyUse) -> dict[str, Any]:
        busy = min(1.0, self._latest(("busy", use.name), use.busy))
        return {"name": use.name, "filter": use.filter, "host": use.host, "busy": busy}


def print_line(values: dict[str, Any]) -> None:
    """One line of JSON, at once."""
    sys.stdout.write(json.dumps(values, separators=(",", ":"), allow_nan=False) + "\n")
    sys.stdout.flush()


@contextmanager
def live_lines(app: App, slower: float = 1.0) -> Iterator[Callable[[Progress], None]]:
    """Prints a line every second."""
    rates = LiveRates(app, slower)
    following = 0.0

    def observe(progress: Progress) -> None:
        nonlocal following
        if time.monotonic() >= following and progress.samples:
            following = time.monotonic() + PAUSE
            print_line({"live": rates.state(progress)})

    yield observe
