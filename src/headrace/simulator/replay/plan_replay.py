"""Replay a plan when run times differ from what was planned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.errors import UsageError
from headrace.model.graph import Floats, Graph
from headrace.model.plan import Plan
from headrace.simulator.replay.replay import Replayer, replay


@dataclass(frozen=True, eq=False)
class Simulation:
    """A plan and what became of it in virtual time."""

    plan: Plan
    executed: Plan
    """The same decisions with the times that followed; its graph has the run times that were drawn."""
    seconds: float
    """Time the simulation took, compiling not counted."""

    @property
    def makespan(self) -> float:
        return self.executed.makespan

    @property
    def events(self) -> int:
        """Starts and ends of tasks and transfers."""
        return 2 * (len(self.executed.start) + len(self.executed.move_start))


def replay_plan(
    plan: Plan, *, error: float = 0.0, seed: int = 0, prefetch_depth: int | None = None
) -> Simulation:
    """Replay a plan in virtual time; without an error and a prefetch depth the makespan is the plan's.

    Args:
        plan: Its decisions are kept (see `headrace.simulator.replay.replay`); only times can change.
        error: Each run time is multiplied by a factor drawn evenly from 1 - error to 1 + error.
        seed: Of the factors.
        prefetch_depth: Send the inputs of a task when the task this many places before it on its core starts;
            as soon as possible if not given.

    Raises:
        UsageError: If `error` is not at least 0 and below 1, or the prefetch depth is below 1 or does not apply.
        BadPlan: If the plan cannot be carried out.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6))
    >>> replay_plan(plan).makespan, replay_plan(plan, error=0.5, seed=3).makespan > 2.0
    (2.0, True)
    """
    _check_error(error)
    began = work_clock()
    graph = plan.graph if error == 0.0 else plan.graph.with_work(_drawn(plan.graph, error, seed))
    executed = replay(plan, work=graph.work, prefetch_depth=prefetch_depth)
    return Simulation(plan, replace(executed, graph=graph), work_clock() - began)


class PlanReplays:
    """The makespan of a plan with the run times of any seed: what `replay_plan` gives, many times over.

    What waits for what is worked out once.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6))
    >>> makespan = PlanReplays(plan, error=0.5)
    >>> makespan(3) == replay_plan(plan, error=0.5, seed=3).makespan, makespan(3) == makespan(4)
    (True, False)
    """

    def __init__(self, plan: Plan, *, error: float = 0.0, prefetch_depth: int | None = None) -> None:
        _check_error(error)
        self.error = error
        self.replayer = Replayer.of(plan, prefetch_depth=prefetch_depth)

    def __call__(self, seed: int) -> float:
        graph = self.replayer.plan.graph
        return self.replayer.makespan(graph.work if self.error == 0.0 else _drawn(graph, self.error, seed))


def _check_error(error: float) -> None:
    if not 0.0 <= error < 1.0:
        raise UsageError(f"error is {error}", hint="give a share of at least 0 and below 1, such as 0.2")


def _drawn(graph: Graph, error: float, seed: int) -> Floats:
    factor = np.random.default_rng(seed).uniform(1.0 - error, 1.0 + error, graph.n_tasks)
    drawn: Floats = graph.work * factor
    return drawn
