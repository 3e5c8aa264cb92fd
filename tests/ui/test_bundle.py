"""The built page belongs to its sources, is small, and asks nothing of other machines."""

from __future__ import annotations

import gzip
import re
import runpy
from pathlib import Path

from headrace.report.palette import PALETTE

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "headrace" / "ui" / "static"
MOST_BYTES = 1_200_000
"""Of the built page, compressed."""


def test_the_built_page_belongs_to_its_sources():
    tool = runpy.run_path(str(ROOT / "page" / "digest.py"))
    assert tool["KEPT"].read_text() == tool["digests"](), "run `make page` and commit what it builds"


def test_a_changed_source_is_noticed(tmp_path: Path):
    tool = runpy.run_path(str(ROOT / "page" / "digest.py"))
    tool["digest"].__globals__["ROOT"] = tmp_path
    (tmp_path / "a.ts").write_text("one")
    before = tool["digest"]([tmp_path / "a.ts"])
    (tmp_path / "a.ts").write_text("two")
    assert tool["digest"]([tmp_path / "a.ts"]) != before


def test_the_built_page_is_small():
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MOST_BYTES


def test_nothing_is_loaded_from_elsewhere():
    page = (STATIC / "index.html").read_text()
    assert all(link.startswith(("/assets/", "data:")) for link in re.findall(r'(?:src|href)="([^"]+)"', page))
    style = (STATIC / "assets" / "page.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_has_the_colours_of_the_charts():
    source = (ROOT / "page" / "src" / "palette.ts").read_text()
    assert tuple(re.findall(r'"(#[0-9a-f]{6})"', source)) == PALETTE
