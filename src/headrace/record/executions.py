"""Earlier executions, as predictions need them: of the same tasks, and of the same functions in other programs."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.model.graph import Graph
from headrace.predict.functions import FunctionDigest
from headrace.predict.kind_fit import OTHER
from headrace.predict.learning import Observed
from headrace.predict.parameters import TaskParameters
from headrace.record.database import Database
from headrace.record.identity import program_digest

if TYPE_CHECKING:
    from headrace.record.store import Record

SAME_PROGRAM_RUNS = 10
"""Runs of the same program that are read, newest first."""
OTHER_RUNS = 6
"""Runs of other programs that are read for each kind without executions, newest first."""
_MAX_BYTES = 64_000_000
"""Most bytes of one run's figures, unpacked."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS run_figures (run TEXT PRIMARY KEY, figures BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS run_parameters (run TEXT PRIMARY KEY, parameters BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS run_kinds (run TEXT NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL,"
    " exact TEXT NOT NULL, PRIMARY KEY (run, kind)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS run_kinds_by_code ON run_kinds (kind, code, run)",
)
_ROWS = (
    "SELECT task, kind, host, max(0, finish - start), input_bytes, start FROM tasks"
    " WHERE run = ? AND status = 'done' AND start IS NOT NULL ORDER BY seq"
)


def note_figures(
    record: Record,
    run: str,
    graph: Graph,
    functions: Mapping[str, FunctionDigest],
    parameters: Mapping[str, TaskParameters] | None = None,
) -> None:
    """Record what a run's tasks execute, and the user's run times for them: later runs compare both."""
    figures = {name: float(f"{w:.6g}") for name, w in zip(graph.task_names, graph.work.tolist(), strict=True)}
    database = _with_tables(record)
    with database.writing() as connection:
        statement = "INSERT OR REPLACE INTO run_figures VALUES (?, ?)"
        database.insert(connection, statement, [(run, _packed(figures))])
        statement = "INSERT OR REPLACE INTO run_parameters VALUES (?, ?)"
        database.insert(connection, statement, [(run, _packed(parameters or {}))])
        rows = [(run, kind, digest.code, digest.exact) for kind, digest in sorted(functions.items())]
        database.insert(connection, "INSERT OR REPLACE INTO run_kinds VALUES (?, ?, ?, ?)", rows)


def executions(
    record: Record,
    graph: Graph,
    functions: Mapping[str, FunctionDigest] | None = None,
    parameters: Mapping[str, TaskParameters] | None = None,
) -> list[Observed]:
    """Executions that say something about this program's tasks, oldest first.

    Those of the program's latest runs and, for kinds that these lack, those of other programs in which tasks of that
    kind executed the same functions. Executions with another function or other parameters count as those of other
    tasks. O(log(record) + executions in at most 10 runs and 6 for each kind).
    """
    database = _with_tables(record)
    same = [
        run
        for (run,) in database.rows(
            "SELECT id FROM runs WHERE digest = ? ORDER BY started DESC, id DESC LIMIT ?",
            (program_digest(graph), SAME_PROGRAM_RUNS),
        )
    ]
    number = {name: t for t, name in enumerate(graph.task_names)}
    found: list[Observed] = []
    for run in reversed(same):
        found += _of_run(database, run, number, functions or {}, parameters or {})
    missing = set(graph.kinds) - {one.kind for one in found} - {""}
    for kind in sorted(missing & set(functions or ())):
        assert functions is not None
        runs = database.rows(
            "SELECT run FROM run_kinds WHERE kind = ? AND code = ? ORDER BY run DESC LIMIT ?",
            (kind, functions[kind].code, OTHER_RUNS),
        )
        for (run,) in reversed(runs):
            found += [one for one in _of_run(database, run, {}, {}, {}) if one.kind == kind]
    return found


def _with_tables(record: Record) -> Database:
    database = record.database
    for statement in _TABLES:
        database.rows(statement)
    return database


def _of_run(
    database: Database,
    run: str,
    number: Mapping[str, int],
    functions: Mapping[str, FunctionDigest],
    parameters: Mapping[str, TaskParameters],
) -> list[Observed]:
    """The executions of a run; those whose function or parameters have changed since are of other tasks."""
    figures, received = _figures(database, run), _parameters(database, run)
    changed = _changed(database, run, functions)
    rows = database.rows(_ROWS, (run,))
    begun: dict[tuple[str, str], float] = {}
    for _, kind, host, _, _, start in rows:
        begun[kind, host] = min(begun.get((kind, host), math.inf), start)

    nothing = TaskParameters("", {})

    def numbered(task: str, kind: str) -> int:
        if changed.get(kind) == "code":
            return OTHER
        if kind in changed and (
            task not in received or received[task].digest != parameters.get(task, nothing).digest
        ):
            return OTHER
        return number.get(task, OTHER)

    try:
        return [
            Observed(
                kind,
                numbered(task, kind) if task in number else OTHER,
                host,
                seconds,
                size,
                figures.get(task, math.nan),
                start == begun[kind, host],
                received.get(task, nothing).numbers,
            )
            for task, kind, host, seconds, size, start in rows
        ]
    except (TypeError, UsageError) as error:
        raise database.broken(f"the record contains an invalid row: {error}") from None


def _changed(database: Database, run: str, functions: Mapping[str, FunctionDigest]) -> dict[str, str]:
    """Kinds of which the `code` or only the `parameters` of some task have changed since a run."""
    rows = database.rows("SELECT kind, code, exact FROM run_kinds WHERE run = ?", (run,))
    then = {kind: FunctionDigest(code, exact) for kind, code, exact in rows}
    return {
        kind: "code" if then[kind].code != now.code else "parameters"
        for kind, now in functions.items()
        if then.get(kind, now) != now
    }


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode(), 1)


def _unpacked(database: Database, table: str, column: str, run: str) -> dict[str, Any]:
    """What was stored of a run; empty if nothing was."""
    rows: list[tuple[Any, ...]] = database.rows(f"SELECT {column} FROM {table} WHERE run = ?", (run,))
    if not rows:
        return {}
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(rows[0][0], _MAX_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError("too large")
    read = json.loads(text)
    if not isinstance(read, dict):
        raise TypeError("not an object")
    return read


def _figures(database: Database, run: str) -> dict[str, float]:
    """The user's run time of each task in a run; empty if they were not recorded."""
    try:
        read = _unpacked(database, "run_figures", "figures", run)
        return {task: float(work) for task, work in read.items()}
    except (zlib.error, ValueError, TypeError) as error:
        raise database.broken(f"the figures of run {run} cannot be read: {error}") from None


def _parameters(database: Database, run: str) -> dict[str, TaskParameters]:
    """The parameters of each task in a run; empty if they were not recorded."""
    try:
        read = _unpacked(database, "run_parameters", "parameters", run)
        return {
            task: TaskParameters(str(digest), {str(name): float(of) for name, of in numbers.items()})
            for task, (digest, numbers) in read.items()
        }
    except (zlib.error, ValueError, TypeError, AttributeError) as error:
        raise database.broken(f"the parameters of run {run} cannot be read: {error}") from None
