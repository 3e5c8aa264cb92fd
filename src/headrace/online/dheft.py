"""D-HEFT: a HEFT plan, made again when a run time is far off or hosts come and go."""

from __future__ import annotations

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.planners.list.heft import Heft


class DHeft(Replan):
    """The comparator of the macro-dataflow runtime (its section 5.4).

    A run time that differs from the prediction by a factor of `misprediction`, or a change of the grid, makes a new
    plan for everything that has not started. Until it is ready, tasks go where the old plan put them. `planning`
    is the virtual time a plan takes, for each thousand tasks times hosts; `pause` the least seconds between
    plans, for real runs, where making and handing out a plan takes time.
    """

    def __init__(self, misprediction: float = 2.0, planning: float = 0.0, pause: float = 0.0) -> None:
        policy = ReplanPolicy(
            events="once", hold=True, misprediction=misprediction, planning=planning, pause=pause
        )
        super().__init__(Heft(), policy)
        self.name = "dheft"
