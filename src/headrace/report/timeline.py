"""Executions and transfers of a plan or a run in order, and what each of them waited for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform

WaitKind = Literal["", "input", "transfer", "host", "link"]
_SLACK = 1e-6
"""Share of the whole time by which measured times may contradict each other."""


class Activity(NamedTuple):
    """An execution of a task on a host, or a transfer of an item to a place."""

    finish: float
    start: float
    name: str
    place: str
    source: str = ""
    """Where an item came from; "" for a task."""
    size: float = 0.0

    @property
    def is_task(self) -> bool:
        return not self.source

    @property
    def seconds(self) -> float:
        return self.finish - self.start


class Wait(NamedTuple):
    """The last thing that had to end before an activity could start."""

    kind: WaitKind = ""
    """input: the task that made its data; transfer: its data on the way; host, link: these were in use by `before`."""
    before: int = -1
    """The number of that activity, -1 if there was none."""


class _Use(NamedTuple):
    """A link that is busy with a transfer."""

    end: float
    start: float
    number: int


@dataclass
class _Line:
    """Activities that occupy a host, by finish."""

    finish: list[float] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    spans: list[tuple[float, float, int]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def add(self, number: int, activity: Activity, cores: int = 1) -> None:
        self.finish.append(activity.finish)
        self.number.append(number)
        self.spans.append((activity.start, activity.finish, cores))

    def close(self) -> None:
        """Prepare `busy`: running sums of cores over starts and over ends."""
        by_start = sorted((start, cores) for start, _, cores in self.spans)
        self.starts = [start for start, _ in by_start]
        self.started = [0, *accumulate(cores for _, cores in by_start)]
        self.ended = [0, *accumulate(cores for _, _, cores in self.spans)]

    def last(self, before: float, not_after: int) -> int:
        """The number of the last activity that ended by a time and has a number below another; -1: none."""
        at = bisect_right(self.finish, before) - 1
        while at >= 0 and self.number[at] >= not_after:
            at -= 1
        return self.number[at] if at >= 0 else -1

    def busy(self, time: float, slack: float) -> int:
        """Cores in use just before a time."""
        begun = self.started[bisect_left(self.starts, time - slack)]
        return begun - self.ended[bisect_left(self.finish, time - slack)]


class Timeline:
    """Activities by finish time, each with what it waited for: O(n log n) to build.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> first = program.task(None, name="a", work=2.0, outputs={"x": 1e6})
    >>> second = program.task(None, name="b", inputs=[first], work=1.0)
    >>> line = Timeline.of_plan(hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6)))
    >>> line.waits[line.last("b")]
    Wait(kind='input', before=0)
    """

    def __init__(
        self,
        activities: Iterable[Activity],
        graph: Graph,
        platform: Platform,
        left: Iterable[tuple[float, str]] = (),
    ) -> None:
        self.graph, self.platform = graph, platform
        self.activities = sorted(activities)
        self.left = sorted(left)
        """When hosts left, in order."""
        self.end = self.activities[-1].finish if self.activities else 0.0
        self.slack = _SLACK * self.end
        self.executions: dict[str, list[int]] = {}
        self.arrivals: dict[tuple[str, str], list[int]] = {}
        self._number = {name: t for t, name in enumerate(graph.task_names)}
        self._cores = {host.name: host.cores for host in platform.hosts}
        self._index()
        self.waits = [self._wait(i) for i in range(len(self.activities))]

    @classmethod
    def of_plan(cls, plan: Plan) -> Timeline:
        """What a plan intends."""
        return cls(_planned(plan), plan.graph, plan.platform)

    @classmethod
    def of_events(cls, events: Iterable[Event], graph: Graph, platform: Platform) -> Timeline:
        """What happened in a run; `graph` and `platform` are those it was planned with."""
        done: list[Activity] = []
        left: list[tuple[float, str]] = []
        for event in events:
            match event:
                case TaskFinished():
                    done.append(Activity(event.time, event.start, event.task, event.host))
                case DataMoved():
                    move = (event.time, event.start, event.item, event.target, event.source, event.size)
                    done.append(Activity(*move))
                case HostLeft():
                    left.append((event.time, event.host))
        return cls(done, graph, platform, left)

    def last(self, task: str) -> int:
        """The last execution of a task; -1 if it has none."""
        return self.executions.get(task, [-1])[-1]

    def place_of(self, host: str) -> str:
        """Where the data of a host is: the host, or its site if the site has a shared file system."""
        place = self.platform.place_of.get(host)
        return host if place is None else self.platform.network.place_names[place]

    def number_of(self, task: str) -> int:
        """The number of a task in the graph."""
        return self._number[task]

    def critical_path(self) -> list[int]:
        """The activities that the end waited for, last first."""
        path: dict[int, None] = {}
        at = len(self.activities) - 1
        while at >= 0 and at not in path:  # measured times may contradict each other
            path[at] = None
            at = self.waits[at].before
        return list(path)

    def busy(self) -> dict[str, float]:
        """The share of the core-seconds of each host in use that tasks took, until the end."""
        taken = dict.fromkeys(self._hosts, 0.0)
        for activity in self.activities:
            if activity.is_task:
                cores = int(self.graph.cores[self._number[activity.name]])
                taken[activity.place] += cores * (activity.finish - activity.start)
        whole = max(self.end, 1e-300)
        return {host: min(1.0, used / whole / self._cores.get(host, 1)) for host, used in taken.items()}

    def utilisation(self) -> float:
        """The same of all hosts in use together."""
        shares = self.busy()
        cores = sum(self._cores.get(host, 1) for host in shares)
        return sum(share * self._cores.get(host, 1) for host, share in shares.items()) / max(cores, 1)

    def _index(self) -> None:
        self._hosts: dict[str, _Line] = {}
        self._links: dict[int, list[_Use]] = {}
        for i, activity in enumerate(self.activities):
            if activity.is_task:
                self.executions.setdefault(activity.name, []).append(i)
                cores = int(self.graph.cores[self._number[activity.name]])
                self._hosts.setdefault(activity.place, _Line()).add(i, activity, cores)
            else:
                self.arrivals.setdefault((activity.name, activity.place), []).append(i)
                if self.platform.contention == "fifo":
                    for link, end in self.busy_links(activity):
                        self._links.setdefault(link, []).append(_Use(end, activity.start, i))
        for line in self._hosts.values():
            line.close()
        for uses in self._links.values():
            uses.sort()

    def busy_links(self, move: Activity) -> list[tuple[int, float]]:
        """The links on the way of a transfer, and until when each is busy: under `fifo` until its bytes have passed."""
        places = self.platform.place_of
        if move.source not in places or move.place not in places:
            return []
        network, ends = self.platform.network, (places[move.source], places[move.place])
        if self.platform.contention != "fifo":
            return [(link, move.finish) for link in network.route(*ends)]
        return [
            (link, min(move.finish, move.start + network.busy_seconds(*ends, move.size, link)))
            for link in network.route(*ends)
        ]

    def _wait(self, i: int) -> Wait:
        found = self._waits_of_task(i) if self.activities[i].is_task else self._waits_of_move(i)
        best, latest = Wait(), 0.0
        for wait, ended in found:
            if wait.before >= 0 and (best.before < 0 or ended > latest + self.slack):
                best, latest = wait, ended
        return best

    def _until_finish(self, wait: Wait) -> tuple[Wait, float]:
        return wait, self.activities[wait.before].finish if wait.before >= 0 else 0.0

    def _waits_of_task(self, i: int) -> Iterator[tuple[Wait, float]]:
        """What a task may have waited for, and until when."""
        run = self.activities[i]
        task = self._number[run.name]
        place = self.place_of(run.place)
        for item in self.graph.reads_of(task).tolist():
            yield self._until_finish(self._available(item, place, i))
        line = self._hosts[run.place]
        before = line.last(run.start + self.slack, i)
        if before >= 0:
            freed = self.activities[before].finish
            busy = line.busy(freed, self.slack)
            if busy + int(self.graph.cores[task]) > self._cores.get(run.place, 1):
                yield Wait("host", before), freed

    def _waits_of_move(self, i: int) -> Iterator[tuple[Wait, float]]:
        """The same for a transfer. One that kept a link busy before may still be under way."""
        move = self.activities[i]
        item = self._item_number.get(move.name)
        if item is not None:
            yield self._until_finish(self._available(item, self.place_of(move.source), i))
        for link, _ in self.busy_links(move) if self.platform.contention == "fifo" else ():
            uses = self._links[link]
            at = bisect_right(uses, move.start + self.slack, key=lambda use: use.end) - 1
            while at >= 0 and uses[at].number >= i and uses[at].start >= move.start - self.slack:
                at -= 1
            if at >= 0:
                yield Wait("link", uses[at].number), uses[at].end

    @property
    def _item_number(self) -> dict[str, int]:
        if not hasattr(self, "_items"):
            self._items = {name: d for d, name in enumerate(self.graph.item_names)}
        return self._items

    def _available(self, item: int, place: str, i: int) -> Wait:
        """Since when an item has been at a place, for activity `i`, which starts with it."""
        by = self.activities[i].start + self.slack
        producer = int(self.graph.producer[item])
        made = -1
        if producer >= 0:
            made = self._newest(self.executions.get(self.graph.task_names[producer], []), by, i)
            if made >= 0 and self.place_of(self.activities[made].place) == place:
                return Wait("input", made)
        arrived = self._newest(self.arrivals.get((self.graph.item_names[item], place), []), by, i)
        return Wait("transfer", arrived) if arrived >= 0 else Wait("input", made)

    def _newest(self, numbers: list[int], by: float, below: int) -> int:
        fitting = [n for n in numbers if n < below and self.activities[n].finish <= by]
        return fitting[-1] if fitting else -1


def _planned(plan: Plan) -> Iterator[Activity]:
    for task in plan.tasks():
        yield Activity(task.finish, task.start, task.id, task.host)
    size = dict(zip(plan.graph.item_names, plan.graph.size.tolist(), strict=True))
    for move in plan.transfers():
        yield Activity(move.finish, move.start, move.data, move.target, move.source, size[move.data])
