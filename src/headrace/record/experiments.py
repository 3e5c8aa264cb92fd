"""Experiments in the record: their combinations, the identity of each result, and the values of results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace.model.errors import HeadraceError, UsageError
from headrace.record.database import Database
from headrace.record.reuse import find_kept
from headrace.record.reuse import with_tables as with_identities
from headrace.runtime.files import FileData, StagedFile

if TYPE_CHECKING:
    from headrace.record.store import Record

Scalar: TypeAlias = str | float | int | None
_LONGEST = 20_000
"""Characters of a text that is kept as the value of a result; of a longer one only its beginning."""
_MOST_KEYS = 100
_TABLES = (
    "CREATE TABLE IF NOT EXISTS experiments (id INTEGER PRIMARY KEY, name TEXT NOT NULL, file TEXT NOT NULL,"
    " started REAL NOT NULL, run TEXT NOT NULL, points INTEGER NOT NULL, alone INTEGER NOT NULL,"
    " tasks INTEGER NOT NULL, reused INTEGER NOT NULL, parameters TEXT NOT NULL, finished REAL)",
    "CREATE INDEX IF NOT EXISTS experiments_by_name ON experiments (name, id)",
    "CREATE TABLE IF NOT EXISTS experiment_parameters (experiment INTEGER NOT NULL, point INTEGER NOT NULL,"
    " name TEXT NOT NULL, value, PRIMARY KEY (experiment, point, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS experiment_results (experiment INTEGER NOT NULL, point INTEGER NOT NULL,"
    " name TEXT NOT NULL, identity TEXT NOT NULL, PRIMARY KEY (experiment, point, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS experiment_tasks (experiment INTEGER NOT NULL, task TEXT NOT NULL,"
    " identity TEXT NOT NULL, reused_from TEXT NOT NULL, PRIMARY KEY (experiment, task)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS item_values (identity TEXT NOT NULL, key TEXT NOT NULL, value,"
    " PRIMARY KEY (identity, key)) WITHOUT ROWID",
)


@dataclass(frozen=True)
class ExperimentRow:
    """One execution of an experiment."""

    id: int
    name: str
    file: str
    started: float
    run: str
    """The run in which what was missing was made; "" if nothing was."""
    points: int
    alone: int
    """Tasks if every combination ran by itself."""
    tasks: int
    """Distinct tasks."""
    reused: int
    """Tasks that did not run because what they make was kept."""
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Results of an experiment: a row for each combination."""

    experiment: ExperimentRow
    columns: tuple[str, ...]
    rows: list[dict[str, Scalar]]
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class NewExperiment:
    """What is noted when an experiment is executed."""

    name: str
    file: str
    started: float
    alone: int
    reused: int
    parameters: Sequence[str]
    points: Iterable[tuple[int, Mapping[str, Any]]]
    results: Iterable[tuple[int, str, str]]
    """Number of the combination, name of the result, identity of its item."""
    tasks: Mapping[str, tuple[str, str]]
    """Identity of each distinct task, and the run it is reused from, or ""."""


def with_tables(record: Record) -> Database:
    """The database with the tables of this module and of identities."""
    database = with_identities(record)
    for statement in _TABLES:
        database.rows(statement)
    return database


def note_experiment(record: Record, new: NewExperiment) -> int:
    """Record an experiment that is about to be executed, as a whole or not at all; returns its number."""
    database = with_tables(record)
    points = list(new.points)
    with database.writing() as connection:
        added = connection.execute(
            "INSERT INTO experiments (name, file, started, run, points, alone, tasks, reused, parameters)"
            " VALUES (?, ?, ?, '', ?, ?, ?, ?, ?)",
            (new.name, new.file, new.started, len(points), new.alone, len(new.tasks), new.reused,
             json.dumps(list(new.parameters))),
        )  # fmt: skip
        number = int(added.lastrowid or 0)
        rows: Iterable[tuple[Any, ...]]
        rows = ((number, point, name, value) for point, labels in points for name, value in labels.items())
        database.insert(connection, "INSERT INTO experiment_parameters VALUES (?, ?, ?, ?)", rows)
        rows = ((number, *result) for result in new.results)
        database.insert(connection, "INSERT INTO experiment_results VALUES (?, ?, ?, ?)", rows)
        rows = ((number, task, *of) for task, of in new.tasks.items())
        database.insert(connection, "INSERT INTO experiment_tasks VALUES (?, ?, ?, ?)", rows)
    return number


def note_run(record: Record, experiment: int, run: str) -> None:
    """Record the run that makes what an experiment lacks."""
    with with_tables(record).writing() as connection:
        connection.execute("UPDATE experiments SET run = ? WHERE id = ?", (run, experiment))


def note_finished(record: Record, experiment: int, finished: float) -> None:
    """Record that an experiment does not need kept values any more."""
    with with_tables(record).writing() as connection:
        connection.execute("UPDATE experiments SET finished = ? WHERE id = ?", (finished, experiment))


def experiments(record: Record, name: str | None = None) -> list[ExperimentRow]:
    """All executions of experiments, or those of one, oldest first."""
    database = with_tables(record)
    query = "SELECT id, name, file, started, run, points, alone, tasks, reused, parameters FROM experiments"
    chosen = database.rows(f"{query} WHERE name = ? ORDER BY id", (name,)) if name else None
    rows = database.rows(f"{query} ORDER BY id") if chosen is None else chosen
    try:
        return [_row(row) for row in rows]
    except (ValueError, TypeError) as error:
        raise database.broken(f"the record contains an invalid row: {error}") from None


