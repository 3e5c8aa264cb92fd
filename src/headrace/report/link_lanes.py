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


def link_lanes(timeline: Timeline, bars: Sequence[int]) -> list[tuple[str, list[int], list[float]]]:
    """The lanes of links, (name, numbers of bars, ends), in the order of links; `bars` has the bar of each activity.

    A transfer is in a lane of every link on its way, from its start until the link is free again, which under `fifo`
    may be before it finishes: O(n log n). None if there would be too many.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> two = (hr.Host("h0"), hr.Host("h1"))
    >>> lab = hr.Platform((hr.Site("lab", two, bandwidth=1e6),))
    >>> for name in "ab":
    ...     _ = program.task(None, name=name, work=9.0, outputs={name: 1e6})
    >>> _ = program.task(None, name="c", inputs=["a", "b"], work=1.0)
    >>> plan = hr.plan(program, lab, "heft")
    >>> line = Timeline.of_plan(plan)
    >>> link_lanes(line, range(9))
    [('h0 in', [2], [10.0]), ('h1 out', [2], [10.0])]
    """
    carried: dict[int, list[tuple[int, float]]] = {}
    entries = 0
    for i, move in enumerate(timeline.activities):
        if move.is_task:
            continue
        used = timeline.busy_links(move)
        for link, end in used:
            carried.setdefault(link, []).append((i, end))
        entries += len(used)
        if entries > MOST_ENTRIES:
            return []
    labels = link_labels(timeline.platform)
    lanes: list[tuple[str, list[int], list[float]]] = []
    for link in sorted(carried):
        uses = carried[link]
        rows = pack([(timeline.activities[i].start, end) for i, end in uses], timeline.slack)
        for row in range(min(max(rows) + 1, MOST_ROWS)):
            within = [use for use, at in zip(uses, rows, strict=True) if min(at, MOST_ROWS - 1) == row]
            lanes.append((labels[link], [bars[i] for i, _ in within], [end for _, end in within]))
    return lanes if len(lanes) <= MOST_LANES else []
