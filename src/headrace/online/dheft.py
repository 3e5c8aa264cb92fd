"""D-HEFT: a HEFT plan, remade when a run time is mispredicted or hosts join or leave."""

from __future__ import annotations

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy, WhenImpossible
from headrace.planners.list.heft import Heft


class DHeft(Replan):
    """Dynamic HEFT, the comparator of the macro-dataflow paper (its section 5.4).

    A run time that differs from the prediction by a factor of `misprediction`, or a change of the grid, triggers a new
    plan for all tasks that have not started. Until it is ready, tasks follow the old plan.

    Args:
        misprediction: Factor between predicted and actual run time that triggers a new plan.
        planning: Virtual planning time in seconds per 1,000 tasks times hosts.
        pause: Minimum seconds between plans, for real runs, where planning and dispatching take time.
        when_impossible: Whether the run stops or leaves out a rule that can no longer be kept.

    >>> DHeft(misprediction=3.0).name
    'dheft'
    """

    def __init__(
        self,
        misprediction: float = 2.0,
        planning: float = 0.0,
        pause: float = 0.0,
        when_impossible: WhenImpossible = "stop",
    ) -> None:
        policy = ReplanPolicy(
            events="once",
            hold=True,
            misprediction=misprediction,
            planning=planning,
            pause=pause,
            when_impossible=when_impossible,
        )
        super().__init__(Heft(), policy)
        self.name = "dheft"
