"""Pictures of numbers over numbers: curves or groups of bars, one below the other in one SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from headrace.formats.files import write_file
from headrace.report.palette import PALETTE
from headrace.report.text import markup, text_width

_WIDTH, _HEIGHT, _SIZE = 860, 380, 12
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 66, 46
_DENSE = 40
"""With more points than this they are not marked one by one, and lines that may cover each other are dashed."""
_DASHES = ("", "9 5", "2 4", "9 4 2 4")


class Picture(Protocol):
    """What is drawn; `Diagram` of the experiments has this form."""

    @property
    def title(self) -> str: ...
    @property
    def x_label(self) -> str: ...
    @property
    def y_label(self) -> str: ...
    @property
    def x(self) -> Sequence[float] | Sequence[str]: ...
    @property
    def curves(self) -> Mapping[str, Sequence[float | None]]: ...
    @property
    def shape(self) -> str: ...


def write_curves(path: Path, pictures: Sequence[Picture]) -> None:
    """Draw all of them into one SVG file."""
    write_file(path, curves_svg(pictures).encode())


def curves_svg(pictures: Sequence[Picture]) -> str:
    """O(points). Numbers on the x axis keep their distances; words are spread evenly."""
    heights = [_HEIGHT + 18 * (_legend_lines(p) - 1) for p in pictures]
    total = sum(heights) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" width="{_WIDTH}" height="{total}" '
        f'font-family="sans-serif" font-size="{_SIZE}"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    top = 0
    for picture, height in zip(pictures, heights, strict=True):
        parts.append(f'<g transform="translate(0 {top})">')
        parts.extend(_draw(picture, height))
        parts.append("</g>")
        top += height
    return "\n".join([*parts, "</svg>\n"])


def _draw(picture: Picture, height: int) -> Iterator[str]:
    top = _TOP + 18 * (_legend_lines(picture) - 1)
    bottom = height - _BOTTOM
    low, high, step = _range([v for c in picture.curves.values() for v in c if v is not None])
    places = _places(picture)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    yield f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold">{markup(picture.title)}</text>'
    yield from _legend(picture)
    for k in range(round((high - low) / step) + 1):
        value = low + k * step
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e3e5e8"/>'
            f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        )
    last = -math.inf
    for place, name in _ticks(picture, places):
        label = name if isinstance(name, str) else _number(float(name))
        if place - text_width(label, _SIZE) / 2 > last + 6:
            last = place + text_width(label, _SIZE) / 2
            yield f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{markup(label)}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{height - 8}" text-anchor="middle" fill="#555">{markup(picture.x_label)}</text>'
    yield (
        f'<text x="16" y="{(top + bottom) / 2}" text-anchor="middle" fill="#555" '
        f'transform="rotate(-90 16 {(top + bottom) / 2})">{markup(picture.y_label)}</text>'
    )
    zero = y(min(max(0.0, low), high))
    yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#888"/>'
    yield from _bars(picture, places, y, zero) if picture.shape == "bars" else _lines(picture, places, y)


def _lines(picture: Picture, places: Sequence[float], y: Callable[[float], float]) -> Iterator[str]:
    for number, (name, values) in enumerate(picture.curves.items()):
        colour = PALETTE[number % len(PALETTE)]
        dash = ' stroke-dasharray="6 3"' if number >= len(PALETTE) else ""
        if len(places) > _DENSE and number % len(_DASHES):
            dash = f' stroke-dasharray="{_DASHES[number % len(_DASHES)]}"'
        path, pen = "", "M"
        for place, value in zip(places, values, strict=True):
            if value is None:
                pen = "M"
                continue
            path += f"{pen}{place:.1f} {y(value):.1f}"
            pen = "L"
        yield (
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}>'
            f"<title>{markup(name)}</title></path>"
        )
        for place, value in zip(places, values, strict=True):
            if value is not None and len(places) <= _DENSE:
                yield (
                    f'<circle cx="{place:.1f}" cy="{y(value):.1f}" r="3.5" fill="{colour}">'
                    f"<title>{markup(name)}: {value:,.6g}</title></circle>"
                )


def _bars(
    picture: Picture, places: Sequence[float], y: Callable[[float], float], zero: float
) -> Iterator[str]:
    room = (_WIDTH - _LEFT - _RIGHT) / max(len(places), 1) * 0.8
    wide = room / max(len(picture.curves), 1)
    for number, (name, values) in enumerate(picture.curves.items()):
        for place, value in zip(places, values, strict=True):
            if value is not None:
                top = min(y(value), zero)
                yield (
                    f'<rect x="{place - room / 2 + number * wide:.1f}" y="{top:.1f}" width="{wide * 0.92:.1f}" '
                    f'height="{abs(y(value) - zero):.1f}" fill="{PALETTE[number % len(PALETTE)]}">'
                    f"<title>{markup(name)}: {value:,.6g}</title></rect>"
                )


def _places(picture: Picture) -> list[float]:
    wide = _WIDTH - _LEFT - _RIGHT
    count = len(picture.x)
    numbers = [v for v in picture.x if not isinstance(v, str)]
    if picture.shape == "bars" or len(numbers) < count or count < 2:
        return [_LEFT + wide * (k + 0.5) / count for k in range(count)]
    low, high = min(numbers), max(numbers)
    if low > 0 and high / low >= 32:  # sizes that double: equal steps, else the small ones fall together
        numbers, low, high = [math.log(v) for v in numbers], math.log(low), math.log(high)
    return [_LEFT + 14 + (wide - 28) * (v - low) / ((high - low) or 1.0) for v in numbers]


def _ticks(picture: Picture, places: Sequence[float]) -> list[tuple[float, str | float]]:
    """What to write below the x axis and where: each value or, of many numbers, round ones between."""
    names: list[str | float] = list(picture.x)
    numbers = [v for v in picture.x if not isinstance(v, str)]
    if len(numbers) < len(names) or len(names) <= _DENSE or picture.shape == "bars":
        return list(zip(places, names, strict=True))
    first, last, step = _range(numbers)
    per_unit = (places[-1] - places[0]) / (numbers[-1] - numbers[0])
    values = [first + k * step for k in range(round((last - first) / step) + 1)]
    inside = [v for v in values if numbers[0] <= v <= numbers[-1]]
    return [(places[0] + (v - numbers[0]) * per_unit, v) for v in inside]


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    """From, to and step of the y axis; from 0 unless the values are close together."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and low < 0.6 * high:
        low = 0.0
    if high <= low:
        low, high = min(low, 0.0), max(high, 0.0) or 1.0
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    return math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step, step


def _number(value: float) -> str:
    return f"{value:,.10g}" if abs(value) < 1e6 else f"{value:.3g}"


def _legend_places(picture: Picture) -> list[tuple[float, int]]:
    placed, x, line = [], float(_LEFT), 0
    for name in picture.curves:
        width = text_width(name, _SIZE) + 32
        if x + width > _WIDTH - 10 and x > _LEFT:
            x, line = float(_LEFT), line + 1
        placed.append((x, line))
        x += width
    return placed


def _legend_lines(picture: Picture) -> int:
    return 1 + max((line for _, line in _legend_places(picture)), default=0)


def _legend(picture: Picture) -> Iterator[str]:
    for number, (name, (x, line)) in enumerate(zip(picture.curves, _legend_places(picture), strict=True)):
        y = 44 + 18 * line
        colour = PALETTE[number % len(PALETTE)]
        yield f'<rect x="{x:.1f}" y="{y - 9}" width="14" height="9" rx="2" fill="{colour}"/>'
        yield f'<text x="{x + 19:.1f}" y="{y}">{markup(name)}</text>'
