"""Planned flows against measured ones, as SVG: a pair of bars for each flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.report.text import markup, shorten

_ROW, _BAR, _LEFT, _TOP = 34, 12, 330, 56
_PLANNED, _MEASURED = "#9aa7b5", "#2f6f9f"


class FlowBar(NamedTuple):
    """One flow in MB/s."""

    name: str
    planned: float | None
    measured: float


def flows_svg(title: str, flows: Sequence[FlowBar], width: int = 1000) -> str:
    """A bar chart; a flow without a plan has one bar.

    >>> text = flows_svg("two", [FlowBar("a -> b", 2.0, 1.9), FlowBar("b -> c", None, 1.0)])
    >>> text.count("<rect"), "1.9" in text
    (6, True)
    """
    most = max((max(flow.planned or 0.0, flow.measured) for flow in flows), default=0.0) or 1.0
    scale = (width - _LEFT - 90) / most
    height = _TOP + _ROW * len(flows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="24" font-size="15">{markup(title)}</text>',
        f'<rect x="16" y="34" width="12" height="10" fill="{_PLANNED}"/><text x="34" y="43">planned</text>',
        f'<rect x="106" y="34" width="12" height="10" fill="{_MEASURED}"/><text x="124" y="43">measured, MB/s</text>',
    ]
    for number, flow in enumerate(flows):
        y = _TOP + number * _ROW
        name = markup(shorten(flow.name, 12, _LEFT - 20))
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 17}" text-anchor="end">{name}</text>')
        bars = [] if flow.planned is None else [(flow.planned, _PLANNED, y)]
        for value, colour, top in [*bars, (flow.measured, _MEASURED, y + _BAR + 1)]:
            long = value * scale
            parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{long:.1f}" height="{_BAR}" fill="{colour}"/>'
                f'<text x="{_LEFT + long + 6:.1f}" y="{top + 10}">{value:.4g}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])
