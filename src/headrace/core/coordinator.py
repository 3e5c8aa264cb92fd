"""The coordinator: what is done and where data is; events in, assignments out. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.core.remaining_graph import remaining_graph
from headrace.core.scheduler import Assign, Problem, Scheduler
from headrace.model.errors import NoPlan
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, TaskFinished
from headrace.model.graph import OUTSIDE, Graph
from headrace.model.platform import Platform


class State:
    """What has happened so far. Schedulers read it; only the coordinator changes it."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self.graph = graph
        self.platform = platform
        self.time = 0.0
        self.down: set[str] = set()
        self.done = np.zeros(graph.n_tasks, np.bool_)
        self._held: dict[int, set[str]] = {}
        self.task_number = {name: t for t, name in enumerate(graph.task_names)}
        self.item_number = {name: i for i, name in enumerate(graph.item_names)}

    @property
    def holders(self) -> dict[int, set[str]]:
        """Hosts that hold each item that was made; those from outside are not in it."""
        return self._held

    def problem(self) -> Problem:
        """What is left to do, on the hosts that are there, with data where it now lies.

        O(tasks + items). Task and host names stay; numbers change.
        """
        if all(host.name in self.down for host in self.platform.hosts):
            raise NoPlan("no host is left", where=self.platform.name, hint="add a worker and resume the run")
        graph, platform = self.graph, self.platform.without(self.down)
        if not self.done.any():
            return Problem(graph, platform)
        rest, _ = remaining_graph(graph, ~self.done)
        place = dict(zip((h.name for h in platform.hosts), platform.network.host_place.tolist(), strict=True))
        holders = {
            item: tuple(sorted({place[host] for host in hosts if host in place}))
            for item, hosts in self.holders.items()
            if rest.producer[item] == OUTSIDE
        }
        return Problem(rest, platform, holders)


class Coordinator:
    """Drives one scheduler through one run: (state, event) -> (state, assignments)."""

    def __init__(self, scheduler: Scheduler, graph: Graph, platform: Platform) -> None:
        self.scheduler = scheduler
        self.state = State(graph, platform)

    def handle(self, events: Sequence[Event]) -> list[Assign]:
        """Take note of what happened and ask the scheduler what follows from it."""
        for event in events:
            self._note(event)
        return self.scheduler.react(self.state, events)

    def _note(self, event: Event) -> None:
        """News from a host that has left comes too late: what it reports was lost with it."""
        state = self.state
        state.time = max(state.time, event.time)
        match event:
            case TaskFinished(task=task, host=host) if host not in state.down:
                number = state.task_number[task]
                state.done[number] = True
                for item in state.graph.writes_of(number).tolist():
                    state.holders.setdefault(item, set()).add(host)
            case DataMoved(item=name, target=target) if target not in state.down:
                item = state.item_number[name]
                if item in state.holders:
                    state.holders[item].add(target)
            case HostLeft(host=host):
                state.down.add(host)
                self._lose(host)
            case HostJoined(host=host):
                state.down.discard(host)

    def _lose(self, host: str) -> None:
        """Items that only this host held are gone; their makers run again if somebody still needs them."""
        state, graph = self.state, self.state.graph
        lost = [item for item, hosts in state.holders.items() if hosts == {host}]
        for hosts in state.holders.values():
            hosts.discard(host)
        while lost:
            item = lost.pop()
            state.holders.pop(item, None)
            maker = int(graph.producer[item])
            needed = graph.result[item] or any(not state.done[r] for r in graph.readers_of(item).tolist())
            if not needed or not state.done[maker]:
                continue
            state.done[maker] = False
            lost.extend(
                i for i in graph.reads_of(maker).tolist() if graph.producer[i] >= 0 and i not in state.holders
            )
