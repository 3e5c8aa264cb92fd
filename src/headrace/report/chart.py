"""A chart of bars over time, as values: what to draw, not how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

TRANSFER = "\0transfer"
"""Colour keys that no kind of task can have: a transfer, a failed or stopped task, a host that was away."""
FAILED = "\0failed"
STOPPED = "\0stopped"
AWAY = "\0away"
LEVELS = tuple(f"\0level{k}" for k in range(5))
"""Keys of how much of a resource is in use: up to 25, 50, 75, below 100 %, all of it."""


class Bar(NamedTuple):
    """Something that took from `start` to `finish` in a lane; an outline is drawn behind, unfilled."""

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


class Mark(NamedTuple):
    """A moment that matters, drawn as a vertical line with its label."""

    time: float
    label: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars in lanes from time 0 to `end`, with marked moments above and notes below."""

    title: str
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    end: float
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
