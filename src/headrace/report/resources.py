"""A plan by resource (pools of cores, links, disks), as a summary and as a chart."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import plural, show_size, show_time
from headrace.report.chart import LEVELS, TRANSFER, Bar, Chart, Lane, Mark

_BANDS = tuple(zip((1.0, 0.75, 0.5, 0.25, 0.0), reversed(LEVELS), strict=True))
"""Colours of pools and disks, by utilisation."""
MOST_CORE_LANES = 240
"""Maximum number of lanes for cores; above, each pool is one lane."""
_THICK = 8
"""Pools with more cores in use than this have thin lanes."""


def by_resource(plan: Plan) -> bool:
    """Whether a plan is best shown by pools, links and disks: its items name sites, or are routed link by link."""
    graph = plan.graph
    return plan.platform.routing == "links" or bool(
        len(graph.initial_locations.index) or len(graph.destinations.index)
    )


def resource_rows(plan: Plan) -> list[tuple[str, str]]:
    """Jobs by site, the busiest link and the fullest disk, as (name, value)."""
    sites, network = plan.platform.sites, plan.platform.network
    at = network.site[network.host_place[plan.host]]
    counts = np.bincount(at, minlength=len(sites))
    jobs = ", ".join(
        f"{site.name} {count:,}" for site, count in zip(sites, counts.tolist(), strict=True) if site.hosts
    )
    rows = [("jobs by site", jobs)]
    busy = np.zeros(network.n_links)
    for link, start, finish, _ in link_uses(plan):
        busy[link] += finish - start
    if len(busy) and busy.max() > 0 and network.link_names:
        most = int(np.argmax(busy))
        share = busy[most] / plan.makespan
        rows.append(
            (
                "busiest link",
                f"{link_labels(plan.platform)[most]}, busy {share:.1%} of {show_time(plan.makespan)}",
            )
        )
    disks = [(level.peak / sites[s].storage, s, level) for s, level in disk_levels(plan)]
    if disks:
        share, s, level = max(disks, key=lambda disk: (disk[0], -disk[1]))
        rows.append(
            (
                "fullest disk",
                f"{sites[s].name}, {show_size(level.peak)} of {show_size(sites[s].storage)} ({share:.1%})",
            )
        )
    return rows


def link_labels(platform: Platform) -> list[str]:
    """The names of links; one that both directions share is named after both.

    >>> from headrace.model.platform import Host, Link, Platform, Site
    >>> pair = Site("a", (Host("h"),)), Site("b")
    >>> link_labels(Platform(pair, (Link("a", "b", 1e6, shared=True),)))
    ['a <-> b']
    """
    both = {f"{link.source} -> {link.target}": link for link in platform.links if link.shared}
    return [
        f"{both[name].source} <-> {both[name].target}" if name in both else name
        for name in platform.network.link_names
    ]


@dataclass(frozen=True, eq=False)
class Level:
    """The amount in use from each time to the next."""

    moment: Floats
    amount: Floats

    @property
    def peak(self) -> float:
        return float(self.amount.max(initial=0.0))


def level_of(start: Floats, finish: Floats, amount: Floats) -> Level:
    """Sums of amounts over time: O(n log n).

    >>> level = level_of(np.array([0.0, 1.0]), np.array([2.0, 3.0]), np.array([5.0, 7.0]))
    >>> level.moment.tolist(), level.amount.tolist()
    ([0.0, 1.0, 2.0, 3.0], [5.0, 12.0, 7.0, 0.0])
    """
    moment, at = np.unique(np.concatenate((start, finish)), return_inverse=True)
    change = np.bincount(at.ravel(), np.concatenate((amount, -amount)), len(moment))
    return Level(moment, np.cumsum(change))


def link_uses(plan: Plan) -> Iterator[tuple[int, float, float, int]]:
    """(link, start, finish, transfer) for each link that a transfer with bytes uses; under `fifo`, while it is busy."""
    network, fifo = plan.platform.network, plan.platform.contention == "fifo"
    for k in range(len(plan.move_item)):
        size, start = float(plan.graph.size[plan.move_item[k]]), float(plan.move_start[k])
        ends = int(plan.move_source[k]), int(plan.move_target[k])
        for link in network.route(*ends) if size > 0 else ():
            until = start + network.busy_seconds(*ends, size, link) if fifo else float(plan.move_finish[k])
            yield link, start, until, k


def disk_levels(plan: Plan) -> list[tuple[int, Level]]:
    """Bytes stored over time at each site with finite storage, as `check` counts them."""
    network = plan.platform.network
    held = _held(plan)
    found = []
    for s in np.flatnonzero(np.isfinite(network.storage)).tolist():
        here = network.site[held.place] == s
        found.append((s, level_of(held.since[here], held.until[here], held.size[here])))
    return found


@dataclass(frozen=True, eq=False)
class _Held:
    place: Ints
    since: Floats
    until: Floats
    size: Floats


def _held(plan: Plan) -> _Held:
    """Every copy with the interval in which it occupies storage, as in `check`."""
    graph, network = plan.graph, plan.platform.network
    place = network.host_place[plan.host]
    spans: dict[tuple[int, int], list[float]] = {}
    initial_locations = graph.initial_locations.places_by_item(graph, plan.platform)
    destinations = graph.destinations.places_by_item(graph, plan.platform)
    for i in np.flatnonzero((graph.producer < 0) & (graph.size > 0)).tolist():
        lies = initial_locations.get(i, () if network.origin < 0 else (network.origin,))
        spans |= {(i, p): [0.0, 0.0] for p in lies}
    for i in np.flatnonzero((graph.producer >= 0) & (graph.size > 0)).tolist():
        t = int(graph.producer[i])
        spans[i, int(place[t])] = [float(plan.start[t]), float(plan.finish[t])]
    for k in range(len(plan.move_item)):
        key = int(plan.move_item[k]), int(plan.move_target[k])
        spans[key] = [float(plan.move_start[k]), float(plan.move_finish[k])]
    for k in range(len(plan.move_item)):
        _extend(spans, int(plan.move_item[k]), int(plan.move_source[k]), float(plan.move_finish[k]))
    for t in range(graph.n_tasks):
        for i in graph.reads_of(t).tolist():
            _extend(spans, i, int(place[t]), float(plan.finish[t]))
    ready = _ready(plan, place)
    kept = {
        (i, min((p for p in goals if (i, p) in spans), key=lambda p: (ready[i, p], p), default=-1))
        for i, goals in destinations.items()
    }
    for (i, p), span in spans.items():
        if (i, p) in kept or (graph.result[i] and p == network.origin):
            span[1] = plan.makespan
    keys = list(spans)
    return _Held(
        np.array([p for _, p in keys], np.int32),
        np.array([spans[key][0] for key in keys]),
        np.array([spans[key][1] for key in keys]),
        graph.size[[i for i, _ in keys]] if keys else np.zeros(0),
    )


def _ready(plan: Plan, place: Ints) -> dict[tuple[int, int], float]:
    """When each copy that a job makes or a transfer brings can be used, by (item, place)."""
    made = [(i, int(plan.graph.producer[i])) for i in np.flatnonzero(plan.graph.producer >= 0).tolist()]
    moves = zip(plan.move_item.tolist(), plan.move_target.tolist(), plan.move_finish.tolist(), strict=True)
    return {(i, p): finish for i, p, finish in moves} | {
        (i, int(place[t])): float(plan.finish[t]) for i, t in made
    }


def _extend(spans: dict[tuple[int, int], list[float]], item: int, place: int, until: float) -> None:
    if (item, place) in spans:
        spans[item, place][1] = max(spans[item, place][1], until)


def resource_chart(plan: Plan) -> Chart:
    """The cores of each pool with the jobs on them, then links and finite disks: O((jobs + transfers) log).

    Pools have a lane for each core in use or, if that makes too many, one lane each with the number of cores in use.
    """
    bars: list[Bar] = []
    lanes: list[Lane] = []
    rows = [_core_rows(plan, h) for h in range(len(plan.platform.hosts))]
    single = sum(1 + max((row for _, row in pool), default=0) for pool in rows) <= MOST_CORE_LANES
    for h, host in enumerate(plan.platform.hosts):
        group = f"{host.name}: {plural(host.cores, 'core')}"
        if single:
            count = 1 + max((row for _, row in rows[h]), default=0)
            lanes += [Lane(f"pool {host.name} {row}", group, thin=count > _THICK) for row in range(count)]
            bars += [_job_bar(plan, job, f"pool {host.name} {row}") for job, row in rows[h]]
            continue
        here = plan.host == h
        level = level_of(plan.start[here], plan.finish[here], plan.graph.cores[here].astype(float))
        lanes.append(Lane(f"pool {host.name}", group))
        bars += _level_bars(f"pool {host.name}", level, host.cores, lambda x: plural(round(x), "core"))
    names = link_labels(plan.platform)
    used = sorted({link for link, _, _, _ in link_uses(plan)})
    lanes += [Lane(f"link {link}", names[link] if names else f"link {link}") for link in used]
    bars += [
        Bar(f"link {link}", start, finish, plan.graph.item_names[plan.move_item[k]], TRANSFER)
        for link, start, finish, k in link_uses(plan)
    ]
    for s, level in disk_levels(plan):
        site = plan.platform.sites[s]
        lanes.append(Lane(f"disk {s}", f"{site.name}: {show_size(site.storage)}"))
        bars += _level_bars(f"disk {s}", level, site.storage, show_size)
    makespan = plan.makespan
    marks = [Mark(makespan, f"makespan {show_time(makespan)}")]
    if 0 < plan.bound <= makespan:
        marks.append(Mark(plan.bound, f"lower bound {show_time(plan.bound)}", dashed=True))
    title = f"{plan.graph.name} on {plan.platform.name}, planned by {plan.scheduler}"
    return Chart(title, tuple(lanes), tuple(bars), makespan, tuple(marks), plan.notes)


def _job_bar(plan: Plan, job: int, lane: str) -> Bar:
    graph = plan.graph
    kind = graph.kinds[graph.kind[job]]
    return Bar(lane, float(plan.start[job]), float(plan.finish[job]), graph.task_names[job], kind)


def _core_rows(plan: Plan, host: int) -> list[tuple[int, int]]:
    """(job, row) for each core that a job of this host holds: jobs take the lowest free rows by their starts."""
    jobs = np.flatnonzero(plan.host == host)
    found: list[tuple[int, int]] = []
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    most = 0
    for job in jobs[np.lexsort((jobs, plan.finish[jobs], plan.start[jobs]))].tolist():
        start = float(plan.start[job])
        while busy and busy[0][0] <= start + 1e-9 * max(1.0, start):
            heapq.heappush(free, heapq.heappop(busy)[1])
        for _ in range(int(plan.graph.cores[job])):
            if not free:
                heapq.heappush(free, most)
                most += 1
            row = heapq.heappop(free)
            found.append((job, row))
            heapq.heappush(busy, (float(plan.finish[job]), row))
    return found


def _level_bars(lane: str, level: Level, most: float, show: object) -> Iterator[Bar]:
    """A bar for each interval within one utilisation level; its label shows the peak."""
    assert callable(show)
    share = level.amount / most
    band = [
        next(i for i, (floor, _) in enumerate(_BANDS) if x >= floor - 1e-9) if x > 1e-12 else -1
        for x in share
    ]
    first = 0
    for k in range(1, len(band) + 1):
        if k == len(band) or band[k] != band[first]:
            if band[first] >= 0 and first < len(level.moment) - 1:
                until = level.moment[min(k, len(level.moment) - 1)]
                top = float(level.amount[first:k].max())
                yield Bar(
                    lane,
                    float(level.moment[first]),
                    float(until),
                    f"up to {show(top)}",
                    _BANDS[band[first]][1],
                )
            first = k
