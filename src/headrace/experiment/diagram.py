"""The content of a plot: curves, points or bars, with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Diagram:
    """Curves, points or groups of bars over the same x values; None leaves a gap.

    `errors` are standard errors of the values, drawn as error bars in both directions. Values below
    `floor` are drawn at the floor and marked as cut off.
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[float] | Sequence[str]
    curves: Mapping[str, Sequence[float | None]]
    shape: Literal["lines", "points", "bars"] = "lines"
    errors: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    floor: float | None = None
