"""A coordinator and its grid in plain Python: queues, data that is moved, hosts that are lost, work done again.

Links have no contention and are always there; storage has no limit. Nothing is kept that can be found out by
looking at everything, so that there is little that can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from headrace.model.behaviour import Change
from headrace.model.graph import Graph
from headrace.model.platform import Platform

Row = tuple[str, float]
Decide = Callable[[list[int], list[int]], dict[int, int]]
"""From ready tasks without a host and the hosts that are there to the host of each task."""


class PlainRun:
    """One run. Tasks are ranked by their number; `decide` is asked after everything that happens."""

    def __init__(
        self, graph: Graph, platform: Platform, changes: Sequence[Change], decide: Decide, prefetch: int
    ) -> None:
        self.graph, self.platform, self.network = graph, platform, platform.network
        self.decide, self.prefetch = decide, prefetch
        self.changes = sorted(changes, key=lambda change: change.time)
        self.host_number = {host.name: h for h, host in enumerate(platform.hosts)}
        self.place = self.network.host_place.tolist()
        self.now, self.redone, self.rows = 0.0, 0, list[Row]()
        first: dict[str, Change] = {}
        for change in self.changes:
            first.setdefault(change.name, change)
        self.up = set(range(len(self.place)))
        self.done: set[int] = set()
        self.queue: dict[int, set[int]] = {h: set() for h in self.up}
        self.running: dict[int, tuple[int, int, float]] = {}
        """Task -> host, core, end."""
        self.moving: dict[tuple[int, int], tuple[int, float]] = {}
        """(item, target) -> source, end."""
        self.sent_for: set[int] = set()
        """Queued tasks whose inputs have been sent for: what is made for them later follows at once."""
        self.signalled: set[int] = set()
        """Items that are never moved (signals, and inputs that are everywhere) and exist."""
        outside = graph.producer < 0
        at_origin = {self.network.origin} if self.network.origin >= 0 else set()
        self.copies = [set(at_origin) if outside[i] else set() for i in range(graph.n_items)]
        self.unmoved = [
            graph.size[i] == 0 or (bool(outside[i]) and not at_origin) for i in range(graph.n_items)
        ]
        self.signalled = {i for i in range(graph.n_items) if self.unmoved[i] and outside[i]}
        for change in first.values():
            if change.what == "host-up":
                self.lose(self.host_number[change.name])

    def run(self) -> list[Row]:
        """Everything that happens, as (what, when)."""
        self.apply_changes()
        self.ask()
        while True:
            self.dispatch()
            if self.finished():
                return self.rows
            ends = [end for _, _, end in self.running.values()] + [end for _, end in self.moving.values()]
            coming = self.changes[0].time if self.changes else math.inf
            if min(ends, default=math.inf) <= coming:
                self.now = min(ends)
                self.end_what_is_due()
                self.dispatch()
                if self.finished():
                    return self.rows
            else:
                self.now = coming
                self.apply_changes()
            self.ask()

    def exists(self, item: int) -> bool:
        return item in self.signalled if self.unmoved[item] else bool(self.copies[item])

    def is_here(self, item: int, place: int) -> bool:
        return item in self.signalled if self.unmoved[item] else place in self.copies[item]

    def reads(self, task: int) -> list[int]:
        return self.graph.reads_of(task).tolist()

    def host_of(self, task: int) -> int | None:
        return next((h for h, tasks in self.queue.items() if task in tasks), None)

    def goes_to(self, item: int) -> int:
        """Where a result must be in the end; -1 where it stays or it is none."""
        made = self.graph.result[item] and self.graph.producer[item] >= 0 and not self.unmoved[item]
        return self.network.origin if made else -1

    def finished(self) -> bool:
        results = [i for i in range(self.graph.n_items) if self.goes_to(i) >= 0]
        there = all(self.network.origin in self.copies[i] for i in results)
        return len(self.done) == self.graph.n_tasks and there

    def ask(self) -> None:
        """Ready tasks that no host has get one; queued ones stay."""
        if not self.up:
            return
        free = [t for t in range(self.graph.n_tasks) if t not in self.done and t not in self.running]
        free = [t for t in free if self.host_of(t) is None]
        ready = [t for t in free if all(self.exists(i) for i in self.reads(t))]
        for task, host in self.decide(ready, sorted(self.up)).items():
            if task in free:
                self.queue[host].add(task)

    def dispatch(self) -> None:
        """Start tasks whose inputs are there, lowest number first, and send what the next ones need."""
        for host in sorted(self.up):
            for task in sorted(self.queue[host]):
                used = {core for h, core, _ in self.running.values() if h == host}
                free = [c for c in range(self.platform.hosts[host].cores) if c not in used]
                if free and all(self.is_here(i, self.place[host]) for i in self.reads(task)):
                    self.queue[host].remove(task)
                    self.sent_for.discard(task)
                    self.running[task] = (host, free[0], self.now + self.seconds(task, host))
                    self.note(f"start {self.task(task, host)} {free[0]}")
            self.sent_for.update(sorted(self.queue[host])[: self.prefetch])
        for host, tasks in self.queue.items():
            for task in sorted(tasks & self.sent_for):
                for item in self.reads(task):
                    self.send(item, self.place[host])
        for item in range(self.graph.n_items):
            if self.goes_to(item) >= 0:
                self.send(item, self.goes_to(item))

    def send(self, item: int, target: int) -> None:
        """From the copy that is nearest, unless it is there or on its way or does not exist."""
        if self.is_here(item, target) or (item, target) in self.moving or not self.exists(item):
            return
        size = float(self.graph.size[item])
        ways = {source: self.network.seconds(source, target, size) for source in self.copies[item]}
        source = min(ways, key=lambda s: (ways[s], len(self.network.route(s, target)), s))
        self.moving[item, target] = (source, self.now + ways[source])
        self.note(f"send {self.move(item, source, target)}")

    def end_what_is_due(self) -> None:
        for (item, target), (source, end) in list(self.moving.items()):
            if end <= self.now:
                del self.moving[item, target]
                self.copies[item].add(target)
                self.note(f"arrive {self.move(item, source, target)}")
        for task, (host, core, end) in list(self.running.items()):
            if end <= self.now:
                del self.running[task]
                self.done.add(task)
                self.note(f"end {self.task(task, host)} {core}")
                for item in self.graph.writes_of(task).tolist():
                    if self.unmoved[item]:
                        self.signalled.add(item)
                    else:
                        self.copies[item].add(self.place[host])

    def apply_changes(self) -> None:
        while self.changes and self.changes[0].time <= self.now:
            change = self.changes.pop(0)
            host = self.host_number[change.name]
            if change.what == "host-down" and host in self.up:
                self.lose(host)
            elif change.what == "host-up" and host not in self.up:
                self.up.add(host)
                self.note(f"joined {change.name}")

    def lose(self, host: int) -> None:
        """A host leaves, with what it ran and had queued; its own disk is lost unless it is the origin."""
        self.up.remove(host)
        self.sent_for -= self.queue[host]
        self.queue[host].clear()
        for task, (where, core, _) in list(self.running.items()):
            if where == host:
                del self.running[task]
                self.note(f"stop {self.task(task, host)} {core}")
        place = self.place[host]
        own = self.network.place_names[place] == self.platform.hosts[host].name
        if own and place != self.network.origin:
            self.lose_data(place)
        self.make_again()
        self.note(f"left {self.platform.hosts[host].name}")

    def lose_data(self, place: int) -> None:
        for (item, target), (source, _) in list(self.moving.items()):
            if place in (source, target):
                del self.moving[item, target]
                self.note(f"cut {self.move(item, source, target)}")
        for item, copies in enumerate(self.copies):
            if place in copies:
                copies.remove(place)
                for reader in self.graph.readers_of(item).tolist() if not copies else ():
                    for tasks in self.queue.values():
                        tasks.discard(reader)
                    self.sent_for.discard(reader)

    def make_again(self) -> None:
        """Whoever made something that is lost and still needed has to do it again."""
        again = True
        while again:
            again = False
            for item in range(self.graph.n_items):
                maker = int(self.graph.producer[item])
                if maker in self.done and not self.exists(item) and self.is_needed(item):
                    self.done.remove(maker)
                    self.redone += 1
                    again = True

    def is_needed(self, item: int) -> bool:
        """Someone who has not begun reads it, or it is a result (which cannot be at the origin if it is lost)."""
        readers = self.graph.readers_of(item).tolist()
        return bool(self.graph.result[item]) or any(
            t not in self.done and t not in self.running for t in readers
        )

    def seconds(self, task: int, host: int) -> float:
        kind = self.graph.kinds[self.graph.kind[task]]
        return float(self.graph.work[task]) / self.platform.hosts[host].speed_for(kind)

    def task(self, task: int, host: int) -> str:
        return f"{self.graph.task_names[task]} {self.platform.hosts[host].name}"

    def move(self, item: int, source: int, target: int) -> str:
        places = self.network.place_names
        return f"{self.graph.item_names[item]} {places[source]} {places[target]}"

    def note(self, what: str) -> None:
        self.rows.append((what, self.now))
