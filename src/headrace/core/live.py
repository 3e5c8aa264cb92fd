"""The coordinator of real runs under schedulers that decide while the program runs.

The workers keep their own queues and fetch data themselves; here is what the scheduler needs to know about
them, in the same arrays that a simulated run has. So the same scheduler object runs in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from headrace.core import state as d
from headrace.core.coordinator import Coordinator
from headrace.core.estimates import HistoryEstimates
from headrace.core.online import EVERY_EVENT, Command, RequeueTail, WakeConditions
from headrace.core.scheduler import Assign, Follow, Scheduler
from headrace.core.state_refs import problem_ref, state_ref
from headrace.core.transitions.dispatch import note_done, note_moved, uneven_now
from headrace.core.transitions.losses import host_joined, host_left
from headrace.core.transitions.queues import assign_all, truncate
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.program import Program


class LiveCoordinator(Coordinator):
    """Events of real workers in, assignments out; the scheduler is asked when its `wake` says so.

    A ready task waits for nothing else than the scheduler here, so it is asked as soon as there is one.
    """

    def __init__(self, scheduler: Scheduler, graph: Graph, platform: Platform) -> None:
        self.scheduler = scheduler
        self.case = d.make_static_problem(graph, platform)
        self.desk = d.make_state(graph, platform, self.case)
        self.refs = (problem_ref(self.case), state_ref(self.desk))
        self.estimates = HistoryEstimates(graph, platform)
        self.grid = RunView(graph, platform, self.case, self.desk, self.estimates, self.refs)
        self.state = self.grid
        self.host_number = {host.name: h for h, host in enumerate(platform.hosts)}
        self.wake: WakeConditions = getattr(scheduler, "wake", EVERY_EVENT)

    def handle(self, events: Sequence[Event]) -> list[Assign]:
        """Take note of what happened and ask the scheduler if it wants to be asked."""
        changed = False
        self.grid.surprised = False
        for event in events:
            changed |= self._tell(event)
        self.desk.count[d.ORDERS] = 0  # orders to stop what ran on a lost host: it is lost anyway
        if all(self.desk.host_up == 0):
            if not changed:
                return []
            raise NoPlan(
                "no host is left", where=self.grid.platform.name, hint="add a worker and run it again"
            )
        if not (changed or self._asks()):
            return []
        answers: list[Any] = []
        for _ in range(2 if self.wake.ready else 1):  # what was placed may leave more to place
            before = int(self.desk.queue_length[-1])
            found = self.scheduler.react(self.grid, list(events))
            answers += self._keep(found)
            if not found or int(self.desk.queue_length[-1]) in (0, before):
                break
        return answers

    def _asks(self) -> bool:
        if self.wake.every or self.grid.surprised:
            return True
        due = float(getattr(self.scheduler, "next_time", np.inf))
        if self.grid.time >= due:
            return True
        waits = int(self.desk.queue_length[-1]) > 0 and (self.wake.ready > 0 or self.wake.idle)
        return waits or (self.wake.uneven and bool(uneven_now(*self.refs)))

    def _tell(self, event: Event) -> bool:
        """Put one event into the arrays; whether the scheduler must hear of it."""
        state = self.grid
        state.time = max(state.time, event.time)
        match event:
            case TaskFinished(task=task, host=host) if host not in state.down:
                self._finished(event, state.task_number[task], self.host_number.get(host, -1))
            case DataMoved(item=name, target=target) if target not in state.down:
                if target in self.host_number:
                    place = int(self.case.host_place[self.host_number[target]])
                    note_moved(*self.refs, state.item_number[name], place)
            case HostLeft(host=host) if host in self.host_number:
                host_left(*self.refs, self.host_number[host], True)
                state.down.add(host)
                return True
            case HostJoined(host=host) if host in self.host_number:
                host_joined(*self.refs, self.host_number[host], event.time)
                state.down.discard(host)
                return True
            case Started():
                return True
        return False

    def _finished(self, event: TaskFinished, task: int, host: int) -> None:
        if host < 0 or self.desk.done[task]:
            return
        took = max(0.0, event.time - event.start)
        expected = float(self.desk.predicted[task])
        off_by = self.wake.off_by
        if off_by < np.inf and (took > off_by * expected or off_by * took < expected):
            self.grid.surprised = True
        note_done(*self.refs, task, host, event.time)
        one = np.array([task], np.int32), np.array([host], np.int32), np.array([took])
        self.estimates.note(event.time, *one)

    def _keep(self, answers: Sequence[Command]) -> list[Assign]:
        """Note the answers in the queues; workers hear only of tasks that get another host.

        Hosts that nobody knows are for the back end to refuse.
        """
        before = self.desk.assigned.copy()
        for answer in answers:
            if isinstance(answer, RequeueTail):
                truncate(*self.refs, answer.keep)
        given = [answer for answer in answers if isinstance(answer, Assign)]
        chosen = [answer for answer in given if answer.host in self.host_number]
        unknown = [answer for answer in given if answer.host not in self.host_number]
        if chosen:
            tasks = np.array([self.grid.task_number[a.task] for a in chosen], np.int32)
            hosts = np.array([self.host_number[a.host] for a in chosen], np.int32)
            ranks = np.array([a.rank for a in chosen], np.float64)
            expected = self.estimates.seconds(self.grid.time, tasks, hosts)
            assign_all(*self.refs, tasks, hosts, ranks, expected)
            chosen = [a for a, t, h in zip(chosen, tasks, hosts, strict=True) if before[t] != h]
        return [*chosen, *unknown]


def warm_up(scheduler: Scheduler) -> None:
    """Have compiled what a run under this scheduler needs, before its clock starts: a small run with a copy of it.

    Only for schedulers of Headrace: what others do with a program that is not theirs nobody knows.
    """
    if isinstance(scheduler, Follow) or not type(scheduler).__module__.startswith("headrace."):
        return
    program = Program("warm-up")
    made = [program.task(None, outputs={f"x{k}": 1.0}, work=1.0, name=f"t{k}") for k in range(4)]
    program.task(None, inputs=made, outputs={"y": 1.0}, work=1.0, name="last")
    platform = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    a, b = (host.name for host in platform.hosts)
    coordinator = LiveCoordinator(deepcopy(scheduler), program.graph, platform)
    coordinator.handle([Started(0.0)])
    coordinator.handle([TaskFinished(1.0, "t0", a, 0.0)])
    coordinator.handle([DataMoved(1.1, "x0", a, b, 1.0, 1.0)])
    coordinator.handle([HostLeft(1.2, b)])
    coordinator.handle([HostJoined(1.3, b)])
    for k in range(1, 4):
        coordinator.handle([TaskFinished(2.0 + k, f"t{k}", a, 1.0 + k)])


def coordinator_for(scheduler: Scheduler, graph: Graph, platform: Platform) -> Coordinator:
    """The coordinator that a scheduler needs: for one that follows plans the plain one, else one with queues."""
    if isinstance(scheduler, Follow):
        return Coordinator(scheduler, graph, platform)
    return LiveCoordinator(scheduler, graph, platform)
