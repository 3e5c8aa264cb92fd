"""Constraints on hosts during a run: what has happened is fixed, the rest must obey.

Order, releases and deadlines are part of the run's graph (`model.constraints.bound_graph`). `RunConstraints` knows
where tasks have run, run or are queued, says which hosts are left for the others, and decides what happens to rules
that can no longer be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from headrace.core.replan_policy import WhenImpossible
from headrace.core.scheduler import Problem
from headrace.core.view import RunView
from headrace.model.constraints import ALL, Constraints, Limit
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostJoined, HostLeft, RuleDropped
from headrace.model.graph import Bools, Floats, Ints

SUM_SLACK = 1.0 + 1e-9
"""Sums of measured seconds may exceed a limit by this factor, because they are differences of times."""

Possible: TypeAlias = Callable[[Constraints, frozenset[int]], bool]
"""Whether the rest of a run can satisfy constraints, if these hosts were up besides those that are."""


class RunConstraints:
    """The constraints of a run, and what has happened to the hosts they need.

    Args:
        constraints: Constraints on the tasks and hosts of the whole run.
        when_impossible: What to do when a rule can no longer be kept: stop the run, or leave the rule out.
    """

    def __init__(self, constraints: Constraints, when_impossible: WhenImpossible = "stop") -> None:
        self.constraints = constraints
        """Those still in force."""
        self.when_impossible = when_impossible
        self.dropped: list[RuleDropped] = []
        self._left: dict[int, float] = {}
        self._awaited: frozenset[int] | None = None

    @property
    def awaited(self) -> frozenset[int]:
        """Hosts that have not joined yet; those that have left are not expected to come back."""
        return self._awaited or frozenset()

    def note(self, view: RunView, events: Sequence[Event]) -> None:
        """Record which hosts have left."""
        for event in events:
            if isinstance(event, HostLeft | HostJoined) and event.host in view.host_number:
                host = view.host_number[event.host]
                self._left.pop(host, None)
                if isinstance(event, HostLeft):
                    self._left[host] = event.time
        if self._awaited is None:
            down = np.flatnonzero(~view.hosts_up).tolist()
            self._awaited = frozenset(h for h in down if h not in self._left)
        elif self._awaited:
            up = view.hosts_up
            self._awaited = frozenset(h for h in self._awaited if not up[h] and h not in self._left)

    def hosts_taken(self, view: RunView, queued: Bools | None = None) -> Ints:
        """The host on which each task has run, runs, or is queued; -1 for none.

        `queued` restricts the queued tasks that count; None: all.
        """
        state = view.state
        host = np.where(view.done, state.ran_on, state.run_host).astype(np.int32)
        waits = ~view.done & (state.run_host < 0) & (state.assigned >= 0)
        waits &= state.assigned < len(view.platform.hosts)
        if queued is not None:
            waits &= queued
        return np.where(waits, state.assigned, host).astype(np.int32)

    def seconds(self, view: RunView) -> Floats:
        """Run time of each task: measured if it has finished, else as predicted when it was assigned."""
        return np.where(view.done, view.state.ran_for, view.state.predicted)

    def remaining(
        self, view: RunView, problem: Problem, kept: Ints, constraints: Constraints | None = None
    ) -> Constraints:
        """The constraints of the remaining problem of a run. Hosts with too few cores for a task are excluded.

        Args:
            view: The run.
            problem: Its remaining problem: some of its tasks, on the hosts that are up.
            kept: Tasks that stay in their queues.
            constraints: Constraints on the whole run; None: those in force.
        """
        whole = self.constraints if constraints is None else constraints
        queued = np.zeros(view.graph.n_tasks, np.bool_)
        queued[kept] = True
        taken = self.hosts_taken(view, queued)
        tasks = np.array([view.task_number[name] for name in problem.graph.task_names], np.int32)
        hosts = np.array([view.host_number[host.name] for host in problem.platform.hosts], np.int32)
        taken[tasks] = -1
        allowed = allowed_hosts(whole, taken, host_sites(view), tasks)
        allowed &= np.diff(view.static.core_ptr) >= view.graph.cores[tasks, None]
        rows, number = np.unique(allowed, axis=0, return_inverse=True)
        left = replace(whole, limits=self._limits_left(view, whole, taken)).of_tasks(tasks, hosts)
        return replace(
            left,
            allowed=np.ascontiguousarray(rows[:, hosts]),
            allowed_class=number.reshape(-1).astype(np.int32),
            before=np.empty((0, 2), np.int32),
            release=np.zeros(len(tasks)),
            deadline=np.full(len(tasks), np.inf),
        )

    def _limits_left(self, view: RunView, whole: Constraints, taken: Ints) -> tuple[Limit, ...]:
        """The limits, less what tasks with a host use of them."""
        seconds = self.seconds(view)
        limits = []
        for limit in whole.limits:
            used = (taken >= 0) & limit.tasks & limit.hosts[taken]
            count = max(limit.count - float(used.sum()), 0.0)
            spent = float(seconds[used].sum())
            limits.append(replace(limit, count=count, seconds=max(limit.seconds * SUM_SLACK - spent, 0.0)))
        return tuple(limits)

    def give_way(self, view: RunView, possible: Possible, why: str) -> bool:
        """Leave out the rules that cannot be kept any more, the later ones first, or stop the run.

        Args:
            view: The run.
            possible: Whether the rest of the run can satisfy constraints.
            why: What is impossible, if no host that has left is the reason.

        Returns:
            Whether rules were left out.

        Raises:
            NoPlan: The run stops.
        """
        nothing: frozenset[int] = frozenset()
        names, keep = self.constraints.names, list[str]()
        if not possible(self.constraints.only(()), nothing):
            return False
        for name in names:
            if possible(self.constraints.only((*keep, name)), nothing):
                keep.append(name)
        gone = [name for name in names if name not in keep]
        if not gone:
            return False
        why = self._lost(view, possible) or why
        if self.when_impossible == "stop":
            raise NoPlan(
                f"{quoted(gone)} cannot be kept any more at {view.time:.6g} s: {why}",
                where=f"{view.graph.name} on {view.platform.name}",
                hint="run it again with --when-impossible drop, or leave out the rule",
            )
        self.dropped += [RuleDropped(view.time, name, why) for name in gone]
        self.constraints = self.constraints.only(keep)
        return True

    def _lost(self, view: RunView, possible: Possible) -> str:
        """The host whose loss has made constraints impossible, as a sentence; empty if it was no single loss."""
        for host in reversed(list(self._left)):
            if possible(self.constraints, frozenset((host,))):
                return f"host {view.platform.hosts[host].name!r} left at {self._left[host]:.6g} s"
        if self._left and possible(self.constraints, frozenset(self._left)):
            lost = ", ".join(repr(view.platform.hosts[host].name) for host in self._left)
            return f"hosts {lost} have left"
        return ""


def quoted(names: Sequence[str]) -> str:
    """Rules by name, for messages.

    >>> quoted(["a", "b"])
    "rules 'a', 'b'"
    """
    if list(names) == [ALL]:
        return ALL
    return f"{'rule' if len(names) == 1 else 'rules'} {', '.join(repr(name) for name in names)}"


def host_sites(view: RunView) -> Ints:
    """The site of each host."""
    counts = [len(site.hosts) for site in view.platform.sites]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def allowed_hosts(constraints: Constraints, taken: Ints, host_site: Ints, tasks: Ints) -> Bools:
    """[tasks, hosts] where these tasks may run, given the hosts that other tasks have taken.

    Limits are not considered. O(tasks * hosts + groups).

    >>> few = replace(Constraints.none(3, 2), together=np.array([4, 4, -1], np.int32))
    >>> taken, site = np.array([1, -1, -1], np.int32), np.zeros(2, np.int32)
    >>> allowed_hosts(few, taken, site, np.array([1, 2], np.int32)).tolist()
    [[False, True], [True, True]]
    """
    allowed = constraints.allowed[constraints.allowed_class[tasks]]
    row = np.full(len(taken), -1, np.int32)
    row[tasks] = np.arange(len(tasks), dtype=np.int32)
    every = np.arange(allowed.shape[1])
    for group, at_site in ((constraints.together, False), (constraints.together_at_site, True)):
        for number in np.unique(group[tasks][group[tasks] >= 0]).tolist():
            members = group == number
            for host in np.unique(taken[members & (taken >= 0)]).tolist():
                same = host_site == host_site[host] if at_site else every == host
                allowed[row[members & (row >= 0)]] &= same
    for members in constraints.apart:
        used = taken[members][taken[members] >= 0]
        others = row[members][row[members] >= 0]
        allowed[np.ix_(others, used)] = False
    return allowed


def only_hosts(constraints: Constraints) -> Ints:
    """The host of each task that is allowed only one, and -1 for the others."""
    single = constraints.allowed.sum(axis=1) == 1
    only = np.where(single, constraints.allowed.argmax(axis=1), -1).astype(np.int32)
    hosts: Ints = only[constraints.allowed_class]
    return hosts


class OpenPlaces:
    """The hosts that are left for tasks while a scheduler places them one after another.

    A task with only one allowed host has taken it from the beginning. A limit on tasks at once counts tasks that run or
    are queued. So do limits that follow from what tasks need if they are `at_once`; else tasks wait in queues for that.
    """

    def __init__(
        self, run: RunConstraints, constraints: Constraints, view: RunView, *, at_once: bool = False
    ) -> None:
        self._limits = [limit for limit in constraints.limits if at_once or not limit.need]
        self._constraints = constraints
        self._site = host_sites(view)
        taken = run.hosts_taken(view)
        self._live = ~view.done & (taken >= 0)
        self._taken = np.where(taken >= 0, taken, only_hosts(constraints))
        self._rate = view.rates()
        self._work, self._class = view.estimates.work, view.estimates.graph.speed_class
        expected = self._work / self._rate[self._class, self._taken]
        self._seconds = np.where(taken >= 0, run.seconds(view), expected)

    def hosts(self, task: int) -> Bools:
        """The hosts that a task may take: O(hosts + groups + limits * tasks)."""
        before, self._taken[task] = self._taken[task], -1
        allowed: Bools = allowed_hosts(
            self._constraints, self._taken, self._site, np.array([task], np.int32)
        )[0]
        seconds = self._work[task] / self._rate[self._class[task]]
        for limit in self._limits:
            if not limit.tasks[task]:
                continue
            used = (self._taken >= 0) & limit.tasks & limit.hosts[self._taken]
            if used.sum() + 1 > limit.count or self._at_once(limit, used, task) > limit.at_once:
                allowed &= ~limit.hosts
            elif np.isfinite(limit.seconds):
                most = limit.seconds * SUM_SLACK - float(self._seconds[used].sum())
                allowed &= ~limit.hosts | (seconds <= most)
        self._taken[task] = before
        return allowed

    def _at_once(self, limit: Limit, used: Bools, task: int) -> float:
        """What a limit would count at once with one more task."""
        live = used & self._live
        return float(
            live.sum() + 1 if limit.amount is None else limit.amount[live].sum() + limit.amount[task]
        )

    def take(self, task: int, host: int) -> None:
        """Record that a task goes to a host."""
        self._taken[task], self._live[task] = host, True
        self._seconds[task] = self._work[task] / self._rate[self._class[task], host]
