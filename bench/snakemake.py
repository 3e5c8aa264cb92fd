"""A Snakemake workflow on emulated hosts of speeds 4, 2, 1, 1: its own schedulers, and Headrace's.

    python -m bench.snakemake [--unit 1.0] [--repeats 3]

Needs `make snakemake`. The workflow is that of tests/integrations: 25 jobs of unequal length. `greedy` and `ilp` do not
choose hosts: their jobs run on the fastest host that is free when they start. "headrace, first" knows no run times, and
"headrace, again" those of the run before. Seconds are from the first start of a job to the last end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.integrations.snakemake_runs import HOSTS, PYTHON, run_workflow

from bench.tools import print_rows


def once(folder: Path, unit: float, *options: str) -> float:
    done = run_workflow(folder, *options, unit=unit)
    if done.code != 0:
        raise SystemExit(done.text)
    return done.seconds


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--unit", type=float, default=1.0, help="seconds of the shortest jobs on a host of speed 1"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(list(arguments))
    if not PYTHON.exists():
        raise SystemExit("there is no .venv-snakemake: make snakemake")
    seconds: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            ours = ("--scheduler", "headrace", "--scheduler-headrace-hosts", HOSTS)
            ours += ("--scheduler-headrace-record", str(folder / "record"))
            for label, chosen in (
                ("greedy", ("--scheduler", "greedy")),
                ("ilp", ("--scheduler", "ilp")),
                ("headrace, first", ours),
                ("headrace, again", ours),
            ):
                seconds.setdefault(label, []).append(once(folder / "work", options.unit, *chosen))
                print(label, seconds[label][-1], file=sys.stderr, flush=True)
    base = median(seconds["greedy"])
    rows = [(label, median(s), min(s), max(s), base / median(s)) for label, s in seconds.items()]
    print_rows(("scheduler", "seconds, median", "least", "most", "greedy / this"), rows)


if __name__ == "__main__":
    main(sys.argv[1:])
