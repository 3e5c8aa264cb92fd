"""The planner `coschedule`: relaxation, list schedules, local search, and an exact solver for small problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem, obeys
from headrace.model.bound import Bound
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import OUTSIDE
from headrace.model.network import EVERYWHERE
from headrace.model.plan import NO_MOVES, Plan
from headrace.planners.coschedule.improving import Improving, Tell
from headrace.planners.coschedule.instance import Instance, instance_of
from headrace.planners.coschedule.judge import is_valid
from headrace.planners.coschedule.schedule_jobs import FAILED
from headrace.planners.obeying import with_groups_placed

LARGE = 20_000
"""Number of jobs above which jobs are planned in chunks by default."""


class Coschedule:
    """Plans job placement, file transfers and their times together.

    List schedules that decide hosts as they go give first plans. A linear program over shares of jobs, flows of files
    and byte-seconds of disks gives a bound and further ones; list schedules of it show how long resources stay idle,
    and the program is solved again with these idle times. Sites with small disks are simulated one by one in a search
    over which jobs run where. An exact model follows if the problem is small, a plan in chunks if it is large, and
    then a late-acceptance search in turns with CP-SAT over large neighbourhoods. The best plan is kept. The sequence
    of steps depends only on the problem and its seed, and `time` only limits their number: more time never gives a
    worse plan. On a slow machine the clock stops it after 1.25 times the time plus 2 s. Under constraints, tasks in
    groups and limits get their hosts, and tasks of limits on tasks at once their turns, from the shortest plan of
    some list planners first.

    Args:
        time: Seconds of work, as estimated for a machine of ordinary speed.
        chunk: Number of jobs that are planned at a time.
        tell: Called with elapsed seconds, makespan and bound whenever the makespan or the bound improves.

    Raises:
        UsageError: The time or the chunk is not positive.

    >>> Coschedule(time=5.0, chunk=200).name
    'coschedule'
    """

    name = "coschedule"

    def __init__(
        self,
        time: float = 20.0,
        chunk: int | None = None,
        tell: Tell = lambda seconds, makespan, bound: None,
    ) -> None:
        if not 0 < time < 1e6:
            raise UsageError(f"time is {time}", hint="use a number of seconds above 0, such as 20")
        if chunk is not None and chunk < 1:
            raise UsageError(f"chunk is {chunk}", hint="use a number of jobs, such as 200")
        self.time = time
        self.chunk = chunk
        self.tell = tell

    @obeys
    def plan(self, problem: Problem) -> Plan:
        began = work_clock()
        if not problem.graph.n_tasks:
            return empty_plan(problem, self.name)
        chosen = problem if problem.constraints is None else with_groups_placed(problem)
        instance = instance_of(chosen)
        improving = Improving(instance, began, self.time, self.tell)
        chunk = self.chunk or (LARGE if instance.n > LARGE else None)
        if chunk is not None and chunk < instance.n:
            improving.in_chunks(chunk)
        else:
            improving.run()
        plan = finished(improving, self.name)
        if chosen is problem:
            return plan
        return replace(plan, graph=problem.graph, bound=0.0)  # the bound is proven for the chosen hosts alone


def finished(improving: Improving, name: str) -> Plan:
    """The plan with its bound; raises NoPlan if none satisfies storage limits and deadlines."""
    if improving.value >= FAILED:
        raise no_room(improving.instance, int(improving.scheduler.schedule.state[1]))
    plan = improving.plan(name)
    if improving.value > plan.makespan * (1 + 1e-9) + 1e-6:
        raise too_late(improving.instance, plan)
    plan = plan if improving.executed is None else improving.executed
    if not is_valid(plan, improving.instance.problem):
        plan = improving.simple_plan() or plan
    bound = Bound(min(improving.bound, plan.makespan), improving.bound.name)
    return replace(plan, scheduler=name, bound=bound, notes=notes_of(improving.instance.problem))


def no_room(instance: Instance, job: int) -> NoPlan:
    graph, platform = instance.problem.graph, instance.problem.platform
    small = [s.name for s in platform.sites if np.isfinite(s.storage)]
    return NoPlan(
        f"found no plan in which the files of all jobs fit on the disks: no room for {graph.task_names[job]!r}",
        where=f"{graph.name} on {platform.name}",
        hint=f"increase the storage of {', '.join(small[:6])}, or --time",
    )


def too_late(instance: Instance, plan: Plan) -> NoPlan:
    graph = instance.problem.graph
    ends = plan.finish.copy()
    made = graph.producer[plan.move_item]
    np.maximum.at(ends, made[made >= 0], plan.move_finish[made >= 0])
    job = int(np.argmax(ends - graph.deadline))
    return NoPlan(
        f"found no plan that meets all deadlines: {graph.task_names[job]!r} is due at "
        f"{float(graph.deadline[job]):.6g} s but finishes at {float(ends[job]):.6g} s",
        where=f"{graph.name} on {instance.problem.platform.name}",
        hint="use later deadlines, or increase --time",
    )


def notes_of(problem: Problem) -> tuple[str, ...]:
    """Notes on the plan for its reader."""
    graph, network = problem.graph, problem.platform.network
    lying = (graph.producer == OUTSIDE) & (graph.size > 0)
    lying[list(problem.holders)] = False
    if network.origin == EVERYWHERE and lying.any():
        return ("inputs from outside are assumed to be everywhere",)
    return ()


def empty_plan(problem: Problem, name: str) -> Plan:
    """The plan of a program without tasks."""
    none, moments = np.zeros(0, np.int32), np.zeros(0)
    return Plan(problem.graph, problem.platform, name, none, none, moments, moments, **NO_MOVES)
