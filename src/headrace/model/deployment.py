"""A deployment: copies of each filter, where they run, and the flow on every edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from headrace.model.arguments import checked_path
from headrace.model.pipeline import PipelineProblem
from headrace.model.units import plural

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.model.check_case import Violation

Form = Literal["strict", "first relaxation", "second relaxation", "trivial", "total"]
"""What a deployment looks like. strict: the reader runs at its full rate. First relaxation: it is slowed down.
Second: hosts are allotted in proportion to the filters' trial times. trivial: one host per filter; total: all
hosts; with both of these every copy of a filter gets the same flow."""


class Placement(NamedTuple):
    """The copies of one filter on one host."""

    filter: str
    host: str
    copies: int
    share: float
    """Share of the filter's work done here; the shares of a filter sum to 1."""
    rate: float
    """Input rate in MB/s; for the reader, the rate at which it reads."""
    busy: float
    """Average number of busy cores: rate divided by the rate of one core."""


class Flow(NamedTuple):
    """The data one host sends to another, or to itself, on one stream."""

    source_filter: str
    target_filter: str
    source: str
    target: str
    rate: float
    """MB/s."""


class Route(NamedTuple):
    """A way that flows between two sites take, where it is not the platform's quickest route."""

    source: str
    """A site."""
    target: str
    links: tuple[str, ...]
    """Names as in `headrace.model.link_graph.link_labels`."""
    share: float
    """Part of all flows between the two sites."""


class Limit(NamedTuple):
    """A saturated resource that limits the throughput."""

    kind: Literal["reader", "cpu", "port", "link", "segment", "hosts", "rule"]
    name: str
    """The filter (reader, cpu), host and direction (port), link or site concerned."""
    text: str
    """In words."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """How a pipeline runs on a platform: placements, flows, throughput and limits.

    `objective` is the maximised quantity, the weighted flow minus the cost of hosts, and `bound` is a proven upper
    bound on it for all deployments of the problem, with any source and in any form.
    """

    problem: PipelineProblem
    planner: str
    form: Form
    source: str
    """The source option from which the input is read."""
    throughput: float
    """MB/s read."""
    placements: tuple[Placement, ...]
    """Sorted by filter in pipeline order, then by host in platform order."""
    flows: tuple[Flow, ...]
    objective: float
    bound: float
    routes: tuple[Route, ...] = ()
    """All routes between those sites whose flows do not take the quickest route; others take it."""
    limits: tuple[Limit, ...] = ()
    seconds: float = 0.0
    """Time spent planning."""
    notes: tuple[str, ...] = field(default=())

    @property
    def predicted_seconds(self) -> float:
        """Time for the input of the trial run; inf for a deployment through which nothing flows."""
        return self.problem.pipeline.reader.volume / self.throughput if self.throughput > 0 else float("inf")

    @property
    def gap(self) -> float:
        """Optimality gap: the largest possible loss of the objective, relative to the bound."""
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
        """List every violated restriction; an empty list means that the deployment is valid."""
        from headrace.model.check_deployment import check_deployment

        return check_deployment(self)

    def __repr__(self) -> str:
        return (
            f"<Deployment of {self.problem.pipeline.name!r} on {self.problem.platform.name!r} by {self.planner}: "
            f"{plural(len(self.hosts_used), 'host')}, {self.throughput:.4g} MB/s>"
        )

    def plot(self, path: str | Path) -> None:
        """Draw clusters, copies and flows as SVG."""
        from headrace.report.deployment import write_deployment

        write_deployment(checked_path(path), self)
