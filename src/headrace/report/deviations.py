"""Planned against happened: each makespan split exactly by cause, and what the difference came from.

The split follows the data that the last task waited for, backwards to the start of the run. On that path each second
belongs to one cause:

- compute: a task ran, within the time it was expected to take on its host;
- estimate: a task still ran after that;
- link: an input was on its way, or waited for its link;
- queue: all inputs were there, and the host was busy with other tasks;
- fault: results were computed again after a loss, the planned host had left, an execution ran that was stopped, or an
  input had to be sent again because its transfer was cut off;
- overhead: none of these; the engine took its time. In a plan, what it took in earlier runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import show_time
from headrace.report.interruptions import Interruptions

_NOTABLE = 0.05
"""Causes that explain less than this share of the makespan are not shown in a summary."""


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds of a makespan by cause."""

    compute: float = 0.0
    estimate: float = 0.0
    link: float = 0.0
    queue: float = 0.0
    fault: float = 0.0
    overhead: float = 0.0

    @property
    def total(self) -> float:
        return math.fsum(getattr(self, name.name) for name in fields(self))


CAUSES = tuple(name.name for name in fields(Split))


@dataclass(frozen=True)
class Deviations:
    """A plan's makespan and what became of it; `path` are the tasks that the makespan went through, last first."""

    planned: Split | None
    """None: there was no plan."""
    happened: Split
    path: tuple[str, ...] = ()

    @property
    def difference(self) -> dict[str, float]:
        """By how many seconds each cause took longer than planned, largest first; they add up to the difference.

        Without a plan, how long each took.
        """
        planned = self.planned or Split()
        late = {name: getattr(self.happened, name) - getattr(planned, name) for name in CAUSES}
        return dict(sorted(late.items(), key=lambda item: (-abs(item[1]), CAUSES.index(item[0]))))

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {
            "planned": None if self.planned is None else asdict(self.planned),
            "happened": asdict(self.happened),
            "difference": self.difference,
            "path": list(self.path[::-1]),
        }

    def text(self) -> str:
        """One line for a summary.

        >>> Deviations(Split(compute=3.0), Split(compute=3.0, link=1.0)).text()
        '1 s longer than planned: link +1 s'
        """
        share = _NOTABLE * max(self.happened.total, 1e-9)
        notable = {cause: seconds for cause, seconds in self.difference.items() if abs(seconds) >= share}
        if self.planned is None:
            return ", ".join(f"{cause} {show_time(seconds)}" for cause, seconds in notable.items())
        late = self.happened.total - self.planned.total
        parts = [
            f"{cause} {'+' if seconds > 0 else '-'}{show_time(abs(seconds))}"
            for cause, seconds in notable.items()
        ]
        if not parts:
            return "as planned"
        return (
            f"{show_time(abs(late))} {'longer' if late > 0 else 'shorter'} than planned: {', '.join(parts)}"
        )


_JUST = 0.05
"""An item is sent just after another was made if it had waited 20 times as long before that."""


@dataclass(frozen=True, slots=True)
class _Execution:
    host: str
    start: float
    finish: float


@dataclass
class _History:
    """Executions of each task, arrivals of each item at each host, and departures of hosts, in order of time."""

    executions: dict[str, list[_Execution]] = field(default_factory=dict)
    arrivals: dict[tuple[str, str], list[tuple[float, float, str]]] = field(default_factory=dict)
    """End, start and source of transfers, by item and target."""
    left: dict[str, float] = field(default_factory=dict)
    busy: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    interrupted: Interruptions = field(default_factory=Interruptions)

    def ended(self, task: str, before: float) -> _Execution | None:
        """The last execution of a task that ended by a time, or else its first."""
        runs = self.executions.get(task, [])
        fitting = [run for run in runs if run.finish <= before + 1e-9]
        return fitting[-1] if fitting else runs[0] if runs else None

    def arrived(self, item: str, host: str, before: float) -> tuple[float, float, str] | None:
        found = self.arrivals.get((item, host), [])
        at = bisect_right(found, (before + 1e-9, np.inf, ""))
        return found[at - 1] if at else None


def deviations(
    plan: Plan | None,
    events: Iterable[Event],
    graph: Graph,
    platform: Platform,
    interrupted: Interruptions | None = None,
) -> Deviations | None:
    """How a run's makespan differs from its plan's, by cause; None if no task has finished.

    `graph` and `platform` hold the estimates with which the run was planned. O(events log events), and for each task on
    the path the tasks of its host.
    """
    hosts = {host.name: number for number, host in enumerate(platform.hosts)}
    rates = platform.rates(graph)

    def expected(task: int, host: str) -> float:
        if host not in hosts:
            return np.inf
        return float(graph.work[task] / rates[graph.speed_class[task], hosts[host]])

    planned_host = {} if plan is None else {task.id: task.host for task in plan.tasks()}
    happened = _happened(events)
    if not happened.executions:
        return None
    happened.interrupted = interrupted or Interruptions()
    # A plan has tasks that take longer than expected by what the engine takes.
    of_plan = None if plan is None else _split(_planned(plan), graph, expected, {}, "overhead")[0]
    of_run, path = _split(happened, graph, expected, planned_host)
    return Deviations(of_plan, of_run, tuple(path))


def _planned(plan: Plan) -> _History:
    history = _History()
    for task in plan.tasks():
        history.executions[task.id] = [_Execution(task.host, task.start, task.finish)]
        history.busy.setdefault(task.host, []).append((task.start, task.finish))
    for move in plan.transfers():
        history.arrivals.setdefault((move.data, move.target), []).append(
            (move.finish, move.start, move.source)
        )
    return _sorted(history)


