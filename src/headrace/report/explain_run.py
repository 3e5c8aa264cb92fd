"""Why a simulated run took as long as it did: utilisation, what tasks waited for, and what the makespan consists of.

Waiting counts every task from the beginning of the run to its start: until its inputs were made (input), until they had
arrived (link), and then, with all inputs there,

- until an earlier execution of it was stopped, or its results were lost, because a host left (fault),
- as long as its host ran tasks that took longer than estimated (estimate), or ran other tasks (queue),
- as long as its host was idle, until a task started there that came first (order),
- as long as its host was idle, until a host left, from which it may have been moved (fault),
- and otherwise for something else (other: its release, room on a disk, or the scheduler).

The makespan is split along the path of data that the last task waited for, as `deviations` does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import plural, show_time
from headrace.report.deviations import CAUSES, Deviations, deviations

if TYPE_CHECKING:
    from headrace.simulator.events.run import SimulatedRun

MOST_EVENTS = 1_000_000
"""Log entries up to which a run is explained: it takes some microseconds for each."""
_ROUNDING = 1e-6
_NAMES = {
    "compute": "running tasks",
    "estimate": "late estimates",
    "link": "transfers",
    "queue": "busy hosts",
    "order": "planned order",
    "fault": "faults",
    "overhead": "other",
    "delivery": "sending results",
}


@dataclass(frozen=True)
class Explanation:
    """Where the time of a run went."""

    utilisation: float
    """Share of all cores' time, from 0 to the makespan, in which tasks ran that counted."""
    busiest: tuple[str, float]
    """The host with the highest utilisation."""
    waiting: dict[str, float]
    """Seconds that all tasks together waited: input, link, queue, estimate, order, fault, other."""
    split: Deviations
    """The makespan by cause."""
    limit: str
    """What limited the run, in words."""

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "utilisation": self.utilisation,
            "busiest": {"host": self.busiest[0], "utilisation": self.busiest[1]},
            "waiting": self.waiting,
            "makespan_by_cause": asdict(self.split.happened),
            "path": list(self.split.path[::-1]),
            "limited_by": self.limit,
        }

    def rows(self) -> list[list[str]]:
        """For a table."""
        host, share = self.busiest
        # That tasks wait for those before them says nothing about the run.
        told = {cause: seconds for cause, seconds in self.waiting.items() if seconds > 0 and cause != "input"}
        waits = ", ".join(
            f"{_NAMES.get(cause, cause)} {show_time(seconds)}" for cause, seconds in told.items()
        )
        return [
            ["utilisation", f"{self.utilisation:.1%} of all cores; busiest host {host}, {share:.1%}"],
            ["tasks waited for", waits or "nothing"],
            ["limited by", self.limit],
        ]


def explain_simulated(run: SimulatedRun) -> Explanation | None:
    """Explain a simulated run; None if it is too long for that, or no task ended. O(log), and the path's hosts."""
    if run.events > MOST_EVENTS:
        return None
    return explain(list(_logged(run)), run.graph, run.platform, run.makespan, list(_stopped(run)))


def explain_plan(plan: Plan) -> Explanation | None:
    """Explain a plan, or a replayed one, as if it had been a run."""
    events: list[Event] = [TaskFinished(t.finish, t.id, t.host, t.start) for t in plan.tasks()]
    sizes = dict(zip(plan.graph.item_names, plan.graph.size.tolist(), strict=True))
    events += [
        DataMoved(m.finish, m.data, m.source, m.target, m.start, sizes[m.data]) for m in plan.transfers()
    ]
    return explain(events, plan.graph, plan.platform, plan.makespan)


class Stopped(NamedTuple):
    """An execution that did not finish."""

    time: float
    task: str


def explain(
    events: list[Event], graph: Graph, platform: Platform, makespan: float, stopped: Sequence[Stopped] = ()
) -> Explanation | None:
    """Explain what happened; `stopped` are the executions that did not finish, in order of time."""
    finished = [event for event in events if isinstance(event, TaskFinished)]
    if not finished or makespan <= 0:
        return None
    events = [
        *(e for e in events if not isinstance(e, DataMoved)),
        *_at_hosts(events, finished, graph, platform),
    ]
    split = deviations(None, events, graph, platform)
    assert split is not None
    late = max(0.0, makespan - split.happened.total)  # results on their way to where they are wanted
    causes = {cause: getattr(split.happened, cause) for cause in CAUSES}
    causes["link"] += late
    split = Deviations(None, type(split.happened)(**causes), split.path)
    used = _busy_seconds(finished, graph)
    cores = {host.name: host.cores for host in platform.hosts}
    shares = {host: used.get(host, 0.0) / (count * makespan) for host, count in cores.items()}
    busiest = max(shares.items(), key=lambda each: (each[1], each[0]))
    return Explanation(
        utilisation=sum(used.values()) / (sum(cores.values()) * makespan),
        busiest=busiest,
        waiting=_waiting(events, finished, graph, platform, stopped),
        split=split,
        limit=_limit(split, late, makespan),
    )


