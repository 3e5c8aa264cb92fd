"""A chart as SVG text, for a separate file or embedded in a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.report.axis import ticks
from headrace.report.bars import draw_bars
from headrace.report.chart import Chart, Mark
from headrace.report.layout import (
    AXIS_ABOVE,
    LABEL_SIZE,
    LINE,
    MARGIN,
    TITLE_SIZE,
    Layout,
    arrange,
    labelled,
    wrap,
)
from headrace.report.palette import colours, key_name
from headrace.report.text import clean, markup, shorten, text_width, white_behind

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_INK, _FAINT, _GRID = "#222", "#555", "#dcdfe3"
_SWATCH = 11.0
_LEAST_WIDTH = 320


def chart_svg(chart: Chart, width: int = 1100) -> str:
    """The chart as SVG, `width` pixels wide and as tall as its lanes need: O(bars log bars).

    The size of the text is bounded: indistinguishable bars are merged, and in very full charts only hosts
    have tooltips.
    """
    width = max(width, _LEAST_WIDTH)
    layout = arrange(chart, width)
    palette = colours(chart.bars)
    end = chart.end if chart.end > 0 else 1.0
    below = layout.bottom + 24
    legend, below = _legend(chart, palette, layout, below)
    notes, below = _notes(chart, layout, below)
    height = round(below + MARGIN - 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{_FONT}" font-size="{LABEL_SIZE:g}" '
        f'fill="{_INK}"><title>{markup(chart.title)}</title>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_title(layout),
        *_lanes(layout),
        *_axis(chart, layout, end),
        *draw_bars(chart, layout, palette, layout.plot_width / end),
        *_marks(chart, layout, end),
        *legend,
        *notes,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{markup(text)}</text>'


def _title(layout: Layout) -> Iterator[str]:
    for i, line in enumerate(layout.title):
        y = MARGIN + TITLE_SIZE - 2 + i * (TITLE_SIZE + 5)
        yield _text(MARGIN, y, line, f' font-size="{TITLE_SIZE:g}" font-weight="600"')


def _lanes(layout: Layout) -> Iterator[str]:
    """A band per group with a tooltip, every other one tinted, and the labels that fit."""
    for i, group in enumerate(layout.groups):
        yield (
            f'<rect x="{layout.left:.1f}" y="{group.top:.2f}" width="{layout.plot_width:.1f}" '
            f'height="{group.bottom - group.top:.2f}" fill="{"#fff" if i % 2 else "#f4f5f7"}">'
            f"<title>{markup(group.name)}</title></rect>"
        )
    room = layout.left - 8 - MARGIN
    yield '<g text-anchor="end">'
    for group in labelled(layout.groups):
        y = (group.top + group.bottom) / 2 + LABEL_SIZE * 0.35
        shown = shorten(group.name, LABEL_SIZE, room)
        hover = f"<title>{markup(group.name)}</title>" if shown != group.name else ""
        yield f'<text x="{layout.left - 8:.1f}" y="{y:.1f}">{markup(shown)}{hover}</text>'
    yield "</g>"


def _axis(chart: Chart, layout: Layout, end: float) -> Iterator[str]:
    """Grid lines with times below, and also above if the chart is tall."""
    scale = layout.plot_width / end
    at = [(layout.left + time * scale, label) for time, label in ticks(end, int(layout.plot_width // 95))]
    lines = "".join(f"M{x:.1f} {layout.top:.1f}V{layout.bottom + 4:.1f}" for x, _ in at)
    frame = f"M{layout.left:.1f} {layout.bottom:.1f}H{layout.right:.1f}"
    yield f'<path d="{lines}{frame}" stroke="{_GRID}" fill="none"/>'
    yield f'<g text-anchor="middle" fill="{_FAINT}">'
    for x, label in at:
        yield _text(x, layout.bottom + 17, label)
    if len(chart.lanes) > AXIS_ABOVE:
        lines_at = [layout.left + mark.time * scale for mark in chart.marks]
        for x, label in at:
            room = text_width(label, LABEL_SIZE) / 2 + 2
            if all(abs(x - line) > room for line in lines_at):
                yield _text(x, layout.top - 6, label)
    yield "</g>"


def _marks(chart: Chart, layout: Layout, end: float) -> Iterator[str]:
    """Lines across all lanes, with stacked labels on their left, the latest on top."""
    ordered = sorted(chart.marks, key=lambda mark: (-mark.time, mark.label))
    scale = layout.plot_width / end
    labels: list[str] = []
    for row, mark in enumerate(ordered):
        x = layout.left + min(max(mark.time, 0.0), end) * scale
        top = layout.marks_top + row * LINE
        dash = ' stroke-dasharray="5 3"' if mark.dashed else ""
        yield (
            f'<path d="M{x:.1f} {top + 1:.1f}V{layout.bottom:.1f}" stroke="{_INK}" '
            f'stroke-width="1.2" fill="none"{dash}/>'
        )
        labels.append(_mark_label(mark, x, top + LINE - 5, layout))
    yield from labels


def _mark_label(mark: Mark, x: float, y: float, layout: Layout) -> str:
    """The label on the left of its line, or where it fits."""
    label = shorten(clean(mark.label), LABEL_SIZE, layout.width - 2 * MARGIN)
    wide = text_width(label, LABEL_SIZE)
    if x - 6 - wide >= MARGIN:
        return white_behind(label, LABEL_SIZE, x - 6, y, "end") + _text(x - 6, y, label, ' text-anchor="end"')
    start = min(x + 6, layout.width - MARGIN - wide)
    return white_behind(label, LABEL_SIZE, start, y) + _text(start, y, label)


def _legend(chart: Chart, palette: Mapping[str, str], layout: Layout, top: float) -> tuple[list[str], float]:
    """Swatches with names, wrapped into lines; empty if there is only one key."""
    entries = [(key_name(key), f'fill="{colour}"') for key, colour in palette.items()]
    if any(bar.outline for bar in chart.bars):
        entries.append(("as planned", 'fill="#000" fill-opacity="0.06" stroke="#666"'))
    if len(entries) < 2 and set(palette) <= {""}:
        return [], top
    parts: list[str] = []
    x, y = layout.left, top + 8
    for name, paint in entries:
        shown = shorten(clean(name), LABEL_SIZE, min(220.0, layout.width - layout.left - 2 * MARGIN - 20))
        step = _SWATCH + 6 + text_width(shown, LABEL_SIZE) + 16
        if x > layout.left and x + step - 16 > layout.width - MARGIN:
            x, y = layout.left, y + LINE
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{_SWATCH:g}" height="{_SWATCH:g}" rx="2" {paint}/>'
        )
        parts.append(_text(x + _SWATCH + 6, y + _SWATCH - 1, shown))
        x += step
    return parts, y + LINE


def _notes(chart: Chart, layout: Layout, top: float) -> tuple[list[str], float]:
    lines = [
        line
        for note in chart.notes
        for line in wrap(clean(note), LABEL_SIZE, layout.width - layout.left - MARGIN)
    ]
    parts = [
        _text(layout.left, top + 12 + i * LINE, line, f' fill="{_FAINT}"') for i, line in enumerate(lines)
    ]
    return parts, top + len(lines) * LINE + 4
