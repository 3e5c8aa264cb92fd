"""Level by level: a task whose inputs are all on one host stays there, any other goes where it finishes first."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays, problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.graph import Bools, Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.constraint_failures import lateness
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import ListScheduler, list_plan
from headrace.planners.list.ranks import mean_costs
from headrace.planners.partial_schedule import Copies


class Locality:
    """Level by level: a task whose inputs are all on one host stays there.

    If several hosts hold all inputs of a task, it goes to the one of them where it finishes first; if none does, to the
    host where it finishes first. Within a level, tasks that need less traffic come first. These are the ranks of
    Localized HEFT (the macro-dataflow paper, equation 3), applied before the run, when all levels are known.
    O(reads * copies + tasks log tasks) for the ranks, then see `list_schedule`.

    >>> from headrace.testing import random_platform, random_program
    >>> Locality().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'locality'
    """

    name = "locality"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        scheduler = ListScheduler(problem, arrays)
        seconds = mean_costs(arrays).run_seconds
        constraints = host_constraints(arrays)
        ends = np.cumsum(np.bincount(arrays.tasks.level, minlength=1))[:-1]
        for ready in np.split(arrays.tasks.order, ends):  # tasks of one level are consecutive in the order
            order, stay = rank_ready(arrays, scheduler.schedule.copies, ready, seconds)
            constraints.stay[order] = stay
            scheduler.place(order, constraints)
        plan = scheduler.plan(self.name)
        if problem.constraints is None or lateness(plan) <= 0.0:
            return plan
        return list_plan(problem, arrays.tasks.order, self.name, arrays=arrays)


def rank_ready(problem: ProblemArrays, copies: Copies, ready: Ints, seconds: Floats) -> tuple[Ints, Bools]:
    """The ready tasks in the order in which to place them, and which of them need no traffic.

    Sorted by level, then by least traffic over all hosts that hold an input; ties: the longer run time (`seconds` of
    each task), then the position in `ready`. A task needs no traffic if a host holds all its inputs.
    O(reads * copies + ready log ready).
    """
    traffic = least_traffic(
        problem.tasks, problem.hosts, copies, ready.astype(np.int64), len(problem.network.zone)
    )
    order = np.lexsort((np.arange(len(ready)), -seconds[ready], traffic, problem.tasks.level[ready]))
    return ready[order], traffic[order] == 0.0


@entry
def least_traffic(tasks: TaskArrays, hosts: HostArrays, copies: Copies, ready: Int64s, places: int) -> Floats:
    """For each ready task, its input bytes less the most that one host holds: O(copies of the inputs).

    Exactly 0 if a host holds all of them.
    """
    has_host = np.zeros(places, np.bool_)
    for host in range(len(hosts.place)):
        has_host[hosts.place[host]] = True
    held = np.zeros(places, np.int64)
    held_bytes = np.zeros(places)
    traffic = np.empty(len(ready))
    for r in range(len(ready)):
        task = ready[r]
        wanted, total, most = 0, 0.0, 0.0
        complete = False
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            item = tasks.reads[i]
            if tasks.everywhere[item] or tasks.size[item] == 0.0:
                continue
            wanted += 1
            total += tasks.size[item]
            complete = False
            node = copies.head[item]
            while node >= 0:
                place = copies.place[node]
                if has_host[place]:
                    held[place] += 1
                    held_bytes[place] += tasks.size[item]
                    most = max(most, held_bytes[place])
                    complete = complete or held[place] == wanted
                node = copies.next[node]
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            node = copies.head[tasks.reads[i]]
            while node >= 0:
                held[copies.place[node]] = 0
                held_bytes[copies.place[node]] = 0.0
                node = copies.next[node]
        traffic[r] = 0.0 if complete or wanted == 0 else max(total - most, 1e-300)
    return traffic
