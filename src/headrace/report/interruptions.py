"""What faults interrupted in a run: executions that were stopped, hosts that were away, transfers that were cut off."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.model.events import DataMoved, Event, HostJoined, HostLeft


class Stopped(NamedTuple):
    """An execution that did not finish."""

    time: float
    task: str
    host: str
    start: float


class Interruption(NamedTuple):
    """A span that a task lost to a fault, and the host that it had waited for before that."""

    since: float
    until: float
    host: str


@dataclass
class Interruptions:
    """Interruptions by task, host, and item and target, in order of time."""

    of_task: dict[str, list[Interruption]] = field(default_factory=dict)
    away: dict[str, list[Interruption]] = field(default_factory=dict)
    cut: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """When transfers started that were cut off, by item and target."""

    @classmethod
    def of_run(
        cls, events: Iterable[Event], stopped: Iterable[Stopped] = (), cut: Iterable[DataMoved] = ()
    ) -> Interruptions:
        """Those of a run; `cut` are transfers that were cut off, with the time when they were."""
        found = cls()
        for time, task, host, start in sorted(stopped):
            found.of_task.setdefault(task, []).append(Interruption(start, time, host))
        left: dict[str, float] = {}
        for event in sorted(
            (e for e in events if isinstance(e, HostLeft | HostJoined)), key=lambda event: event.time
        ):
            if isinstance(event, HostLeft):
                left.setdefault(event.host, event.time)
            elif event.host in left:
                span = Interruption(left.pop(event.host), event.time, event.host)
                found.away.setdefault(event.host, []).append(span)
        for move in sorted(cut, key=lambda move: move.start):
            found.cut.setdefault((move.item, move.target), []).append(move.start)
        return found

    def before(self, task: str, host: str, start: float) -> list[Interruption]:
        """What interrupted a task before it started on a host, in order of time."""
        spans: Sequence[Interruption] = [*self.of_task.get(task, ()), *self._away_before(host, start)]
        return sorted(span for span in spans if span.until <= start)

    def _away_before(self, host: str, start: float) -> list[Interruption]:
        spans = self.away.get(host, [])
        return spans[: bisect_right(spans, start, key=lambda span: span.until)]

    def first_cut(self, item: str, target: str, after: float, before: float) -> float | None:
        """When the first transfer between two times started that was cut off."""
        starts = self.cut.get((item, target), ())
        at = bisect_left(starts, after)
        return starts[at] if at < len(starts) and starts[at] < before else None
