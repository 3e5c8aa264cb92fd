"""A deployment as SVG: clusters as boxes, a square per host, flows with widths proportional to their MB/s."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.formats.files import require_svg, write_file
from headrace.model.deployment import Deployment, Placement
from headrace.report.deployment_cells import Band, Cell, Content, Row, content
from headrace.report.layout import LABEL_SIZE, LINE, MARGIN, TITLE_SIZE, wrap
from headrace.report.palette import PALETTE
from headrace.report.text import clean, markup, shorten, white_behind

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_INK, _FAINT, _ALARM = "#222", "#555", "#bb2200"
_SQUARE, _GAP = 9.0, 3.0
_MOST_SQUARES, _FEW_SQUARES, _MANY_ROWS = 60, 20, 8
"""Maximum squares in a cell, and with many clusters; with more hosts, a square represents several."""
_CELL = 132.0
_PAD = 9.0
_PER_LINE = int((_CELL - 2 * _PAD + _GAP) // (_SQUARE + _GAP))
_LABELS = 110.0
"""Width in pixels of cluster names."""
_WIDEST = 34.0
"""Width in pixels of the widest band."""
_LABELLED_BANDS = 24
Point = tuple[float, float]


def write_deployment(path: str | Path, deployment: Deployment, width: int = 1100) -> None:
    """Draw a deployment into a file."""
    require_svg(path)
    write_file(path, deployment_svg(deployment, width).encode())


def deployment_svg(deployment: Deployment, width: int = 1100) -> str:
    """The drawing as SVG text: rows are clusters, columns are filters in topological order.

    A square is a host (or several, if there are many); darker squares are busier. Red marks resources that limit
    the throughput. O(placements + flows); its size depends on clusters and filters, not on hosts.
    """
    shown = content(deployment)
    plan = _arrange(deployment, shown, width)
    colours = {f.name: PALETTE[k % len(PALETTE)] for k, f in enumerate(deployment.problem.pipeline.order)}
    notes = _notes(deployment, shown, plan)
    height = plan.bottom + 14 + len(notes) * LINE + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{plan.width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {plan.width:.0f} {height:.0f}" role="img" font-family="{_FONT}" '
        f'font-size="{LABEL_SIZE:g}" fill="{_INK}"><title>{markup(_title(deployment))}</title>',
        f'<rect width="{plan.width:.0f}" height="{height:.0f}" fill="#fff"/>',
        *(
            _text(
                MARGIN,
                MARGIN + TITLE_SIZE - 2 + i * 20,
                line,
                f' font-size="{TITLE_SIZE:g}" font-weight="600"',
            )
            for i, line in enumerate(plan.title)
        ),
        *_headings(deployment, shown, plan, colours),
        *(part for row in shown.rows for part in _cluster(row, plan)),
        *_flows(shown, plan, colours),
        *(part for row in shown.rows for cell in row.cells.values() for part in _cell(cell, plan, colours)),
        *(
            _text(MARGIN, plan.bottom + 24 + i * LINE, line, f' fill="{paint}"')
            for i, (line, paint) in enumerate(notes)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Layout: boxes of rows by cluster, upper left corners and heights of cells."""

    width: float
    title: Sequence[str]
    headings: float
    bottom: float
    column_x: Sequence[float]
    rows: dict[str, tuple[float, float]]
    cells: dict[tuple[str, str], tuple[float, float, float]]
    squares: int
    """Maximum number in a cell."""


def _arrange(deployment: Deployment, shown: Content, width: float) -> _Plan:
    """Columns spread over the width, rows one below the other."""
    columns = len(shown.columns)
    left = MARGIN + _LABELS
    width = max(float(width), left + columns * (_CELL + 60) + MARGIN)
    step = (width - MARGIN - _PAD - _CELL - left - _PAD) / max(1, columns - 1)
    column_x = [left + _PAD + step * k for k in range(columns)]
    title = wrap(_title(deployment), TITLE_SIZE, width - 2 * MARGIN)
    headings = MARGIN + len(title) * 20 + 14
    y = headings + 2 * LINE * max(len(names) for names in shown.columns) - 4
    squares = _MOST_SQUARES if len(shown.rows) <= _MANY_ROWS else _FEW_SQUARES
    rows: dict[str, tuple[float, float]] = {}
    cells: dict[tuple[str, str], tuple[float, float, float]] = {}
    for row in shown.rows:
        bottom = y + 44.0
        for x, names in zip(column_x, shown.columns, strict=True):
            top = y + _PAD
            for cell in (row.cells[name] for name in names if name in row.cells):
                tall = _cell_height(len(_groups(cell, squares)))
                cells[row.cluster, cell.filter] = (x, top, tall)
                top += tall + 8
                bottom = max(bottom, top + _PAD - 8)
        rows[row.cluster] = (y, bottom)
        y = bottom + 12
    return _Plan(width, title, headings, y - 12, column_x, rows, cells, squares)


