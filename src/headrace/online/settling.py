"""Constraints for schedulers that place tasks when they are ready, without look-ahead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from headrace.core.replan_constraints import RunConstraints
from headrace.core.replan_policy import WhenImpossible
from headrace.core.scheduler import Problem
from headrace.core.view import RunView
from headrace.model.constraints import Constraints, placement_only
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostJoined, HostLeft, HostPaused, RuleDropped
from headrace.model.graph import Ints


class SettledConstraints(RunConstraints):
    """The constraints of a run, with hosts chosen for all tasks that could otherwise be left without one.

    Hosts are chosen at the start, and again for the tasks that remain when hosts join or leave.
    """

    def __init__(self, constraints: Constraints, when_impossible: WhenImpossible = "stop") -> None:
        super().__init__(constraints, when_impossible)
        self.settled: Constraints | None = None

    def update(self, view: RunView, events: Sequence[Event]) -> bool:
        """Choose hosts if hosts have joined or left; returns whether tasks must be taken off their queues.

        Raises:
            NoPlan: No assignment of tasks to hosts satisfies the constraints, and the run stops.
        """
        self.note(view, events)
        if self.settled is None or any(
            isinstance(event, HostLeft | HostPaused | HostJoined) for event in events
        ):
            return self.settle(view)
        return False

    def settle(self, view: RunView) -> bool:
        """Choose hosts for the tasks that remain; returns whether tasks must be taken off their queues."""
        failure: NoPlan | None = None
        for fixed in (True, False):
            for hosts in dict.fromkeys((frozenset[int](), self.awaited)):
                try:
                    chosen = self._chosen_hosts(view, self.constraints, hosts, fixed)
                except NoPlan as error:
                    failure = failure or error
                else:
                    self._narrow(view, chosen)
                    return not fixed
        assert failure is not None

        def possible(constraints: Constraints, hosts: frozenset[int]) -> bool:
            with suppress(NoPlan):
                self._chosen_hosts(view, constraints, hosts | self.awaited, False)
                return True
            return False

        if not self.give_way(view, possible, failure.problem):
            raise failure
        return self.settle(view)

    def _narrow(self, view: RunView, chosen: Ints) -> None:
        from headrace.planners.obeying import narrowed

        whole = Problem(view.graph, view.platform, constraints=placement_only(self.constraints))
        self.settled = narrowed(whole, chosen).constraints

    def _chosen_hosts(
        self, view: RunView, constraints: Constraints, hosts: frozenset[int], fixed: bool
    ) -> Ints:
        """A host for each remaining task that needs one now, -1 for the others.

        `hosts` are used although they are not up. `fixed`: queued tasks stay where they are.

        Raises:
            NoPlan: There is no assignment.
        """
        from headrace.planners.host_assignment import assigned_hosts
        from headrace.planners.obeying import bound_problem

        chosen = np.full(view.graph.n_tasks, -1, np.int32)
        state = view.state
        queued = state.assigned >= 0
        remain = ~view.done & (state.run_host < 0) & ~(queued & fixed)
        if not remain.any():
            return chosen
        problem = view.problem(0, remain, hosts)
        kept = np.flatnonzero(queued & fixed).astype(np.int32)
        left = self.remaining(view, problem, kept, constraints)
        bound = bound_problem(replace(problem, constraints=left))
        if _depends(left):
            there = np.array([view.host_number[host.name] for host in problem.platform.hosts], np.int32)
            tasks = np.array([view.task_number[name] for name in problem.graph.task_names], np.int32)
            found = assigned_hosts(bound, with_groups=True)
            chosen[tasks] = np.where(found >= 0, there[found], -1)
        return chosen


def _depends(constraints: Constraints) -> bool:
    """Whether the hosts of tasks depend on each other."""
    grouped = (constraints.together >= 0).any() or (constraints.together_at_site >= 0).any()
    return bool(grouped) or bool(constraints.apart) or any(not limit.need for limit in constraints.limits)


class Obedient:
    """A scheduler that obeys constraints on hosts while it places ready tasks."""

    def __init__(self, when_impossible: WhenImpossible = "stop") -> None:
        self.when_impossible = when_impossible
        self._run: SettledConstraints | None = None

    def obey(self, constraints: Constraints | None) -> None:
        """Place tasks only where these constraints on the whole run permit it; None: no constraints.

        A task without such a host waits.
        """
        self._run = None if constraints is None else SettledConstraints(constraints, self.when_impossible)

    @property
    def constraints(self) -> Constraints | None:
        """The constraints in force."""
        return None if self._run is None else self._run.constraints

    @property
    def dropped(self) -> Sequence[RuleDropped]:
        """The rules that were left out during the run."""
        return () if self._run is None else self._run.dropped


def is_stuck(view: RunView) -> bool:
    """Whether tasks are ready, but nothing runs or is queued."""
    waits = view.ready_count > 0 and not view.state.queue_length[:-1].any()
    return bool(waits and not view.running.any())
