"""The same sweep, with the same plan, in SimGrid 4.1 and in the replay: makespans, tasks per CPU second, memory.

python -m bench.simgrid_sweep [--simgrid FOLDER]

SimGrid is built from PyPI into a virtual environment of its own, .bench-simgrid, unless it is there already. That
needs cmake, a C++ compiler and Boost's headers, and takes about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.simgrid_case import as_case, planned
from bench.simgrid_memory import peak_megabytes
from bench.tools import print_rows
from headrace.simulator.replay.replay import Replayer

CASES = (
    (400, 1_200_000),
    (10_000, 1_200_000),
    (10_000, 6_000_000),
    (100_000, 1_200_000),
    (100_000, 6_000_000),
)
"""Tasks, and bytes of the file that 50 of them share: with the larger ones the uplinks are the limit."""
AHEAD = 2
REPEATS = 3


class Measured(NamedTuple):
    """One simulator on one case."""

    makespan: float
    finish: list[float]
    """Of each task."""
    seconds: float
    """CPU time of the simulation from the plan on, the least of several."""
    megabytes: float
    again: float = 0.0
    """CPU time to carry the plan out once more, when what waits for what is known."""


def install(folder: Path) -> Path:
    """SimGrid's Python, made if need be."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([str(python), "-m", "pip", "show", "-qq", "simgrid"]).returncode:
        subprocess.run([*pip, "pybind11==2.13.6", "setuptools", "wheel"], check=True)
        subprocess.run([*pip, "--no-build-isolation", "simgrid==4.1"], check=True)
    return python


def in_simgrid(python: Path, case: Path) -> Measured:
    """A process of its own for each run."""
    libraries = next(python.parents[1].glob("lib/python*/site-packages"))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    command = [str(python), str(Path(__file__).with_name("simgrid_side.py")), str(case)]
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        runs.append(Measured(**json.loads(done.stdout)))
    return min(runs, key=lambda run: run.seconds)


def in_replay(tasks: int, shared: int) -> Measured:
    """To be called in a process of its own: memory is that of all of it, program and plan included."""
    Replayer.of(planned(50, shared), prefetch_depth=AHEAD).times()  # loads the compiled loops
    plan = planned(tasks, shared)
    whole = again = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        replayer = Replayer.of(plan, prefetch_depth=AHEAD)
        ready = time.process_time()
        _, finish = replayer.times()
        ended = time.process_time()
        whole, again = min(whole, ended - began), min(again, ended - ready)
    return Measured(float(finish.max()), finish[:tasks].tolist(), whole, peak_megabytes(), again)


def main(folder: Path) -> None:
    python = install(folder)
    rows = []
    for tasks, shared in CASES:
        with tempfile.TemporaryDirectory() as name:
            case = Path(name) / "case.json"
            case.write_text(json.dumps(as_case(planned(tasks, shared), AHEAD)))
            theirs = in_simgrid(python, case)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            ours = pool.submit(in_replay, tasks, shared).result()
        apart = float(np.abs(np.array(ours.finish) / np.array(theirs.finish) - 1).max())
        rows.append(
            (
                f"{tasks:,}",
                f"{shared / 1e6:g}",
                theirs.makespan,
                f"{ours.makespan / theirs.makespan - 1:.1e}",
                f"{apart:.1e}",
                f"{tasks / theirs.seconds:,.0f}",
                f"{tasks / ours.seconds:,.0f}",
                theirs.seconds / ours.seconds,
                f"{tasks / ours.again:,.0f}",
                theirs.megabytes,
                ours.megabytes,
            )
        )
    print_rows(
        (
            "tasks",
            "shared MB",
            "makespan s",
            "ours / SimGrid - 1",
            "finish of any task, apart at most",
            "SimGrid tasks/CPU s",
            "ours tasks/CPU s",
            "ratio",
            "ours, carried out again",
            "SimGrid MB",
            "ours MB",
        ),
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="SimGrid and the replay on the same sweep.")
    parser.add_argument("--simgrid", type=Path, default=Path(".bench-simgrid"), metavar="FOLDER")
    main(parser.parse_args().simgrid.absolute())
