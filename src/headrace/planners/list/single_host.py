"""Single host: all tasks on one host, the baseline that every other plan must beat."""

from __future__ import annotations

import numpy as np

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan


class SingleHost:
    """All tasks on the host that completes them soonest, using all its cores.

    Hosts are compared by work / (speed * cores); ties: the lower number. O(tasks * hosts). Hosts with too few cores for
    a task are left out, if there are others. A task that cannot run there, or may not under constraints, goes to the
    host where it finishes first.

    >>> from headrace.testing import random_platform, random_program
    >>> SingleHost().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'single-host'
    """

    name = "single-host"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        tasks, hosts = arrays.tasks, arrays.hosts
        work = np.bincount(tasks.speed_class, weights=tasks.work, minlength=len(hosts.rate))
        seconds = (work[:, None] / hosts.rate).sum(axis=0) / np.diff(hosts.core_ptr)
        small = np.diff(hosts.core_ptr) < tasks.cores.max(initial=1)
        seconds[small] = seconds[small] if small.all() else np.inf
        host = np.full(len(tasks.order), int(np.argmin(seconds)), np.int32)
        return list_plan(problem, tasks.order, self.name, host_constraints(arrays, fixed=host), arrays)
