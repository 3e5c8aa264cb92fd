"""A planner steered through a run: when to plan, for which tasks, how far ahead, while work goes on.

This is the planning loop of the parameter-sweep paper (its sections 5.3 to 5.6 and 7.4), for any planner
and for task graphs as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from headrace.core.in_flight import in_flight
from headrace.core.online import Command, Fetch, RequeueTail, WakeConditions
from headrace.core.replan_interval import Moving, ReplanInterval, Running, SubTask
from headrace.core.scheduler import Assign, Planner, Problem
from headrace.core.task_window import Reduction, reduced
from headrace.model.errors import UsageError
from headrace.model.events import Event, HostJoined, HostLeft, Started
from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan

if TYPE_CHECKING:
    from headrace.core.view import RunView


@dataclass(frozen=True)
class ReplanPolicy:
    """When and how far a steered planner plans.

    `events`: S1 plans every `interval` seconds; S2 stretches the interval slowly while hosts do what was
    foreseen and shrinks it fast when they do not; S3 does so too, giving hosts that are never as foreseen
    less weight; `once` plans at the start only, and when `replan` or `off_by` says so.
    """

    events: Literal["S1", "S2", "S3", "once"] = "S2"
    interval: float | None = None
    """Seconds between the first two plans; four mean run times if not given."""
    every: float = 0.0
    """Plan again after each such share of the first plan's makespan, in place of `interval`; 0: not so."""
    horizon: float | Literal["tuned"] = "tuned"
    """How far beyond the next plan hosts are given work, in intervals. Tuned: far at first, less far as long
    as no host runs out of work."""
    keep: int = 1
    """Tasks that stay in each queue while a plan is made, and are not planned anew."""
    hold: bool = False
    """Leave the whole queues as they are until the new plan is ready, and plan all that has not begun."""
    planning: float = 0.0
    """Virtual seconds that making a plan takes, for each thousand tasks times hosts; work goes on meanwhile."""
    planning_fixed: float = 0.0
    """Virtual seconds that making any plan takes."""
    subset: int = 0
    """At most so many tasks are planned at once; 0: all."""
    reduce: Reduction = "shared-file"
    """Which tasks are chosen when there are more, level by level: at random, or those that share files."""
    replan: Literal["joins", "losses", "both", "neither"] = "both"
    """Changes of the grid after which a plan is made at once."""
    off_by: float = math.inf
    """A task that took this many times what was foreseen, or that much less, asks for a new plan."""
    pause: float = 0.0
    """Least seconds between a plan and one that surprises ask for."""
    idle: bool = True
    """A host with nothing to do while tasks wait asks for a new plan."""
    threshold: float = 0.3
    """Share of wrong predictions above which the interval shrinks. Predictions say which tasks will run on which
    hosts at the next planning event, and which items will move over which links."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("interval", self.interval, 0.0),
            ("every", self.every, 0.0),
            ("planning", self.planning, 0.0),
            ("planning_fixed", self.planning_fixed, 0.0),
            ("keep", self.keep, 0),
            ("subset", self.subset, 0),
        ):
            if value is not None and not least <= value < math.inf:
                raise UsageError(f"{what} is {value}", where="planning rules", hint=f"give {least} or more")
        if self.interval == 0:
            raise UsageError("interval is 0", where="planning rules", hint="give seconds above 0, or nothing")
        if self.horizon != "tuned" and not (isinstance(self.horizon, int | float) and self.horizon >= 0):
            raise UsageError(f"horizon is {self.horizon!r}", hint="use tuned, or a number of 0 or more")
        for what, chosen, known in (
            ("events", self.events, ("S1", "S2", "S3", "once")),
            ("reduce", self.reduce, ("random", "shared-file")),
            ("replan", self.replan, ("joins", "losses", "both", "neither")),
        ):
            if chosen not in known:
                raise UsageError(f"{what} is {chosen!r}", hint=f"use one of {', '.join(known)}")


class Replan:
    """Any planner as an online scheduler, by the rules above."""

    def __init__(self, planner: Planner, rules: ReplanPolicy | None = None, seed: int = 0) -> None:
        self.planner = planner
        self.rules = rules or ReplanPolicy()
        self.seed = seed
        self.name = planner.name
        self.wake = WakeConditions(idle=self.rules.idle, off_by=self.rules.off_by)
        self.next_time = math.inf
        self.plans = 0
        self.planning_seconds = 0.0
        """Virtual seconds spent making plans, altogether."""
        self.planned_tasks = 0
        self.pace = ReplanInterval(self.rules.events, self.rules.threshold, self.rules.horizon)
        self._next_event = math.inf
        self._last_plan = -math.inf
        self._pending: tuple[float, list[Command], list[SubTask]] | None = None
        self._foreseen: list[SubTask] = []
        self._there: Bools | None = None
        """The hosts that were there when the last plan was made."""
        self._again = False

    def react(self, state: RunView, events: Sequence[Event]) -> list[Command]:
        """Plan if it is time to, or hand over the plan that is ready now."""
        now = state.time
        if not self.pace.interval:
            self.pace.begin(self._first_interval(state))
        answers: list[Command] = []
        if self._pending is not None:
            ready, made, foreseen = self._pending
            self._again = self._again or self._must(events) or state.surprised
            if now < ready - 1e-9:
                return []
            answers, self._foreseen, self._pending = made, foreseen, None
            if not self._again:
                self._set_clock()
                return answers
        if self._again or self._is_time(state, events):
            self._again = False
            answers = [*answers, *self._plan(state)]
        self._set_clock()
        return answers

    def _set_clock(self) -> None:
        self.next_time = self._pending[0] if self._pending is not None else self._next_event

    def _must(self, events: Sequence[Event]) -> bool:
        kinds = {
            "joins": (HostJoined,),
            "losses": (HostLeft,),
            "both": (HostJoined, HostLeft),
            "neither": (),
        }[self.rules.replan]
        return any(isinstance(event, (Started, *kinds)) for event in events)

    def _is_time(self, state: RunView, events: Sequence[Event]) -> bool:
        """At the start, at a planning event, after a change or surprise that asks for it; and while tasks wait that
        no host has, when a host has nothing to do, if that shall be so, or else nothing would ever happen."""
        if self._must(events) or state.time >= self._next_event - 1e-9:
            return True
        if state.surprised and state.time >= self._last_plan + self.rules.pause:
            return True
        desk = state.desk
        if int(desk.queue_length[-1]) == 0:
            return False
        pause = 0.25 * self.pace.interval if self.rules.events != "once" else 0.0
        idle = (
            (desk.host_up == 1)
            & (desk.queue_length[:-1] == 0)
            & (desk.busy_cores < np.diff(state.static.core_ptr))
        )
        running = bool((desk.run_host >= 0).any())
        if self.rules.idle:
            return bool(idle.any()) and (not running or state.time >= self._last_plan + pause)
        return not running and math.isinf(self._next_event)

    def _first_interval(self, state: RunView) -> float:
        if self.rules.interval is not None and self.rules.interval > 0:
            return self.rules.interval
        work, rates = state.estimates.work, state.rates()
        mean = float((work / rates.mean(axis=1)[state.estimates.graph.kind]).mean()) if len(work) else 1.0
        return max(4.0 * mean, 1e-3)

    def _plan(self, state: RunView) -> list[Command]:
        rules, now = self.rules, state.time
        self._adapt(state)
        self._last_plan = now
        self._next_event = now + self.pace.interval if rules.events != "once" else math.inf
        kept = 0 if rules.hold else rules.keep
        problem = replace(state.problem(kept, self._chosen(state, kept)), seed=self.seed)
        if problem.graph.n_tasks == 0:
            self._foreseen = []
            return []
        cost = self._cost(problem)
        plan = _on_wide_hosts(self.planner.plan(_not_before(problem, cost)))
        self.plans += 1
        self.planned_tasks += problem.graph.n_tasks
        self.planning_seconds += cost
        if rules.every > 0 and self.plans == 1:
            self.pace.begin(rules.every * plan.makespan)
            self._next_event = now + self.pace.interval
        self._next_event = max(self._next_event, now + 2.0 * cost)
        made, foreseen = self._answers(state, plan, kept)
        if cost > 0:
            self._pending = (now + cost, [RequeueTail(0), *made] if rules.hold else made, foreseen)
            return [] if rules.hold else [RequeueTail(kept)]
        self._foreseen = foreseen
        return [RequeueTail(kept), *made]

    def _cost(self, problem: Problem) -> float:
        """Virtual seconds that a plan for this takes."""
        size = problem.graph.n_tasks * len(problem.platform.hosts)
        return self.rules.planning_fixed + self.rules.planning * size / 1e3

    def _adapt(self, state: RunView) -> None:
        """Before a plan: see how the last one came true, and whether it gave hosts enough to do."""
        if state.time >= self._next_event - 1e-9:
            self.pace.compare(state, self._foreseen)
        desk = state.desk
        up = desk.host_up == 1
        if self._there is not None:
            dry = self._there & up & (desk.busy_cores == 0) & (desk.queue_length[:-1] == 0)
            self.pace.tune(bool(dry.any()))
        self._there = up

    def _answers(self, state: RunView, plan: Plan, kept: int) -> tuple[list[Command], list[SubTask]]:
        """Tasks that start before the horizon and the transfers up to there; what is foreseen to run then."""
        limit = math.inf
        if self.rules.events != "once":
            limit = self._next_event - state.time + self.pace.reach * self.pace.interval
        order = np.argsort(plan.start, kind="stable").astype(np.int32)
        order = order[_first_beyond(plan, order, limit)]
        moves = np.empty(0, np.int64)
        if state.platform.contention == "fifo":
            moves = _moves_of(plan, order)
        answers: list[Command] = [
            *_assignments(state, plan, order, kept),
            *_deliveries(plan, moves, state.time),
        ]
        moment = self._next_event - state.time
        return answers, [*_going_on(state, kept, moment), *_planned(state, plan, order, moves, moment)]

    def _chosen(self, state: RunView, kept: int) -> Bools | None:
        """The tasks to plan for, where there are more than a plan shall hold."""
        limit = self.rules.subset
        is_left = (state.desk.done == 0) & (state.desk.run_host < 0)
        is_left[state.kept(kept)] = False
        left = np.flatnonzero(is_left).astype(np.int32)
        if limit <= 0 or len(left) <= limit:
            return None
        rng = np.random.default_rng([self.seed, self.plans])
        chosen = np.zeros(state.graph.n_tasks, np.bool_)
        chosen[reduced(state.graph, left, limit, self.rules.reduce, rng)] = True
        return chosen


def _not_before(problem: Problem, seconds: float) -> Problem:
    """The problem with hosts and links free no sooner than the plan for it is ready."""
    if seconds <= 0:
        return problem
    hosts, links = range(len(problem.platform.hosts)), range(problem.platform.network.n_links)
    return replace(
        problem,
        free_at={h: max(seconds, problem.free_at.get(h, 0.0)) for h in hosts},
        link_free_at={k: max(seconds, problem.link_free_at.get(k, 0.0)) for k in links},
    )


def _on_wide_hosts(plan: Plan) -> Plan:
    """The plan with tasks of several cores on hosts that have so many: most planners do not look at that.

    They go where they would end first after what is planned there; the run has them wait for free cores.
    """
    cores = np.array([host.cores for host in plan.platform.hosts])
    graph = plan.graph
    narrow = np.flatnonzero(graph.cores > cores[plan.host])
    if not len(narrow):
        return plan
    rates, host = plan.platform.rates(graph.kinds), plan.host.copy()
    ends = np.zeros(len(cores))
    np.maximum.at(ends, plan.host, plan.finish)
    for task in narrow[np.argsort(plan.start[narrow], kind="stable")].tolist():
        wide = np.flatnonzero(cores >= graph.cores[task])
        after = ends[wide] + graph.work[task] / rates[graph.kind[task], wide]
        if len(wide):
            host[task] = wide[np.argmin(after)]
            ends[host[task]] = after.min()
    return replace(plan, host=host)


def _assignments(state: RunView, plan: Plan, order: Ints, kept: int) -> list[Assign]:
    """Planned starts as ranks, behind the tasks that stay in each queue."""
    number = {host.name: h for h, host in enumerate(state.platform.hosts)}
    names = [host.name for host in plan.platform.hosts]
    base = np.full(len(names), state.time)
    for k, name in enumerate(names) if kept else ():
        ranks = [float(state.desk.rank[t]) for t in state.queue(number[name])[:kept]]
        base[k] = max([state.time, *ranks])
    ranks = (base[plan.host[order]] + plan.start[order]).tolist()
    tasks = plan.graph.task_names
    return [
        Assign(tasks[t], names[host], rank)
        for t, host, rank in zip(order.tolist(), plan.host[order].tolist(), ranks, strict=True)
    ]


def _moves_of(plan: Plan, order: Ints) -> NDArray[np.int64]:
    """The transfers up to the last start of the tasks handed out, in order; none of what others would make."""
    handed = np.zeros(plan.graph.n_tasks, np.bool_)
    handed[order] = True
    last = float(plan.start[order[-1]]) if len(order) else 0.0
    maker = plan.graph.producer[plan.move_item]
    there = (maker < 0) | handed[maker]
    moves = np.argsort(plan.move_start, kind="stable")
    return moves[(plan.move_start[moves] <= last) & there[moves]]


def _deliveries(plan: Plan, moves: NDArray[np.int64], now: float) -> list[Fetch]:
    places, items = plan.platform.network.place_names, plan.graph.item_names
    return [
        Fetch(
            items[plan.move_item[k]],
            places[plan.move_source[k]],
            places[plan.move_target[k]],
            now + float(plan.move_start[k]),
        )
        for k in moves.tolist()
    ]


def _going_on(state: RunView, kept: int, moment: float) -> list[SubTask]:
    """What will run in `moment` seconds of what runs now and stays in queues."""
    found: list[SubTask] = [
        Running(row.task, row.host) for row in state.timetable(kept).rows if row.start <= moment < row.end
    ]
    if state.platform.contention == "fifo":
        transit = in_flight(state, kept, state.estimates.sizes(state.done))
        found += [
            Moving(row.item, row.target, row.link) for row in transit.carried if row.start <= moment < row.end
        ]
    return found


def _planned(
    state: RunView, plan: Plan, order: Ints, moves: NDArray[np.int64], moment: float
) -> list[SubTask]:
    """What will run in `moment` seconds of what has just been planned, by the numbers of the whole grid."""
    host = {host.name: h for h, host in enumerate(state.platform.hosts)}
    place = {name: p for p, name in enumerate(state.platform.network.place_names)}
    found: list[SubTask] = [
        Running(state.task_number[plan.graph.task_names[t]], host[plan.platform.hosts[plan.host[t]].name])
        for t in order[(plan.start[order] <= moment) & (moment < plan.finish[order])].tolist()
    ]
    names = plan.platform.network.place_names
    for k in moves[(plan.move_start[moves] <= moment) & (moment < plan.move_finish[moves])].tolist():
        source, target = place[names[plan.move_source[k]]], place[names[plan.move_target[k]]]
        link = int(state.static.route_bottleneck[source * len(place) + target])
        found.append(Moving(int(plan.move_item[k]), target, link))
    return found


def _first_beyond(plan: Plan, order: Ints, limit: float) -> Bools:
    """Which tasks to hand out, of those in order of their start: all up to the limit, then one more a core."""
    late = np.flatnonzero(plan.start[order] > limit)
    chosen = np.ones(len(order), np.bool_)
    cores = np.array([host.cores for host in plan.platform.hosts])
    hosts = plan.host[order[late]]
    by_host = np.argsort(hosts, kind="stable")
    counts = np.bincount(hosts, minlength=len(cores))
    place = np.arange(len(late)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen[late[by_host]] = place < cores[hosts[by_host]]
    return chosen
