"""Plots of curves, points or grouped bars, as panels one below the other in one SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from headrace.formats.files import write_file
from headrace.report.styles import Style, cut_mark, error_bar, marker, styles
from headrace.report.text import markup, text_width

_WIDTH, _HEIGHT, _SIZE = 860, 380, 12
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 66, 46
_DENSE = 40
"""With more points than this, no markers are drawn."""
_SAMPLE = 36
"""Length in pixels of a line in the legend."""


class Picture(Protocol):
    """Interface of a plot; implemented by `Diagram`."""

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
    @property
    def errors(self) -> Mapping[str, Sequence[float | None]]: ...
    @property
    def floor(self) -> float | None: ...


def write_curves(path: Path, pictures: Sequence[Picture]) -> None:
    """Draw all plots into one SVG file."""
    write_file(path, curves_svg(pictures).encode())


def curves_svg(pictures: Sequence[Picture]) -> str:
    """All plots as one SVG. Numeric x values are drawn to scale; words are spaced evenly. O(points).

    A curve has the same colour, dash style and marker in all panels.
    """
    known = styles(name for picture in pictures for name in picture.curves)
    heights = [_HEIGHT + 18 * (_legend_lines(p) - 1) for p in pictures]
    total = sum(heights) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" width="{_WIDTH}" height="{total}" '
        f'font-family="sans-serif" font-size="{_SIZE}"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    top = 0
    for picture, height in zip(pictures, heights, strict=True):
        parts.append(f'<g transform="translate(0 {top})">')
        parts.extend(_draw(picture, height, known))
        parts.append("</g>")
        top += height
    return "\n".join([*parts, "</svg>\n"])


def _draw(picture: Picture, height: int, known: Mapping[str, Style]) -> Iterator[str]:
    top = _TOP + 18 * (_legend_lines(picture) - 1)
    bottom = height - _BOTTOM
    low, high, step = _range(_extent(picture), from_zero=picture.shape == "bars")
    places = _places(picture)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    yield f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold">{markup(picture.title)}</text>'
    yield from _legend(picture, known)
    for k in range(round((high - low) / step) + 1):
        value = low + k * step
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e3e5e8"/>'
            f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        )
    yield from _axis_labels(picture, places, top, bottom, height)
    zero = y(min(max(0.0, low), high))
    yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#888"/>'
    if low > 0:
        yield _broken_axis(zero)
    for number, name in enumerate(picture.curves):
        shifted = places if picture.shape == "lines" else _beside(picture, places, number)
        if picture.shape == "lines":
            yield _line(picture, name, shifted, y, known[name])
        elif picture.shape == "bars":
            yield from _bars(picture, name, shifted, (y, zero), known[name])
        yield from _points(picture, name, shifted, y, known[name])


def _broken_axis(bottom: float) -> str:
    """The sign that an axis does not begin at 0."""
    x, y = _LEFT, bottom - 12
    return (
        f'<path d="M{x} {bottom:.1f}V{y + 6:.1f}l-5 -3l10 -4l-5 -3v-6" fill="none" stroke="#888">'
        "<title>The axis does not begin at 0.</title></path>"
    )


def _axis_labels(
    picture: Picture, places: Sequence[float], top: float, bottom: float, height: int
) -> Iterator[str]:
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


def _extent(picture: Picture) -> list[float]:
    """All values that the y axis must cover, including error bars."""
    values = []
    for name, curve in picture.curves.items():
        errors = picture.errors.get(name, [None] * len(curve))
        for value, error in zip(curve, errors, strict=True):
            if value is not None:
                around = (value - (error or 0.0), value + (error or 0.0))
                values += [_shown(picture, v) for v in around]
    return values


def _shown(picture: Picture, value: float) -> float:
    return value if picture.floor is None else max(value, picture.floor)


def _line(
    picture: Picture, name: str, places: Sequence[float], y: Callable[[float], float], style: Style
) -> str:
    path, pen = "", "M"
    for place, value in zip(places, picture.curves[name], strict=True):
        if value is None:
            pen = "M"
            continue
        path += f"{pen}{place:.1f} {y(_shown(picture, value)):.1f}"
        pen = "L"
    return f'<path d="{path}" fill="none" {style.stroke}><title>{markup(name)}</title></path>'


def _points(
    picture: Picture, name: str, places: Sequence[float], y: Callable[[float], float], style: Style
) -> Iterator[str]:
    """Error bars, markers unless there are very many, and arrows where a value is below the floor."""
    curve = picture.curves[name]
    errors = picture.errors.get(name, [None] * len(curve))
    for k, (place, value, error) in enumerate(zip(places, curve, errors, strict=True)):
        if value is None:
            continue
        if picture.floor is not None and value < picture.floor:
            yield cut_mark(
                style, place, y(picture.floor), _number(round(value)), _cut_before(picture, name, k)
            )
            continue
        if error:
            colour = "#333" if picture.shape == "bars" else style.colour
            ends = (y(_shown(picture, value + error)), y(_shown(picture, value - error)))
            yield error_bar(colour, place, *ends)
        if len(places) <= _DENSE and picture.shape != "bars":
            yield marker(style, place, y(value), markup(f"{name}: {value:,.6g}"))


def _cut_before(picture: Picture, name: str, k: int) -> int:
    """How many earlier curves are cut off at the same x."""
    count = 0
    for other, curve in picture.curves.items():
        if other == name:
            break
        value = curve[k]
        count += picture.floor is not None and value is not None and value < picture.floor
    return count


def _bars(
    picture: Picture,
    name: str,
    places: Sequence[float],
    scale: tuple[Callable[[float], float], float],
    style: Style,
) -> Iterator[str]:
    y, zero = scale
    wide = _room(picture, len(places)) / max(len(picture.curves), 1)
    for place, value in zip(places, picture.curves[name], strict=True):
        if value is not None:
            end = y(_shown(picture, value))
            yield (
                f'<rect x="{place - 0.46 * wide:.1f}" y="{min(end, zero):.1f}" width="{wide * 0.92:.1f}" '
                f'height="{abs(end - zero):.1f}" fill="{style.colour}">'
                f"<title>{markup(name)}: {value:,.6g}</title></rect>"
            )


def _beside(picture: Picture, places: Sequence[float], number: int) -> list[float]:
    """The centre of this curve's bar or point at each x; bars of different curves are side by side."""
    room = _room(picture, len(places))
    offset = room * ((number + 0.5) / max(len(picture.curves), 1) - 0.5)
    return [place + offset for place in places]


