"""A self-contained HTML page of text, tables and charts, without network requests.

Without a script in it, unless the page has data for one to draw.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from headrace.formats.files import write_file
from headrace.report.chart import Chart
from headrace.report.svg import chart_svg
from headrace.report.text import markup


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; columns of numbers are right-aligned."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Data:
    """Values that the page's script draws, such as `headrace.report.schedule_data` makes them."""

    values: Mapping[str, Any]


Part: TypeAlias = Heading | Paragraph | Table | Chart | Data

_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?( ?[%x]| [A-Za-zµ/]{1,6})?(?: [0-9]+ min)?\Z")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark }
* { box-sizing: border-box }
body { margin: 0; background: #f6f7f9; color: #1d2126; line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
main { max-width: 1240px; margin: 0 auto; padding: 24px 16px 48px; overflow-wrap: anywhere }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 8px 0 16px }
h2 { font-size: 1.2rem; margin: 32px 0 8px }
p { margin: 8px 0; max-width: 75ch }
.wide { overflow-x: auto; margin: 12px 0; background: #fff; border: 1px solid #dfe3e8; border-radius: 8px }
table { border-collapse: collapse; width: 100%; font-size: .95rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal }
th, td { padding: 7px 14px; text-align: left; border-bottom: 1px solid #e8ebef; vertical-align: top }
th { background: #f0f2f5; font-weight: 600; white-space: nowrap }
tbody tr:last-child td { border-bottom: 0 }
.n { text-align: right; white-space: nowrap }
svg { display: block; width: 100%; min-width: 680px; height: auto; border-radius: 8px }
@media (max-width: 600px) { th, td { padding: 6px 8px } table { font-size: .82rem } h1 { font-size: 1.4rem } }
@media (prefers-color-scheme: dark) {
  body { background: #12151a; color: #e6e9ee }
  .wide { background: #1a1e24; border-color: #333a44 }
  th { background: #232932 }
  th, td { border-color: #333a44 }
}
@media print { body { background: #fff } .wide { break-inside: avoid } }
"""


def page_html(title: str, parts: Iterable[Part], script: str = "") -> str:
    """The page as text; of scripts, it runs `script` only.

    >>> '<h1>a &lt; b</h1>' in page_html("a < b", [Paragraph("text")])
    True
    """
    body = "\n".join(_part(part) for part in parts)
    policy = _POLICY
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        body += f"\n<script>{script}</script>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{markup(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{markup(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def write_page(path: str | Path, title: str, parts: Iterable[Part], script: str = "") -> None:
    """Write the page atomically."""
    write_file(path, page_html(title, parts, script).encode())


def _part(part: Part) -> str:
    match part:
        case Heading(text):
            return f"<h2>{markup(text)}</h2>"
        case Paragraph(text):
            return f"<p>{markup(text)}</p>"
        case Table():
            return _table(part)
        case Data(values):
            return f'<script type="application/json">{_json(values)}</script>'
        case Chart():
            return f'<div class="wide">{chart_svg(part)}</div>'


def _json(values: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it is in."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _table(table: Table) -> str:
    columns = range(len(table.headers))
    number = [
        bool(table.rows) and all(i < len(row) and _NUMBER.match(row[i]) for row in table.rows)
        for i in columns
    ]

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = [' class="n"' if i < len(number) and number[i] else "" for i in range(len(row))]
        return "".join(f"<{tag}{kind}>{markup(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    rows = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    head = f"<thead><tr>{cells('th', table.headers)}</tr></thead>\n" if any(table.headers) else ""
    return f'<div class="wide"><table>\n{head}<tbody>\n{rows}\n</tbody></table></div>'
