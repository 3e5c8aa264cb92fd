"""Simulate a plan: carry it out when run times differ from what was planned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.errors import UsageError
from headrace.model.graph import Floats, Graph
from headrace.model.plan import Plan
from headrace.simulator.replay import Replayer, replay


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


def simulate_plan(plan: Plan, *, error: float = 0.0, seed: int = 0, ahead: int | None = None) -> Simulation:
    """Carry a plan out; each run time is off by a factor drawn evenly from 1 - error to 1 + error.

    With no error and no `ahead` (see `replay`) the makespan is the plan's, under every kind of contention.
    """
    _check_error(error)
    began = work_clock()
    graph = plan.graph if error == 0.0 else plan.graph.with_work(_drawn(plan.graph, error, seed))
    happened = replay(plan, work=graph.work, ahead=ahead)
    return Simulation(plan, replace(happened, graph=graph), work_clock() - began)


class PlanOnce:
    """The makespan of a plan, carried out with the run times of a seed: what `simulate_plan` gives, many times over.

    What waits for what is worked out once.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6))
    >>> once = PlanOnce(plan, error=0.5)
    >>> once(3) == simulate_plan(plan, error=0.5, seed=3).makespan, once(3) == once(4)
    (True, False)
    """

    def __init__(self, plan: Plan, *, error: float = 0.0, ahead: int | None = None) -> None:
        _check_error(error)
        self.error = error
        self.replayer = Replayer.of(plan, ahead=ahead)

    def __call__(self, seed: int) -> float:
        graph = self.replayer.plan.graph
        return self.replayer.makespan(graph.work if self.error == 0.0 else _drawn(graph, self.error, seed))


def _check_error(error: float) -> None:
    if not 0.0 <= error < 1.0:
        raise UsageError(f"error is {error}", hint="a share from 0 up to, not including, 1, such as 0.2")


def _drawn(graph: Graph, error: float, seed: int) -> Floats:
    factor = np.random.default_rng(seed).uniform(1.0 - error, 1.0 + error, graph.n_tasks)
    drawn: Floats = graph.work * factor
    return drawn
