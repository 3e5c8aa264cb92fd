"""A back end in plain Python: it does what `Coordinator.handle` says, in virtual time, and reports what ends.

Nothing slows down, and links have no contention, or transfers start on idle links (`fifo`). After every event the
coordinator validates its state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.core.coordinator import AbortTransfer, Coordinator, DropCopy, SendItem, StartTask, StopTask
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import Scheduler
from headrace.model.behaviour import Change
from headrace.model.events import (
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    Started,
    TaskFinished,
    TaskReleased,
)
from headrace.model.graph import Graph
from headrace.model.platform import Platform

Row = tuple[str, float]


@dataclass
class VirtualGrid:
    """One run."""

    graph: Graph
    platform: Platform
    scheduler: Scheduler
    changes: Sequence[Change] = ()
    policy: ExecutionPolicy | None = None
    now: float = 0.0
    rows: list[Row] = field(default_factory=list)
    """Everything that happened, as (what, when)."""

    def __post_init__(self) -> None:
        assert self.platform.contention in ("none", "fifo")
        self.coordinator = Coordinator(self.scheduler, self.graph, self.platform, policy=self.policy)
        self.view = self.coordinator.view
        self.to_come = sorted(self.changes, key=lambda change: change.time)
        late = [t for t in range(self.graph.n_tasks) if self.graph.release[t] > 0]
        self.releases = sorted(late, key=lambda t: float(self.graph.release[t]))
        self.rates = self.platform.rates(self.graph)
        self.running: dict[tuple[str, str], tuple[float, int, float]] = {}
        """(task, host) -> end, core of the grid, start."""
        self.moving: dict[tuple[str, str], tuple[float, int, SendItem, float]] = {}
        """(item, target) -> end, number, what is sent, start."""
        self.busy: dict[int, tuple[float, str, str]] = {}
        """Link -> when it is idle again, and the item and target of the transfer."""
        self.free = list(range(10 * (len(self.graph.reads) + self.graph.n_items) + 100))[::-1]
        """Numbers for transfers: of those that end at the same time, the lowest is reported first."""

    def run(self) -> list[Row]:
        """From the start to the end."""
        self.leave_out_what_comes_later()
        self.handle([*self.due_changes(), Started(0.0)])
        while not self.finished():
            ends = [end for end, *_ in (*self.running.values(), *self.moving.values(), *self.busy.values())]
            first = min(ends, default=math.inf)
            other = min(self.next_change(), self.next_release(), self.scheduler.wake.at)
            if min(first, other) == math.inf:
                self.unblock()
                continue
            self.now = max(self.now, min(first, other))
            if first <= other:
                events = self.ended()
                self.handle(events, self.idle())
            else:
                self.handle([*self.due_releases(), *self.due_changes()])
        return self.rows

    def finished(self) -> bool:
        destination = self.view.static.destination
        return bool(self.view.done.all()) and all(
            int(destination[i]) in self.view.places_of(i)
            for i in range(self.graph.n_items)
            if destination[i] >= 0
        )

    def handle(self, events: Sequence[Event], idle: Sequence[int] = ()) -> None:
        self.carry_out_all(self.coordinator.handle(events, self.now, idle))
        self.coordinator.validate_state()

    def unblock(self) -> None:
        """A scheduler may be asked in vain, but not for ever."""
        for _ in range(100):
            self.carry_out_all(self.coordinator.unblock())
            self.coordinator.validate_state()
            if self.running or self.moving:
                return
        raise AssertionError("nothing more can happen")

    # What the coordinator says.

    def carry_out_all(self, commands: Sequence[object]) -> None:
        for command in commands:
            self.carry_out(command)

    def carry_out(self, command: object) -> None:
        if isinstance(command, StartTask):
            task, host = self.view.task_number[command.task], self.view.host_number[command.host]
            seconds = float(self.graph.work[task]) / float(self.rates[self.graph.speed_class[task], host])
            core = int(self.view.static.core_ptr[host]) + command.core
            assert (command.task, command.host) not in self.running
            self.running[command.task, command.host] = (self.now + seconds, core, self.now)
            self.note(f"start {command.task} {command.host} {command.core}")
        elif isinstance(command, SendItem):
            assert (command.item, command.target) not in self.moving
            end = self.now + self.seconds_to_send(command)
            self.moving[command.item, command.target] = (end, self.free.pop(), command, self.now)
            self.keep_busy(command, end)
            self.note(f"send {command.item} {command.source} {command.target}")
        elif isinstance(command, StopTask):
            del self.running[command.task, command.host]
            self.note(f"stop {command.task} {command.host} {command.core}")
        elif isinstance(command, AbortTransfer):
            self.free.append(self.moving.pop((command.item, command.target))[1])
            self.leave_links(command.item, command.target)
            self.note(f"cut {command.item} {command.source} {command.target}")
        else:
            assert isinstance(command, DropCopy)
            self.note(f"drop {command.item} {command.place}")

    def seconds_to_send(self, sent: SendItem) -> float:
        place = self.view.place_number
        size = float(self.graph.size[self.view.item_number[sent.item]])
        return float(self.platform.network.seconds(place[sent.source], place[sent.target], size))

    def keep_busy(self, sent: SendItem, end: float) -> None:
        """Note until when links are busy with a transfer, if that is before its end."""
        network, place = self.platform.network, self.view.place_number
        ends = place[sent.source], place[sent.target]
        size = float(self.graph.size[self.view.item_number[sent.item]])
        for link in network.route(*ends) if self.platform.contention == "fifo" else ():
            until = self.now + network.busy_seconds(*ends, size, link)
            if until < end * (1.0 - 1e-12):
                self.busy[link] = until, sent.item, sent.target

    def leave_links(self, item: str, target: str) -> None:
        self.busy = {link: use for link, use in self.busy.items() if use[1:] != (item, target)}

    def idle(self) -> list[int]:
        """Links that have carried all bytes by now."""
        found = sorted(link for link, (until, *_) in self.busy.items() if until <= self.now)
        for link in found:
            del self.busy[link]
        return found

    # What it is told.

    def ended(self) -> list[Event]:
        """Tasks by core, then transfers by number."""
        events: list[Event] = []
        for (task, host), (end, core, start) in sorted(self.running.items(), key=lambda row: row[1][1]):
            if end <= self.now:
                del self.running[task, host]
                first = int(self.view.static.core_ptr[self.view.host_number[host]])
                self.note(f"end {task} {host} {core - first}")
                events.append(TaskFinished(self.now, task, host, start))
        for key, (end, number, sent, start) in sorted(self.moving.items(), key=lambda row: row[1][1]):
            if end <= self.now:
                del self.moving[key]
                self.leave_links(*key)
                self.free.append(number)
                self.note(f"arrive {sent.item} {sent.source} {sent.target}")
                size = float(self.graph.size[self.view.item_number[sent.item]])
                events.append(DataMoved(self.now, sent.item, sent.source, sent.target, start, size))
        return events

    def leave_out_what_comes_later(self) -> None:
        first: dict[str, Change] = {}
        for change in self.to_come:
            first.setdefault(change.name, change)
        for change in first.values():
            if change.what == "host-up":
                self.coordinator.absent_at_start(change.name)
                self.note(f"left {change.name}")

    def next_change(self) -> float:
        return self.to_come[0].time if self.to_come else math.inf

    def next_release(self) -> float:
        return float(self.graph.release[self.releases[0]]) if self.releases else math.inf

    def due_releases(self) -> list[Event]:
        events: list[Event] = []
        while self.next_release() <= self.now:
            events.append(TaskReleased(self.now, self.graph.task_names[self.releases.pop(0)]))
        return events

    def due_changes(self) -> list[Event]:
        """Hosts that leave or return; the coordinator says what is stopped."""
        events: list[Event] = []
        up = {host.name for host in self.platform.hosts} - self.view.down
        while self.next_change() <= self.now:
            change = self.to_come.pop(0)
            if change.what == "host-down" and change.name in up:
                up.remove(change.name)
                events.append(HostLeft(self.now, change.name))
                self.note(f"left {change.name}")
            elif change.what == "host-up" and change.name not in up:
                up.add(change.name)
                events.append(HostJoined(self.now, change.name))
                self.note(f"joined {change.name}")
        return events

    def note(self, what: str) -> None:
        self.rows.append((what, self.now))
