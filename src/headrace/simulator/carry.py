"""Simulate a plan: carry it out when run times differ from what was planned."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats, Graph
from headrace.model.plan import Plan
from headrace.simulator.replay import replay


@dataclass(frozen=True, eq=False)
class Simulation:
    """What was planned and what happened in virtual time."""

    plan: Plan
    happened: Plan
    """The same decisions with the times that followed; its graph has the run times that were drawn."""
    seconds: float
    """Time it took to simulate."""

    @property
    def makespan(self) -> float:
        return self.happened.makespan

    @property
    def events(self) -> int:
        """Starts and ends of tasks and transfers."""
        return 2 * (len(self.happened.start) + len(self.happened.move_start))


def simulate_plan(plan: Plan, *, error: float = 0.0, seed: int = 0) -> Simulation:
    """Carry a plan out; each run time is off by a factor drawn evenly from 1 - error to 1 + error.

    With no error the makespan is the plan's, under every kind of contention.
    """
    if not 0.0 <= error < 1.0:
        raise UsageError(f"error is {error}", hint="a share from 0 up to, not including, 1, such as 0.2")
    began = time.perf_counter()
    graph = plan.graph if error == 0.0 else plan.graph.with_work(_drawn(plan.graph, error, seed))
    happened = replay(plan, work=graph.work)
    return Simulation(plan, replace(happened, graph=graph), time.perf_counter() - began)


def _drawn(graph: Graph, error: float, seed: int) -> Floats:
    factor = np.random.default_rng(seed).uniform(1.0 - error, 1.0 + error, graph.n_tasks)
    drawn: Floats = graph.work * factor
    return drawn
