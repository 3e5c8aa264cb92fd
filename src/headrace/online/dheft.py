"""D-HEFT: a HEFT plan, made again when a run time is far off or hosts come and go."""

from __future__ import annotations

from dataclasses import replace

from headrace.core.replan import Replan, ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.heft import Heft


class DHeft(Replan):
    """The comparator of the macro-dataflow paper (section 5.4).

    A run time that differs from the prediction by a factor of 2, or a change of the grid, makes a new plan
    for everything that has not begun. Until it is ready, tasks go where the old plan put them. `planning`
    is the virtual time a plan takes, for each thousand tasks times hosts; `pause` the least seconds between
    plans, for real runs, where making and handing out a plan takes its own time.
    """

    def __init__(self, off_by: float = 2.0, planning: float = 0.0, pause: float = 0.0) -> None:
        super().__init__(
            Heft(), ReplanPolicy(events="once", hold=True, off_by=off_by, planning=planning, pause=pause)
        )
        self.name = "dheft"

    def plan(self, problem: Problem) -> Plan:
        """The plan it starts with: HEFT's."""
        return replace(self.planner.plan(problem), scheduler=self.name)
