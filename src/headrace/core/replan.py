"""Run any planner as a scheduler: execute its plan, and replan the remaining tasks according to the policy.

This is the planning loop of the parameter-sweep template (its sections 5.3 to 5.6 and 7.4), for any planner
and for task graphs as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from headrace.core.plan_commands import (
    assignment,
    deliveries,
    disk_order,
    fetches,
    in_order_of_start,
    on_wide_hosts,
    planned_then,
    transfers_for,
    under_way_then,
    up_to,
)
from headrace.core.replan_constraints import RunConstraints
from headrace.core.replan_interval import ReplanInterval, SubTask
from headrace.core.replan_obeying import RestOfRun, assigned_now, plan_rest
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Command, Planner, Problem, RequeueTail, WakeConditions
from headrace.core.task_window import reduced
from headrace.core.view import RunView
from headrace.model.constraints import Constraints
from headrace.model.events import CopyLost, Event, HostJoined, HostLeft, HostPaused, RuleDropped, Started
from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan
from headrace.model.user_code import is_users, user_code

REPLANNED_AFTER: dict[str, tuple[type, ...]] = {
    "joins": (HostJoined,),
    "losses": (HostLeft, HostPaused, CopyLost),
    "both": (HostJoined, HostLeft, HostPaused, CopyLost),
    "neither": (),
}


class Replan:
    """Adapts a planner to the scheduler interface. The hosts, orders, sources and relays of its plans are followed.

    `first` is an existing plan for the whole program; it is used at the start if every host is up. Every plan obeys
    the constraints of `obey`, given what has happened. While such a plan is made, hosts finish only what they have
    begun and what they keep.
    """

    def __init__(
        self,
        planner: Planner,
        policy: ReplanPolicy | None = None,
        seed: int = 0,
        first: Plan | None = None,
    ) -> None:
        self.planner = planner
        self.policy = policy or ReplanPolicy()
        self.seed = seed
        self.first = first
        self.name = planner.name
        self.wake = WakeConditions(idle=self.policy.idle, misprediction=self.policy.misprediction)
        self.plans = 0
        self.planning_seconds = 0.0
        """Virtual seconds spent planning."""
        self.planned_tasks = 0
        self.interval = ReplanInterval(self.policy.events, self.policy.threshold, self.policy.horizon)
        self._next_event = math.inf
        self._last_plan = -math.inf
        self._pending: tuple[float, list[Command], list[SubTask]] | None = None
        self._predicted: list[SubTask] = []
        self._up: Bools | None = None
        """The hosts that were up when the last plan was made."""
        self._again = False
        self._prefetch = True
        """Whether the last plan assumes the prefetch depth of the run, as plans made during the run do."""
        self._run: RunConstraints | None = None
        self._withheld: tuple[frozenset[int], Bools] = (frozenset(), np.zeros(0, np.bool_))
        """The hosts for which tasks of the last plan wait, and these tasks."""

    def obey(self, constraints: Constraints | None) -> None:
        """Make plans that satisfy these constraints, on the tasks and hosts of the whole run; None: no constraints."""
        self._run = None if constraints is None else RunConstraints(constraints, self.policy.when_impossible)

    @property
    def constraints(self) -> Constraints | None:
        """The constraints in force."""
        return None if self._run is None else self._run.constraints

    @property
    def dropped(self) -> Sequence[RuleDropped]:
        """The rules that were left out during the run."""
        return () if self._run is None else self._run.dropped

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        """Replan if it is due, or return the commands of a plan that has become ready."""
        now = view.time
        if self._run is not None:
            self._run.note(view, events)
        if not self.interval.seconds:
            self.interval.begin(self._first_interval(view))
        commands: list[Command] = []
        if self._pending is not None:
            ready, made, predicted = self._pending
            self._again = self._again or self._must_plan(events) or view.mispredicted
            if now < ready - 1e-9:
                return []
            commands, self._predicted, self._pending = made, predicted, None
            if not self._again:
                self._set_clock()
                return commands
        if self._again or self._is_time(view, events):
            self._again = False
            if self._run is not None:  # tasks must not start by a plan that is about to be replaced
                commands = []
            commands = [*commands, *self._plan(view)]
        self._set_clock()
        return commands

    def _set_clock(self) -> None:
        at = self._pending[0] if self._pending is not None else self._next_event
        if at != self.wake.at:
            self.wake = replace(self.wake, at=at)

    def _must_plan(self, events: Sequence[Event]) -> bool:
        changes = REPLANNED_AFTER.get(self.policy.replan, REPLANNED_AFTER["both"])
        return any(isinstance(event, (Started, *changes)) for event in events)

    def _is_time(self, view: RunView, events: Sequence[Event]) -> bool:
        """Whether to plan now: at the start, at a planning event, or after a change or misprediction that triggers it.

        Also while ready tasks have no host: when a host is idle, if the policy says so, or if the run would otherwise
        be stuck."""
        if self._must_plan(events) or view.time >= self._next_event - 1e-9:
            return True
        if view.mispredicted and view.time >= self._last_plan + self.policy.pause:
            return True
        if view.ready_count == 0 or self._waits_for_hosts(view):
            return False
        state = view.state
        pause = 0.25 * self.interval.seconds if self.policy.periodic else 0.0
        free = state.busy_cores < np.diff(view.static.core_ptr)
        idle = view.hosts_up & (state.queue_length[:-1] == 0) & free
        running = bool(view.running.any())
        if self.policy.idle:
            return bool(idle.any()) and (not running or view.time >= self._last_plan + pause)
        return not running and math.isinf(self._next_event)

    def _waits_for_hosts(self, view: RunView) -> bool:
        """Whether all ready tasks wait for hosts that have not joined yet."""
        hosts, tasks = self._withheld
        if self._run is None or not hosts or hosts != self._run.awaited:
            return False
        return bool(tasks[view.ready()].all())

    def _first_interval(self, view: RunView) -> float:
        if self.policy.interval is not None and self.policy.interval > 0:
            return self.policy.interval
        work, rates = view.estimates.work, view.rates()
        mean = (
            float((work / rates.mean(axis=1)[view.estimates.graph.speed_class]).mean()) if len(work) else 1.0
        )
        return max(4.0 * mean, 1e-3)

    def _plan(self, view: RunView) -> list[Command]:
        policy, now = self.policy, view.time
        self._adapt(view)
        self._last_plan = now
        self._next_event = now + self.interval.seconds if policy.periodic else math.inf
        kept = 0 if policy.hold else policy.keep
        plan, cost, kept = self._made_plan(view, kept)
        if plan is None:
            self._predicted = []
            return []
        if policy.share > 0 and self.plans == 1:
            self.interval.begin(policy.share * plan.makespan)
            self._next_event = now + self.interval.seconds
        self._next_event = max(self._next_event, now + 2.0 * cost)
        made, predicted = self._commands(view, plan, kept)
        if cost > 0:
            hold = policy.hold and self._run is None
            self._pending = (now + cost, [RequeueTail(0), *made] if hold else made, predicted)
            return [] if hold else [RequeueTail(kept)]
        self._predicted = predicted
        return [RequeueTail(kept), *made]

    def _made_plan(self, view: RunView, kept: int) -> tuple[Plan | None, float, int]:
        """A plan for the remaining tasks, its planning time in virtual seconds, and the tasks that stay in each queue.

        No plan if no task remains.
        """
        first, self.first = self.first, None
        if first is not None and self.plans == 0 and view.hosts_up.all() and not view.done.any():
            plan, cost, self._prefetch = first, 0.0, False
        else:
            self._prefetch = True
            chosen = self._window(view, kept)
            problem = view.problem(kept, chosen)
            if problem.graph.n_tasks == 0:
                return None, 0.0, kept
            cost = self._cost(problem)
            with user_code(f"the planner {self.planner.name!r}") if is_users(self.planner) else nullcontext():
                if self._run is None:
                    plan = self.planner.plan(self._prepared(problem, cost))
                else:
                    rest = RestOfRun(view, kept, chosen, lambda problem: self._prepared(problem, cost))
                    plan, kept = plan_rest(self.planner, self._run, rest)
        self.plans += 1
        self.planned_tasks += plan.graph.n_tasks
        self.planning_seconds += cost
        return on_wide_hosts(plan), cost, kept

    def _prepared(self, problem: Problem, cost: float) -> Problem:
        return _not_before(replace(problem, seed=self.seed), cost)

    def _cost(self, problem: Problem) -> float:
        """Planning time for a problem, in virtual seconds."""
        size = problem.graph.n_tasks * len(problem.platform.hosts)
        return self.policy.planning_fixed + self.policy.planning * size / 1e3

    def _adapt(self, view: RunView) -> None:
        """Before planning: compare the last prediction with the run, and check whether hosts ran out of work."""
        if view.time >= self._next_event - 1e-9:
            self.interval.compare(view, self._predicted)
        up = view.hosts_up.copy()
        if self._up is not None and len(self._up) == len(up):  # else the platform has grown
            dry = self._up & up & (view.state.busy_cores == 0) & (view.state.queue_length[:-1] == 0)
            self.interval.tune(bool(dry.any()))
        self._up = up

    def _commands(self, view: RunView, plan: Plan, kept: int) -> tuple[list[Command], list[SubTask]]:
        """Commands for tasks and transfers up to the horizon, and the prediction for the next planning event."""
        limit = math.inf
        if self.policy.events != "once":
            limit = self._next_event - view.time + self.interval.reach * self.interval.seconds
        order = up_to(plan, in_order_of_start(view, plan), limit)
        if self._run is not None and self._run.awaited:
            order = self._without_waiting(view, plan, order, self._run.awaited)
        moves = transfers_for(view, plan, order)
        commands: list[Command] = [
            *deliveries(view, plan),
            assignment(view, plan, order, kept),
            *fetches(plan, moves, view.time, self._prefetch),
            *disk_order(view, plan, order, moves),
        ]
        moment = self._next_event - view.time
        if math.isinf(moment):
            return commands, []
        return commands, [
            *under_way_then(view, kept, moment),
            *planned_then(view, plan, order, moves, moment),
        ]

    def _without_waiting(self, view: RunView, plan: Plan, order: Ints, awaited: frozenset[int]) -> Ints:
        """The tasks that can be assigned now; the others wait for hosts that have not joined yet."""
        now = assigned_now(view, plan, order)
        later = np.setdiff1d(order, now)
        waiting = np.zeros(view.graph.n_tasks, np.bool_)
        waiting[[view.task_number[plan.graph.task_names[t]] for t in later.tolist()]] = True
        self._withheld = (awaited if len(later) else frozenset(), waiting)
        return now

    def _window(self, view: RunView, kept: int) -> Bools | None:
        """The tasks to plan for if there are more than one plan may hold; else None."""
        limit = self.policy.subset
        is_left = (view.state.done == 0) & (view.state.run_host < 0)
        is_left[view.kept(kept)] = False
        left = np.flatnonzero(is_left).astype(np.int32)
        if limit <= 0 or len(left) <= limit:
            return None
        rng = np.random.default_rng([self.seed, self.plans])
        chosen = np.zeros(view.graph.n_tasks, np.bool_)
        chosen[reduced(view.graph, left, limit, self.policy.reduce, rng)] = True
        return chosen


def _not_before(problem: Problem, seconds: float) -> Problem:
    """The problem with hosts and links unavailable until its plan is ready."""
    if seconds <= 0:
        return problem
    hosts, links = range(len(problem.platform.hosts)), range(problem.platform.network.n_links)
    return replace(
        problem,
        free_at={h: max(seconds, problem.free_at.get(h, 0.0)) for h in hosts},
        link_free_at={k: max(seconds, problem.link_free_at.get(k, 0.0)) for k in links},
    )
