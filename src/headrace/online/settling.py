"""Constraints for schedulers that place tasks when they are ready, without look-ahead."""

from __future__ import annotations

from headrace.core.replan_constraints import RunConstraints
from headrace.core.scheduler import Problem
from headrace.core.view import RunView
from headrace.model.constraints import Constraints, placement_only


def settled(constraints: Constraints, view: RunView) -> RunConstraints:
    """The constraints of a run, with hosts chosen for all tasks that could otherwise be left without one.

    Raises:
        NoPlan: No assignment of tasks to hosts satisfies the constraints.
    """
    from headrace.planners.host_assignment import assigned_hosts
    from headrace.planners.obeying import narrowed

    left = placement_only(constraints)
    problem = Problem(view.graph, view.platform, constraints=left)
    fixed = narrowed(problem, assigned_hosts(problem, with_groups=True)).constraints
    assert fixed is not None
    return RunConstraints(fixed)
