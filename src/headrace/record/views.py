"""Read-only SQL over the record: documented views, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.record.experiments import with_tables

if TYPE_CHECKING:
    from headrace.record.store import Record

MOST_ROWS = 1_000_000
VIEWS = {
    "experiments": "SELECT id, name, file, datetime(started, 'unixepoch') AS started, run, points,"
    " alone AS tasks_alone, tasks, reused FROM main.experiments",
    "points": "SELECT p.experiment, e.name, p.point, sum(v.identity IS NOT NULL) = count(*) AS complete"
    " FROM main.experiment_results p JOIN main.experiments e ON e.id = p.experiment LEFT JOIN"
    " (SELECT DISTINCT identity FROM main.item_values) v ON v.identity = p.identity GROUP BY p.experiment, p.point",
    "parameters": "SELECT experiment, point, name, value FROM main.experiment_parameters",
    "tasks": "SELECT t.experiment, t.task, t.identity, CASE t.reused_from WHEN '' THEN 'run' ELSE 'reused' END AS what,"
    " CASE t.reused_from WHEN '' THEN e.run WHEN '-' THEN '' ELSE t.reused_from END AS run"
    " FROM main.experiment_tasks t JOIN main.experiments e ON e.id = t.experiment",
    "results": "SELECT r.experiment, r.point, r.name, v.key, v.value, r.identity FROM main.experiment_results r"
    " LEFT JOIN main.item_values v ON v.identity = r.identity",
    "timings": "SELECT run, task, kind, host, start, finish, finish - start AS seconds, input_bytes, output_bytes,"
    " status FROM main.tasks",
}
"""The views and what they select."""
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN_FUNCTIONS = {"load_extension", "writefile", "readfile", "edit", "fts3_tokenizer"}


def query(record: Record, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows of a query over the views; anything else than reading them is refused.

    Raises
    ------
    UsageError
        If it is not a query, is wrong, or has too many rows.
    """
    with_tables(record)
    uri = f"{record.database.path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        for name, text in VIEWS.items():
            connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorizer())
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise UsageError("this is not a query", where="--sql", hint="write select ... from results")
        rows = cursor.fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise UsageError(f"more than {MOST_ROWS} rows", where="--sql", hint="add a limit")
        return [column[0] for column in cursor.description], rows
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise UsageError(
            f"the query is refused: {error}", where="--sql", hint=f"read the views {', '.join(VIEWS)}"
        ) from None
    finally:
        connection.close()


def _authorizer() -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    """Allow to read the views, and tables only through them."""

    def allowed(
        action: int, first: str | None, second: str | None, place: str | None, view: str | None
    ) -> int:
        if action == sqlite3.SQLITE_READ:
            own = place == "temp" or (first in VIEWS and place is None)
            through = view in VIEWS
            return sqlite3.SQLITE_OK if own or through or not first else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if second in _FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

    return allowed
