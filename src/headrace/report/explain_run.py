"""Why a simulated run took as long as it did: utilisation, what tasks waited for, and what the makespan consists of.

Waiting counts every task from the beginning of the run to its start: until its inputs were made (input), while an
earlier execution of it ran that was stopped or whose results were lost, and while its host was away (fault). For each
time before, between and after these, it counts until the inputs had arrived (link; from the start of a transfer that
was cut off until it was sent again: fault), and then, with all inputs there,

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
from typing import TYPE_CHECKING, Any

from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import plural, show_time
from headrace.report.deviations import CAUSES, Deviations, deviations
from headrace.report.interruptions import Interruption, Interruptions, Stopped

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
        least = _ROUNDING * self.split.happened.total
        told = {
            cause: seconds for cause, seconds in self.waiting.items() if seconds > least and cause != "input"
        }
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
    cut: list[DataMoved] = []
    events = list(_logged(run, cut))
    return explain(events, run.graph, run.platform, run.makespan, list(_stopped(run)), cut)


def explain_plan(plan: Plan) -> Explanation | None:
    """Explain a plan, or a replayed one, as if it had been a run."""
    events: list[Event] = [TaskFinished(t.finish, t.id, t.host, t.start) for t in plan.tasks()]
    sizes = dict(zip(plan.graph.item_names, plan.graph.size.tolist(), strict=True))
    events += [
        DataMoved(m.finish, m.data, m.source, m.target, m.start, sizes[m.data]) for m in plan.transfers()
    ]
    return explain(events, plan.graph, plan.platform, plan.makespan)


def explain(
    events: list[Event],
    graph: Graph,
    platform: Platform,
    makespan: float,
    stopped: Sequence[Stopped] = (),
    cut: Sequence[DataMoved] = (),
) -> Explanation | None:
    """Explain what happened; `stopped` are executions that did not finish, `cut` transfers that were cut off."""
    finished = [event for event in events if isinstance(event, TaskFinished)]
    if not finished or makespan <= 0:
        return None
    events = [
        *(e for e in events if not isinstance(e, DataMoved)),
        *_at_hosts(events, finished, graph, platform),
    ]
    interrupted = Interruptions.of_run(events, stopped, _at_hosts(cut, finished, graph, platform))
    split = deviations(None, events, graph, platform, interrupted)
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
        waiting=_Waiting(events, finished, graph, platform, stopped, interrupted).by_cause(),
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


def _logged(run: SimulatedRun, cut: list[DataMoved]) -> Iterator[Event]:
    """The log as events: tasks that ended, transfers that arrived, hosts that left and joined.

    Transfers that were cut off are added to `cut`.
    """
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
        elif kind in (w.MOVE_ENDED, w.MOVE_CUT):
            size = float(graph.size[a])
            move = DataMoved(time, graph.item_names[a], places[b], places[c], sent[a, c], size)
            if kind == w.MOVE_ENDED:
                yield move
            else:
                cut.append(move)
        elif kind == w.HOST_LEFT and time > 0:
            yield HostLeft(time, hosts[a])
        elif kind == w.HOST_JOINED:
            yield HostJoined(time, hosts[a])


def _stopped(run: SimulatedRun) -> Iterator[Stopped]:
    from headrace.simulator.events import grid_state as w

    begun: dict[tuple[int, int], float] = {}
    columns = (run.log_kind, run.log_time, run.log_subject, run.log_from)
    for kind, time, task, host in zip(*(column.tolist() for column in columns), strict=True):
        if kind == w.TASK_STARTED:
            begun[task, host] = time
        elif kind == w.TASK_STOPPED:
            name = run.graph.task_names[task]
            yield Stopped(time, name, run.platform.hosts[host].name, begun[task, host])


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


class _Waiting:
    """Seconds that tasks waited, by cause; of a task that ran several times, the last time counts."""

    def __init__(
        self,
        events: list[Event],
        finished: list[TaskFinished],
        graph: Graph,
        platform: Platform,
        stopped: Sequence[Stopped],
        interrupted: Interruptions,
    ) -> None:
        self.graph, self.interrupted = graph, interrupted
        self.number = {name: t for t, name in enumerate(graph.task_names)}
        self.ended = {event.task: event for event in finished}
        self.arrived: dict[tuple[str, str], list[tuple[float, float]]] = {}
        """When an item had arrived at a host, and when it was sent."""
        for event in events:
            if isinstance(event, DataMoved):
                self.arrived.setdefault((event.item, event.target), []).append((event.time, event.start))
        for arrivals in self.arrived.values():
            arrivals.sort()
        executions: list[TaskFinished | Stopped] = [*finished, *stopped]
        self.running = _Spans((each.host, each.start, each.time) for each in executions)
        self.late = _Spans(_overruns(finished, graph, platform, self.number))
        self.losses = [event.time for event in events if isinstance(event, HostLeft)]
        self.lost: dict[str, list[TaskFinished]] = {}
        for event in finished:
            if event is not self.ended[event.task]:  # its results were lost later on
                self.lost.setdefault(event.task, []).append(event)
        self.started_before = _starts_before(executions)
        causes = ("input", "link", "queue", "estimate", "order", "fault", "other")
        self.waited = dict.fromkeys(causes, 0.0)

    def by_cause(self) -> dict[str, float]:
        for task, event in self.ended.items():
            at = self._made(task, event.start)
            self.waited["input"] += at
            for since, until, host in self._interruptions(event):
                if until > at:
                    self._wait(task, host, at, max(since, at))
                    self.waited["fault"] += until - max(since, at)
                    at = until
            self._wait(task, event.host, at, event.start)
        return self.waited

    def _made(self, task: str, start: float) -> float:
        """When the last input was made."""
        made = 0.0
        for item in self.graph.reads_of(self.number[task]).tolist():
            producer = int(self.graph.producer[item])
            done = self.ended[self.graph.task_names[producer]].time if producer >= 0 else 0.0
            if done <= start:  # or else made again after this task had it
                made = max(made, done)
        return made

    def _interruptions(self, event: TaskFinished) -> list[Interruption]:
        spans = self.interrupted.before(event.task, event.host, event.start)
        for before in self.lost.get(event.task, ()):
            losses = (time for time in self.losses if before.time <= time <= event.start)
            spans.append(Interruption(before.start, max(losses, default=before.time), before.host))
        return sorted(span for span in spans if span.until <= event.start)

    def _wait(self, task: str, host: str, since: float, start: float) -> None:
        """Count the time until a start, or until an interruption; all inputs were made before it."""
        if start <= since:
            return
        there, cut = since, 0.0
        for item in self.graph.reads_of(self.number[task]).tolist():
            name = self.graph.item_names[item]
            arrivals = self.arrived.get((name, host), [])
            at = bisect_right(arrivals, (start, start))
            if at and arrivals[at - 1][0] > there:
                there, sent = arrivals[at - 1]
                first = self.interrupted.first_cut(name, host, since, sent)
                cut = 0.0 if first is None else sent - first
        busy = self.running.between(host, there, start)
        overrun = min(busy, self.late.between(host, there, start))
        idle = max(0.0, start - there - busy)
        earlier, latest = self.started_before.get((task, start), (0.0, 0.0))
        lost = max((time for time in self.losses if time <= start), default=-1.0)
        turn = max(there, earlier if lost >= latest else latest)
        moved = max(turn, lost)
        in_order = min(idle, max(0.0, turn - there - self.running.between(host, there, turn)))
        after_loss = min(idle - in_order, max(0.0, moved - turn - self.running.between(host, turn, moved)))
        self.waited["link"] += there - since - cut
        self.waited["fault"] += cut + after_loss
        self.waited["estimate"] += overrun
        self.waited["queue"] += busy - overrun
        self.waited["order"] += in_order
        self.waited["other"] += idle - in_order - after_loss


def _starts_before(
    executions: Iterable[TaskFinished | Stopped],
) -> dict[tuple[str, float], tuple[float, float]]:
    """When the last of the other tasks of its host started that started before an execution, or not after it; 0: none.

    By task and start.
    """
    by_host: dict[str, list[tuple[float, str]]] = {}
    for each in executions:
        by_host.setdefault(each.host, []).append((each.start, each.task))
    before: dict[tuple[str, float], tuple[float, float]] = {}
    for started in by_host.values():
        started.sort()
        earlier = 0.0
        for k, (start, task) in enumerate(started):
            if k and started[k - 1][0] < start:
                earlier = started[k - 1][0]
            neighbours = [*started[max(0, k - 1) : k], *started[k + 1 : k + 2]]
            together = any(other == start for other, _ in neighbours)
            before[task, start] = earlier, start if together else earlier
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
