"""Decisions about jobs, and the list schedule that follows from them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.arrays.calendar import exclusive_calendar, shared_calendar
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.kernels.board import Case, Choices, new_copies, new_outcome, new_scratch
from headrace.planners.coschedule.kernels.schedule import FAILED, LATE, clear, place_some, spread
from headrace.planners.coschedule.queues import Uses
from headrace.planners.coschedule.relaxation import arcs_on

ANY = -1
"""A way that is not decided: the one that arrives first."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """The order in which jobs are placed, the host of each, the way of each input and output."""

    order: Ints
    host: Ints
    in_way: Ints
    out_way: Ints
    pull: bool = False

    def choices(self) -> Choices:
        return Choices(self.order, self.host, self.in_way, self.out_way, self.pull)

    def copy(self) -> Decisions:
        return replace(
            self,
            order=self.order.copy(),
            host=self.host.copy(),
            in_way=self.in_way.copy(),
            out_way=self.out_way.copy(),
        )


def undecided_ways(instance: Instance) -> dict[str, Any]:
    return {
        "in_way": np.full(len(instance.reads), ANY, np.int32),
        "out_way": np.full(len(instance.writes), ANY, np.int32),
    }


class Lister:
    """Makes list schedules of one instance again and again, on the same board.

    The board grows when bookings need more room than was set aside.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.case = case_of(instance)
        self._room = 4 * instance.n + 16 * len(instance.problem.platform.network.link_bandwidth) + 64
        self._make_board()

    def _make_board(self) -> None:
        instance, ways = self.instance, self.instance.ways
        hops = int(np.diff(ways.path_ptr).max(initial=0))
        entries = len(instance.reads) + len(instance.writes)
        links = instance.problem.platform.network.n_links
        most = int(np.diff(instance.read_ptr).max(initial=0) + np.diff(instance.write_ptr).max(initial=0))
        self.calendar = exclusive_calendar(links, self._room)
        self.steps = shared_calendar(len(instance.host_place) + len(instance.storage), self._room)
        self.copies = new_copies(len(instance.size) * instance.places + 1, self.case.stored)
        self.outcome = new_outcome(instance.n, entries * max(1, hops))
        self.scratch = new_scratch(1 + most * max(1, hops), int(np.diff(ways.arcs.link_ptr).max(initial=1)))

    def grow(self) -> None:
        """A board with twice the room."""
        self._room *= 2
        self._make_board()

    @property
    def full(self) -> bool:
        """Whether there was too little room for bookings: what was placed does not count then."""
        return bool(self.calendar.used[1] or self.steps.used[1])

    def clear(self, choices: Choices) -> None:
        """An empty board."""
        clear(self.case, choices, *self.board)

    def place(self, choices: Choices, first: int, last: int, end: float, late: float) -> tuple[float, float]:
        """Place the jobs at these positions of the order after those before: latest end, sum of lateness."""
        placed = place_some(self.case, choices, first, last, end, late, *self.board, self.scratch)
        return float(placed[0]), float(placed[1])

    def kept(self) -> list[list[Any]]:
        """The board as it is: O(its size)."""
        return [[array.copy() for array in part] for part in self.board]

    def restore(self, board: list[list[Any]]) -> None:
        """Put the board back as it was kept."""
        for part, old in zip(self.board, board, strict=True):
            for array, values in zip(part, old, strict=True):
                array[:] = values

    @property
    def board(self) -> tuple[Any, Any, Any, Any]:
        return self.calendar, self.steps, self.copies, self.outcome

    def value(self, decisions: Decisions) -> float:
        """Makespan, plus a penalty for late jobs; FAILED or more if some job cannot be placed."""
        while True:
            choices = decisions.choices()
            self.clear(choices)
            end, late = self.place(choices, 0, len(decisions.order), 0.0, 0.0)
            if not self.full:
                return end + LATE * late
            self.grow()

    def idle(self, placed: Ints, jobs: Ints | None = None, first_move: int = 0) -> Floats:
        """How long each host (mean over cores) and link was idle before its end, in the schedule made last.

        `placed` are the jobs in it; with `jobs` and the number of their first transfer, only these count as busy.
        """
        jobs = placed if jobs is None else jobs
        instance, outcome = self.instance, self.outcome
        hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
        end, busy = np.zeros(hosts + links), np.zeros(hosts + links)
        held = ((outcome.finish - outcome.start) * instance.problem.graph.cores)[jobs]
        np.maximum.at(end, outcome.host[placed], outcome.finish[placed])
        np.add.at(busy, outcome.host[jobs], held / instance.host_cores[outcome.host[jobs]])
        arcs, count = instance.ways.arcs, int(outcome.count[0])
        arc = outcome.move_arc[:count]
        uses = np.diff(arcs.link_ptr)[arc]
        move = np.repeat(np.arange(count), uses)
        step = np.arange(len(move)) - np.repeat(np.cumsum(uses) - uses, uses)
        link = hosts + arcs.links[arcs.link_ptr[arc][move] + step]
        np.maximum.at(end, link, outcome.move_finish[move])
        late = move >= first_move if len(jobs) else np.zeros(len(move), np.bool_)
        np.add.at(busy, link[late], (outcome.move_finish - outcome.move_start)[move[late]])
        left: Floats = np.where(end > 0, end - busy, 0.0)
        return left

    def uses(self, link: int, into: bool) -> Uses:
        """The transfers of inputs (or of results) over a link in the schedule made last."""
        instance, outcome, graph = self.instance, self.outcome, self.instance.problem.graph
        count = int(outcome.count[0])
        on = np.isin(outcome.move_arc[:count], arcs_on(instance, link))
        item = outcome.move_item[:count]
        on &= (graph.producer[item] < 0) == into
        item = item[on]
        job = graph.readers[graph.reader_ptr[item]] if into else graph.producer[item]
        return Uses(job, outcome.move_start[:count][on], outcome.move_finish[:count][on])

    def ends(self, placed: Ints) -> Floats:
        """The latest end of the jobs of each host, with their results, in the schedule made last."""
        latest = np.zeros(len(self.instance.host_place))
        np.maximum.at(latest, self.outcome.host[placed], self.outcome.done[placed])
        return latest

    def spread(self) -> float:
        """Of the schedule made last."""
        return float(spread(self.case, self.steps, self.calendar, self.outcome))

    def plan(self, decisions: Decisions, name: str) -> Plan:
        """The plan of these decisions, which must be possible; without bound."""
        value = self.value(decisions)
        assert value < FAILED
        outcome, arcs = self.outcome, self.instance.ways.arcs
        count = int(outcome.count[0])
        graph, platform = self.instance.problem.graph, self.instance.problem.platform
        arc = outcome.move_arc[:count]
        start, finish, host = outcome.start.copy(), outcome.finish.copy(), outcome.host.copy()
        return Plan(
            graph=graph,
            platform=platform,
            scheduler=name,
            host=host,
            core=first_cores(graph, self.instance.host_cores, host, start, finish),
            start=start,
            finish=finish,
            move_item=outcome.move_item[:count].copy(),
            move_source=arcs.tail[arc],
            move_target=arcs.head[arc],
            move_start=outcome.move_start[:count].copy(),
            move_finish=outcome.move_finish[:count].copy(),
        )