def _cell_height(squares: int) -> float:
    return 2 * _PAD + math.ceil(squares / _PER_LINE) * (_SQUARE + _GAP) + 2 * LINE - 4


def _groups(cell: Cell, most: int) -> list[Sequence[Placement]]:
    """The hosts of each square: consecutive hosts, grouped so that there are not too many squares."""
    each = math.ceil(len(cell.placements) / most)
    return [cell.placements[i : i + each] for i in range(0, len(cell.placements), each)]


def _title(deployment: Deployment) -> str:
    problem = deployment.problem
    return clean(
        f"{problem.pipeline.name} on {problem.platform.name}: {deployment.throughput:.4g} MB/s, "
        f"{len(deployment.hosts_used)} of {len(problem.platform.hosts)} hosts, by {deployment.planner}"
    )


def _headings(deployment: Deployment, shown: Content, plan: _Plan, colours: dict[str, str]) -> Iterator[str]:
    """Filter names above the columns, with their total number of copies."""
    for x, names in zip(plan.column_x, shown.columns, strict=True):
        for i, name in enumerate(names):
            y = plan.headings + 2 * LINE * i
            yield f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="11" height="11" rx="2" fill="{colours[name]}"/>'
            yield _text(x + 17, y, shorten(clean(name), 13, _CELL - 17), ' font-size="13" font-weight="600"')
            copies = deployment.copies(name)
            yield _text(
                x + 17, y + 14, f"{copies} {'copy' if copies == 1 else 'copies'}", f' fill="{_FAINT}"'
            )


def _cluster(row: Row, plan: _Plan) -> Iterator[str]:
    top, bottom = plan.rows[row.cluster]
    stroke = f'stroke="{_ALARM}" stroke-width="2"' if row.limits else 'stroke="#c9ced6"'
    yield (
        f'<rect x="{MARGIN:g}" y="{top:.1f}" width="{plan.width - 2 * MARGIN:.1f}" '
        f'height="{bottom - top:.1f}" rx="6" fill="#f4f5f7" {stroke}/>'
    )
    label = shorten(clean(row.cluster), 13, _LABELS - _PAD)
    yield _text(MARGIN + _PAD, top + 20, label, ' font-size="13" font-weight="600"')
    yield _text(MARGIN + _PAD, top + 36, f"{row.used} of {row.hosts} hosts", f' fill="{_FAINT}"')


def _flows(shown: Content, plan: _Plan, colours: dict[str, str]) -> Iterator[str]:
    """Bands between cells, side by side where several leave or enter a cell; thin ones on top."""
    ends = _band_ends(shown.bands, plan)
    scale = _scale(shown.bands)
    ordered = sorted(shown.bands, key=lambda band: -band.rate)
    labels: list[str] = []
    for band in ordered:
        (x1, y1), (x2, y2) = ends[band.source, band.target]
        bend = (x2 - x1) / 2
        wide = max(0.8, band.rate * scale)
        colour = _ALARM if band.limits else colours[band.source[1]]
        text = f"{band.source[1]} at {band.source[0]} to {band.target[1]} at {band.target[0]}: {band.rate:.4g} MB/s"
        yield (
            f'<path d="M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}" '
            f'stroke="{colour}" stroke-width="{wide:.1f}" stroke-opacity="{0.85 if band.limits else 0.5}" '
            f'fill="none"><title>{markup(text)}</title></path>'
        )
        if len(ordered) <= _LABELLED_BANDS:
            x, y, rate = (x1 + x2) / 2, (y1 + y2) / 2 + 4, f"{band.rate:.3g}"
            labels.append(
                white_behind(rate, LABEL_SIZE, x, y, "middle") + _text(x, y, rate, ' text-anchor="middle"')
            )
    yield from labels


def _scale(bands: Sequence[Band]) -> float:
    """Pixels per MB/s: the largest total flow into or out of a cell has the full width."""
    sums: dict[tuple[bool, tuple[str, str]], float] = {}
    for band in bands:
        for key in ((False, band.source), (True, band.target)):
            sums[key] = sums.get(key, 0.0) + band.rate
    return _WIDEST / max(sums.values(), default=1.0)


