"""How long `headrace --help` takes, against Python's own start.

python -m bench.start
"""

from __future__ import annotations

import subprocess
import sys

from bench.tools import best_of, print_rows


def main() -> None:
    rows = []
    for label, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("headrace --help", [sys.executable, "-m", "headrace.cli", "--help"]),
        ("headrace schedulers", [sys.executable, "-m", "headrace.cli", "schedulers"]),
    ):
        seconds, _ = best_of(
            10, lambda command=command: subprocess.run(command, check=True, capture_output=True)
        )
        rows.append((label, seconds))
    print_rows(("command", "seconds, best of 10"), rows)


if __name__ == "__main__":
    main()
