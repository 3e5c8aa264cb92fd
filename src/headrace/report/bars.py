"""The bars of a chart as SVG: one element each, or one path per colour when there are very many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.model.units import show_time
from headrace.report.chart import AWAY, FAILED, Bar, Chart
from headrace.report.layout import LABEL_SIZE, Layout
from headrace.report.merging import Segments, segments
from headrace.report.palette import OTHER, key_name, text_colour
from headrace.report.text import clean, markup, shorten, text_width

MOST_SINGLE = 8_000
"""Up to this many bars get their own element and tooltip."""
_MOST_IN_PATHS = 100_000
_OUTLINE = 'fill="#000" fill-opacity="0.06" stroke="#666" stroke-width="0.8"'
_LONGEST_NAME = 480.0


def draw_bars(chart: Chart, layout: Layout, palette: Mapping[str, str], scale: float) -> Iterator[str]:
    """Draw absent hosts, then the plan's outlines, then filled bars."""
    away = [b for b in chart.bars if b.colour_key == AWAY]
    outlines = [b for b in chart.bars if b.outline and b.colour_key != AWAY]
    filled = [b for b in chart.bars if not b.outline and b.colour_key not in (AWAY, FAILED)]
    failed = [b for b in chart.bars if b.colour_key == FAILED and not b.outline]
    brush = _Brush(chart, layout, palette, scale)
    yield from brush.draw(away, inset=0.0)
    yield from brush.draw(outlines, inset=0.04, outline=True)
    yield from brush.draw(filled, inset=0.2 if outlines else 0.07)
    yield from brush.draw(failed, inset=0.0, least=3.0)


class _Brush:
    """Settings shared by all bars of a chart."""

    def __init__(self, chart: Chart, layout: Layout, palette: Mapping[str, str], scale: float) -> None:
        self.layout = layout
        self.scale = scale
        self.lanes = {lane.key: i for i, lane in enumerate(chart.lanes)}
        self.paint = list(palette.values())
        number = {key: i for i, key in enumerate(palette)}
        other = number.get(OTHER, 0)
        self.colour_of = {b.colour_key: number.get(b.colour_key, other) for b in chart.bars}

    def draw(
        self, bars: Sequence[Bar], *, inset: float, outline: bool = False, least: float = 0.6
    ) -> Iterator[str]:
        if not bars:
            return
        parts = segments(bars, self.lanes, self.colour_of, self.scale, _MOST_IN_PATHS)
        if len(parts) > MOST_SINGLE:
            yield from self._paths(parts, outline)
        else:
            yield from self._single(parts, bars, inset, outline, least)

    def _single(
        self, parts: Segments, bars: Sequence[Bar], inset: float, outline: bool, least: float
    ) -> Iterator[str]:
        names: list[str] = []
        rows = zip(
            *(
                a.tolist()
                for a in (parts.lane, parts.left, parts.right, parts.colour, parts.count, parts.first)
            ),
            strict=True,
        )
        yield f"<g {_OUTLINE}>" if outline else "<g>"
        for lane, left, right, colour, count, first in rows:
            tall = self.layout.lane_height[lane]
            gap = inset * tall if tall > 6 else 0.0
            x, y = self.layout.left + left, self.layout.lane_top[lane] + gap
            width, height = max(right - left, least), tall - 2 * gap
            x = min(x, self.layout.right - width)
            fill = "" if outline else f' fill="{self.paint[colour]}"'
            edge = ' stroke="#fff" stroke-width=".5"' if not outline and width > 3 else ""
            title = self._title(bars[first], count, left, right)
            yield (
                f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"{fill}{edge}>'
                f"<title>{markup(title)}</title></rect>"
            )
            label = clean(bars[first].label)
            room = count == 1 and not outline and height >= LABEL_SIZE + 1
            if room and label and text_width(label, LABEL_SIZE - 1) + 6 <= width:
                names.append(
                    f'<text x="{x + width / 2:.1f}" y="{y + height / 2 + 3.6:.1f}" '
                    f'fill="{text_colour(self.paint[colour])}">{markup(label)}</text>'
                )
        yield "</g>"
        if names:
            yield f'<g text-anchor="middle" font-size="{LABEL_SIZE - 1:g}" pointer-events="none">'
            yield from names
            yield "</g>"

    def _title(self, bar: Bar, count: int, left: float, right: float) -> str:
        start, finish = (bar.start, bar.finish) if count == 1 else (left / self.scale, right / self.scale)
        when = f"{show_time(start)} to {show_time(finish)} ({show_time(finish - start)})"
        if count > 1:
            return f"{count} in {when}"
        name = shorten(clean(bar.label), LABEL_SIZE, _LONGEST_NAME)
        kind = "" if bar.colour_key == "" else f" [{shorten(key_name(bar.colour_key), LABEL_SIZE, 240)}]"
        return f"{name}{kind}: {when}{', as planned' if bar.outline else ''}"

    def _paths(self, parts: Segments, outline: bool) -> Iterator[str]:
        """One stroked path per colour, in tenths of a pixel: about nine characters per bar."""
        moves: dict[tuple[int, float], list[str]] = {}
        pen: dict[tuple[int, float], tuple[int, int]] = {}
        rows = zip(
            *(a.tolist() for a in (parts.lane, parts.left, parts.right, parts.colour)),
            strict=True,
        )
        for lane, left, right, colour in rows:
            tall = self.layout.lane_height[lane]
            key = (-1 if outline else colour, tall)
            x = round((self.layout.left + left) * 10)
            y = round((self.layout.lane_top[lane] + tall / 2) * 100)
            width = max(round((right - left) * 10), 4)
            if width > 12:
                width -= 2  # keep a gap between neighbours
            from_x, from_y = pen.get(key, (0, 0))
            moves.setdefault(key, []).append(f"m{x - from_x} {y - from_y}h{width}")
            pen[key] = (x + width, y)
        yield '<g fill="none" pointer-events="none">'
        for (colour, tall), steps in moves.items():
            paint = "#d4d4d4" if outline else self.paint[colour]
            wide = tall * (100 if outline else 86)
            yield (
                f'<path transform="scale(.1 .01)" stroke="{paint}" stroke-width="{wide:.0f}" '
                f'd="{"".join(steps)}"/>'
            )
        yield "</g>"
