"""Which transfers each link carried, for the lanes of links in interactive charts."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.report.packing import pack
from headrace.report.resources import link_labels
from headrace.report.timeline import Timeline

MOST_LANES = 200
MOST_ENTRIES = 60_000
"""Charts with more transfers on links are drawn without these lanes."""
MOST_ROWS = 4
"""Lanes of one link that carries several transfers at a time; the last is shared by all that are left."""


def link_lanes(timeline: Timeline, bars: Sequence[int]) -> list[list[object]]:
    """The lanes of links, [name, numbers of bars], in the order of links; `bars` has the bar of each activity.

    A transfer is in a lane of every link on its way, from its start to its finish, although a fifo link may be idle
    again before: O(n log n). None if there would be too many.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> two = (hr.Host("h0"), hr.Host("h1"))
    >>> lab = hr.Platform((hr.Site("lab", two, bandwidth=1e6),))
    >>> for name in "ab":
    ...     _ = program.task(None, name=name, work=9.0, outputs={name: 1e6})
    >>> _ = program.task(None, name="c", inputs=["a", "b"], work=1.0)
    >>> plan = hr.plan(program, lab, "heft")
    >>> line = Timeline.of_plan(plan)
    >>> [name for name, _ in link_lanes(line, range(9))]
    ['h0 in', 'h1 out']
    """
    network = timeline.platform.network
    place = {name: number for number, name in enumerate(network.place_names)}
    routes: dict[tuple[str, str], list[int]] = {}
    carried: dict[int, list[int]] = {}
    entries = 0
    for i, move in enumerate(timeline.activities):
        if move.is_task or move.source not in place or move.place not in place:
            continue
        ends = (move.source, move.place)
        if ends not in routes:
            routes[ends] = network.route(place[move.source], place[move.place])
        for link in routes[ends]:
            carried.setdefault(link, []).append(i)
        entries += len(routes[ends])
        if entries > MOST_ENTRIES:
            return []
    labels = link_labels(timeline.platform)
    lanes: list[list[object]] = []
    for link in sorted(carried):
        moves = carried[link]
        rows = pack(
            [(timeline.activities[i].start, timeline.activities[i].finish) for i in moves], timeline.slack
        )
        for row in range(min(max(rows) + 1, MOST_ROWS)):
            within = [bars[i] for i, at in zip(moves, rows, strict=True) if min(at, MOST_ROWS - 1) == row]
            lanes.append([labels[link], within])
    return lanes if len(lanes) <= MOST_LANES else []
