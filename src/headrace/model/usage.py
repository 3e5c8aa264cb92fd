"""What a schedule costs and how much energy it takes, from the prices and watts of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.model.graph import Floats
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.model.events import TaskFinished
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan

HOUR = 3600.0


class Usage(NamedTuple):
    """Cost in the currency of the platform's prices, energy in joules; None where no host has the figure."""

    cost: float | None
    energy: float | None

    def facts(self) -> dict[str, float]:
        """The known figures by name, for JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def usage_of(platform: Platform, host: Any, core_seconds: Any) -> Usage:
    """The usage of executions, given the host number and the core-seconds of each: O(executions + hosts).

    A host is paid, and draws power, for each core that a task holds while the task runs.

    >>> from headrace.model.platform import Host, Site
    >>> cloud = Platform((Site("a", (Host("h", price=0.5), Host("i", price=2.0))),))
    >>> usage_of(cloud, [0, 1], [7200.0, 1800.0])
    Usage(cost=2.0, energy=None)
    """
    price, watts = prices(platform)
    host, core_seconds = np.asarray(host, np.intp), np.asarray(core_seconds, np.float64)
    return Usage(
        float((price[host] * core_seconds).sum() / HOUR) if price.any() else None,
        float((watts[host] * core_seconds).sum()) if watts.any() else None,
    )


def prices(platform: Platform) -> tuple[Floats, Floats]:
    """Price per hour and watts of one core of each host."""
    return np.array([h.price for h in platform.hosts]), np.array([h.watts for h in platform.hosts])


def usage_of_plan(plan: Plan) -> Usage:
    """The usage of a plan, or of a simulated run as a plan."""
    return usage_of(plan.platform, plan.host, (plan.finish - plan.start) * plan.graph.cores)


def usage_of_run(graph: Graph, platform: Platform, finished: Iterable[TaskFinished]) -> Usage:
    """The usage of the executions of a real run, on hosts of this platform; tasks that ran twice count twice."""
    number = {name: t for t, name in enumerate(graph.task_names)}
    host_number = {host.name: i for i, host in enumerate(platform.hosts)}
    known = [event for event in finished if event.host in host_number]
    core_seconds = [(e.time - e.start) * float(graph.cores[number[e.task]]) for e in known]
    return usage_of(platform, [host_number[event.host] for event in known], core_seconds)
