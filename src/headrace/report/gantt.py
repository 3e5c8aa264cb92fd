"""Gantt charts of plans and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import show_size, show_time
from headrace.report.chart import AWAY, FAILED, TRANSFER, Bar, Chart, Lane, Mark
from headrace.report.packing import pack
from headrace.report.svg import chart_svg

__all__ = ["Bar", "Chart", "Lane", "Mark", "chart_svg", "plan_chart", "run_chart"]

TIMES = "\N{MULTIPLICATION SIGN}"
_CLOCK_SLACK = 1e-4
"""Share of the makespan by which measured tasks of one core may appear to overlap."""


def plan_chart(plan: Plan) -> Chart:
    """A lane for each core the plan uses, and a thin one for incoming transfers of each place.

    O(tasks + transfers).
    """
    bars = _planned_bars(plan, outline=False)
    bars += [
        Bar(arrivals_lane(move.target), move.start, move.finish, f"{move.data} from {move.source}", TRANSFER)
        for move in plan.transfers()
    ]
    hosts, notes = plan.platform.hosts, list(plan.notes)
    if plan.hosts_used < len(hosts):
        notes.append(f"{plan.hosts_used} of {len(hosts)} hosts are used; the others are not drawn.")
    makespan = plan.makespan
    return Chart(
        title=f"{plan.graph.name} on {plan.platform.name}, planned by {plan.scheduler}",
        lanes=lanes_of(plan.platform, bars),
        bars=tuple(bars),
        end=makespan,
        marks=(Mark(makespan, f"makespan {show_time(makespan)}"), *bound_mark(plan.bound, makespan)),
        notes=tuple(notes),
    )


def run_chart(
    plan: Plan | None,
    events: Sequence[Event],
    platform: Platform,
    *,
    graph: Graph | None = None,
    bound: float | None = None,
    kinds: Mapping[str, str] | None = None,
    title: str = "",
) -> Chart:
    """The run as filled bars, with the plan as outlines behind it; transfers in thin lanes.

    Kinds come from the plan's program, from `graph` if there was no plan, or are given by task; so does the bound
    unless it is given. Events do not name cores: a task is drawn on its planned core, or on a free one. O(n log n).
    """
    graph = plan.graph if graph is None and plan is not None else graph
    bound = plan.bound if bound is None and plan is not None else bound or 0.0
    finished = [e for e in events if isinstance(e, TaskFinished)]
    took = max((e.time for e in events if not isinstance(e, HostLeft | HostJoined)), default=0.0)
    end = max(took, plan.makespan if plan is not None else 0.0, bound)
    planned = [] if plan is None else _planned_bars(plan, outline=True)
    bars = planned + _executed_bars(finished, kinds or _kinds(graph), plan, end) + _moved_bars(events)
    bars += _failures(events)
    bars += absences(events, end, bars)
    marks = [Mark(took, f"took {show_time(took)}"), *bound_mark(bound, end)]
    if plan is not None:
        marks.append(Mark(plan.makespan, f"planned {show_time(plan.makespan)}", dashed=True))
    name = graph.name if graph is not None else "run"
    return Chart(
        title=title or f"{name} on {platform.name}, as it ran",
        lanes=lanes_of(platform, bars),
        bars=tuple(bars),
        end=end,
        marks=tuple(marks),
        notes=what_went_wrong(events),
    )


def core_lane(host: str, core: int) -> str:
    """The key of the lane of a core."""
    return f"{host} {core}"


def arrivals_lane(place: str) -> str:
    """The key of the lane of incoming transfers of a place."""
    return f"{place} in"


def bound_mark(bound: float, end: float) -> tuple[Mark, ...]:
    """A mark at the lower bound, if there is one within the chart."""
    return (Mark(bound, f"lower bound {show_time(bound)}", dashed=True),) if 0 < bound <= end else ()


def _planned_bars(plan: Plan, *, outline: bool) -> list[Bar]:
    hosts = [host.name for host in plan.platform.hosts]
    kinds, names = plan.graph.kinds, plan.graph.task_names
    rows = zip(
        plan.host.tolist(),
        plan.core.tolist(),
        plan.start.tolist(),
        plan.finish.tolist(),
        names,
        plan.graph.kind.tolist(),
        strict=True,
    )
    return [Bar(core_lane(hosts[h], c), s, f, name, kinds[k], outline) for h, c, s, f, name, k in rows]


def _kinds(graph: Graph | None) -> dict[str, str]:
    if graph is None:
        return {}
    return {name: graph.kinds[k] for name, k in zip(graph.task_names, graph.kind.tolist(), strict=True)}


def _executed_bars(
    finished: Sequence[TaskFinished], kind: Mapping[str, str], plan: Plan | None, end: float
) -> list[Bar]:
    planned = {} if plan is None else {task.id: task.core for task in plan.tasks()}
    by_host: dict[str, list[TaskFinished]] = {}
    for event in finished:
        by_host.setdefault(event.host, []).append(event)
    bars: list[Bar] = []
    for host, there in by_host.items():
        preferred = None if plan is None else [planned.get(e.task, 0) for e in there]
        cores = pack([(e.start, e.time) for e in there], end * _CLOCK_SLACK, preferred)
        bars += [
            Bar(core_lane(host, core), e.start, e.time, e.task, kind.get(e.task, ""))
            for e, core in zip(there, cores, strict=True)
        ]
    return bars


def _moved_bars(events: Iterable[Event]) -> list[Bar]:
    return [
        Bar(
            arrivals_lane(e.target),
            e.start,
            e.time,
            f"{e.item} from {e.source}, {show_size(e.size)}",
            TRANSFER,
        )
        for e in events
        if isinstance(e, DataMoved)
    ]


def _failures(events: Iterable[Event]) -> list[Bar]:
    return [
        Bar(core_lane(e.host, 0), e.time, e.time, f"{e.task} failed: {e.error}", FAILED)
        for e in events
        if isinstance(e, TaskErred)
    ]


def absences(events: Iterable[Event], end: float, bars: Iterable[Bar]) -> list[Bar]:
    """Bars for absent hosts, until they returned or the end, over all their lanes."""
    lanes: dict[str, dict[str, None]] = {}
    for bar in bars:
        lanes.setdefault(bar.lane.rpartition(" ")[0], {})[bar.lane] = None
    left: dict[str, float] = {}
    spans: list[tuple[str, float, float]] = []
    for event in events:
        if isinstance(event, HostLeft):
            left.setdefault(event.host, event.time)
        elif isinstance(event, HostJoined) and event.host in left:
            spans.append((event.host, left.pop(event.host), event.time))
    spans += [(host, since, end) for host, since in left.items()]
    return [
        Bar(lane, since, min(until, end), f"{host} was away", AWAY)
        for host, since, until in spans
        for lane in lanes.get(host, ())
        if since < end
    ]


def what_went_wrong(events: Iterable[Event]) -> tuple[str, ...]:
    """Notes on the first failures and departures."""
    lines = [
        f"{e.task} failed on {e.host} at {show_time(e.time)}."
        if isinstance(e, TaskErred)
        else f"{e.host} left at {show_time(e.time)}."
        for e in events
        if isinstance(e, TaskErred | HostLeft)
    ]
    return (*lines[:4], f"... and {len(lines) - 4} more.") if len(lines) > 4 else tuple(lines)


def lanes_of(platform: Platform, bars: Iterable[Bar]) -> tuple[Lane, ...]:
    """Lanes in platform order: the cores of each host, then its incoming transfers.

    Incoming transfers of a site whose hosts share a file system come after its hosts; lanes of names
    unknown to the platform come last, by name.
    """
    cores: dict[str, set[int]] = {}
    arrivals: set[str] = set()
    for key in {bar.lane for bar in bars}:
        name, _, last = key.rpartition(" ")
        if last == "in":
            arrivals.add(name)
        else:
            cores.setdefault(name, set()).add(int(last))
    order = [name for site in platform.sites for name in (*(h.name for h in site.hosts), site.name)]
    order += sorted((cores.keys() | arrivals) - set(order))
    labels = _with_speeds(platform)
    lanes: list[Lane] = []
    for name in order:
        label = labels.get(name, name)
        lanes += [Lane(core_lane(name, core), name, label=label) for core in sorted(cores.get(name, ()))]
        if name in arrivals:
            lanes.append(Lane(arrivals_lane(name), name, thin=True, label=label))
    return tuple(lanes)


def _with_speeds(platform: Platform) -> dict[str, str]:
    """The names of hosts with their speeds, if these differ and the names do not tell them."""
    if len({host.speed for host in platform.hosts}) < 2:
        return {}
    return {
        host.name: f"{host.name} {TIMES}{host.speed:g}"
        for host in platform.hosts
        if not host.name.endswith(f"-{host.speed:g}x")
    }
