"""Replay a fixed plan in virtual time.

The plan decides the host and core of each task, the order of tasks on each core, the source and target of each
transfer, and on fifo links the order of transfers. Planned times are used for these orders alone; the replay finds
the times that follow. These are its rules; a coordinator that carries out a plan keeps the same ones.

**Orders.** Tasks of a core follow each other by (start, finish, position in `graph.order`). On fifo links, transfers of
more than 0 bytes follow each other by (start, size, finish, index in the plan) on every link of their route: out
port, links between zones, in port. On a host with tasks that need several cores, its tasks take, in the order of
tasks on a core, the cores that are free first by the planned times.

**An item is at a place** by the first of these that applies:

1. a task there makes it, or it has 0 bytes and any task makes it: when that task has finished;
2. it comes from outside and has 0 bytes or lies there initially - at one of its initial locations, without any at
   the platform's origin, without an origin everywhere: from the beginning;
3. a transfer brings it there: when that transfer has finished. If several do, the first in the plan counts.

**A task starts** at the first moment at which the task before it on its core has finished (with several cores, the last
holder of each of them), all its inputs are at its host's place, and its release time has come. A task
never overtakes another one on its core. Where tasks of a host can need more memory or more of a resource than it has,
each also waits for those that leave it what it needs by the planned times: what is free first is taken first.

**Limited disks** that the copies of the plan could fill are taken up in the order of the planned starts. A task or
transfer that begins a copy there also waits until the one that begins the copy before it has started, and until all
that use copies whose planned last use has ended by then - read, send, make or bring them - have finished.

**A transfer starts** at the first moment at which

- its item is at its source. A relay is no special case: the transfer onward waits for the end of the one that brings
  the item, even if another copy would be nearer by now;
- on fifo links, no link of its route is busy with the transfer before it. It waits for its turn even while the link is
  idle. From its start on it keeps each link busy for its bytes over the bandwidth of that link, or until it has
  finished where routes are single hops (`routing = "links"`);
- with a prefetch depth d, it has been called. A task calls for the transfers that bring its inputs when the task d
  places for each core before it on its host starts, in the order of tasks on a core; the first d tasks for each
  core of a host call at the beginning. A call goes on to the
  transfers that bring an item to the source of a called one. The first of several calls counts. Transfers that
  no task needs, such as results on their way back, need no call. Fifo links take no prefetch depth: a transfer that is
  not called would block those behind it.

On other links transfers have no order: all that can start do, at once. A plan for fair links can say that its transfers
take turns, `in_turn`. Each then waits on the slow links of its route, those of which it can use at least 80 %, for the
turn of the transfer before it. A turn is over when what the transfer has still to send needs, at the bandwidth of its
route, no longer than its latency; if that is so from the beginning, when the route would have carried its bytes.

**Durations.** A task takes its work over the rate of its host. A transfer takes the latency of its route and its bytes
over the least bandwidth of ports and route; on fair links the latency, and then until its bytes have come at the
max-min fair rate over all links of its route with a limit. Transfers of 0 bytes take no time and no link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays.fair_share import FairShare, make_fair_share
from headrace.arrays.heap import NONE
from headrace.arrays.records import Records
from headrace.model.constraints import with_order
from headrace.model.errors import BadPlan, UsageError
from headrace.model.graph import Floats
from headrace.model.network import Network
from headrace.model.plan import Plan
from headrace.model.turns import need_turns
from headrace.simulator.replay.dependencies import (
    Dependencies,
    Holders,
    after_turn,
    in_lists,
    needs,
    route_seconds,
    routes,
)
from headrace.simulator.replay.disks import with_disks
from headrace.simulator.replay.event_loop import NODE, replay_events
from headrace.simulator.replay.prefetch import Calls, calls_for_prefetch, no_calls
from headrace.simulator.replay.walk import walk


def replay(
    plan: Plan,
    *,
    work: Floats | None = None,
    holders: Holders | None = None,
    prefetch_depth: int | None = None,
    not_before: Floats | None = None,
) -> Plan:
    """The plan with the times that follow from its decisions. To replay one plan many times, see `Replayer`.

    Args:
        plan: What to replay.
        work: Run times in place of those of the plan's graph.
        holders: Places that hold each input from outside at first, in place of what graph and platform say.
        prefetch_depth: How many tasks ahead inputs are sent; without it, as soon as they can be.
        not_before: When each task may start at the soonest.

    Raises:
        BadPlan: If an item is missing somewhere, or tasks and transfers wait for each other.
        UsageError: If the prefetch depth is below 1, or links are fifo.
    """
    replayer = Replayer.of(plan, holders=holders, prefetch_depth=prefetch_depth, not_before=not_before)
    return replayer.replay(work)


@dataclass(frozen=True, eq=False)
class _Events:
    """Where the event loop begins; it works on copies of `nodes` and `share`."""

    nodes: Records
    calls: Calls
    share: FairShare


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
    rate: Floats
    """Of each task on its host."""
    soonest: Floats
    """When each task may start."""
    delay: Floats
    """Of each transfer: all it takes or, where links are shared, before it has its share."""
    events: _Events | None
    """What the event loop needs; None if the order of events does not matter, and one walk over the dependencies
    is enough."""

    @staticmethod
    def of(
        plan: Plan,
        *,
        holders: Holders | None = None,
        prefetch_depth: int | None = None,
        not_before: Floats | None = None,
    ) -> Replayer:
        """Work out what waits for what: O((tasks + reads + transfers) log)."""
        _check_prefetch(plan, prefetch_depth)
        graph, platform = plan.graph, plan.platform
        if not holders:
            holders = graph.initial_locations.places_by_item(graph, platform)
        in_turn = _in_turn(plan)
        needed = needs(in_turn, holders)
        calls = no_calls(plan) if prefetch_depth is None else calls_for_prefetch(plan, needed, prefetch_depth)
        depends = with_disks(plan, in_lists(in_turn, needed), holders, calls)
        soonest = graph.release if not_before is None else np.maximum(graph.release, not_before)
        fair = platform.contention == "fair"
        delay = _delays(plan, fair)
        events = None
        if fair or prefetch_depth is not None:
            nodes = _nodes(calls, soonest, delay)
            if plan.in_turn and not platform.network.store_and_forward:
                nodes["rest"][graph.n_tasks :] = _rest_after_turn(plan)
            share = _share_links(plan, nodes) if fair else _no_flows(plan, nodes)
            events = _Events(nodes, calls, share)
        return Replayer(
            plan, depends, platform.rates(graph)[graph.speed_class, plan.host], soonest, delay, events
        )

    def times(self, work: Floats | None = None) -> tuple[Floats, Floats]:
        """Start and finish of all tasks, then of all transfers.

        O(tasks + transfers + what waits), and where the order of events matters a logarithm on top; where links are
        shared, each start and end of a transfer costs as much as there are pairs of places connected with its own.
        """
        seconds = (self.plan.graph.work if work is None else work) / self.rate
        if self.events is None:
            delay = np.concatenate((seconds, self.delay))
            start = np.concatenate((self.soonest, np.zeros(len(self.delay))))
            ptr, successors, waits, lag = self.depends
            finish, reached = walk(ptr, successors, waits.copy(), lag, delay, start)
        else:
            nodes = self.events.nodes.copy()
            nodes["delay"][: len(seconds)] = seconds
            depends = self.depends._replace(waits=self.depends.waits.copy())
            depends.waits[len(seconds) :] += ~self.events.calls.called
            reached = replay_events(nodes, depends, self.events.calls, self.events.share.copy())
            start, finish = nodes["start"].copy(), nodes["finish"].copy()
        if reached < len(start):
            raise BadPlan(
                f"only {reached} of {len(start)} tasks and transfers can be carried out: the rest wait for each other",
                where=f"plan for {self.plan.graph.name}",
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


def _in_turn(plan: Plan) -> Plan:
    """The plan in whose graph tasks also wait for those that leave them memory and resources."""
    turns = need_turns(plan)
    return replace(plan, graph=with_order(plan.graph, turns)) if len(turns) else plan


def _check_prefetch(plan: Plan, depth: int | None) -> None:
    if depth is None:
        return
    if depth < 1:
        raise UsageError(f"prefetch_depth is {depth}", hint="inputs are sent at least 1 task ahead")
    if plan.platform.contention == "fifo" or plan.in_turn:
        raise UsageError(
            "prefetch_depth does not apply to links on which transfers take turns: the plan has their order",
            where=f"plan for {plan.graph.name}",
            hint="leave prefetch_depth out, or use contention none or fair and a plan without turns",
        )


def _delays(plan: Plan, fair: bool) -> Floats:
    """Latency, and where links are not shared the time of the bytes; signals take no time."""
    if not fair:
        return route_seconds(plan)
    network, size = plan.platform.network, plan.graph.size[plan.move_item]
    latency = network.route_latency[network.zone[plan.move_source], network.zone[plan.move_target]]
    return np.where(size > 0, latency, 0.0)


def _nodes(calls: Calls, soonest: Floats, delay: Floats) -> Records:
    """Tasks, whose delay is filled in for each replay, and transfers."""
    n = len(soonest)
    nodes = np.zeros(n + len(delay), NODE)
    nodes["start"][:n], nodes["delay"][n:] = soonest, delay
    nodes["called"][n:] = calls.called
    return nodes


def _rest_after_turn(plan: Plan) -> Floats:
    left = after_turn(plan)
    return np.where(left < plan.graph.size[plan.move_item], left, 0.0)


def _no_flows(plan: Plan, nodes: Records) -> FairShare:
    nodes["pair"] = NONE
    return make_fair_share(len(plan.move_item), np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0))


def _share_links(plan: Plan, nodes: Records) -> FairShare:
    """One pair for each two places with bytes between them; links without a limit do not count."""
    network: Network = plan.platform.network
    key = plan.move_source.astype(np.int64) * network.n_places + plan.move_target
    ordered = np.sort(key)
    distinct = ordered[np.diff(ordered, prepend=-1) > 0]
    pair = np.searchsorted(distinct, key)
    ptr, links = routes(
        network,
        (distinct // network.n_places).astype(np.int32),
        (distinct % network.n_places).astype(np.int32),
    )
    limited = np.isfinite(network.link_bandwidth[links])
    route_ptr = np.concatenate(([0], np.cumsum(limited)))[ptr]
    size = plan.graph.size[plan.move_item]
    shares = (np.diff(route_ptr) > 0)[pair] & (size > 0)
    n = plan.graph.n_tasks
    nodes["size"][n:] = size
    nodes["pair"] = NONE
    nodes["pair"][n:][shares] = pair[shares]
    return make_fair_share(len(size), route_ptr, links[limited], network.link_bandwidth)