def _limit(split: Deviations, late: float, makespan: float) -> str:
    """What the makespan consists of, largest part first, and the task at the end of the path."""
    parts = {"delivery": late} | split.difference
    parts["link"] -= late
    notable = [(cause, seconds) for cause, seconds in parts.items() if seconds >= 0.01 * makespan]
    notable.sort(key=lambda part: -part[1])
    told = ", ".join(f"{_NAMES[cause]} {seconds / makespan:.0%}" for cause, seconds in notable)
    return f"a path of {plural(len(split.path), 'task')} to {split.path[0]!r}: {told}"


def _logged(run: SimulatedRun) -> Iterator[Event]:
    """The log as events: tasks that ended, transfers that arrived, hosts that left."""
    from headrace.simulator.events import grid_state as w

    graph, hosts = run.graph, [host.name for host in run.platform.hosts]
    places = run.platform.network.place_names
    begun: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int], float] = {}
    columns = (run.log_kind, run.log_time, run.log_subject, run.log_from, run.log_to)
    for kind, time, a, b, c in zip(*(column.tolist() for column in columns), strict=True):
        if kind == w.TASK_STARTED:
            begun[a, b] = time
        elif kind == w.TASK_ENDED:
            yield TaskFinished(time, graph.task_names[a], hosts[b], begun[a, b])
        elif kind == w.MOVE_STARTED:
            sent[a, c] = time
        elif kind == w.MOVE_ENDED:
            yield DataMoved(time, graph.item_names[a], places[b], places[c], sent[a, c], float(graph.size[a]))
        elif kind == w.HOST_LEFT and time > 0:
            yield HostLeft(time, hosts[a])


def _stopped(run: SimulatedRun) -> Iterator[Stopped]:
    from headrace.simulator.events import grid_state as w

    for i in (run.log_kind == w.TASK_STOPPED).nonzero()[0].tolist():
        yield Stopped(float(run.log_time[i]), run.graph.task_names[run.log_subject[i]])


def _at_hosts(
    events: Iterable[Event], finished: list[TaskFinished], graph: Graph, platform: Platform
) -> Iterator[DataMoved]:
    """Transfers to the storage of a site, as transfers to each of its hosts that read the item there."""
    network = platform.network
    place = {
        h.name: network.place_names[p]
        for h, p in zip(platform.hosts, network.host_place.tolist(), strict=True)
    }
    number = {name: t for t, name in enumerate(graph.task_names)}
    readers: dict[tuple[str, str], set[str]] = {}
    for done in finished:
        for item in graph.reads_of(number[done.task]).tolist():
            readers.setdefault((graph.item_names[item], place[done.host]), set()).add(done.host)
    for event in events:
        if isinstance(event, DataMoved):
            for host in sorted(readers.get((event.item, event.target), ())):
                yield DataMoved(event.time, event.item, event.source, host, event.start, event.size)


def _busy_seconds(finished: list[TaskFinished], graph: Graph) -> dict[str, float]:
    """Core seconds of each host."""
    cores = dict(zip(graph.task_names, graph.cores.tolist(), strict=True))
    used: dict[str, float] = {}
    for event in finished:
        used[event.host] = used.get(event.host, 0.0) + (event.time - event.start) * cores[event.task]
    return used


