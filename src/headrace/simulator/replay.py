"""Carry a fixed plan out in virtual time.

What is fixed: the host and core of each task, the order of tasks on each core, the source and target of each
transfer and, where a link carries one transfer at a time, the order on each link. What follows: the times. A
task starts when its core is free and its inputs are there; a transfer when its data is at the source and its
links are free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.model.errors import BadPlan, UsageError
from headrace.model.graph import Floats, Ints
from headrace.model.network import Network
from headrace.model.plan import Plan
from headrace.simulator.ahead import Calls, calls_ahead, no_calls
from headrace.simulator.dependencies import Dependencies, Holders, in_lists, needs, routes
from headrace.simulator.kernels.in_time import carry_out_in_time
from headrace.simulator.kernels.records import LINK, PAIR, STEP
from headrace.simulator.kernels.walk import carry_out


def replay(
    plan: Plan,
    *,
    work: Floats | None = None,
    holders: Holders | None = None,
    ahead: int | None = None,
    not_before: Floats | None = None,
) -> Plan:
    """The plan with the times that follow when it is carried out; `work` replaces the estimated run times.

    With `ahead`, the inputs of a task are sent only when the task so many places before it on its core has started,
    or later; without it, as soon as they can be. Under fifo the plan has the order on links, and `ahead` is an error.
    `not_before` is when each task may start at the soonest. To carry one plan out many times, see `Replayer`.
    """
    return Replayer.of(plan, holders=holders, ahead=ahead, not_before=not_before).replay(work)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The pairs of places that transfers go between, with their links; see kernels.records."""

    pair_of: Ints
    pairs: Any
    steps: Any
    links: Any


@dataclass(frozen=True, eq=False)
class Replayer:
    """A plan made ready to be carried out many times, with other run times each time.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> replayer = Replayer.of(hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)))
    >>> replayer.makespan(), replayer.makespan(np.full(6, 3.0))
    (2.0, 6.0)
    """

    plan: Plan
    depends: Dependencies
    calls: Calls
    rate: Floats
    """Of each task on its host."""
    delay: Floats
    """Of each transfer: all it takes or, where links are shared, before it has its share."""
    sharing: Sharing
    soonest: Floats
    """When each task may start."""
    in_time: bool
    """Whether the order of events matters; else one walk over the dependencies is enough."""

    @staticmethod
    def of(
        plan: Plan,
        *,
        holders: Holders | None = None,
        ahead: int | None = None,
        not_before: Floats | None = None,
    ) -> Replayer:
        """Work out what waits for what: O((tasks + reads + transfers) log)."""
        if ahead is not None and ahead < 1:
            raise UsageError(f"ahead is {ahead}", hint="inputs are sent at least 1 task ahead")
        graph, platform = plan.graph, plan.platform
        if ahead is not None and platform.contention == "fifo":
            raise UsageError(
                "where links carry one transfer at a time, the plan has the order of transfers, and no ahead",
                where=f"plan for {graph.name}",
                hint="leave ahead away, or use contention none or fair",
            )
        if not holders:
            holders = graph.homes.places_by_item(graph, platform)
        fair = platform.contention == "fair"
        needed = needs(plan, holders)
        return Replayer(
            plan,
            in_lists(plan, needed),
            no_calls(plan) if ahead is None else calls_ahead(plan, needed, ahead),
            platform.rates(graph)[graph.speed_class, plan.host],
            _delays(plan, fair),
            _sharing(plan) if fair else _no_sharing(plan),
            graph.release if not_before is None else np.maximum(graph.release, not_before),
            fair or ahead is not None,
        )

    def times(self, work: Floats | None = None) -> tuple[Floats, Floats]:
        """Start and finish of all tasks, then of all transfers.

        O(tasks + transfers + what waits), and where the order of events matters a logarithm on top; where links are
        shared, each start and end of a transfer costs as much as there are pairs of places connected with its own.
        """
        graph, depends, calls = self.plan.graph, self.depends, self.calls
        delay = np.concatenate(((graph.work if work is None else work) / self.rate, self.delay))
        start = np.concatenate((self.soonest, np.zeros(len(self.delay))))
        if self.in_time:
            sharing = self.sharing
            start, finish, reached = carry_out_in_time(
                depends.ptr, depends.successors, depends.waits.copy(), calls.ptr, calls.transfers,
                calls.called.copy(), delay, start, graph.size[self.plan.move_item], sharing.pair_of,
                sharing.pairs.copy(), sharing.steps.copy(), sharing.links.copy(),
            )  # fmt: skip
        else:
            start, finish, reached = carry_out(
                depends.ptr, depends.successors, depends.waits.copy(), delay, start
            )
        if reached < len(delay):
            raise BadPlan(
                f"only {reached} of {len(delay)} tasks and transfers can be carried out: the rest wait for each other",
                where=f"plan for {graph.name}",
                hint="run `headrace check` on the plan to see what it breaks",
            )
        return start, finish

    def makespan(self, work: Floats | None = None) -> float:
        """When all is over."""
        return float(self.times(work)[1].max(initial=0.0))

    def replay(self, work: Floats | None = None) -> Plan:
        """The plan with the times that follow."""
        n = self.plan.graph.n_tasks
        start, finish = self.times(work)
        return replace(
            self.plan, start=start[:n], finish=finish[:n], move_start=start[n:], move_finish=finish[n:]
        )


def _delays(plan: Plan, fair: bool) -> Floats:
    """Latency, and where links are not shared the time of the bytes; signals take no time."""
    network, size = plan.platform.network, plan.graph.size[plan.move_item]
    zones = network.zone[plan.move_source], network.zone[plan.move_target]
    delay = network.route_latency[zones]
    if not fair:
        ports = np.minimum(network.port[plan.move_source], network.port[plan.move_target])
        delay = delay + size / np.minimum(ports, network.route_bandwidth[zones])
    return np.where(size > 0, delay, 0.0)


def _no_sharing(plan: Plan) -> Sharing:
    alone = np.full(len(plan.move_item), -1, np.int32)
    return Sharing(alone, np.empty(0, PAIR), np.empty(0, STEP), np.empty(0, LINK))


def _sharing(plan: Plan) -> Sharing:
    """One pair for each two places with bytes between them; links without a limit do not count."""
    network: Network = plan.platform.network
    key = plan.move_source.astype(np.int64) * network.n_places + plan.move_target
    ordered = np.sort(key)
    distinct = ordered[np.diff(ordered, prepend=-1) > 0]
    pair_of = np.searchsorted(distinct, key)
    ptr, way = routes(
        network,
        (distinct // network.n_places).astype(np.int32),
        (distinct % network.n_places).astype(np.int32),
    )
    owner = np.repeat(np.arange(len(distinct), dtype=np.int32), np.diff(ptr))
    limited = np.isfinite(network.link_bandwidth[way])
    steps = np.zeros(int(limited.sum()), STEP)
    steps["link"], steps["pair"] = way[limited], owner[limited]
    pairs = np.zeros(len(distinct), PAIR)
    pairs["last"] = np.cumsum(np.bincount(owner[limited], minlength=len(distinct)))
    pairs["first"][1:] = pairs["last"][:-1]
    pairs["root"] = pairs["place"] = -1
    links = np.zeros(network.n_links, LINK)
    links["bandwidth"], links["head"] = network.link_bandwidth, -1
    shares = (pairs["first"] < pairs["last"])[pair_of] & (plan.graph.size[plan.move_item] > 0)
    return Sharing(np.where(shares, pair_of, -1).astype(np.int32), pairs, steps, links)
