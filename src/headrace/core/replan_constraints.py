"""Constraints on hosts during a run: what has happened is fixed, the rest must obey.

Order, releases and deadlines are part of the run's graph (`model.constraints.bound_graph`). `RunConstraints` knows
where tasks have run, run or are queued, and says which hosts are left for the others. Schedulers report events and
their own commands to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headrace.core.scheduler import AssignMany, Command, Problem
from headrace.core.view import RunView
from headrace.model.constraints import Constraints
from headrace.model.events import Event, TaskFinished
from headrace.model.graph import Bools, Floats, Ints

SUM_SLACK = 1.0 + 1e-9
"""Sums of measured seconds may exceed a limit by this factor, because they are differences of times."""


class RunConstraints:
    """The constraints of a run, and the hosts of its tasks so far.

    Args:
        constraints: Constraints on the tasks and hosts of the whole run.
    """

    def __init__(self, constraints: Constraints) -> None:
        self.constraints = constraints
        tasks = len(constraints.together)
        self._ran_on = np.full(tasks, -1, np.int32)
        self._ran_for = np.full(tasks, np.nan)

    def note(self, view: RunView, events: Sequence[Event]) -> None:
        """Record where tasks have finished, and how long they took."""
        for event in events:
            if isinstance(event, TaskFinished):
                task = view.task_number[event.task]
                self._ran_on[task] = view.host_number[event.host]
                self._ran_for[task] = event.time - event.start

    def note_commands(self, commands: Sequence[Command]) -> None:
        """Record where tasks are sent: back ends do not report every completion to every scheduler."""
        for command in commands:
            if isinstance(command, AssignMany):
                self._ran_on[command.tasks] = command.hosts

    def hosts_taken(self, view: RunView, queued: Bools | None = None) -> Ints:
        """The host on which each task has run, runs, or is queued; -1 for none.

        `queued` restricts the queued tasks that count; None: all.
        """
        state = view.state
        host = np.where(view.done, self._ran_on, state.run_host).astype(np.int32)
        waits = ~view.done & (state.run_host < 0) & (state.assigned >= 0)
        waits &= state.assigned < len(view.platform.hosts)
        if queued is not None:
            waits &= queued
        return np.where(waits, state.assigned, host).astype(np.int32)

    def seconds(self, view: RunView) -> Floats:
        """Run time of each task: measured if that was reported, else as predicted when it was assigned."""
        known = view.done & ~np.isnan(self._ran_for)
        return np.where(known, self._ran_for, view.state.predicted)

    def remaining(self, view: RunView, problem: Problem, kept: Ints) -> Constraints:
        """The constraints of the remaining problem of a run.

        Args:
            view: The run.
            problem: Its remaining problem: some of its tasks, on the hosts that are up.
            kept: Tasks that stay in their queues.
        """
        queued = np.zeros(view.graph.n_tasks, np.bool_)
        queued[kept] = True
        taken = self.hosts_taken(view, queued)
        tasks = np.array([view.task_number[name] for name in problem.graph.task_names], np.int32)
        hosts = np.array([view.host_number[host.name] for host in problem.platform.hosts], np.int32)
        taken[tasks] = -1
        allowed = allowed_hosts(self.constraints, taken, host_sites(view), tasks)
        rows, number = np.unique(allowed, axis=0, return_inverse=True)
        seconds = self.seconds(view)
        limits = []
        for limit in self.constraints.limits:
            used = (taken >= 0) & limit.tasks & limit.hosts[taken]
            count = max(limit.count - float(used.sum()), 0.0)
            limits.append(
                replace(
                    limit,
                    count=count,
                    seconds=max(limit.seconds * SUM_SLACK - float(seconds[used].sum()), 0.0),
                )
            )
        left = replace(self.constraints, limits=tuple(limits)).of_tasks(tasks, hosts)
        return replace(
            left,
            allowed=np.ascontiguousarray(rows[:, hosts]),
            allowed_class=number.reshape(-1).astype(np.int32),
            before=np.empty((0, 2), np.int32),
            release=np.zeros(len(tasks)),
            deadline=np.full(len(tasks), np.inf),
        )


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
    are queued.
    """

    def __init__(self, run: RunConstraints, view: RunView) -> None:
        self._constraints = run.constraints
        self._site = host_sites(view)
        taken = run.hosts_taken(view)
        self._live = ~view.done & (taken >= 0)
        self._taken = np.where(taken >= 0, taken, only_hosts(run.constraints))
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
        for limit in self._constraints.limits:
            if not limit.tasks[task]:
                continue
            used = (self._taken >= 0) & limit.tasks & limit.hosts[self._taken]
            full = used.sum() + 1 > limit.count or (used & self._live).sum() + 1 > limit.at_once
            if full:
                allowed &= ~limit.hosts
            elif np.isfinite(limit.seconds):
                most = limit.seconds * SUM_SLACK - float(self._seconds[used].sum())
                allowed &= ~limit.hosts | (seconds <= most)
        self._taken[task] = before
        return allowed

    def take(self, task: int, host: int) -> None:
        """Record that a task goes to a host."""
        self._taken[task], self._live[task] = host, True
        self._seconds[task] = self._work[task] / self._rate[self._class[task], host]
