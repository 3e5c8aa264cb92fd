"""Compile what a run needs before its clock starts."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from headrace.core.replan import Replan
from headrace.model.events import (
    CopyLost,
    DataMoved,
    HostJoined,
    HostLeft,
    HostPaused,
    Started,
    TaskErred,
    TaskFinished,
    TaskReleased,
)
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.list.round_robin import RoundRobin

if TYPE_CHECKING:
    from headrace.core.scheduler import Scheduler

SEARCH_TIME = 0.2
"""Seconds for which planners that search until their time is up do so, for each of several small plans."""


def warm_up(scheduler: Scheduler) -> None:
    """Compile all code that a run under this scheduler needs, before its clock starts, by a small simulated run.

    Only for schedulers and planners of Headrace: user-defined ones might have side effects.
    """
    from headrace.core.coordinator import Coordinator
    from headrace.core.estimates import HistoryEstimates
    from headrace.core.execution_policy import ExecutionPolicy
    from headrace.model.constraints import Constraints
    from headrace.online.adapter import is_obeying, obeying

    decides = scheduler.planner if isinstance(scheduler, Replan) else scheduler
    if not type(decides).__module__.startswith("headrace."):
        scheduler = Replan(RoundRobin())
    program = Program("warm-up")
    made = [
        program.task(None, outputs={f"x{k}": 1.0}, work=1.0, name=f"t{k}", release=k / 3) for k in range(4)
    ]
    program.task(None, inputs=made, outputs={"y": 1.0}, work=1.0, name="last")
    platform = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    a, b = (host.name for host in platform.hosts)
    copied = deepcopy(scheduler)
    if isinstance(copied, Replan):
        copied.first = None
        if getattr(copied.planner, "time", 0.0) > SEARCH_TIME:
            setattr(copied.planner, "time", SEARCH_TIME)  # noqa: B010 (not all planners have it)
    if is_obeying(copied):  # its constraints are those of another program
        obeying(copied, Constraints.none(program.graph.n_tasks, len(platform.hosts)))
    estimates = HistoryEstimates(program.graph, platform)
    policy = ExecutionPolicy(replicate=1)  # copies may also begin in the middle of a run
    coordinator = Coordinator(
        copied, program.graph, platform, policy=policy, estimates=estimates, workers_queue=True
    )
    coordinator.handle([Started(0.0)])
    coordinator.handle([TaskReleased(0.9, f"t{k}") for k in range(1, 4)])
    coordinator.handle([TaskFinished(1.0, "t0", a, 0.0)])
    coordinator.handle([DataMoved(1.1, "x0", a, b, 1.0, 1.0)])
    coordinator.handle([CopyLost(1.15, "x0", b)])
    coordinator.handle([HostPaused(1.16, b)])
    coordinator.handle([HostLeft(1.2, b)])
    coordinator.handle([HostJoined(1.3, b)])
    coordinator.handle([TaskErred(1.4, "t1", a, "", again=True)])
    for k in range(1, 4):
        coordinator.handle([TaskFinished(2.0 + k, f"t{k}", a, 1.0 + k)])
