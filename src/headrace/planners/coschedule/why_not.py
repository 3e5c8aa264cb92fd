"""Why a co-schedule does not use a host: what the cheapest job there would cost, and what decides that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.needs import fitting
from headrace.model.plan import Plan
from headrace.planners.coschedule.instance import Instance, instance_of
from headrace.planners.coschedule.planner import Coschedule
from headrace.planners.coschedule.relaxation import least_times

CANDIDATES = 3
"""Number of jobs that are tried on the host."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The best plan with a job forced onto the host, or why there is none."""

    host: str
    jobs_there: int
    """Number of jobs that the plan runs there already."""
    job: str | None
    """The job that was forced onto it; None if no job can run there."""
    makespan: float
    """Of the plan with that job there; inf if there is none."""
    cost: float
    """By how much that is longer than the plan."""
    reason: str


def why_not(problem: Problem, plan: Plan, host: str, seconds: float) -> WhyNot:
    """Plan again with each of the jobs that suit the host best forced onto it, for these seconds each."""
    names = [h.name for h in problem.platform.hosts]
    at = names.index(host)
    there = int((plan.host == at).sum())
    instance = instance_of(problem)
    able = np.flatnonzero(instance.can_run[:, at])
    if not len(able):
        return WhyNot(host, there, None, np.inf, np.inf, _impossible(instance, at))
    if there:
        return WhyNot(host, there, None, plan.makespan, 0.0, "the plan uses it")
    before, after = least_times(instance)
    alone = before + instance.seconds + after
    beyond = alone[able, at] - alone[able].min(axis=1)
    best: tuple[float, int, Plan] | None = None
    for job in able[np.lexsort((able, beyond))][:CANDIDATES].tolist():
        made = _forced(problem, job, at, seconds)
        if made is not None and (best is None or made.makespan < best[0]):
            best = made.makespan, job, made
    if best is None:
        return WhyNot(host, 0, None, np.inf, np.inf, "no plan was found with a job there")
    makespan, job, made = best
    name = problem.graph.task_names[job]
    return WhyNot(host, 0, name, makespan, makespan - plan.makespan, _reason(instance, plan, made, job))


def _forced(problem: Problem, job: int, host: int, seconds: float) -> Plan | None:
    """A plan with the job on the host; None if none was found."""
    graph, hosts = problem.graph, len(problem.platform.hosts)
    given = problem.constraints or Constraints.none(graph.n_tasks, hosts)
    row = np.zeros((1, hosts), np.bool_)
    row[0, host] = True
    of_task = given.allowed_class.copy()
    of_task[job] = len(given.allowed)
    forced = replace(given, allowed=np.concatenate((given.allowed, row)), allowed_class=of_task)
    try:
        return Coschedule(time=seconds).plan(replace(problem, constraints=forced))
    except NoPlan:
        return None


def _impossible(instance: Instance, host: int) -> str:
    """Why no job can run on a host."""
    graph, here = instance.problem.graph, instance.problem.platform.hosts[host]
    if int(graph.cores.min()) > here.cores:
        return f"every job needs more than its {here.cores} cores"
    if not fitting(graph, instance.problem.platform)[:, host].any():
        return "every job needs more cores, memory or resources than it has"
    room = float(instance.storage[instance.site[instance.host_place[host]]])
    needs = np.zeros(instance.n)
    for ptr, items in ((instance.read_ptr, instance.reads), (instance.write_ptr, instance.writes)):
        np.add.at(needs, np.repeat(np.arange(instance.n), np.diff(ptr)), instance.size[items])
    if float(needs.min()) > room:
        return f"the disk of its site holds {room:.6g} bytes, and every job needs at least {float(needs.min()):.6g}"
    return "no job has a route for all its files to and from it, or room for them on the way"


def _reason(instance: Instance, plan: Plan, made: Plan, job: int) -> str:
    """What takes longest for the job there, compared with where the plan has it."""
    old, new = _parts(instance, plan, job), _parts(instance, made, job)
    longer = {name: new[name] - old[name] for name in new}
    name = max(longer, key=lambda part: (longer[part], part))
    if longer[name] <= 1e-9 * max(1.0, made.makespan):
        return "it would take as long there; the plan is no shorter with it"
    return f"{name} would take {new[name]:.6g} s instead of {old[name]:.6g} s"


def _parts(instance: Instance, plan: Plan, job: int) -> dict[str, float]:
    """Seconds of a job's run, of the transfers of its inputs and results, and of waiting for room and turns."""
    graph, place = instance.problem.graph, int(instance.host_place[plan.host[job]])
    seconds = plan.move_finish - plan.move_start
    came = np.isin(plan.move_item, instance.inputs(job)) & (plan.move_target == place)
    went = np.isin(plan.move_item, instance.outputs(job))
    arrived = float(plan.move_finish[came].max(initial=0.0))
    left = float(plan.move_finish[went].max(initial=float(plan.finish[job])))
    return {
        "its run": float(plan.finish[job] - plan.start[job]),
        "the transfer of its inputs": float(seconds[came].sum()),
        "the transfer of its results": float(seconds[went].sum()),
        "waiting for a core or for room on the disk": max(
            0.0, float(plan.start[job]) - max(arrived, float(graph.release[job]))
        ),
        "waiting for links": max(0.0, left - float(plan.finish[job]) - float(seconds[went].sum())),
    }
