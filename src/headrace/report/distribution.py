"""Makespans of many runs, as table rows, as JSON, and as an SVG histogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace.experiment.repeat import Makespans
from headrace.formats.files import write_file
from headrace.model.graph import Floats
from headrace.model.units import show_time
from headrace.report.palette import PALETTE
from headrace.report.text import markup, text_width, white_behind

_WIDTH, _HEIGHT, _SIZE = 860, 400, 12
_LEFT, _RIGHT, _BOTTOM, _TITLE, _LINE = 62, 24, 44, 36, 17
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_STEPS = 60
_MARKED = {"median": 0.5, "95 %": 0.95, "worst": 1.0}


def makespans_json(makespans: Makespans) -> dict[str, Any]:
    """The distribution and every run; runs that never ended, and statistics undefined because of them, are null."""
    named = {
        "least": makespans.least,
        "mean": makespans.mean,
        **{name: makespans.at(share) for name, share in (("median", 0.5), ("p95", 0.95), ("worst", 1.0))},
    }
    return {
        "runs": makespans.runs,
        "failed": makespans.failed,
        "makespan": {name: _finite(value) for name, value in named.items()},
        "deviation": _finite(makespans.deviation),
        "confidence_interval": [_finite(end) for end in makespans.interval],
        "seeds": {"first": makespans.seed, "median": makespans.seed_at(0.5), "worst": makespans.seed_at(1.0)},
        "makespans": [_finite(value) for value in makespans.values.tolist()],
        "seconds": makespans.seconds,
    }


def makespans_rows(makespans: Makespans) -> list[list[str]]:
    """Summary of the runs, as (name, value)."""
    rows = [["runs", f"{makespans.runs:,} in {show_time(makespans.seconds)}"]]
    if makespans.failed:
        rows.append(["never ended", f"{makespans.failed:,}"])
    rows.append(["least", _shown(makespans.least)])
    for name, share in _MARKED.items():
        rows.append([name, f"{_shown(makespans.at(share))} (seed {makespans.seed_at(share)})"])
    rows.append(["mean", _shown(makespans.mean)])
    if math.isfinite(makespans.deviation):
        low, high = makespans.interval
        rows.append(["deviation", show_time(makespans.deviation)])
        rows.append(["mean, 95 % confidence", f"{show_time(low)} to {show_time(high)}"])
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float) -> str:
    return show_time(value) if math.isfinite(value) else "never"


def write_histogram(
    path: Path, makespans: Makespans, title: str, others: Mapping[str, float] | None = None
) -> None:
    """Draw a histogram of makespans into an SVG file; `others` are additional times to mark."""
    write_file(path, histogram_svg(makespans, title, others or {}).encode())


def histogram_svg(makespans: Makespans, title: str, others: Mapping[str, float]) -> str:
    """A histogram of the runs that ended, with at most 60 equal bins: O(runs log runs)."""
    values = makespans.values[np.isfinite(makespans.values)]
    marks = {**others, **{name: makespans.at(share) for name, share in _MARKED.items()}}
    marks = {name: value for name, value in marks.items() if math.isfinite(value)}
    low, high = _span([*values.tolist(), *marks.values()])
    count, edges = _steps(values, high - low)
    most = int(count.max(initial=1))
    top, bottom = _TITLE + _LINE * len(marks) + 6, _HEIGHT - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(runs: float) -> float:
        return bottom - runs / most * (bottom - top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" font-family="sans-serif" font-size="{_SIZE}">'
        f'<title>{markup(title)}</title><rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold">{markup(title)}</text>',
        *_axes([(x(at), label) for at, label in _times(low, high)], most, y, _caption(makespans)),
        *_columns(count, edges, x, y),
        *_marks(marks, x),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The range from the smallest to the largest value, with a margin; never empty."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.02 * (high - low) or 0.02 * high or 1.0
    return max(0.0, low - room), high + room


def _steps(values: Floats, span: float) -> tuple[Any, Floats]:
    """Number of values in each bin, and the edges of the bins.

    The bin width follows the Freedman-Diaconis rule, 2 (q75 - q25) / cbrt(n), and is at least 1/60 of the range.
    """
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(1)
    low, high = float(values.min()), float(values.max())
    quarter, three = np.quantile(values, (0.25, 0.75))
    width = max(2.0 * float(three - quarter) / len(values) ** (1 / 3), span / _STEPS)
    steps = max(1, round((high - low) / width))
    if high - low < width:
        middle = (low + high) / 2
        low, high = middle - width / 2, middle + width / 2
    count, edges = np.histogram(values, steps, (low, high))
    return count, edges


def _times(low: float, high: float) -> list[tuple[float, str]]:
    """Round times in the range: in seconds or fractions of them up to 10 h, else in the largest unit within a step."""
    least = (high - low) / 8
    units, enough = (_UNITS, least) if high >= 36000 else (_UNITS[3:], high)
    size, unit = next(((size, unit) for size, unit in units if enough >= size), _UNITS[-1])
    step = _round_up(least / size) * size
    places = max(0, -math.floor(math.log10(step / size) + 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [
        (k * step, f"{k * step / size:,.{places}f} {unit}")
        for k in range(first, math.floor(high / step + 1e-9) + 1)
    ]


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value * (1 - 1e-12))


def _caption(makespans: Makespans) -> str:
    failed = f", {makespans.failed:,} of which never ended" if makespans.failed else ""
    return f"makespan of {makespans.runs:,} runs{failed}"


def _axes(
    times: Sequence[tuple[float, str]], most: int, y: Callable[[float], float], caption: str
) -> Iterator[str]:
    bottom = y(0)
    step = max(1, int(_round_up(most / 5)))
    for runs in range(0, most + 1, step):
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(runs):.1f}" y2="{y(runs):.1f}" stroke="#e3e5e8"/>'
            f'<text x="{_LEFT - 8}" y="{y(runs) + 4:.1f}" text-anchor="end">{runs:,}</text>'
        )
    last = -math.inf
    for at, label in times:
        half = text_width(label, _SIZE) / 2
        if at - half > last + 8 and at + half < _WIDTH - 4:
            last = at + half
            yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom:.1f}" y2="{bottom + 4:.1f}" stroke="#888"/>'
            yield f'<text x="{at:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">{label}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle" fill="#555">{caption}</text>'
    yield (
        f'<text x="16" y="{bottom / 2 + 40:.1f}" text-anchor="middle" fill="#555" '
        f'transform="rotate(-90 16 {bottom / 2 + 40:.1f})">runs</text>'
    )
    yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{bottom}" y2="{bottom}" stroke="#888"/>'


def _columns(
    count: Any, edges: Floats, x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    for runs, start, end in zip(count.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if runs:
            yield (
                f'<rect x="{x(start):.1f}" y="{y(runs):.1f}" width="{max(1.0, x(end) - x(start) - 1):.1f}" '
                f'height="{y(0) - y(runs):.1f}" fill="{PALETTE[0]}">'
                f"<title>{runs:,} runs from {show_time(start)} to {show_time(end)}</title></rect>"
            )


def _marks(marks: Mapping[str, float], x: Callable[[float], float]) -> Iterator[str]:
    """Lines with labels above, the latest on top; labels in the right half are left of their lines."""
    for row, (name, value) in enumerate(sorted(marks.items(), key=lambda mark: (-mark[1], mark[0]))):
        at, height = x(value), _TITLE + _LINE * row
        side, anchor = (-5, "end") if at > _WIDTH / 2 else (5, "start")
        label = f"{name}: {show_time(value)}"
        yield (
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{height}" y2="{_HEIGHT - _BOTTOM}" stroke="#222" '
            f'stroke-dasharray="4 3"/>{white_behind(label, _SIZE, at + side, height + 11, anchor)}'
            f'<text x="{at + side:.1f}" y="{height + 11}" text-anchor="{anchor}" fill="#222">{markup(label)}</text>'
        )
