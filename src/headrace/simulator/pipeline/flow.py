"""A deployment in virtual time: buffers go through copies, ports and links, and throughput is measured.

What a plan promises is a steady state of fluid flows. Here data comes in buffers, a copy works off one at a
time, a port carries one at a time, a copy has room for a few and holds back who sends more (back-pressure),
and every producer decides for each buffer which copy gets it: in the planned proportions, or in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from headrace.arrays.clock import work_clock
from headrace.model.deployment import Deployment
from headrace.model.errors import HeadraceError, UsageError
from headrace.simulator.pipeline.layout import Layout

Routing = Literal["planned", "round-robin"]
ROUTINGS: tuple[Routing, ...] = ("planned", "round-robin")
WINDOW = 16
"""Maximum number of buffers in transit to, or waiting at, the copies of a filter on a host."""
_ROUNDS, _ROUNDS_AT_LEAST = 512, 64
"""Buffers read for each host of the filter that has most, unless a size is given: many times the window, so
that copies which cannot keep up have filled theirs long before the end."""
_USUAL_MOST, _LEAST_BUFFERS = 50_000, 10_000
"""Usual maximum and minimum number of buffers in total; above the maximum, each host gets fewer."""
_MOST_BUFFERS = 2_000_000
_MOST_PIECES = 8
"""Without a given size, buffers are large enough that none becomes more than this many on any stream; readers then
send them partly filled. Otherwise a pipeline that multiplies its data would be millions of buffers."""
_NOTABLE = 0.02
"""Differences of the throughput below this share of the plan need no explanation."""
_WIDER = 16
_LOW, _HIGH = 0.5, 0.95
"""The steady state is taken to last from the first to the second share of the input."""


@dataclass(frozen=True, eq=False)
class FlowOutcome:
    """What happened in virtual time."""

    deployment: Deployment
    routing: Routing
    throughput: float
    """MB/s of the input that went through in the steady state."""
    makespan: float
    """Seconds for all of it, filling and draining included."""
    megabytes: float
    buffer: float
    """MB of a full buffer."""
    window: int
    """Buffers that the copies of a filter on a host had room for."""
    host_busy: dict[str, float]
    """Share of the time that the cores of each host in use were working."""
    link_use: dict[str, float]
    """Share of the time that each port, link or segment in use was carrying something."""
    events: int
    seconds: float
    """Time it took to simulate."""

    @property
    def of_planned(self) -> float:
        """Throughput over what the deployment promises."""
        return self.throughput / self.deployment.throughput


def simulate_deployment(
    deployment: Deployment,
    routing: Routing = "planned",
    *,
    megabytes: float | None = None,
    buffer: float | None = None,
    window: int = WINDOW,
) -> FlowOutcome:
    """Simulate the flow of this many megabytes of input through a deployment; by default the trial run's volume.

    `buffer` is in MB; by default each host of the filter with the most hosts gets hundreds of buffers.
    A copy sends the buffers that it makes while it works, as they become full. Readers keep together, as they do in
    the plan: none is more than `window` buffers ahead. With a reserve (W_F) they read no faster than planned. Memory
    O(flows + hosts * window), time O(buffers * filters * (log hosts + targets of a copy)).
    """
    if routing not in ROUTINGS:
        raise UsageError(f"routing {routing!r}", where="simulation", hint=f"one of {', '.join(ROUTINGS)}")
    if window < 1:
        raise UsageError(f"a window of {window} buffers", where="simulation", hint="1 or more")
    from headrace.simulator.pipeline.event_loop import run_pipeline

    began = work_clock()
    layout = Layout(deployment)
    amount = deployment.problem.pipeline.reader.volume if megabytes is None else megabytes
    if buffer is None:
        portion = amount / _buffers(layout.most_hosts)
        size = portion * max(1.0, layout.growth / _MOST_PIECES)
    else:
        portion = size = buffer
    _check_sizes(amount, portion)
    state = layout.initial_state(amount, portion, window, planned=routing == "planned")
    rate, end, through, events = run_pipeline(state, size, _LOW * amount, _HIGH * amount)
    if not abs(through - amount) <= 1e-6 * amount:
        raise HeadraceError(
            f"only {through:.6g} of {amount:.6g} MB came through",
            where="simulation of a deployment",
            hint="check the deployment: every copy with input needs a flow for each of its streams",
        )
    return FlowOutcome(
        deployment,
        routing,
        throughput=rate,
        makespan=end,
        megabytes=amount,
        buffer=size,
        window=window,
        host_busy=_busy(layout, state.stations["done"].tolist(), end),
        link_use=_use(layout, state.resources["carried"].tolist(), end),
        events=int(events),
        seconds=work_clock() - began,
    )


def with_wider_window(outcome: FlowOutcome) -> FlowOutcome | None:
    """The same with a much wider window, if the window is why throughput stays below the plan; else None."""
    if outcome.of_planned >= 1 - _NOTABLE:
        return None
    wider = simulate_deployment(
        outcome.deployment, outcome.routing, megabytes=outcome.megabytes, window=_WIDER * outcome.window
    )
    return wider if wider.of_planned > outcome.of_planned + _NOTABLE else None


def _buffers(hosts: int) -> int:
    """Number of buffers to read if the filter with the most hosts has this many."""
    return max(_LEAST_BUFFERS, min(_ROUNDS * hosts, _USUAL_MOST), _ROUNDS_AT_LEAST * hosts)


def _busy(layout: Layout, done: list[float], end: float) -> dict[str, float]:
    """Core seconds over those there were."""
    busy = dict.fromkeys(layout.deployment.hosts_used, 0.0)
    for placement, megabytes in zip(layout.stations, done, strict=True):
        busy[placement.host] += megabytes / layout.core_rate(placement)
    return {name: seconds / (end * layout.problem.hosts[name].cores) for name, seconds in busy.items()}


def _use(layout: Layout, carried: list[float], end: float) -> dict[str, float]:
    """Megabytes over those that could have been carried."""
    rows = zip(layout.resource_names, carried, layout.bandwidth.tolist(), strict=True)
    return {name: megabytes / (bandwidth * end) for name, megabytes, bandwidth in rows if megabytes > 0}


def _check_sizes(amount: float, size: float) -> None:
    if not (0 < amount < math.inf and size > 0):
        raise UsageError(
            f"{amount} MB in buffers of {size} MB", where="simulation", hint="give sizes above 0"
        )
    if amount / size > _MOST_BUFFERS:
        raise UsageError(
            f"{amount:.6g} MB in buffers of {size:.6g} MB are {amount / size:,.0f} buffers",
            where="simulation",
            hint=f"less data or larger buffers: at most {_MOST_BUFFERS:,}",
        )
