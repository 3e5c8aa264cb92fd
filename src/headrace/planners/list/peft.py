"""PEFT: looks ahead with a table of the least time from each task, at each place, to the end of the program."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays, problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import (
    MeanCosts,
    add_bytes_read,
    clear_bytes_read,
    communication,
    mean_costs,
    ready_queue_order,
)


class Peft:
    """Predict Earliest Finish Time (Arabnejad, Barbosa 2014), insertion-based.

    A task's rank is the mean of its row of the optimistic cost table over hosts; the ready task of highest rank is
    placed next, on the host that minimises its finish plus the table's entry. Hosts that share a file system share a
    column. O((tasks + reads) * hosts) time for the table and 8 bytes for each of its tasks * places entries.

    Args:
        max_entries: Maximum number of table entries; larger problems raise NoPlan.

    >>> from headrace.testing import random_platform, random_program
    >>> Peft().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'peft'
    """

    name = "peft"

    def __init__(self, max_entries: int = 400_000_000) -> None:
        self.max_entries = max_entries

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        table = self.table(arrays)
        hosts_at = np.bincount(arrays.hosts.place, minlength=table.shape[1])
        order = ready_queue_order(arrays.tasks, table @ (hosts_at / hosts_at.sum()))
        return list_plan(problem, order, self.name, host_constraints(arrays, extra=table), arrays)

    def table(self, problem: ProblemArrays) -> Floats:
        """The optimistic cost table [tasks, places]."""
        tasks, places = len(problem.tasks.order), len(problem.network.zone)
        if tasks * places > self.max_entries:
            raise NoPlan(
                f"the table of {tasks} tasks x {places} places has more than {self.max_entries} entries",
                where="peft",
                hint="use heft, which needs no table",
            )
        return optimistic_costs(problem.tasks, problem.hosts, places, mean_costs(problem))


@entry
def optimistic_costs(tasks: TaskArrays, hosts: HostArrays, places: int, costs: MeanCosts) -> Floats:
    """[tasks, places] the least time from a task's end at a place to the end of the program.

    table(t, p) = max over successors s of min over hosts w of (table(s, place of w) + time of s on w + the
    mean communication if w is not at p). With m the minimum over all hosts without communication and m(p)
    that over the hosts at p, the inner minimum is min(m(p), m + communication), which makes it
    O((tasks + reads) * hosts).
    """
    table = np.zeros((len(tasks.order), places))
    bytes_from = np.zeros(len(tasks.order))
    here = np.empty(places)
    for task in tasks.order[::-1]:
        here[:] = np.inf
        least = np.inf
        rate = hosts.rate[tasks.speed_class[task]]
        for host in range(len(hosts.place)):
            place = hosts.place[host]
            value = table[task, place] + tasks.work[task] / rate[host]
            here[place] = min(here[place], value)
            least = min(least, value)
        add_bytes_read(tasks, task, bytes_from)
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            maker = tasks.producer[tasks.reads[i]]
            if maker >= 0:
                elsewhere = least + communication(costs, bytes_from[maker])
                for place in range(places):
                    table[maker, place] = max(table[maker, place], min(here[place], elsewhere))
        clear_bytes_read(tasks, task, bytes_from)
    return table