def _happened(events: Iterable[Event]) -> _History:
    history = _History()
    for event in events:
        match event:
            case TaskFinished(time=finish, task=task, host=host, start=start):
                history.executions.setdefault(task, []).append(_Execution(host, start, finish))
                history.busy.setdefault(host, []).append((start, finish))
            case DataMoved(time=finish, item=item, source=source, target=target, start=start):
                history.arrivals.setdefault((item, target), []).append((finish, start, source))
            case HostLeft(time=time, host=host):
                history.left.setdefault(host, time)
    return _sorted(history)


def _sorted(history: _History) -> _History:
    for runs in history.executions.values():
        runs.sort(key=lambda run: run.finish)
    for arrivals in history.arrivals.values():
        arrivals.sort()
    for busy in history.busy.values():
        busy.sort()
    return history


class _Walk:
    """The walk from the last finish back to 0; `at` only goes down, and every step is booked to one cause."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.seconds = dict.fromkeys(CAUSES, 0.0)

    def back_to(self, time: float, cause: str) -> None:
        time = min(max(time, 0.0), self.at)
        self.seconds[cause] += self.at - time
        self.at = time


def _split(
    history: _History,
    graph: Graph,
    expected: Callable[[int, str], float],
    planned_host: Mapping[str, str],
    longer: str = "estimate",
) -> tuple[Split, list[str]]:
    number = {name: t for t, name in enumerate(graph.task_names)}
    last = max(history.executions, key=lambda task: (history.executions[task][-1].finish, task))
    walk = _Walk(history.executions[last][-1].finish)
    path: list[str] = []
    task: str | None = last
    while task is not None and walk.at > 0.0 and len(path) <= graph.n_tasks:
        path.append(task)
        runs = history.executions[task]
        run = history.ended(task, walk.at)
        assert run is not None
        if run.finish < walk.at and run is not runs[0]:
            walk.back_to(run.finish, "overhead")
        if run is not runs[0]:  # computed again: but for losses, the first time would have done
            walk.back_to(runs[0].finish, "fault")
            run = runs[0]
        walk.back_to(run.finish, "overhead")
        walk.back_to(run.start + expected(number[task], run.host), longer)
        walk.back_to(run.start, "compute")
        for since, until, host in reversed(history.interrupted.before(task, run.host, run.start)):
            if until > walk.at:
                continue
            maker = _waited_for(history, graph, walk, number[task], run, planned_host.get(task), until)
            if walk.at > until:
                break
            walk.back_to(since, "fault")
            run = _Execution(host, since, until)
        else:
            maker = _waited_for(history, graph, walk, number[task], run, planned_host.get(task))
        task = maker
    walk.back_to(0.0, "overhead")
    return Split(**walk.seconds), path


@dataclass(frozen=True, slots=True)
class _Input:
    """An item that a task read: when it was made, sent to the task's host, and there."""

    there: float = 0.0
    made: float = 0.0
    sent: float | None = None
    maker: str | None = None
    cut: float | None = None
    """When its first transfer started, if that was cut off."""


def _input_of(history: _History, graph: Graph, item: int, run: _Execution) -> _Input:
    name, producer = graph.item_names[item], int(graph.producer[item])
    maker = None if producer < 0 else graph.task_names[producer]
    made = None if maker is None else history.ended(maker, run.start)
    finish = 0.0 if made is None else made.finish
    arrival = history.arrived(name, run.host, run.start)
    if arrival is None or (made is not None and made.host == run.host):
        return _Input(finish, finish, None, maker)
    cut = history.interrupted.first_cut(name, run.host, finish, arrival[1])
    return _Input(arrival[0], min(finish, arrival[0]), arrival[1], maker, cut)


def _sent_for(last: _Input, inputs: list[_Input]) -> _Input:
    """The input that the last one waited for: one that was made just before it was sent, or else itself.

    Schedulers that decide while the program runs send inputs when the last of them has been made.
    """
    latest = max(inputs, key=lambda each: each.made, default=last)
    if last.sent is None or not last.made < latest.made <= last.sent:
        return last
    return latest if last.sent - latest.made <= _JUST * (last.sent - last.made) else last


def _waited_for(
    history: _History,
    graph: Graph,
    walk: _Walk,
    task: int,
    run: _Execution,
    planned_host: str | None,
    earliest: float = 0.0,
) -> str | None:
    """Book the time until a task's last input was there, and its transfer; return the task that made that input.

    Nothing before `earliest` is booked.
    """
    inputs = [_input_of(history, graph, item, run) for item in graph.reads_of(task).tolist()]
    last = max(inputs, key=lambda each: (each.there, each.maker is not None), default=_Input())
    since = _sent_for(last, inputs)
    ready, began, maker = max(last.there, earliest), max(since.made, earliest), since.maker
    gone = history.left.get(planned_host or "")
    if gone is not None and planned_host != run.host and gone < walk.at:
        walk.back_to(max(ready, gone), "fault")
    walk.seconds["queue"] += _busy_within(history.busy.get(run.host, []), ready, walk.at)
    walk.seconds["overhead"] -= _busy_within(history.busy.get(run.host, []), ready, walk.at)
    walk.back_to(ready, "overhead")
    if last.cut is not None and last.sent is not None:
        walk.back_to(max(last.sent, began), "link")
        walk.back_to(max(last.cut, began), "fault")
    walk.back_to(began, "link")
    return maker


def _busy_within(busy: list[tuple[float, float]], start: float, end: float) -> float:
    """Seconds between start and end in which a host ran at least one task; intervals are sorted by start."""
    total, at = 0.0, start
    for begin, finish in busy:
        if begin >= end:
            break
        if finish > at:
            total += max(0.0, min(finish, end) - max(begin, at))
            at = max(at, min(finish, end))
    return total
