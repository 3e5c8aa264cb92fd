"""Flipped bits in stored results, and experiments that are killed at random moments."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.experiments_case import fresh, recorded, truth, write_case
from bench.resume_flips import flip_file, flipped
from headrace.record import Record
from headrace.record.verify import verify
from headrace.runtime.cluster import Cluster, open_local
from headrace.sweeping import sweep

_LIMIT = 120.0
"""Seconds for an experiment that nobody kills,"""
_TOO_LONG = -1
"""and its exit code if it takes longer."""


@dataclass
class Flips:
    """What became of flipped bits."""

    flipped: int = 0
    found: int = 0
    wrong: int = 0

    def __str__(self) -> str:
        return f"{self.flipped} bits flipped: {self.found} found and repaired, {self.wrong} wrong results"


def flips(folder: Path, wanted: int, seed: int) -> Flips:
    """Flip bits in the results of an experiment, small ones and files, and execute it again."""
    file = _with_large_results(write_case(folder / "case"))
    home = folder / "home"
    expected = truth(file)
    counts, rng = Flips(), random.Random(seed)
    with open_local(2) as cluster:
        _sweep(file, home, cluster, [])
        while counts.flipped < wanted:
            with Record.open(home) as record:
                hit = _damage(record, rng, min(20, wanted - counts.flipped))
            told: list[str] = []
            _sweep(file, home, cluster, told)
            counts.flipped += len(hit)
            counts.found += sum(any(repr(item) in text for text in told) for item in hit)
            counts.wrong += recorded(home) != expected
            with Record.open(home) as record:
                counts.wrong += sum(len(verify(record, run.id).problems) for run in record.runs())
    return counts


def _with_large_results(file: Path) -> Path:
    """The case with a second result of each combination that is kept as a file."""
    more = 'many = program.task(large, inputs=[one], outputs=["many"], name="large")\n'
    text = (file.parent / "case.py").read_text()
    text = text.replace(
        "def unrelated",
        "def large(x):\n    return bytes(range(256)) * 40 + str(x).encode()\n\n\ndef unrelated",
    )
    (file.parent / "case.py").write_text(text + more)
    return file


def _sweep(file: Path, home: Path, cluster: Cluster, told: list[str]) -> Any:
    fresh()
    done = sweep(file, cluster, record=home, scheduler="dask", learn=False, say=told.append)
    assert done.failure is None, done.failure
    return done


def _damage(record: Record, rng: random.Random, most: int) -> list[str]:
    """Flip a bit in the newest copy of each of some results; returns their items."""
    rows = record.database.rows(
        "SELECT max(k.run), k.item, k.file, k.content FROM kept k JOIN item_identities i ON i.run = k.run AND"
        " i.item = k.item WHERE i.identity IN (SELECT identity FROM experiment_results) GROUP BY i.identity"
    )
    chosen = rng.sample(rows, min(most, len(rows)))
    for run, item, file, content in chosen:
        if file:
            flip_file(record.kept_folder(run).folder / file, rng)
        else:
            with record.database.writing() as connection:
                values = (flipped(content, rng), run, item)
                connection.execute("UPDATE kept SET content = ? WHERE run = ? AND item = ?", values)
    return [str(item) for _, item, _, _ in chosen]


@dataclass
class Kills:
    """What became of killed experiments."""

    kills: int = 0
    cases: int = 0
    repeated: int = 0
    wrong: int = 0
    damaged: int = 0
    failed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = f"; failed: {self.failed[:3]}" if self.failed else ""
        return (
            f"{self.kills} kills in {self.cases} experiments: {self.repeated} committed tasks repeated, "
            f"{self.wrong} wrong results, {self.damaged} problems in the store{told}"
        )


def kills(folder: Path, wanted: int, seed: int) -> Kills:
    """Execute experiments of slow tasks, kill them at random moments, and execute them again until they are done."""
    counts, rng = Kills(), random.Random(seed)
    while counts.kills < wanted:
        case = folder / f"case-{counts.cases}"
        file = _slow(write_case(case))
        expected = truth(file)
        home = case / "home"
        left = rng.randint(2, 8)
        while left and counts.kills < wanted:
            hit = _killed(file, home, rng.uniform(1.0, 5.0))
            counts.kills += hit
            left = left - 1 if hit else 0
        code = _killed(file, home, None)
        if code:
            counts.failed.append("took too long" if code == _TOO_LONG else f"exit {code}")
        counts.cases += 1
        counts.wrong += recorded(home) != expected
        with Record.open(home) as record:
            counts.repeated += _repeated(record)
            counts.damaged += sum(len(verify(record, run.id).problems) for run in record.runs())
        shutil.rmtree(case)
    return counts


def _slow(file: Path) -> Path:
    text = (file.parent / "case.py").read_text()
    text = text.replace(
        '    """A number that changes', '    __import__("time").sleep(0.02)\n    """A number that changes'
    )
    (file.parent / "case.py").write_text(text)
    toml = file.read_text().replace("[1, 2, 3]", "{ from = 1, to = 20, steps = 20 }")
    file.write_text(toml)
    return file


def _killed(file: Path, home: Path, after: float | None) -> int:
    """Execute the experiment as a command and kill it after so many seconds; whether it was still running then.

    Without a time: its exit code.
    """
    environment = {**os.environ, "HEADRACE_HOME": str(home)}
    argv = [sys.executable, "-m", "headrace.cli", "sweep", str(file), "--workers", "2", "--scheduler", "heft"]
    process = subprocess.Popen(
        argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        code = process.wait(_LIMIT if after is None else after)
        return code if after is None else 0
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.2)
        return 1 if after is not None else _TOO_LONG


def _repeated(record: Record) -> int:
    """Tasks that were executed in a run although an earlier run had committed what they make."""
    rows = record.database.rows(
        "SELECT count(*) FROM tasks t JOIN task_identities i ON i.run = t.run AND i.task = t.task"
        " WHERE t.status = 'done' AND EXISTS (SELECT 1 FROM item_identities x JOIN kept k ON k.run = x.run AND"
        " k.item = x.item WHERE x.identity = i.identity AND x.run < t.run)"
    )
    return int(rows[0][0])
