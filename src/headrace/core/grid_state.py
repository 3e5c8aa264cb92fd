"""The state of a run whose queues and data the coordinator holds in arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.core.beliefs import Beliefs
from headrace.core.coordinator import State
from headrace.core.kernels.desk import HERE, Case, Desk
from headrace.core.residual import rest_of
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Platform


class GridState(State):
    """As `State`, with the queues: what is where, how long each host is expected to be busy.

    `beliefs` say how long tasks are expected to take. `refs` are case and desk for compiled code.
    """

    def __init__(
        self,
        graph: Graph,
        platform: Platform,
        case: Case,
        desk: Desk,
        beliefs: Beliefs,
        refs: tuple[Any, Any],
    ) -> None:
        super().__init__(graph, platform)
        self.case = case
        self.desk = desk
        self.done = desk.done.view(np.bool_)
        self.beliefs = beliefs
        self.refs = refs
        self.surprised = False
        """Whether a task took far more or less than predicted since the scheduler was last asked."""

    @property
    def running(self) -> Bools:
        """Tasks that run now."""
        return np.asarray(self.desk.run_host >= 0)

    def rates(self) -> Floats:
        """Believed speed of each host for each kind of task now: [kinds, hosts]."""
        return self.beliefs.rates(self.time)

    def waiting(self) -> Ints:
        """Ready tasks that no host has, in the order in which they became ready."""
        task = int(self.desk.q_head[-1])
        found = []
        while task >= 0:
            found.append(task)
            task = int(self.desk.q_next[task])
        return np.array(found, np.int32)

    def queue(self, host: int) -> list[int]:
        """The tasks in a host's queue, in order."""
        task = int(self.desk.q_head[host])
        found = []
        while task >= 0:
            found.append(task)
            task = int(self.desk.q_next[task])
        return found

    def busy_until(self, keep: int = 0) -> Floats:
        """Seconds from now until each host has a free core, with the first `keep` tasks of its queue done.

        When running tasks end is a belief.
        """
        return self._timetable(keep)[0]

    def expected_at(self, moment: float, keep: int = 0) -> dict[int, list[int]]:
        """Of what runs and the first `keep` tasks of each queue, what each host is expected to run in `moment` s."""
        found: dict[int, list[int]] = {}
        for host, task, start, end in self._timetable(keep)[1]:
            if start <= moment < end:
                found.setdefault(host, []).append(task)
        return found

    def _timetable(self, keep: int) -> tuple[Floats, list[tuple[int, int, float, float]]]:
        """When each host has a free core, and (host, task, start, end) of what runs and is kept, from now."""
        desk, case = self.desk, self.case
        busy = np.zeros(len(self.platform.hosts))
        rows: list[tuple[int, int, float, float]] = []
        running = np.flatnonzero(desk.run_host >= 0).astype(np.int32)
        left = dict(zip(running.tolist(), self._left(running).tolist(), strict=True))
        for host in range(len(busy)):
            on = desk.core_task[case.core_ptr[host] : case.core_ptr[host + 1]].tolist()
            free = [left[task] if task >= 0 else 0.0 for task in on]
            rows += [(host, task, 0.0, left[task]) for task in on if task >= 0]
            for task in self.queue(host)[:keep]:
                free.sort()
                rows.append((host, task, free[0], free[0] + float(desk.predicted[task])))
                free[0] = rows[-1][3]
            busy[host] = min(free)
        return busy, rows

    def _left(self, tasks: Ints) -> Floats:
        desk = self.desk
        return self.beliefs.left(
            self.time, tasks, desk.run_host[tasks], desk.run_start[tasks], desk.predicted[tasks]
        )

    def problem(self, keep: int = 0, chosen: Bools | None = None) -> Problem:
        """What is left to place: tasks that neither run nor are among the first `keep` of a queue.

        `chosen` limits it further to these tasks. Hosts are free when what they run and keep is done;
        what running tasks make counts as being where they run. O(tasks + items * places).
        """
        hosts = self.platform.hosts
        if all(host.name in self.down for host in hosts):
            raise NoPlan("no host is left", where=self.platform.name, hint="let a host join later")
        platform = self.beliefs.platform(self.time)
        if self.down:
            platform = platform.without(self.down)
        wanted = (self.desk.done == 0) & (self.desk.run_host < 0)
        if chosen is not None:
            wanted &= chosen
        for host in range(len(hosts)) if keep else ():
            wanted[self.queue(host)[:keep]] = False
        beliefs = self.beliefs
        rest, _ = rest_of(beliefs.graph, wanted, beliefs.work, beliefs.sizes(self.done))
        if self.time > 0 and ((rest.release > 0).any() or np.isfinite(rest.deadline).any()):
            later = np.maximum(rest.release - self.time, 0.0)
            rest = replace(rest, release=later, deadline=rest.deadline - self.time)
        busy = self.busy_until(keep)
        number = {host.name: h for h, host in enumerate(platform.hosts)}
        free_at = {
            number[host.name]: float(busy[h])
            for h, host in enumerate(hosts)
            if busy[h] > 0 and host.name in number
        }
        return Problem(rest, platform, self._holders(rest, platform), free_at, bounded=False)

    def _holders(self, rest: Graph, platform: Platform) -> dict[int, tuple[int, ...]]:
        """Where items that exist or are being made lie, by the numbers of the platform that is left."""
        desk, graph = self.desk, self.graph
        names = self.platform.network.place_names
        there = {name: p for p, name in enumerate(platform.network.place_names)}
        new = np.array([there.get(name, -1) for name in names], np.int32)
        new[desk.place_up == 0] = -1
        needed = np.zeros(graph.n_items, np.bool_)
        needed[rest.reads] = True
        needed &= (rest.producer < 0) & ~self.case.free
        held = (desk.present.reshape(graph.n_items, len(names)) == HERE) & (new >= 0)
        holders: dict[int, tuple[int, ...]] = {}
        origin = self.case.origin
        for item in np.flatnonzero(needed).tolist():
            places = np.flatnonzero(held[item])
            maker = int(graph.producer[item])
            if len(places) == 1 and maker < 0 and places[0] == origin:
                continue
            found = {int(new[p]) for p in places}
            if not found and maker >= 0 and desk.run_host[maker] >= 0:
                found = {int(new[self.case.host_place[desk.run_host[maker]]])}
            if not found and maker >= 0 and desk.assigned[maker] >= 0:
                found = {int(new[self.case.host_place[desk.assigned[maker]]])}
            if found:
                holders[item] = tuple(sorted(found))
        return holders