def _band_ends(
    bands: Sequence[Band], plan: _Plan
) -> dict[tuple[tuple[str, str], tuple[str, str]], tuple[Point, Point]]:
    """Start and end of each band at the edges of its cells, sorted by source or target."""
    scale = _scale(bands)

    def spread(own: int) -> dict[tuple[tuple[str, str], tuple[str, str]], float]:
        at: dict[tuple[tuple[str, str], tuple[str, str]], float] = {}
        by_cell: dict[tuple[str, str], list[Band]] = {}
        for band in bands:
            by_cell.setdefault((band.source, band.target)[own], []).append(band)
        for cell, group in by_cell.items():
            group.sort(key=lambda band: plan.cells[(band.target, band.source)[own]][1])
            _, top, tall = plan.cells[cell]
            y = top + tall / 2 - sum(band.rate for band in group) * scale / 2
            for band in group:
                at[band.source, band.target] = y + band.rate * scale / 2
                y += band.rate * scale
        return at

    begin, end = spread(0), spread(1)
    return {
        key: ((plan.cells[key[0]][0] + _CELL, begin[key]), (plan.cells[key[1]][0], end[key])) for key in begin
    }


def _cell(cell: Cell, plan: _Plan, colours: dict[str, str]) -> Iterator[str]:
    """A box with its squares, their utilisation and the names of the hosts."""
    x, y, tall = plan.cells[cell.cluster, cell.filter]
    stroke = f'stroke="{_ALARM}" stroke-width="2.4"' if cell.limits else 'stroke="#b6bcc6"'
    hover = f"{cell.filter} at {cell.cluster}: {cell.copies} copies, {cell.rate:.4g} MB/s"
    yield f"<g><title>{markup(hover)}</title>"
    yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{_CELL:g}" height="{tall:.1f}" rx="4" fill="#fff" {stroke}/>'
    yield from _squares(cell, plan.squares, x + _PAD, y + _PAD, colours[cell.filter])
    busy = sum(p.busy for p in cell.placements) / max(1, cell.copies)
    hosts = len(cell.placements)
    text = f"{hosts} {'host' if hosts == 1 else 'hosts'}, {busy:.0%} busy"
    yield _text(x + _PAD, y + tall - LINE - 4, text)
    names = shorten(_names(cell.placements), LABEL_SIZE, _CELL - 2 * _PAD)
    yield _text(x + _PAD, y + tall - 7, names, f' fill="{_FAINT}"')
    yield "</g>"


def _squares(cell: Cell, most: int, x: float, y: float, colour: str) -> Iterator[str]:
    """A square per host, or per group of consecutive hosts, darker if busier."""
    for i, group in enumerate(_groups(cell, most)):
        busy = sum(p.busy for p in group) / max(1, sum(p.copies for p in group))
        left = x + i % _PER_LINE * (_SQUARE + _GAP)
        top = y + i // _PER_LINE * (_SQUARE + _GAP)
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{_SQUARE:g}" height="{_SQUARE:g}" rx="1.5" '
            f'fill="{colour}" fill-opacity="{0.25 + 0.75 * min(1.0, busy):.2f}" stroke="{colour}" '
            f'stroke-width="0.8"><title>{markup(_names(group))}: {busy:.0%} busy</title></rect>'
        )


def _names(placements: Sequence[Placement]) -> str:
    """Names of the hosts: up to three, or the first and the last."""
    hosts = [clean(p.host) for p in placements]
    return ", ".join(hosts) if len(hosts) <= 3 else f"{hosts[0]} … {hosts[-1]}"


def _notes(deployment: Deployment, shown: Content, plan: _Plan) -> list[tuple[str, str]]:
    """Notes with their colour: limits (red), unused hosts, and how to read the drawing."""
    room = plan.width - 2 * MARGIN
    most = max((len(cell.placements) for row in shown.rows for cell in row.cells.values()), default=0)
    square = "a host" if most <= plan.squares else "a host, or several in cells with many"
    texts = [(limit.text, _ALARM) for limit in deployment.limits[:4]]
    if shown.idle:
        idle = ", ".join(f"{name} ({hosts} hosts)" for name, hosts in shown.idle[:6])
        more = f" and {len(shown.idle) - 6} more" if len(shown.idle) > 6 else ""
        texts.append((f"Not used: {idle}{more}.", _FAINT))
    numbers = " and numbers on them" if len(shown.bands) <= _LABELLED_BANDS else ""
    texts.append(
        (f"A square is {square}; darker squares are busier. Widths of flows{numbers}: MB/s.", _FAINT)
    )
    return [(line, paint) for text, paint in texts for line in wrap(clean(text), LABEL_SIZE, room)]


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{markup(text)}</text>'
