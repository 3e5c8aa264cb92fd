"""From a plan to what every copy is told, with the powers and ports that are emulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.runtime.filters import App
from headrace.runtime.streams.plan import CopyPlace, StreamPlan
from headrace.runtime.streams.spec import CopySpec, InputSpec, OutputSpec, TargetSpec

if TYPE_CHECKING:
    from headrace.runtime.streams.options import StreamOptions

Ports = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Emulation:
    """Slower hosts and narrower networks than those the copies really run on."""

    factors: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """For filter and host: how many times as long its work takes."""
    ports: Callable[[str, str], Ports] = lambda source, target: ()
    """Files and bytes/s of the ports and links from host to host."""
    text: str = ""
    """What is emulated, in words."""
    slowdowns: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """For hosts that become slower: after how many seconds, and by which factor."""


def make_specs(
    app: App, plan: StreamPlan, options: StreamOptions, emulation: Emulation, first_unit: int, began: float
) -> list[CopySpec]:
    """The specification of every copy; `began`: when the run did, from which slowdowns are counted."""
    slow = {host: (began + after, factor) for host, (after, factor) in emulation.slowdowns.items()}
    of = {name: [copy for copy in plan.copies if copy.filter == name] for name in app.order}
    return [
        CopySpec(
            copy.copy,
            copy.filter,
            copy.name,
            copy.begin,
            copy.end,
            tuple(
                InputSpec(source.copy, number, stream.name, source.name)
                for number, stream in enumerate(app.streams)
                if stream.target == copy.filter
                for source in of[stream.source]
            ),
            tuple(
                OutputSpec(number, stream.name, _targets(plan, copy, of[stream.target], emulation))
                for number, stream in enumerate(app.streams)
                if stream.source == copy.filter
            ),
            options.window(app.buffer),
            options.routing,
            options.work_conserving,
            emulation.factors.get((copy.filter, copy.host), 1.0),
            slow.get(copy.host),
            first_unit,
            options.stall,
        )
        for copy in plan.copies
    ]


def _targets(
    plan: StreamPlan, source: CopyPlace, targets: list[CopyPlace], emulation: Emulation
) -> tuple[TargetSpec, ...]:
    weights = plan.weights(source, targets[0].filter)
    return tuple(
        TargetSpec(target.copy, target.name, weight, emulation.ports(source.host, target.host))
        for target, weight in zip(targets, weights, strict=True)
    )
