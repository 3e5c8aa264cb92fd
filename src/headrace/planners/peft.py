"""PEFT: looks ahead with a table of the least time from each task, at each place, to the end."""

from __future__ import annotations

import time

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan
from headrace.planners.costs import mean_costs
from headrace.planners.kernels.ranks import optimistic_costs
from headrace.planners.priorities import from_ready_queue
from headrace.planners.problem_arrays import choice_of


class Peft:
    """Predict Earliest Finish Time (Arabnejad, Barbosa 2014), insertion-based.

    A task's rank is the mean of its row of the optimistic cost table over hosts; the ready task of highest
    rank goes next, to the host that minimises its finish plus the table's entry. Hosts that share a file
    system share a column. O((tasks + reads) * hosts) time for the table and 8 bytes for each of its
    tasks * places entries: beyond `max_entries` of them it refuses.
    """

    name = "peft"

    def __init__(self, max_entries: int = 400_000_000) -> None:
        self.max_entries = max_entries

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        table = self._table(problem)
        hosts_at = np.bincount(problem.platform.network.host_place, minlength=table.shape[1])
        order = from_ready_queue(problem.graph, table @ (hosts_at / hosts_at.sum()))
        choice = choice_of(problem, extra=table if len(table) else None)
        return list_plan(problem, order, self.name, began=began, choice=choice)

    def _table(self, problem: Problem) -> Floats:
        graph, network = problem.graph, problem.platform.network
        if graph.n_tasks * network.n_places > self.max_entries:
            raise NoPlan(
                f"the table of {graph.n_tasks} tasks x {network.n_places} places "
                f"has more than {self.max_entries} entries",
                where="peft",
                hint="use heft, which needs no table",
            )
        _, latency, seconds = mean_costs(problem)
        table = np.zeros((graph.n_tasks, network.n_places))
        optimistic_costs(
            graph.order,
            graph.work,
            graph.kind,
            problem.platform.rates(graph.kinds),
            network.host_place,
            graph.read_ptr,
            graph.reads,
            graph.producer,
            graph.size,
            (latency, seconds),
            table,
        )
        return table