def _waiting(
    events: list[Event],
    finished: list[TaskFinished],
    graph: Graph,
    platform: Platform,
    stopped: Sequence[Stopped],
) -> dict[str, float]:
    """Seconds that tasks waited, by cause; of a task that ran several times, the last time counts."""
    number = {name: t for t, name in enumerate(graph.task_names)}
    ended = {event.task: event for event in finished}
    arrived: dict[tuple[str, str], float] = {}
    for event in events:
        if isinstance(event, DataMoved):
            arrived[event.item, event.target] = event.time
    running = _Spans((event.host, event.start, event.time) for event in finished)
    late = _Spans(_overruns(finished, graph, platform, number))
    stops: dict[str, list[float]] = {}
    for time, task in stopped:
        stops.setdefault(task, []).append(time)
    losses = [event.time for event in events if isinstance(event, HostLeft)]
    for event in finished:
        if event is not ended[event.task]:  # its results were lost later on
            stops.setdefault(event.task, []).extend([event.time, *(t for t in losses if t >= event.time)])
    waited = dict.fromkeys(("input", "link", "queue", "estimate", "order", "fault", "other"), 0.0)
    started_before = _starts_before(ended.values())
    for task, event in ended.items():
        made = there = 0.0
        for item in graph.reads_of(number[task]).tolist():
            producer = int(graph.producer[item])
            done = ended[graph.task_names[producer]].time if producer >= 0 else 0.0
            if done > event.start:  # made again after this task had it
                continue
            made = max(made, done)
            came = arrived.get((graph.item_names[item], event.host), done)
            there = max(there, came if came <= event.start else done)
        there = max(made, there)
        again = max((time for time in stops.get(task, ()) if time <= event.start), default=there)
        again = max(again, there)
        busy = running.between(event.host, again, event.start)
        overrun = min(busy, late.between(event.host, again, event.start))
        waited["input"] += made
        waited["link"] += there - made
        waited["fault"] += again - there
        waited["estimate"] += overrun
        waited["queue"] += busy - overrun
        idle = max(0.0, event.start - again - busy)
        earlier, latest = started_before[task]
        lost = max((time for time in losses if time <= event.start), default=-1.0)
        turn = max(again, earlier if lost >= latest else latest)
        moved = max(turn, lost)
        in_order = min(idle, max(0.0, turn - again - running.between(event.host, again, turn)))
        after_loss = min(idle - in_order, max(0.0, moved - turn - running.between(event.host, turn, moved)))
        waited["order"] += in_order
        waited["fault"] += after_loss
        waited["other"] += idle - in_order - after_loss
    return waited


def _starts_before(executions: Iterable[TaskFinished]) -> dict[str, tuple[float, float]]:
    """When the last of the other tasks of its host started that started before a task, or not after it; 0: none."""
    by_host: dict[str, list[TaskFinished]] = {}
    for event in executions:
        by_host.setdefault(event.host, []).append(event)
    before: dict[str, tuple[float, float]] = {}
    for events in by_host.values():
        events.sort(key=lambda event: event.start)
        earlier = 0.0
        for k, event in enumerate(events):
            if k and events[k - 1].start < event.start:
                earlier = events[k - 1].start
            neighbours = [*events[max(0, k - 1) : k], *events[k + 1 : k + 2]]
            together = any(other.start == event.start for other in neighbours)
            before[event.task] = earlier, event.start if together else earlier
    return before


def _overruns(
    finished: list[TaskFinished], graph: Graph, platform: Platform, number: dict[str, int]
) -> Iterator[tuple[str, float, float]]:
    """For tasks that took longer than estimated: the host, when they were expected to end, and when they did."""
    rates = platform.rates(graph)
    hosts = {host.name: h for h, host in enumerate(platform.hosts)}
    for event in finished:
        task = number[event.task]
        seconds = float(graph.work[task] / rates[graph.speed_class[task], hosts[event.host]])
        if event.time - event.start > seconds * (1 + _ROUNDING):
            yield event.host, event.start + seconds, event.time


class _Spans:
    """Spans of time of each host, joined where they overlap."""

    def __init__(self, given: Iterable[tuple[str, float, float]]) -> None:
        spans: dict[str, list[tuple[float, float]]] = {}
        for host, start, end in given:
            spans.setdefault(host, []).append((start, end))
        self.ends: dict[str, list[float]] = {}
        self.starts: dict[str, list[float]] = {}
        self.sums: dict[str, list[float]] = {}
        for host, found in spans.items():
            starts: list[float] = []
            ends: list[float] = []
            for start, end in sorted(found):
                if ends and start <= ends[-1]:
                    ends[-1] = max(ends[-1], end)
                else:
                    starts.append(start)
                    ends.append(end)
            sums = [0.0]
            for start, end in zip(starts, ends, strict=True):
                sums.append(sums[-1] + end - start)
            self.starts[host], self.ends[host], self.sums[host] = starts, ends, sums

    def between(self, host: str, start: float, end: float) -> float:
        """Seconds of a host's spans between two times: O(log spans)."""
        return max(0.0, self._until(host, end) - self._until(host, start))

    def _until(self, host: str, time: float) -> float:
        at = bisect_right(self.starts.get(host, ()), time)
        if not at:
            return 0.0
        return self.sums[host][at - 1] + min(time, self.ends[host][at - 1]) - self.starts[host][at - 1]
