"""A planner steered through a run: when to plan, for which tasks, how far ahead, while work goes on.

This is the planning loop of the parameter-sweep paper (its sections 5.3 to 5.6 and 7.4), for any planner
and for task graphs as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace.core.online import Answer, Delivery, Truncate, Wake
from headrace.core.scheduler import Assignment, Planner
from headrace.model.errors import UsageError
from headrace.model.events import Event, HostJoined, HostLeft, Started
from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan

if TYPE_CHECKING:
    from headrace.core.grid_state import GridState


@dataclass(frozen=True)
class Rules:
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
    """How far beyond the next plan hosts are given work, in intervals."""
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
    reduce: Literal["random", "shared-file"] = "shared-file"
    """Which tasks are chosen when there are more: at random, or those that share files."""
    replan: Literal["joins", "losses", "both", "neither"] = "both"
    """Changes of the grid after which a plan is made at once."""
    off_by: float = math.inf
    """A task that took this many times what was foreseen, or that much less, asks for a new plan."""
    pause: float = 0.0
    """Least seconds between a plan and one that surprises ask for."""
    idle: bool = True
    """A host with nothing to do while tasks wait asks for a new plan."""
    threshold: float = 0.3
    """Share of wrong predictions above which the interval shrinks."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("interval", self.interval, 0.0),
            ("every", self.every, 0.0),
            ("planning", self.planning, 0.0),
            ("planning_fixed", self.planning_fixed, 0.0),
            ("keep", self.keep, 0),
            ("subset", self.subset, 0),
        ):
            if value is not None and not value >= least:
                raise UsageError(f"{what} is {value}", where="planning rules", hint=f"give {least} or more")
        if self.events not in ("S1", "S2", "S3", "once"):
            raise UsageError(f"events is {self.events!r}", hint="use S1, S2, S3 or once")


