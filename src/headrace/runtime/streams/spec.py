"""What the supervisor tells an agent about a copy: plain values that go through JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.runtime.streams.routing import Routing


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A connection to expect."""

    source: int
    """The number of the sending copy."""
    stream: int
    """The number of the stream in the application."""
    stream_name: str
    name: str
    """The sending copy, for messages."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A copy to connect to."""

    copy: int
    name: str
    weight: float
    ports: tuple[tuple[str, float], ...] = ()
    """Emulated ports and links on the way: file and bytes/s."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One outgoing stream and its targets."""

    stream: int
    stream_name: str
    targets: tuple[TargetSpec, ...]


@dataclass(frozen=True, slots=True)
class CopySpec:
    """One copy of a filter."""

    copy: int
    """Its number among all copies of all filters."""
    filter: str
    name: str
    """For messages: filter, number and host."""
    begin: float = 0.0
    end: float = 1.0
    """The share of the input that a reader reads."""
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    credits: int = 4
    routing: Routing = "planned"
    work_conserving: bool = False
    factor: float = 1.0
    """How many times as long the filter's own work is made to take: emulation of a slower host."""
    slowdown: tuple[float, float] | None = None
    """A moment of `time.monotonic`, and by which factor the emulated host is slower from then on."""
    first_unit: int = 0
    stall: float = 60.0
    """Seconds after which a connection to a machine that does not answer is lost."""
    limit: int = field(default=4 * 2**30)
    """Most bytes of results in one unit."""

    @property
    def targets(self) -> int:
        return sum(len(output.targets) for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        """
        >>> spec = CopySpec(0, "read", "read 1 on n1", outputs=(OutputSpec(0, "s", (TargetSpec(1, "x", 1.0),)),))
        >>> CopySpec.from_json(spec.to_json()) == spec
        True
        """
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> CopySpec:
        plain = dict(value)
        plain["inputs"] = tuple(InputSpec(**given) for given in value["inputs"])
        plain["outputs"] = tuple(
            OutputSpec(
                given["stream"],
                given["stream_name"],
                tuple(
                    TargetSpec(
                        t["copy"], t["name"], t["weight"], tuple((file, rate) for file, rate in t["ports"])
                    )
                    for t in given["targets"]
                ),
            )
            for given in value["outputs"]
        )
        plain["slowdown"] = None if value["slowdown"] is None else tuple(value["slowdown"])
        return CopySpec(**plain)
