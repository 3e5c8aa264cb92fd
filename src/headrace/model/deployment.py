"""A deployment: copies of each filter, where they run, and the flow on every edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from headrace.model.pipeline import PipelineProblem

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.model.check_case import Violation

Form = Literal["strict", "first relaxation", "second relaxation", "trivial", "total"]
"""Which restrictions hold. strict: the reader goes at its full rate. First relaxation: it may be held back.
Second: hosts are dealt out by the filters' trial times. trivial: one host a filter; total: all hosts; in both
of these every copy of a filter gets the same flow."""


class Placement(NamedTuple):
    """The copies of one filter on one host."""

    filter: str
    host: str
    copies: int
    share: float
    """Share of the filter's work that is done here: they sum to 1 over its placements."""
    rate: float
    """MB/s that go in here; for the reader, that it reads."""
    busy: float
    """Cores in use, on average: rate over what one core could do."""


class Flow(NamedTuple):
    """What one host sends another, or itself, on one stream."""

    source_filter: str
    target_filter: str
    source: str
    target: str
    rate: float
    """MB/s."""


class Limit(NamedTuple):
    """A resource that is used up, so that it holds the throughput down."""

    kind: Literal["reader", "cpu", "port", "link", "segment", "hosts", "rule"]
    name: str
    """The filter (reader, cpu), host and direction (port), link or site that it is about."""
    text: str
    """In words."""


class Price(NamedTuple):
    """What one more host of a kind would bring, by the linear program: its shadow price."""

    cluster: str
    like: str
    """The first host of that kind."""
    hosts: int
    power: float
    gain: float
    """MB/s read, for a small further amount of such hosts; 0 where they are not what is lacking."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """How a pipeline runs on a platform, and what can be said about that.

    `objective` is what was maximised, the weighted flow minus the cost of hosts, and `bound` is proven: no
    deployment of the same form has a larger one.
    """

    problem: PipelineProblem
    planner: str
    form: Form
    source: str
    """The option by which the input is read."""
    throughput: float
    """MB/s read."""
    placements: tuple[Placement, ...]
    """By filter in pipeline order, then by host in platform order."""
    flows: tuple[Flow, ...]
    objective: float
    bound: float
    limits: tuple[Limit, ...] = ()
    prices: tuple[Price, ...] = ()
    seconds: float = 0.0
    """Time it took to plan."""
    notes: tuple[str, ...] = field(default=())

    @property
    def predicted_seconds(self) -> float:
        """Time for the input of the trial run; inf for a deployment through which nothing flows."""
        return self.problem.pipeline.reader.volume / self.throughput if self.throughput > 0 else float("inf")

    @property
    def gap(self) -> float:
        """How far the objective may lie below the best one, as a share of the bound."""
        return max(0.0, self.bound - self.objective) / max(abs(self.bound), 1e-12)

    @cached_property
    def hosts_used(self) -> tuple[str, ...]:
        """Hosts with a copy of some filter, in platform order."""
        used = {p.host for p in self.placements}
        return tuple(h.name for h in self.problem.platform.hosts if h.name in used)

    def copies(self, filter_name: str) -> int:
        return sum(p.copies for p in self.of(filter_name))

    def of(self, filter_name: str) -> Sequence[Placement]:
        """The placements of one filter."""
        return [p for p in self.placements if p.filter == filter_name]

    def check(self) -> list[Violation]:
        """Every restriction that the deployment breaks; an empty list means that it is valid."""
        from headrace.model.check_deployment import check_deployment

        return check_deployment(self)

    def plot(self, path: str | Path) -> None:
        """Draw clusters, copies and flows as an SVG picture."""
        from headrace.report.deployment import write_deployment

        write_deployment(path, self)
