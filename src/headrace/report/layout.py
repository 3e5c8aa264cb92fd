"""The layout of a chart."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.report.chart import Chart, Lane
from headrace.report.text import clean, shorten, text_width

MARGIN = 14.0
LABEL_SIZE = 11.0
TITLE_SIZE = 15.0
LINE = 17.0
AXIS_ABOVE = 40
"""With more lanes than this, times are also shown above them."""
_TALLEST_LANE = 26.0
_READABLE = 13.0
"""Minimum height of a lane with a readable label."""
_GUTTER_MOST = 190.0


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring lanes with one label."""

    name: str
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions in pixels from the upper left corner."""

    width: float
    title: tuple[str, ...]
    marks_top: float
    top: float
    bottom: float
    left: float
    right: float
    lane_top: tuple[float, ...]
    lane_height: tuple[float, ...]
    groups: tuple[Group, ...]

    @property
    def plot_width(self) -> float:
        return self.right - self.left


def arrange(chart: Chart, width: float) -> Layout:
    """Lanes from top to bottom, as tall as their number allows: O(lanes)."""
    title = wrap(clean(chart.title), TITLE_SIZE, width - 2 * MARGIN)
    names = {clean(lane.label or lane.group) for lane in chart.lanes}
    widest = max((text_width(name, LABEL_SIZE) for name in names), default=0.0)
    left = MARGIN + min(max(widest, 30.0), _GUTTER_MOST, width / 3) + 8
    marks_top = MARGIN + len(title) * (TITLE_SIZE + 5)
    axis_above = 20.0 if len(chart.lanes) > AXIS_ABOVE else 6.0
    top = marks_top + len(chart.marks) * LINE + axis_above
    tall = lane_height(chart.lanes)
    tops: list[float] = []
    heights: list[float] = []
    groups: list[Group] = []
    y = top
    for i, lane in enumerate(chart.lanes):
        height = max(tall * 0.38, min(tall, 1.0)) if lane.thin else tall
        if i and lane.group == chart.lanes[i - 1].group:
            groups[-1] = Group(groups[-1].name, groups[-1].top, y + height)
        else:
            groups.append(Group(clean(lane.label or lane.group), y, y + height))
        tops.append(y)
        heights.append(height)
        y += height
    return Layout(
        width=width,
        title=title,
        marks_top=marks_top,
        top=top,
        bottom=max(y, top + 10),
        left=left,
        right=width - MARGIN - 22,
        lane_top=tuple(tops),
        lane_height=tuple(heights),
        groups=tuple(groups),
    )


def lane_height(lanes: tuple[Lane, ...]) -> float:
    """Height of a normal lane: readable up to 60 lanes, then smaller.

    >>> lane_height((Lane("a", "a"),) * 4), lane_height((Lane("a", "a"),) * 256) < 6
    (26.0, True)
    """
    count = sum(0.38 if lane.thin else 1.0 for lane in lanes) or 1.0
    if count <= 60:
        return max(_READABLE, min(_TALLEST_LANE, 600 / count))
    return min(_READABLE, max(1200 / count, 3.0), 5000 / count)


def labelled(groups: tuple[Group, ...]) -> list[Group]:
    """The groups whose labels fit: the first, then each that does not overlap the previous label."""
    chosen: list[Group] = []
    last = float("-inf")
    for group in groups:
        middle = (group.top + group.bottom) / 2
        if middle - last >= _READABLE:
            chosen.append(group)
            last = middle
    return chosen


def wrap(text: str, size: float, room: float) -> tuple[str, ...]:
    """Text wrapped into lines of at most `room` pixels; a single word that does not fit is shortened.

    >>> wrap("one two three", 10, 60)
    ('one two', 'three')
    """
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(shorten(word, size, room))
    return tuple(lines)
