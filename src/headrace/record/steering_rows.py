"""What steered Dask sessions measured: run times by key prefix and index, and speeds of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.record.database import Database
from headrace.record.probes import OLDEST

if TYPE_CHECKING:
    from headrace.record.store import Record

MOST_ROWS = 20_000
"""Tasks of which run times are kept; the newest ones."""
_LONGEST = 300
"""Characters of a prefix or an index."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS steered_tasks (prefix TEXT NOT NULL, part TEXT NOT NULL, work REAL NOT NULL,"
    " size REAL NOT NULL, measured REAL NOT NULL, PRIMARY KEY (prefix, part)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS steered_tasks_by_time ON steered_tasks (measured)",
    "CREATE TABLE IF NOT EXISTS worker_speeds (cluster TEXT NOT NULL, worker TEXT NOT NULL, speed REAL NOT NULL,"
    " measured REAL NOT NULL, PRIMARY KEY (cluster, worker)) WITHOUT ROWID",
)

Row = tuple[str, str, float, float]
"""Prefix, index, work in seconds on a worker of speed 1, bytes of the result."""


def save_steered(record: Record, rows: Iterable[Row], clock: Callable[[], float] = time.time) -> None:
    """Keep what a session measured, in place of what earlier ones did; of all, the newest 20,000 tasks."""
    database, now = _with_tables(record), clock()
    kept = [
        (prefix, index, work, size, now)
        for prefix, index, work, size in rows
        if len(prefix) <= _LONGEST and len(index) <= _LONGEST
    ]
    with database.writing() as connection:
        database.insert(
            connection, "INSERT OR REPLACE INTO steered_tasks VALUES (?, ?, ?, ?, ?)", kept[-MOST_ROWS:]
        )
        connection.execute(
            "DELETE FROM steered_tasks WHERE measured < (SELECT measured FROM steered_tasks"
            " ORDER BY measured DESC LIMIT 1 OFFSET ?)",
            (MOST_ROWS,),
        )


def steered_rows(record: Record) -> list[Row]:
    """What earlier sessions measured, the oldest first."""
    database = _with_tables(record)
    rows = database.rows(
        "SELECT prefix, part, work, size FROM steered_tasks ORDER BY measured DESC, prefix, part LIMIT ?",
        (MOST_ROWS,),
    )
    try:
        found = [(str(p), str(i), _amount(work), _amount(size)) for p, i, work, size in reversed(rows)]
    except (TypeError, ValueError) as error:
        raise database.broken(f"the record contains an invalid run time: {error}") from None
    return found


def save_speeds(
    record: Record, cluster: str, speeds: Mapping[str, float], clock: Callable[[], float] = time.time
) -> None:
    """Keep the speeds of a cluster's workers, by name, in place of those kept before."""
    database, now = _with_tables(record), clock()
    rows = [(cluster, worker, speed, now) for worker, speed in speeds.items()]
    with database.writing() as connection:
        connection.execute("DELETE FROM worker_speeds WHERE cluster = ?", (cluster,))
        database.insert(connection, "INSERT INTO worker_speeds VALUES (?, ?, ?, ?)", rows)


def saved_speeds(
    record: Record, cluster: str, workers: Iterable[str], clock: Callable[[], float] = time.time
) -> dict[str, float] | None:
    """The speeds of exactly these workers; None if others were measured, or all of them more than a day ago."""
    database = _with_tables(record)
    rows = database.rows("SELECT worker, speed, measured FROM worker_speeds WHERE cluster = ?", (cluster,))
    kept = {
        str(worker): _amount(speed) for worker, speed, measured in rows if 0 <= clock() - measured <= OLDEST
    }
    return kept if kept and set(kept) == set(workers) else None


def _amount(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not 0 <= number < 1e15:
        raise ValueError(f"{number} is not an amount")
    return number


def _with_tables(record: Record) -> Database:
    for statement in _TABLES:
        record.database.rows(statement)
    return record.database
