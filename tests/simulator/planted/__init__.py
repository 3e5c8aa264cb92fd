"""Bugs planted into a copy of the package, to see that the judge of simulated runs finds them.

Each file NAME.toml holds a piece of the source (`old`) and what it becomes (`new`); `seed` is the first seed
that shows the bug, as `python -m bench.planted` finds it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import headrace

HERE = Path(__file__).parent
SEEDS = 500
"""A bug must show within so many seeds, one run each."""

_FIND = """
import sys
from headrace.testing.fault_runs import ALONE, fault_case, violations_of
from headrace.testing.faults import PROFILES
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    try:
        found = [str(violation) for violation in violations_of(fault_case(seed, PROFILES[seed % 8], ALONE))]
    except (ArithmeticError, LookupError, AssertionError) as broken:
        found = [f"broken: {broken!r}"]
    if found:
        print(seed, found[0])
        break
"""


@dataclass(frozen=True)
class Bug:
    """A planted bug."""

    name: str
    file: str
    old: str
    new: str
    seed: int

    def plant(self, folder: Path) -> None:
        """Put a copy of the package with this bug into a folder."""
        source = Path(headrace.__file__).parent
        copy = folder / "headrace"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"))
        text = (copy / self.file).read_text()
        if text.count(self.old) != 1:
            raise AssertionError(
                f"{self.name}: what it replaces is {text.count(self.old)} times in {self.file}"
            )
        (copy / self.file).write_text(text.replace(self.old, self.new))


def bugs() -> list[Bug]:
    """All of them, by name."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        text = tomllib.loads(path.read_text())
        found.append(Bug(path.stem, text["file"], text["old"], text["new"], text.get("seed", 0)))
    return found


def first_violation(package: Path, first: int, end: int) -> str:
    """Seed and violation of the first run that the judge complains about; empty if there is none.

    `package` is the folder that holds the package; it runs uncompiled in a process of its own.
    """
    environment = os.environ | {"PYTHONPATH": str(package), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", _FIND, str(first), str(end)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
