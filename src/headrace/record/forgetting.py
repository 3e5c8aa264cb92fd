"""What is kept for reuse, and how it is deleted: first as a list, then the rows, and last the files.

Rows of the database go in one transaction before any file does: a process that is killed in between leaves files that
nothing refers to, and never a row without its file. Values that a running run or experiment uses are not deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.model.errors import UsageError
from headrace.record.experiments import experiments, with_tables
from headrace.runtime.file_trees import remove_tree

if TYPE_CHECKING:
    from headrace.record.store import Record

_STARTING = 3600.0
"""Seconds after which an experiment without a run is taken to have ended."""


@dataclass(frozen=True)
class Stored:
    """A kept value."""

    run: str
    item: str
    file: str
    size: float
    used: float
    """When a run made it, or an experiment used it, last."""
    result: bool
    """Whether it is a result of an experiment."""
    busy: bool
    """Whether something that is running may need it."""


@dataclass(frozen=True)
class Deletion:
    """What would be deleted, and what is left."""

    values: tuple[Stored, ...]
    left: int
    left_bytes: float
    experiments: tuple[int, ...] = ()
    """Executions of experiments that are forgotten."""
    runs: tuple[str, ...] = ()
    """Runs whose result files in the record's folder are deleted."""
    needed: tuple[Stored, ...] = ()
    """Values that stay because another experiment needs them."""

    @property
    def size(self) -> float:
        return sum(value.size for value in self.values)


def stored_values(record: Record) -> list[Stored]:
    """All kept values: O(values + tasks of experiments)."""
    database = with_tables(record)
    alive = {run for (run,) in database.rows("SELECT id FROM runs WHERE status = 'running'")}
    used: dict[str, float] = {}
    busy: set[str] = set()
    query = (
        "SELECT t.identity, e.started, e.run, e.finished FROM experiment_tasks t"
        " JOIN experiments e ON e.id = t.experiment"
    )
    for identity, started, run, finished in database.rows(query):
        used[identity] = max(used.get(identity, 0.0), started)
        if finished is None and (run in alive or (not run and started > time.time() - _STARTING)):
            busy.add(identity)
    results = {identity for (identity,) in database.rows("SELECT DISTINCT identity FROM experiment_results")}
    query = (
        "SELECT k.run, k.item, k.file, k.size, r.started, i.identity FROM kept k JOIN runs r ON r.id = k.run"
        " LEFT JOIN item_identities i ON i.run = k.run AND i.item = k.item"
    )
    found = []
    for run, item, file, size, started, identity in database.rows(query):
        of_task = str(identity or "").partition(".")[0]
        last = max(float(started), used.get(of_task, 0.0))
        found.append(
            Stored(run, item, file, size, last, identity in results, run in alive or of_task in busy)
        )
    return found


def plan_keeping(record: Record, older_than: float | None, most_bytes: float | None) -> Deletion:
    """Values to delete so that what is left is younger and smaller than these: O(n log n).

    Values that were not used for `older_than` seconds go. If the rest has more than `most_bytes`, those go that were
    used least recently: values that are no results first.
    """
    if older_than is None and most_bytes is None:
        raise UsageError("neither an age nor a size is given", hint="give --older-than 30d or --size 50GB")
    values = stored_values(record)
    now = time.time()
    gone: list[Stored] = []
    if older_than is not None:
        gone = [value for value in values if not value.busy and now - value.used > older_than]
    chosen = set(gone)
    rest = [value for value in values if value not in chosen]
    total = sum(value.size for value in rest)
    if most_bytes is not None:
        order = sorted((v for v in rest if not v.busy), key=lambda v: (v.result, v.used, v.run, v.item))
        for value in order:
            if total <= most_bytes:
                break
            gone.append(value)
            total -= value.size
    return Deletion(tuple(gone), len(values) - len(gone), total)


def plan_forgetting(record: Record, target: str) -> Deletion:
    """What deleting an experiment, by its name, or a run, by its id, would delete."""
    rows = experiments(record, target)
    if rows:
        numbers = tuple(row.id for row in rows)
        runs = tuple(dict.fromkeys(row.run for row in rows if row.run))
    else:
        numbers, runs = (), (record.run(target).id,)
    for run in runs:
        if record.run(run).status == "running":
            raise UsageError(f"run {run} is running", hint=f"headrace cancel {run}")
    values = stored_values(record)
    of_runs = [value for value in values if value.run in set(runs)]
    elsewhere = _needed_elsewhere(record, numbers)
    identity = _identities(record, runs)
    needed = [
        v for v in of_runs if v.busy or identity.get((v.run, v.item), "").partition(".")[0] in elsewhere
    ]
    gone = [v for v in of_runs if v not in set(needed)]
    left = sum(v.size for v in values) - sum(v.size for v in gone)
    return Deletion(tuple(gone), len(values) - len(gone), left, numbers, runs, tuple(needed))


def _needed_elsewhere(record: Record, numbers: Sequence[int]) -> set[str]:
    """Identities of the tasks of other experiments."""
    forgotten = set(numbers)
    rows = with_tables(record).rows("SELECT identity, experiment FROM experiment_tasks")
    return {identity for identity, number in rows if number not in forgotten}


def _identities(record: Record, runs: Iterable[str]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for run in runs:
        rows = record.database.rows("SELECT item, identity FROM item_identities WHERE run = ?", (run,))
        found |= {(run, item): identity for item, identity in rows}
    return found


def delete(record: Record, deletion: Deletion) -> None:
    """Carry out a deletion: rows first, in one transaction, then files."""
    database = with_tables(record)
    numbers = [(number,) for number in deletion.experiments]
    with database.writing() as connection:
        rows = [(value.run, value.item) for value in deletion.values]
        database.insert(connection, "DELETE FROM kept WHERE run = ? AND item = ?", rows)
        for table in ("experiment_parameters", "experiment_results", "experiment_tasks"):
            database.insert(connection, f"DELETE FROM {table} WHERE experiment = ?", numbers)
        database.insert(connection, "DELETE FROM experiments WHERE id = ?", numbers)
        if numbers:
            connection.execute(
                "DELETE FROM item_values WHERE identity NOT IN (SELECT identity FROM experiment_results)"
            )
        database.insert(connection, "DELETE FROM results WHERE run = ?", [(run,) for run in deletion.runs])
    for run in dict.fromkeys(value.run for value in deletion.values):
        record.kept_folder(run).drop_others(record.kept(run))
    for run in deletion.runs:
        with suppress(OSError):
            remove_tree(Path(record.folder / "results" / run))
