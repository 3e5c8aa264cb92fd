"""A dot plot of ratios: one row per instance, one colour per scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.formats.files import write_file
from headrace.report.palette import PALETTE
from headrace.report.text import markup, shorten, text_width

_WIDTH, _ROW, _LEFT_MOST, _SIZE = 900, 22, 360, 12
_RADIUS, _APART, _LEVEL = 5.0, 7.0, 6.0
"""Points closer than `_APART` pixels are stacked vertically, `_LEVEL` pixels apart."""


def write_ratios(
    path: Path, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> None:
    """Draw makespan / bound of every column's scheduler; 1 is the bound."""
    write_file(path, ratios_svg(rows, columns, values).encode())


def ratios_svg(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]) -> str:
    """
    >>> "heft" in ratios_svg(["montage"], ["heft"], [[1.2]])
    True
    """
    left = min(_LEFT_MOST, max([60.0, *(text_width(row, _SIZE) for row in rows)]) + 20)
    largest = max([1.1, *(v for row in values for v in row if v is not None)])
    legend_lines = _legend(columns, left)
    top = 30 + 18 * (1 + max((y for _, _, y in legend_lines), default=0))

    def x(value: float) -> float:
        return left + (value - 1.0) / (largest - 1.0) * (_WIDTH - left - 40)

    spreads = [max((abs(offset) for _, _, offset in _apart(row, x)), default=0.0) for row in values]
    heights = [max(_ROW, 2 * (spread + _RADIUS) + 6) for spread in spreads]
    height = top + sum(heights) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="{_SIZE}"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{left}" y="20" font-weight="bold">makespan / lower bound (1 is optimal)</text>'
    ]
    for name, offset, line in legend_lines:
        y = 38 + 18 * line
        colour = PALETTE[columns.index(name) % len(PALETTE)]
        parts.append(f'<circle cx="{offset + 5:.1f}" cy="{y - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{offset + 15:.1f}" y="{y}">{markup(name)}</text>')
    for tick in _ticks(largest):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height - 26}" stroke="#ddd"/>'
            f'<text x="{x(tick):.1f}" y="{height - 10}" text-anchor="middle">{tick:g}</text>'
        )
    for number, (row, line_values) in enumerate(zip(rows, values, strict=True)):
        middle = top + sum(heights[:number]) + heights[number] / 2
        label = markup(shorten(row, _SIZE, left - 20))
        parts.append(f'<text x="{left - 12:.1f}" y="{middle + 4:.1f}" text-anchor="end">{label}</text>')
        for column, value, offset in _apart(line_values, x):
            parts.append(
                f'<circle cx="{x(value):.1f}" cy="{middle + offset:.1f}" r="{_RADIUS:g}" '
                f'fill="{PALETTE[column % len(PALETTE)]}" fill-opacity="0.85" stroke="#fff" stroke-width="0.8">'
                f"<title>{markup(columns[column])}: {value:.3f}</title></circle>"
            )
    return "\n".join([*parts, "</svg>\n"])


def _apart(values: Sequence[float | None], x: Callable[[float], float]) -> list[tuple[int, float, float]]:
    """(column, value, vertical offset) of the points of a row, without overlap.

    >>> _apart([1.0, None, 1.0], lambda value: 100.0 * value)
    [(0, 1.0, -3.0), (2, 1.0, 3.0)]
    """
    found = [(column, value) for column, value in enumerate(values) if value is not None]
    groups: list[list[tuple[int, float]]] = []
    for column, value in sorted(found, key=lambda point: point[1]):
        if groups and x(value) - x(groups[-1][-1][1]) < _APART:
            groups[-1].append((column, value))
        else:
            groups.append([(column, value)])
    return [
        (column, value, (k - (len(group) - 1) / 2) * _LEVEL)
        for group in groups
        for k, (column, value) in enumerate(sorted(group))
    ]


def _legend(columns: Sequence[str], left: float) -> list[tuple[str, float, int]]:
    """(name, x, line) of each legend entry, wrapped at the right edge."""
    placed, offset, line = [], left, 0
    for name in columns:
        width = text_width(name, _SIZE) + 30
        if offset + width > _WIDTH - 10 and offset > left:
            offset, line = left, line + 1
        placed.append((name, offset, line))
        offset += width
    return placed


def _ticks(largest: float) -> list[float]:
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 1e9) if (largest - 1.0) / s <= 10)
    return [1.0 + step * k for k in range(int((largest - 1.0) / step + 1e-9) + 1)]
