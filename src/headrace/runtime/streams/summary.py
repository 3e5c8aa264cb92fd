"""What a stream run measured, beside what was planned, and what limited it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.model.pipeline import MEGABYTE
from headrace.runtime.filters import App
from headrace.runtime.streams.plan import StreamPlan
from headrace.runtime.streams.progress import Progress

_LOW, _HIGH = 0.3, 0.95
"""The steady state is taken to last from the first to the second share of the input."""
_LEAST_SAMPLES = 5
_SATURATED = 0.8


class CopyUse(NamedTuple):
    """What one copy did."""

    name: str
    filter: str
    host: str
    buffers_in: int
    buffers_out: int
    bytes_in: int
    bytes_out: int
    busy: float
    """Share of the time in the filter's own code, including what emulation added."""
    waits_input: float
    waits_credit: float
    waits_send: float
    """Shares of the time spent waiting: for input, for a slower filter, for the network."""
    most_backlog: int
    """Most buffers that waited to be sent."""


class FlowUse(NamedTuple):
    """What went from the copies of a filter on one host to those of another on one host."""

    source_filter: str
    target_filter: str
    source: str
    target: str
    planned: float | None
    """MB/s."""
    measured: float


@dataclass(frozen=True)
class StreamSummary:
    """The figures of a run."""

    throughput: float
    """MB/s read in the steady state; over the whole run, if that was short."""
    overall: float
    """MB/s read over the whole run, with filling and draining."""
    planned: float | None
    seconds: float
    copy_seconds: float
    """The same for the present copies: less, if the deployment was changed."""
    units: int
    copies: tuple[CopyUse, ...]
    flows: tuple[FlowUse, ...]
    limit: str
    restarts: int
    adaptations: int
    """How often routing weights were changed."""
    redeployments: int
    """How often copies were started and retired; `copies` and `flows` are since the last time."""
    faults: tuple[str, ...]
    emulated: str = ""
    """What was emulated, in words; "" if nothing was."""

    @property
    def measured(self) -> float | None:
        """The throughput; None if no unit was completed, because a rate would mean nothing then."""
        return self.throughput if self.units else None

    @property
    def of_planned(self) -> float | None:
        return self.throughput / self.planned if self.planned else None


def summarize(app: App, progress: Progress, emulated: str = "", slower: float = 1.0) -> StreamSummary:
    """The figures of a run that has ended, or of its state so far. `slower`: by which the plan was scaled down."""
    end = progress.ended or (progress.samples[-1][0] if progress.samples else progress.began)
    seconds = max(end - progress.began, 1e-9)
    present = max(end - progress.since, 1e-9)
    total = progress.samples[-1][1] if progress.samples else 0
    plan = progress.plan
    copies = tuple(
        _use(plan, number, counters, present) for number, counters in sorted(progress.copies.items())
    )
    planned = None if plan.throughput is None else plan.throughput / slower
    overall = total / MEGABYTE / seconds
    return StreamSummary(
        throughput=steady_rate(_worked_off(progress), overall),
        overall=overall,
        planned=planned,
        seconds=seconds,
        copy_seconds=present,
        units=progress.committed,
        copies=copies,
        flows=_flows(app, progress, present, slower),
        limit=_limit(copies),
        restarts=progress.restarts,
        adaptations=progress.adaptations,
        redeployments=progress.redeployments,
        faults=tuple(progress.faults),
        emulated=emulated,
    )


def _worked_off(progress: Progress) -> list[tuple[float, float]]:
    """Moments, and the bytes read whose consequences had been received by then: readers are ahead by the credits."""
    _, sent, received = progress.samples[-1] if progress.samples else (0.0, 0, 0)
    if not received:
        return [(moment, float(read)) for moment, read, _ in progress.samples]
    return [(moment, done * sent / received) for moment, _, done in progress.samples]


def steady_rate(samples: Sequence[tuple[float, float]], otherwise: float) -> float:
    """MB/s between two shares of all bytes, without filling and draining.

    >>> steady_rate([(i / 2, i * 1_000_000) for i in range(21)], otherwise=0.0)
    2.0
    """
    total = samples[-1][1] if samples else 0
    inside = [(moment, sent) for moment, sent in samples if _LOW * total <= sent <= _HIGH * total]
    if len(inside) < _LEAST_SAMPLES or inside[-1][0] <= inside[0][0]:
        return otherwise
    (first, low), (last, high) = inside[0], inside[-1]
    return (high - low) / MEGABYTE / (last - first)


def _use(plan: StreamPlan, number: int, counters: dict[str, Any], seconds: float) -> CopyUse:
    copy = plan.copies[number]
    whole = seconds * 1e9
    busy, waits_input, waits_credit, waits_send = (
        min(1.0, counters[key] / whole) for key in ("busy_ns", "input_ns", "credit_ns", "send_ns")
    )
    return CopyUse(
        copy.name,
        copy.filter,
        copy.host,
        counters["buffers_in"],
        counters["buffers_out"],
        counters["bytes_in"],
        counters["bytes_out"],
        busy,
        waits_input,
        waits_credit,
        waits_send,
        counters["most_backlog"],
    )


def _flows(app: App, progress: Progress, seconds: float, slower: float) -> tuple[FlowUse, ...]:
    """Planned and measured MB/s between hosts, stream by stream."""
    plan = progress.plan
    measured: dict[tuple[str, str, str, str], float] = {}
    for copy in plan.copies:
        sent = iter(progress.copies.get(copy.copy, {}).get("sent", ()))
        for stream in app.out_of(copy.filter):
            for target in (other for other in plan.copies if other.filter == stream.target):
                _, size = next(sent, (0, 0))
                key = (stream.source, stream.target, copy.host, target.host)
                measured[key] = measured.get(key, 0.0) + size / MEGABYTE / seconds
    known = plan.throughput is not None
    return tuple(
        FlowUse(*key, plan.flows[key[0], key[1]].get(key[2:], 0.0) / slower if known else None, rate)
        for key, rate in measured.items()
    )


def _limit(copies: Sequence[CopyUse]) -> str:
    """Which filter, link or port held the others back."""
    if not copies:
        return "unknown"
    busiest = max(copies, key=lambda copy: copy.busy)
    sender = max(copies, key=lambda copy: copy.waits_send)
    if busiest.busy >= _SATURATED or busiest.busy >= sender.waits_send:
        level = "" if busiest.busy >= _SATURATED else ", and nothing was saturated"
        return f"filter {busiest.filter}: {busiest.name} was busy {busiest.busy:.0%} of the time{level}"
    return f"the network: {sender.name} waited {sender.waits_send:.0%} of the time for its port or a link"