class Steered:
    """Any planner as an online scheduler, by the rules above."""

    def __init__(self, planner: Planner, rules: Rules | None = None, seed: int = 0) -> None:
        self.planner = planner
        self.rules = rules or Rules()
        self.seed = seed
        self.name = planner.name
        self.wake = Wake(idle=self.rules.idle, off_by=self.rules.off_by)
        self.next_time = math.inf
        self.plans = 0
        self.planning_seconds = 0.0
        """Virtual seconds spent making plans, altogether."""
        self.planned_tasks = 0
        self._interval = 0.0
        self._reach = 1.0
        self._next_event = math.inf
        self._last_plan = -math.inf
        self._pending: tuple[float, list[Answer], dict[int, list[int]]] | None = None
        self._foreseen: dict[int, list[int]] = {}
        self._trust: dict[int, float] = {}
        self._again = False

    def react(self, state: GridState, events: Sequence[Event]) -> list[Answer]:
        """Plan if it is time to, or hand over the plan that is ready now."""
        now = state.time
        if not self._interval:
            self._interval = self._first_interval(state)
        answers: list[Answer] = []
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

    def _is_time(self, state: GridState, events: Sequence[Event]) -> bool:
        """At the start, at a planning event, after a change that asks for it, or when a host has nothing to do."""
        if self._must(events) or state.time >= self._next_event - 1e-9:
            return True
        nobody_has = int(state.desk.q_len[-1]) > 0
        if state.surprised and state.time >= self._last_plan + self.rules.pause:
            return True
        nothing_moves = not (state.desk.run_host >= 0).any()
        pause = 0.25 * self._interval if self.rules.events != "once" else 0.0
        return nobody_has and (nothing_moves or state.time >= self._last_plan + pause)

    def _first_interval(self, state: GridState) -> float:
        if self.rules.interval is not None and self.rules.interval > 0:
            return self.rules.interval
        work, rates = state.beliefs.work, state.rates()
        mean = float((work / rates.mean(axis=1)[state.beliefs.graph.kind]).mean()) if len(work) else 1.0
        return max(4.0 * mean, 1e-3)

    def _plan(self, state: GridState) -> list[Answer]:
        rules = self.rules
        now = state.time
        self._adapt(state)
        self._last_plan = now
        self._next_event = now + self._interval if rules.events != "once" else math.inf
        chosen = self._chosen(state)
        kept = 0 if rules.hold else rules.keep
        problem = state.problem(kept, chosen)
        if problem.graph.n_tasks == 0:
            return []
        plan = self.planner.plan(problem)
        self.plans += 1
        if rules.every > 0 and self.plans == 1:
            self._interval = rules.every * plan.makespan
            self._next_event = now + self._interval
        self.planned_tasks += problem.graph.n_tasks
        cost = (
            rules.planning_fixed + rules.planning * problem.graph.n_tasks * len(problem.platform.hosts) / 1e3
        )
        self.planning_seconds += cost
        self._next_event = max(self._next_event, now + 2.0 * cost)
        made, foreseen = self._answers(state, plan)
        if cost > 0:
            self._pending = (now + cost, [Truncate(0), *made] if rules.hold else made, foreseen)
            return [] if rules.hold else [Truncate(kept)]
        self._foreseen = foreseen
        return [Truncate(kept), *made]

    def _answers(self, state: GridState, plan: Plan) -> tuple[list[Answer], dict[int, list[int]]]:
        """Tasks that start before the horizon and the transfers up to there; who is foreseen to run then."""
        now = state.time
        hosts = {host.name: h for h, host in enumerate(state.platform.hosts)}
        names = [hosts[host.name] for host in plan.platform.hosts]
        limit = math.inf
        if self.rules.events != "once":
            reach = self._reach if self.rules.horizon == "tuned" else float(self.rules.horizon)
            limit = self._next_event - now + reach * self._interval
        order = np.argsort(plan.start, kind="stable").astype(np.int32)
        order = order[_first_beyond(plan, order, limit)]
        last = float(plan.start[order[-1]]) if len(order) else 0.0
        on = [host.name for host in plan.platform.hosts]
        answers: list[Answer] = [
            Assignment(plan.graph.task_names[t], on[host], now + start)
            for t, host, start in zip(
                order.tolist(), plan.host[order].tolist(), plan.start[order].tolist(), strict=True
            )
        ]
        moment = self._next_event - now
        foreseen = state.expected_at(moment, 0 if self.rules.hold else self.rules.keep)
        for t in order[(plan.start[order] <= moment) & (moment < plan.finish[order])].tolist():
            name = plan.graph.task_names[t]
            foreseen.setdefault(names[int(plan.host[t])], []).append(state.task_number[name])
        if state.platform.contention == "fifo":
            places = plan.platform.network.place_names
            for k in np.argsort(plan.move_start, kind="stable").tolist():
                if plan.move_start[k] <= last:
                    item = plan.graph.item_names[plan.move_item[k]]
                    source, target = places[plan.move_source[k]], places[plan.move_target[k]]
                    answers.append(Delivery(item, source, target, now + float(plan.move_start[k])))
        return answers, foreseen

    def _chosen(self, state: GridState) -> Bools | None:
        """The tasks to plan for, where there are more than a plan shall hold."""
        limit = self.rules.subset
        left = np.flatnonzero((state.desk.done == 0) & (state.desk.run_host < 0))
        if limit <= 0 or len(left) <= limit:
            return None
        chosen = np.zeros(state.graph.n_tasks, np.bool_)
        chosen[self._pick(state, left.astype(np.int32), limit)] = True
        return chosen

    def _pick(self, state: GridState, left: Ints, limit: int) -> Ints:
        graph = state.graph
        if self.rules.reduce == "random":
            drawn = np.random.default_rng([self.seed, self.plans]).permutation(len(left))[:limit]
            by_level = left[np.sort(drawn)]
            return by_level.astype(np.int32)
        reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
        open_task = np.zeros(graph.n_tasks, np.bool_)
        open_task[left] = True
        users = np.bincount(graph.reads[open_task[reader]], minlength=graph.n_items)
        weight = np.where(users > 1, graph.size, 0.0)
        largest = np.full(graph.n_tasks, -1, np.int64)
        heaviest = np.zeros(graph.n_tasks)
        for t in left.tolist():
            reads = graph.reads_of(t)
            if len(reads):
                best = int(reads[np.argmax(weight[reads])])
                if weight[best] > 0:
                    largest[t], heaviest[t] = best, users[best]
        order = np.lexsort((left, largest[left], -heaviest[left], graph.level[left]))
        return left[order[:limit]]

    def _adapt(self, state: GridState) -> None:
        """Stretch or shrink the interval by how far the run has strayed from what was foreseen."""
        rules = self.rules
        if rules.events not in ("S2", "S3") or not self._foreseen or state.time < self._next_event - 1e-9:
            return
        wrong = total = 0.0
        for host, tasks in sorted(self._foreseen.items()):
            right = sum(int(state.desk.run_host[t]) == host for t in tasks) / len(tasks)
            weight = self._trust.get(host, 1.0) if rules.events == "S3" else 1.0
            self._trust[host] = 0.7 * self._trust.get(host, 1.0) + 0.3 * right
            wrong += weight * (1.0 - right)
            total += weight
        if total > 0 and wrong / total > rules.threshold:
            self._interval = max(0.5 * self._interval, 0.25 * self._first_interval(state))
        else:
            self._interval = min(1.25 * self._interval, 64.0 * self._first_interval(state))
        if rules.horizon == "tuned":
            dry = any(
                state.desk.up[h] and state.desk.busy[h] == 0 and state.desk.q_len[h] == 0
                for h in range(len(state.platform.hosts))
            )
            self._reach = min(4.0, 2.0 * self._reach) if dry else max(0.25, 0.8 * self._reach)


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