def case_of(instance: Instance) -> Case:
    graph, ways, arcs = instance.problem.graph, instance.ways, instance.ways.arcs
    set_ptr = np.cumsum([0, *(len(places) for places in ways.sets)]).astype(np.int32)
    return Case(
        seconds=instance.seconds,
        cores=graph.cores,
        release=graph.release,
        deadline=graph.deadline,
        host_place=instance.host_place,
        host_cores=instance.host_cores,
        host_free=instance.host_free,
        read_ptr=instance.read_ptr,
        reads=instance.reads,
        write_ptr=instance.write_ptr,
        writes=instance.writes,
        wait_ptr=instance.wait_ptr,
        waits=instance.waits,
        size=instance.size,
        source=instance.source,
        maker=graph.producer,
        goal=instance.goal,
        site=instance.site,
        storage=instance.storage,
        stored=bool(np.isfinite(instance.storage).any()),
        booked=instance.booked,
        set_ptr=set_ptr,
        sets=np.array([p for places in ways.sets for p in places], np.int32),
        pair_ptr=ways.pair_ptr,
        path_start=ways.path_start,
        path_ptr=ways.path_ptr,
        path_arcs=ways.path_arcs,
        tail=arcs.tail,
        head=arcs.head,
        latency=arcs.latency,
        bandwidth=arcs.bandwidth,
        link_ptr=arcs.link_ptr,
        links=arcs.links,
    )


def first_cores(graph: Graph, host_cores: Ints, host: Ints, start: Floats, finish: Floats) -> Ints:
    """The lowest core of each job: jobs take the lowest cores that are free, in the order of their starts.

    A job that takes no time and finds no core free gets one that is free soonest: it has to wait for it.
    O(n log n + n * cores held).
    """
    core = np.zeros(len(host), np.int32)
    order = np.lexsort((np.arange(len(host)), finish, start, host))
    last, busy, free = -1, list[tuple[float, list[int]]](), list[int]()
    for t in order.tolist():
        if host[t] != last:
            last = int(host[t])
            busy, free = [], list(range(int(host_cores[last])))
        slack = 1e-9 + 1e-12 * float(start[t])
        while busy and busy[0][0] <= start[t] + slack:
            for c in heapq.heappop(busy)[1]:
                heapq.heappush(free, c)
        if len(free) < graph.cores[t] and finish[t] <= start[t] + slack:
            core[t] = busy[0][1][0]
            continue
        taken = [heapq.heappop(free) for _ in range(int(graph.cores[t]))]
        core[t] = taken[0]
        heapq.heappush(busy, (float(finish[t]), taken))
    return core
