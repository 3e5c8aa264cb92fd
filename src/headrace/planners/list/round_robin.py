"""Round-robin: assigns tasks to hosts in turn, regardless of speeds and data."""

from __future__ import annotations

import numpy as np

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan


class RoundRobin:
    """The i-th task in topological order goes to host i modulo the number of hosts. O(tasks).

    A task that needs more cores than that host has, or may not run there under constraints, goes to the host where it
    finishes first.

    >>> from headrace.testing import random_platform, random_program
    >>> RoundRobin().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'round-robin'
    """

    name = "round-robin"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        host = np.empty(len(arrays.tasks.order), np.int32)
        host[arrays.tasks.order] = np.arange(len(host)) % len(arrays.hosts.place)
        return list_plan(problem, arrays.tasks.order, self.name, host_constraints(arrays, fixed=host), arrays)