def _room(picture: Picture, count: int) -> float:
    """Width in pixels available to all curves at one x."""
    return (_WIDTH - _LEFT - _RIGHT) / max(count, 1) * (0.8 if picture.shape == "bars" else 0.6)


def _places(picture: Picture) -> list[float]:
    wide = _WIDTH - _LEFT - _RIGHT
    count = len(picture.x)
    numbers = [v for v in picture.x if not isinstance(v, str)]
    if picture.shape != "lines" or len(numbers) < count or count < 2:
        return [_LEFT + wide * (k + 0.5) / count for k in range(count)]
    low, high = min(numbers), max(numbers)
    if (
        low > 0 and high / low >= 32
    ):  # values that double: use equal steps, otherwise small ones would coincide
        numbers, low, high = [math.log(v) for v in numbers], math.log(low), math.log(high)
    return [_LEFT + 14 + (wide - 28) * (v - low) / ((high - low) or 1.0) for v in numbers]


def _ticks(picture: Picture, places: Sequence[float]) -> list[tuple[float, str | float]]:
    """Labels of the x axis and their positions: each value or, for many numbers, round ones."""
    names: list[str | float] = list(picture.x)
    numbers = [v for v in picture.x if not isinstance(v, str)]
    if len(numbers) < len(names) or len(names) <= _DENSE or picture.shape != "lines":
        return list(zip(places, names, strict=True))
    first, last, step = _range(numbers)
    per_unit = (places[-1] - places[0]) / (numbers[-1] - numbers[0])
    values = [first + k * step for k in range(round((last - first) / step) + 1)]
    inside = [v for v in values if numbers[0] <= v <= numbers[-1]]
    return [(places[0] + (v - numbers[0]) * per_unit, v) for v in inside]


def _range(values: Sequence[float], *, from_zero: bool = False) -> tuple[float, float, float]:
    """Start, end and step of an axis; it includes 0 if `from_zero`, or unless the values are close together."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and (from_zero or low < 0.6 * high):
        low = 0.0
    if from_zero:
        high = max(high, 0.0)
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
        width = text_width(name, _SIZE) + _SAMPLE + 18
        if x + width > _WIDTH - 10 and x > _LEFT:
            x, line = float(_LEFT), line + 1
        placed.append((x, line))
        x += width
    return placed


def _legend_lines(picture: Picture) -> int:
    return 1 + max((line for _, line in _legend_places(picture)), default=0)


def _legend(picture: Picture, known: Mapping[str, Style]) -> Iterator[str]:
    """Legend entries: the line of each curve with its dashes and marker."""
    for name, (x, line) in zip(picture.curves, _legend_places(picture), strict=True):
        y, style = 44 + 18 * line, known[name]
        if picture.shape == "bars":
            yield f'<rect x="{x:.1f}" y="{y - 9}" width="14" height="9" rx="2" fill="{style.colour}"/>'
            yield f'<text x="{x + 19:.1f}" y="{y}">{markup(name)}</text>'
            continue
        if picture.shape == "lines":
            yield f'<line x1="{x:.1f}" x2="{x + _SAMPLE:.1f}" y1="{y - 4}" y2="{y - 4}" {style.stroke}/>'
        if len(picture.x) <= _DENSE:
            yield marker(style, x + _SAMPLE / 2, y - 4)
        yield f'<text x="{x + _SAMPLE + 6:.1f}" y="{y}">{markup(name)}</text>'
