"""The texts hold what they promise: links lead somewhere, examples run, commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import headrace
from headrace.cli import COMMANDS
from headrace.planners.registry import ENTRIES, _by_name

ROOT = Path(__file__).parents[1]
TEXTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXECUTED = (
    ("README.md",),
    ("docs/writing-a-scheduler.md",),
    ("docs/guide-plan.md", "docs/guide-simulate.md"),
    ("docs/guide-run.md",),
    ("docs/guide-dask.md",),
    ("docs/guide-deploy.md",),
    ("docs/guide-streams.md",),
    ("docs/guide-coschedule.md",),
    ("docs/guide-campaign.md",),
    ("docs/guide-rules.md",),
    ("docs/guide-page.md",),
    ("docs/guide-experiments.md",),
    ("docs/tutorial.md",),
    ("docs/formats.md",),
    ("docs/from-dask.md",),
    ("docs/from-snakemake.md",),
    ("docs/from-saga.md",),
    ("docs/from-simgrid.md",),
)
"""The Python blocks of each group run, in order, as one program."""
ELSEWHERE = {"docs/guide-clusters.md"}
"""Texts whose Python blocks have a test of their own."""
LONG = (
    "docs/guide-dask.md",
    "docs/guide-streams.md",
    "docs/guide-deploy.md",
    "docs/guide-experiments.md",
    "docs/tutorial.md",
    "docs/from-dask.md",
    "docs/from-snakemake.md",
)
"""Texts whose programs take long: README.md and docs/guide-run.md start workers in the quick suite."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^\$ |`|\bbin/)headrace ([a-z]+)\b", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """The fragments that GitHub makes of a text's headings."""
    prose = FENCE.sub("", path.read_text())
    return {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in HEADING.findall(prose)
    }


def relative_links(path: Path) -> Iterator[tuple[Path, str]]:
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if "://" not in link:
            target, _, fragment = link.partition("#")
            yield (path.parent / target if target else path), fragment


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_relative_links_and_pictures_exist(path: Path) -> None:
    for target, fragment in relative_links(path):
        assert target.resolve().is_relative_to(ROOT), f"{target} lies outside"
        assert target.exists(), f"{target} does not exist"
        if fragment:
            assert fragment in anchors(target), f"{target.name} has no heading {fragment!r}"


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(texts, id=" ".join(texts), marks=pytest.mark.slow if texts[0] in LONG else ())
        for texts in EXECUTED
    ],
)
def test_python_blocks_run(texts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headrace.planners.registry._by_name", dict(_by_name))  # blocks may register
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "text.txt").write_text("one line\nof words\n")
    (tmp_path / "lab.toml").write_text((ROOT / "examples" / "lab.toml").read_text())
    names: dict[str, object] = {"__name__": "documentation"}
    for text in texts:
        blocks = [body for language, body in FENCE.findall((ROOT / text).read_text()) if language == "python"]
        assert blocks, f"{text} has no Python block"
        for number, body in enumerate(blocks):
            exec(compile(body, f"{text}, block {number}", "exec"), names)


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_commands_exist(path: Path) -> None:
    assert set(COMMAND.findall(path.read_text())) <= set(COMMANDS)


def test_every_command_is_described() -> None:
    used = {name for path in TEXTS for name in COMMAND.findall(path.read_text())}
    assert set(COMMANDS) <= used


def test_every_python_block_runs() -> None:
    """Texts with Python blocks are listed above; what only shows a shape is marked as text."""
    having = {named(path) for path in TEXTS if re.search("^```python$", path.read_text(), re.MULTILINE)}
    assert having == {text for group in EXECUTED for text in group} | ELSEWHERE


def test_names_of_the_package_are_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = set(re.findall(r"^::: headrace\.(\w+)$", reference, re.MULTILINE))
    assert set(headrace.__all__) <= named
    assert all(hasattr(headrace, name) for name in named)


def test_site_has_every_text() -> None:
    """The menu of the site names every text of docs/ once; the build fails on links that lead nowhere."""
    menu = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text().split("\nnav:")[1], re.MULTILINE)
    texts = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(menu) == sorted(texts | {"index.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"})


def test_citation_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [headrace.__version__]


def test_schedulers_of_the_table_exist() -> None:
    text = (ROOT / "docs" / "schedulers.md").read_text()
    listed = re.findall(r"^\| `([\w-]+)` \| ([\w ]+) \| ([\w ]+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    in_a_run = {True: "decides", False: "plans"}
    expected = [
        (e.name, e.programs, in_a_run[e.module.startswith("headrace.online.")], e.line, e.source)
        for e in ENTRIES
    ]
    assert listed == expected


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=named)
def test_pictures_are_small_and_self_contained(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 300_000
    assert not re.search(r"(?:href|src)=|url\(\s*['\"]?(?!#)|<script", text)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="make docs installs what the site needs")
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    """Links, anchors, the menu and docstrings: a warning of any of them ends the build."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(Path(headrace.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    commands = (tmp_path / "site" / "reference" / "commands.html").read_text()
    assert all(f'id="{name}"' in commands for name in COMMANDS)
    python = (tmp_path / "site" / "reference" / "python.html").read_text()
    assert all(f'id="headrace.{name}"' in python for name in headrace.__all__)
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert "<math" in (tmp_path / "site" / "model.html").read_text()
    for page in pages:
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text())
        assert not loaded, f"{page.name} loads {loaded[0]} from another machine"
