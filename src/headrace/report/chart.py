"""The content of a chart of bars over time, independent of how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

TRANSFER = "\0transfer"
"""Colour keys that no kind of task can have: a transfer, a failed or stopped task, an absent host."""
FAILED = "\0failed"
STOPPED = "\0stopped"
AWAY = "\0away"
LEVELS = tuple(f"\0level{k}" for k in range(5))
"""Colour keys for the utilisation of a resource: up to 25, 50, 75, below 100 %, and 100 %."""


class Bar(NamedTuple):
    """An interval from `start` to `finish` in a lane; an outline is drawn unfilled, behind other bars."""

    lane: str
    start: float
    finish: float
    label: str
    colour_key: str
    outline: bool = False


class Lane(NamedTuple):
    """One row. Neighbouring lanes of one group share a label; thin lanes are for transfers."""

    key: str
    group: str
    thin: bool = False
    label: str = ""
    """What is written beside the group; by default its name."""


class Mark(NamedTuple):
    """A marked time, drawn as a vertical line with a label."""

    time: float
    label: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars in lanes from time 0 to `end`, with marked times above and notes below."""

    title: str
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    end: float
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
