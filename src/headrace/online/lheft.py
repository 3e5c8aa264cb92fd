"""L-HEFT: buffer ready tasks, rank them by level and least traffic, and place them near their data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.core.replan_constraints import OpenPlaces
from headrace.core.replan_policy import WhenImpossible
from headrace.core.scheduler import AssignMany, Command, RequeueTail, WakeConditions
from headrace.core.view import RunView
from headrace.model.errors import UsageError
from headrace.model.events import Event
from headrace.model.graph import Bools, Floats, Ints
from headrace.online.settling import Obedient, is_stuck

_LEVEL_SPAN = 2.0**32
"""Ranks in queues are level * span + order of placement; the span exceeds any number of placed tasks."""
_CHUNK = 256
"""Tasks for which arrival times are computed at once, if constraints forbid a decision."""


class LHeft(Obedient):
    """Localized HEFT (macro-dataflow paper, section 4.4 and figure 5).

    Ready tasks wait in a buffer until there are `buffer` of them, or a host is idle or expected to become idle within
    `idle_within` seconds. Then they are ranked: lower level first, then less traffic on the best host (equation 3),
    then longer run time. A task that needs no traffic goes to the host that holds its data, any other to the host
    where it finishes first. Its finish is the later of two times, plus the predicted run time: when the backlog,
    corrected at each completion, is worked off, and when the inputs have arrived. When a host becomes idle, tasks move
    there from the tail of the longest queue if they finish earlier. An overdue task is expected to need another
    `late_weight` times its delay, because its host may have slowed down (0: as published, delays are ignored).

    Under constraints, a task that would go elsewhere goes to the best permitted host by the same estimate.
    When a rule can no longer be kept, the run stops, or leaves it out, as `when_impossible` says.

    O(tasks * (log tasks + reads * places + hosts)) for each batch.

    >>> LHeft(buffer=8).name
    'lheft'
    """

    name = "lheft"

    def __init__(
        self,
        buffer: int = 64,
        rebalance: bool = True,
        idle_within: float = 0.0,
        late_weight: float = 1.0,
        when_impossible: WhenImpossible = "stop",
    ) -> None:
        super().__init__(when_impossible)
        if buffer < 1:
            raise UsageError(f"buffer is {buffer}", where="lheft", hint="use 1 or more")
        if not idle_within >= 0:
            raise UsageError(f"idle_within is {idle_within}", where="lheft", hint="use 0 or more seconds")
        if not 0 <= late_weight < math.inf:
            raise UsageError(f"late_weight is {late_weight}", where="lheft", hint="use 0 or more, such as 1")
        self.buffer = buffer
        self.rebalance = rebalance
        self.late_weight = late_weight
        self.placed = 0
        self.wake = WakeConditions(
            ready=buffer, idle=True, idle_within=idle_within, imbalance=rebalance, late_weight=late_weight
        )
        self._mean: tuple[Floats, bytes, Floats] | None = None
        """Cached rates and which hosts are up, and the mean seconds per unit of work derived from them."""

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        """Place ready tasks, or move tasks from the tails of queues to idle hosts."""
        if self._run is None:
            return self._placed(view)
        if self._run.update(view, events):
            return [RequeueTail(0)]
        commands = self._placed(view)
        if not commands and is_stuck(view):
            self._run.settle(view)
            commands = self._placed(view)
        return commands

    def _placed(self, view: RunView) -> list[Command]:
        work, speed_class, rates = view.estimates.work, view.estimates.graph.speed_class, view.rates()
        if view.ready_count:
            from headrace.online.lheft_placement import place_ready

            mean = self._mean_seconds(view, rates)
            tasks, hosts = place_ready(
                *view.compiled, work, speed_class, rates, mean, view.time, view.starts_known
            )
        elif self.rebalance:
            from headrace.core.transitions.balance import moves_from_tails

            tasks, hosts = moves_from_tails(
                *view.compiled, work, speed_class, rates, view.time, view.starts_known, self.late_weight
            )
        else:
            return []
        if self._run is not None:
            tasks, hosts = self._permitted(view, tasks, hosts, moving=not view.ready_count)
        return [self._assignment(view, tasks, hosts)] if len(tasks) else []

    def _permitted(self, view: RunView, tasks: Ints, hosts: Ints, moving: bool) -> tuple[Ints, Ints]:
        """The same decisions where constraints permit them; others change, or are left out.

        From the first change on, each task goes to the permitted host that L-HEFT's own estimate favours.
        O(tasks * (reads * places + hosts)).
        """
        assert self._run is not None
        assert self._run.settled is not None
        places = OpenPlaces(self._run, self._run.settled, view)
        cores, rates, estimates = np.diff(view.static.core_ptr), view.rates(), _Estimates(view, tasks)
        kept: list[tuple[int, int]] = []
        changed = False
        for number, (task, host) in enumerate(zip(tasks.tolist(), hosts.tolist(), strict=True)):
            able = places.hosts(task) & view.hosts_up & (cores >= view.graph.cores[task])
            if not able.any() or (moving and not able[host]):
                continue
            changed = changed or (not moving and not able[host])
            seconds = view.estimates.work[task] / rates[view.estimates.graph.speed_class[task]]
            chosen = estimates.best_host(number, able, seconds) if changed else host
            places.take(task, chosen)
            estimates.placed(chosen, view.graph.cores[task] * seconds[chosen] / cores[chosen])
            kept.append((task, chosen))
        pairs = np.array(kept, np.int32).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _mean_seconds(self, view: RunView, rates: Floats) -> Floats:
        """Mean over the hosts that are up of the seconds for a unit of work, by speed class."""
        up = view.hosts_up.tobytes()  # not their number: one may have left and another joined
        if self._mean is None or self._mean[0] is not rates or self._mean[1] != up:
            self._mean = (rates, up, (1.0 / rates[:, view.hosts_up]).mean(axis=1))
        return self._mean[2]

    def _assignment(self, view: RunView, tasks: Ints, hosts: Ints) -> AssignMany:
        from headrace.online.lheft_placement import queue_ranks

        ranks = queue_ranks(view.graph.level, tasks, _LEVEL_SPAN, self.placed)
        self.placed += len(tasks)
        return AssignMany(tasks, hosts, ranks)


class _Estimates:
    """When tasks of a batch would finish on each host, given those placed before; looked up if a task needs it."""

    def __init__(self, view: RunView, tasks: Ints) -> None:
        self.view, self.tasks = view, tasks
        self.more = np.zeros(len(view.hosts_up))
        """Seconds of work placed on each host by this batch."""
        self._left: Floats = self.more
        self._first = -_CHUNK
        """The tasks from this number on are those of `_arrive`."""
        self._arrive: Floats = np.zeros((0, len(self.more)))

    def placed(self, host: int, seconds: float) -> None:
        self.more[host] += seconds

    def best_host(self, number: int, able: Bools, seconds: Floats) -> int:
        """The host where a task finishes first, among those with all its inputs if there are any."""
        from headrace.online.lheft_placement import backlog_and_arrivals

        if not self._first <= number < self._first + _CHUNK:
            self._first = number
            self._left, self._arrive = backlog_and_arrivals(
                *self.view.compiled,
                self.tasks[number : number + _CHUNK],
                self.view.time,
                self.view.starts_known,
            )
        arrive = self._arrive[number - self._first]
        near = able & (arrive == 0.0)
        ends = np.maximum(self._left + self.more, arrive) + seconds
        return int(np.argmin(np.where(near if near.any() else able, ends, np.inf)))
