"""The commands in the texts run, in order, in a folder with the examples: what a reader types works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import headrace
from headrace.arrays.code_cache import cache_root

ROOT = Path(__file__).parents[1]
SOURCE = Path(headrace.__file__).parents[1]
BLOCK = re.compile(r"^```(?:console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"[Ss]ave this as\s+`([^`]+)`:\s+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAILED = -1
"""The text shows an error, and not its exit code."""
WRITES_FILES = ("docs/guide-campaign.md", "docs/from-simgrid.md")
"""Texts whose Python blocks write files that their commands read."""
NOT_RUN = {
    r"\b[A-Z]{3,}(\.toml)?\b(?!=)": "stands for a name that the reader chooses",
    r"(tls|ssh)://|--source w0|--adapt|--duration": "needs a cluster, or takes long",
    r"\b2026\d{4}-\d{6}-\d{3}\b|headrace resume last$": "names a run of the author",
    r"headrace stream .*--deployment": "starts sixteen hosts: too many for a busy machine",
    r"headrace (ui|demo|warmup|reproduce|--install-completion)": "has tests of its own",
}
TEXTS = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "tutorial",
            "guide-plan",
            "guide-simulate",
            "guide-run",
            "guide-clusters",
            "guide-rules",
            "guide-page",
            "guide-deploy",
            "guide-streams",
            "guide-coschedule",
            "guide-campaign",
            "guide-experiments",
            "guide-command",
            "schedulers",
            "formats",
            "writing-a-scheduler",
            "from-snakemake",
            "from-simgrid",
        )
    ),
)


class Step(NamedTuple):
    """A command line, and the exit code that the text shows; or a file that it shows."""

    line: str
    code: int
    file: str = ""


def steps(text: str) -> list[Step]:
    """Files to save and commands to type, in the order of the text."""
    found = [(m.start(), [Step(m.group(2), 0, m.group(1))]) for m in SAVED.finditer(text)]
    found += [(m.start(), typed(m.group(1))) for m in BLOCK.finditer(text)]
    return [step for _, group in sorted(found) for step in group]


def typed(block: str) -> list[Step]:
    """The commands of a block with their exit codes: those of `echo $?`, or FAILED if an error is shown."""
    block = re.sub(r"\\\n\s*", "", block)
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    commands = []
    for number, part in enumerate(parts):
        line, _, shown = part.partition("\n")
        if not line.startswith(("headrace", "sed ")):
            continue
        after = parts[number + 1] if number + 1 < len(parts) else ""
        code = FAILED if re.search(r"^error:", shown, re.MULTILINE) else 0
        if after.startswith("echo $?"):
            code = int(after.split("\n")[1])
        if not shown.startswith("^C"):
            commands.append(Step(re.sub(r"\s+# .*", "", line), code))
    return commands


def why_not_run(line: str) -> str:
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), "")


def test_commands_of_a_block() -> None:
    block = "$ headrace plan a \\\n    --on b  # text\n  makespan\n$ headrace check c\nerror: no\n$ echo $?\n3\n$ ls\n"
    assert typed(block) == [Step("headrace plan a --on b", 0), Step("headrace check c", 3)]
    assert why_not_run("headrace plan PROGRAM --on x") != ""
    assert why_not_run("headrace plan a.json --on x --json") == ""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("text", TEXTS)
def test_commands_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    command = tmp_path / ".bin" / "headrace"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m headrace.cli "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        "HEADRACE_HOME": str(tmp_path / ".record"),
        "HEADRACE_CACHE_DIR": str(cache_root()),
    }
    ran = 0
    if text in WRITES_FILES:
        monkeypatch.chdir(tmp_path)
        names: dict[str, object] = {"__name__": "documentation"}
        for block in PYTHON.findall((ROOT / text).read_text()):
            exec(compile(block, text, "exec"), names)
    for line, code, file in steps((ROOT / text).read_text()):
        if file:
            (tmp_path / file).write_text(line)
        elif not why_not_run(line):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", line],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
            )
            as_shown = done.returncode == code or (code == FAILED and done.returncode in (1, 2, 3))
            assert as_shown, f"{line}\nexit code {done.returncode}\n{done.stderr[-2000:]}"
            ran += 1
    assert ran > 0
