"""How soon the judge of simulated runs finds each planted bug: python -m bench.planted."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.tools import print_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from simulator.planted import SEEDS, Bug, bugs, first_violation


def search(bug: Bug) -> list[object]:
    """The first of 500 seeds that shows a bug, and what is wrong there."""
    with tempfile.TemporaryDirectory() as folder:
        bug.plant(Path(folder))
        seed, _, message = first_violation(Path(folder), 0, SEEDS).partition(" ")
    return [bug.name, bug.seed, seed or "not found", message[:90]]


def main() -> None:
    """All bugs, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        print_rows(("bug", "seed on file", "first seed", "violation"), list(pool.map(search, bugs())))


if __name__ == "__main__":
    main()
