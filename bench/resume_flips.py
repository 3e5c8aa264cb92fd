"""Flipped bits in what runs have kept and written: each must be found, and what it damaged made again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace as hr
from bench.resume_case import Case
from headrace.formats.loading import load_program
from headrace.model.errors import RunStopped
from headrace.model.events import Event, TaskFinished
from headrace.record import Record
from headrace.record.launch import ProgramSource
from headrace.record.verify import verify
from headrace.runtime.cluster import Cluster, open_local

_MOST_AT_ONCE = 5


@dataclass
class Flips:
    """What became of the flipped bits."""

    flipped: int = 0
    found: int = 0
    repaired: int = 0
    wrong: int = 0
    """Results that were not right after a resume."""

    @property
    def missed(self) -> int:
        return 2 * self.flipped - self.found - self.repaired

    def __str__(self) -> str:
        return f"{self.flipped} bits flipped: {self.found} found, {self.repaired} repaired, {self.wrong} wrong results"


def flip_bits(folder: Path, wanted: int, seed: int) -> Flips:
    """Runs on two workers, some of them cancelled on the way, until so many bits were flipped."""
    flips = Flips()
    with open_local(2) as cluster:
        number = 0
        while flips.flipped < wanted:
            rng = random.Random(seed + number)
            case = Case.make(folder / f"{number}", seed + number)
            with inside(case.folder):
                _damage_one_run(case, cluster, rng, flips, wanted, cancelled=number % 2 == 1)
            number += 1
    return flips


def _damage_one_run(
    case: Case, cluster: Cluster, rng: random.Random, flips: Flips, wanted: int, *, cancelled: bool
) -> None:
    program = load_program("prog.py:program")
    stop_after = rng.randint(2, len(case.tasks) - 1) if cancelled else len(case.tasks) + 1
    _run(program, case, cluster, stop_after)
    for _ in range(4):
        with Record.open(case.home) as record:
            hit = damage(record, rng, min(_MOST_AT_ONCE, wanted - flips.flipped))
            problems = {(p["what"], p["name"]) for p in verify(record, "last").problems}
        flips.flipped += len(hit)
        flips.found += len(hit & problems)
        done = hr.resume("last", program, record=case.home, on=cluster)
        with Record.open(case.home) as record:
            left = {(p["what"], p["name"]) for p in verify(record, "last").problems}
        flips.repaired += len(hit - left) if done.failure is None else 0
        flips.wrong += len(case.wrong())


def _run(program: Any, case: Case, cluster: Cluster, stop_after: int) -> None:
    """Run, keeping everything, and cancel it when so many tasks have finished."""
    seen = 0

    def observe(event: Event) -> None:
        nonlocal seen
        seen += isinstance(event, TaskFinished)
        if seen == stop_after:
            with Record.open(case.home) as record:
                record.cancel("last")

    try:
        source = ProgramSource("prog.py:program")
        options = {"record": case.home, "learn": False, "keep": "all", "source": source, "observe": observe}
        hr.run(program, cluster, "dask", **options)
    except RunStopped:
        pass


def damage(record: Record, rng: random.Random, most: int) -> set[tuple[str, str]]:
    """Flip a random bit in each of some kept files, kept rows and result files; returns what they are."""
    run = record.last().id
    folder = record.kept_folder(run).folder
    places = [("kept", kept.item) for kept in record.kept(run)]
    places += [("result", row.item) for row in record.results(run)]
    hit = rng.sample(places, min(len(places), rng.randint(1, max(1, most))))
    for what, name in hit:
        if what == "result":
            flip_file(Path(next(r.location for r in record.results(run) if r.item == name)), rng)
            continue
        kept = next(k for k in record.kept(run) if k.item == name)
        if kept.file:
            flip_file(folder / kept.file, rng)
        else:
            with record.database.writing() as connection:
                values = (flipped(kept.content or b"", rng), run, name)
                connection.execute("UPDATE kept SET content = ? WHERE run = ? AND item = ?", values)
    return set(hit)


def flip_file(path: Path, rng: random.Random) -> None:
    path.write_bytes(flipped(path.read_bytes(), rng))


def flipped(content: bytes, rng: random.Random) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    bit = rng.randrange(8 * len(changed))
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """In a folder: results and inputs are found relative to it."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
