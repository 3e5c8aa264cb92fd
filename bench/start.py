"""How long commands take to start: `headrace --help`, and `headrace run` until its first task and until its end.

`run` is measured with a record that is empty, one that has a few runs of the same program, and one that has these and a
million executions of other programs' tasks. All times are elapsed seconds, the best of several; CPU seconds include
the workers.

python -m bench.start             about 60 s on an idle machine with two cores, 15 s of them for filling the record
python -m bench.start --repeats 3 --rows 100000
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.tools import best_of, print_rows

ROWS = 1_000_000
REPEATS = 7
RUN_ROWS = 1000
PROGRAM = """
import time
from contextlib import closing
from pathlib import Path
import headrace as hr

def work():
    Path({note!r}).write_text(repr(time.time()))
    return 1

program = hr.Program("one")
program.task(work, outputs=["x"], kind="work")
"""
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)"


def fill(path: Path, rows: int) -> None:
    """Add runs of other programs with as many executions, items and transfers: of this program's kind and of others."""
    values = {"count": rows, "per_run": RUN_ROWS, "runs": max(1, rows // RUN_ROWS)}
    run = "'20200101-' || printf('%06d', i / :per_run) || '-001'"
    with closing(sqlite3.connect(path)) as database:  # closing it moves all of it out of the journal
        database.execute(
            f"{_NUMBERS.replace(':count', ':runs')} INSERT INTO runs"
            " (id, program, digest, platform, scheduler, status, started, finished, makespan, bound)"
            " SELECT '20200101-' || printf('%06d', i) || '-001', 'old', 'digest' || (i % 50), 'local', 'auto', 'done',"
            " 1577836800 + i, 1577836900 + i, 100.0, 50.0 FROM n",
            values,
        )
        database.execute(
            f"{_NUMBERS} INSERT INTO tasks"
            " (run, task, kind, host, start, finish, input_bytes, output_bytes, status, error)"
            f" SELECT {run}, 't' || (i % :per_run), CASE i % 3 WHEN 0 THEN 'work' ELSE 'kind' || (i % 20) END,"
            " 'w' || (i % 4), i % 100, i % 100 + 1.5, 1e6, 1e6, 'done', '' FROM n",
            values,
        )
        database.execute(
            f"{_NUMBERS} INSERT INTO items SELECT {run}, 'x' || (i % :per_run), 1e6 FROM n", values
        )
        database.execute(
            f"{_NUMBERS} INSERT INTO transfers (run, item, source, target, start, finish, size)"
            f" SELECT {run}, 'x' || (i % :per_run), 'w0', 'w1', i % 100, i % 100 + 0.1, 1e6 FROM n",
            values,
        )
        database.commit()


def run_once(program: Path, note: Path, home: Path) -> tuple[float, float, float]:
    """Seconds until the first task and until the end, and CPU seconds, of `headrace run` in a process of its own."""
    command = [sys.executable, "-m", "headrace.cli", "run", f"{program}:program", "--workers", "1"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env=os.environ | {"HEADRACE_HOME": str(home)},
        cwd=program.parent,
    )
    ended, after = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(note.read_text()) - began, ended - began, cpu


def measure_runs(repeats: int, rows: int) -> list[tuple[object, ...]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, note = folder / "one.py", folder / "note"
        program.write_text(PROGRAM.format(note=str(note)))
        fresh, few, many = folder / "fresh", folder / "few", folder / "many"
        for _ in range(3):
            run_once(program, note, few)
        shutil.copytree(few, many)
        fill(many / "record.sqlite", rows)
        times: dict[Path, list[tuple[float, float, float]]] = {fresh: [], few: [], many: []}
        for _ in range(repeats):
            for home, seen in times.items():
                shutil.rmtree(fresh, ignore_errors=True)
                seen.append(run_once(program, note, home))
        labels = {fresh: "no record", few: "a few runs", many: f"{rows} old executions"}
        best = {
            home: tuple(min(column) for column in zip(*seen, strict=True)) for home, seen in times.items()
        }
        return [(labels[home], *best[home], best[home][1] - best[few][1]) for home in times]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen = parser.parse_args(list(arguments))
    rows = []
    for label, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("headrace --help", [sys.executable, "-m", "headrace.cli", "--help"]),
        ("headrace schedulers", [sys.executable, "-m", "headrace.cli", "schedulers"]),
    ):
        seconds, _ = best_of(
            chosen.repeats, lambda command=command: subprocess.run(command, check=True, capture_output=True)
        )
        rows.append((label, seconds))
    print_rows(("command", f"seconds, best of {chosen.repeats}"), rows)
    print_rows(
        ("headrace run of one task", "until the task", "until the end", "CPU seconds", "over a few runs"),
        measure_runs(chosen.repeats, chosen.rows),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