def _row(row: tuple[Any, ...]) -> ExperimentRow:
    number, name, file, started, run, points, alone, tasks, reused, parameters = row
    known = tuple(map(str, json.loads(parameters)))
    return ExperimentRow(number, name, file, started, run, points, alone, tasks, reused, known)


def latest(record: Record, name: str) -> ExperimentRow:
    """The latest execution of an experiment."""
    found = experiments(record, name)
    if not found:
        known = sorted({row.name for row in experiments(record)})
        raise UsageError(
            f"there is no experiment {name[:80]!r}",
            where=str(record.folder),
            hint=f"one of {', '.join(known[:10])}" if known else "headrace sweep FILE",
        )
    return found[-1]


def fill_values(record: Record, experiment: int, say: Callable[[str], None] = lambda text: None) -> None:
    """Note the values of results that are kept and have none yet: O(new results), each verified as it is read."""
    database = with_tables(record)
    wanted = [
        str(identity)
        for (identity,) in database.rows(
            "SELECT DISTINCT identity FROM experiment_results r WHERE experiment = ?"
            " AND NOT EXISTS (SELECT 1 FROM item_values v WHERE v.identity = r.identity)",
            (experiment,),
        )
    ]
    rows: list[tuple[str, str, Scalar]] = []
    for identity, candidates in find_kept(record, wanted).items():
        for kept in candidates:
            try:
                value = record.kept_folder(kept.run).load(replace(kept, run=""))
            except HeadraceError as error:
                say(f"result {kept.item!r} is damaged: {error.problem}")
                continue
            except Exception as error:  # unpickling a value runs its code
                value = f"({type(error).__name__}: it cannot be read here)"
            rows += [(identity, key, each) for key, each in plain_values(value)]
            break
    with database.writing() as connection:
        database.insert(connection, "INSERT OR REPLACE INTO item_values VALUES (?, ?, ?)", rows)


def plain_values(value: Any) -> list[tuple[str, Scalar]]:
    """A result as values of a table: a number or text as it is, a dictionary by its keys, others described.

    >>> plain_values({"score": 2.5, "n": 3}), plain_values(np.zeros((2, 2)))
    ([('score', 2.5), ('n', 3)], [('', 'array float64 (2, 2)')])
    """
    if isinstance(value, dict) and 0 < len(value) <= _MOST_KEYS and all(isinstance(k, str) for k in value):
        return [(key, _plain(each)) for key, each in value.items()]
    return [("", _plain(value))]


def _plain(value: Any) -> Scalar:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.shape == ()):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, str):
        return value if value is None else value[:_LONGEST]
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value) if abs(value) < 1e300 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, FileData):
        return _of_file(value)
    if isinstance(value, StagedFile):
        return value.path or value.name
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape}"
    try:
        return json.dumps(value, allow_nan=False)[:_LONGEST]
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__qualname__})"


def _of_file(file: FileData) -> Scalar:
    """A small file: the number that it holds, or its text."""
    try:
        text = file.data.decode().strip()
    except UnicodeDecodeError:
        return f"file {file.name} of {len(file.data)} bytes"
    try:
        number = float(text)
        return number if math.isfinite(number) else text
    except ValueError:
        return text[:_LONGEST]


def results_table(record: Record, name: str, say: Callable[[str], None] = lambda text: None) -> Table:
    """The results of the latest execution of an experiment: O(combinations * columns).

    A result that is a dictionary has a column for each key: `result.key`, and `key` alone if no other column has
    that name.
    """
    row = latest(record, name)
    fill_values(record, row.id, say)
    database = with_tables(record)
    rows: dict[int, dict[str, Scalar]] = {}
    query = "SELECT point, name, value FROM experiment_parameters WHERE experiment = ? ORDER BY point"
    for point, column, value in database.rows(query, (row.id,)):
        rows.setdefault(point, {"point": point})[column] = value
    for point in range(row.points):
        rows.setdefault(point, {"point": point})
    query = (
        "SELECT r.point, r.name, v.key, v.value FROM experiment_results r LEFT JOIN item_values v"
        " ON v.identity = r.identity WHERE r.experiment = ? ORDER BY r.point, r.name"
    )
    found = database.rows(query, (row.id,))
    called = _column_names({(n, k) for _, n, k, _ in found if k is not None}, row.parameters)
    for point, result, key, value in found:
        if key is not None:
            rows[point][called[result, key]] = value
        else:
            rows[point].setdefault(result, None)
    made = [rows[point] for point in sorted(rows)]
    order = dict.fromkeys(["point", *row.parameters])
    for each in made:
        order.update(dict.fromkeys(each))
    columns = tuple(name for name in order if any(name in each for each in made))
    return Table(row, columns, [{c: each.get(c) for c in columns} for each in made], row.parameters)


def _column_names(keys: set[tuple[str, str]], taken: Sequence[str]) -> dict[tuple[str, str], str]:
    """
    >>> sorted(_column_names({("score", ""), ("fit", "slope"), ("other", "slope")}, ()).values())
    ['fit.slope', 'other.slope', 'score']
    """
    used = {*taken, "point", *(name for name, key in keys if not key)}
    count: dict[str, int] = {}
    for _, key in keys:
        count[key] = count.get(key, 0) + 1
    return {
        (name, key): name if not key else key if count[key] == 1 and key not in used else f"{name}.{key}"
        for name, key in keys
    }
