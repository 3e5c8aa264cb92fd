"""Styles of curves: colour, dashes and markers, chosen so that coinciding curves remain visible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.report.palette import PALETTE

_DASHES = ("", "9 5", "2 4", "9 4 2 4", "14 6", "5 7", "2 8", "14 4 2 4")
"""Only the first is solid: earlier lines are visible through the gaps of later ones."""
_MARKERS = ("circle", "square", "diamond", "triangle", "ring", "cross", "box", "plus")


class Style(NamedTuple):
    """The style of one curve, in every panel of a plot."""

    colour: str
    dash: str
    marker: str

    @property
    def stroke(self) -> str:
        """Attributes of its line."""
        dashes = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'stroke="{self.colour}" stroke-width="2"{dashes}'


def styles(names: Iterable[str]) -> dict[str, Style]:
    """A style for each name, in the order of their first appearance.

    >>> list(styles(["a", "b", "a"])), styles(["a"])["a"].dash
    (['a', 'b'], '')
    """
    return {
        name: Style(PALETTE[k % len(PALETTE)], _DASHES[k % len(_DASHES)], _MARKERS[k % len(_MARKERS)])
        for k, name in enumerate(dict.fromkeys(names))
    }


def marker(style: Style, x: float, y: float, title: str = "") -> str:
    """The marker of a point; open shapes do not hide a filled one behind them."""
    inside = f"<title>{title}</title>" if title else ""
    filled, outline = f'fill="{style.colour}"', f'fill="none" stroke="{style.colour}" stroke-width="1.8"'
    if style.marker in ("circle", "ring"):
        radius, paint = (3.5, filled) if style.marker == "circle" else (5.0, outline)
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {paint}>{inside}</circle>'
    paths = {
        "square": ("m-3.5 -3.5h7v7h-7z", filled),
        "diamond": ("m0 -5l4.5 5l-4.5 5l-4.5 -5z", filled),
        "triangle": ("m0 -5l4.5 8h-9z", filled),
        "cross": ("m-4 -4l8 8m0 -8l-8 8", outline),
        "box": ("m-5 -5h10v10h-10z", outline),
        "plus": ("m-5.5 0h11m-5.5 -5.5v11", outline),
    }
    steps, paint = paths[style.marker]
    return f'<path d="M{x:.1f} {y:.1f}{steps}" {paint}>{inside}</path>'


def error_bar(colour: str, x: float, top: float, bottom: float) -> str:
    """An error bar of one standard error in each direction."""
    return (
        f'<path d="M{x - 3:.1f} {top:.1f}h6m-3 0V{bottom:.1f}m-3 0h6" fill="none" '
        f'stroke="{colour}" stroke-width="1.2"/>'
    )


def cut_mark(style: Style, x: float, y: float, label: str, level: int) -> str:
    """A downward arrow at the edge of a panel, labelled with the value beyond it; further ones are offset."""
    return (
        f'<path d="M{x + 9 * level:.1f} {y + 3:.1f}l-4 -8h8z" fill="{style.colour}"/>'
        f'<text x="{x:.1f}" y="{y - 8 - 11 * level:.1f}" text-anchor="middle" font-size="10" '
        f'fill="{style.colour}">{label}</text>'
    )
