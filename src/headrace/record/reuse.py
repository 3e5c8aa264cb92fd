"""Kept values by the identity of what made them: how one run finds what another has made.

The values are those that runs keep anyway (`headrace.record.kept`). The identity of each item of a run is noted
before the run starts, so that whatever is committed can be found, also if the run is killed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.program import Program
from headrace.record.code_parts import Code, Part
from headrace.record.database import Database
from headrace.record.task_identity import TaskFacts, program_identities
from headrace.runtime.kept_files import Kept

if TYPE_CHECKING:
    from headrace.record.store import Record

MOST_TASKS = 20_000
"""Larger programs are not noted."""
LARGEST_INPUT = 1 << 28
"""Bytes of an input that is read to note a program."""
_MAX_BYTES = 64_000_000
_AT_ONCE = 500
_TABLES = (
    "CREATE TABLE IF NOT EXISTS task_identities (run TEXT NOT NULL, task TEXT NOT NULL, identity TEXT NOT NULL,"
    " code TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (run, task)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS task_identities_by_identity ON task_identities (identity)",
    "CREATE TABLE IF NOT EXISTS item_identities (identity TEXT NOT NULL, run TEXT NOT NULL, item TEXT NOT NULL,"
    " PRIMARY KEY (identity, run, item)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS item_identities_by_item ON item_identities (run, item)",
    "CREATE TABLE IF NOT EXISTS task_codes (digest TEXT PRIMARY KEY, parts BLOB NOT NULL) WITHOUT ROWID",
)
_KEPT = (
    "SELECT i.identity, k.item, k.file, {content}, k.checksum, k.size, k.run FROM item_identities i"
    " JOIN kept k ON k.run = i.run AND k.item = i.item"
)


@dataclass(frozen=True)
class Noted:
    """What is known of a task of an earlier run."""

    run: str
    facts: TaskFacts


def with_tables(record: Record) -> Database:
    """The database with the tables of this module."""
    database = record.database
    for statement in _TABLES:
        database.rows(statement)
    return database


def note_identities(
    record: Record, run: str, facts: Iterable[TaskFacts], items: Mapping[str, str], codes: Mapping[str, Code]
) -> None:
    """Record the identities of a run's tasks and of the items that they make: O(tasks + items), one transaction."""
    database = with_tables(record)
    with database.writing() as connection:
        database.insert(
            connection,
            "INSERT OR REPLACE INTO task_identities VALUES (?, ?, ?, ?, ?)",
            ((run, each.task, each.identity, each.code, each.text()) for each in facts),
        )
        database.insert(
            connection,
            "INSERT OR REPLACE INTO item_identities VALUES (?, ?, ?)",
            ((identity, run, item) for item, identity in items.items()),
        )
        database.insert(
            connection,
            "INSERT OR IGNORE INTO task_codes VALUES (?, ?)",
            ((digest, _packed(code)) for digest, code in codes.items()),
        )


def note_program(record: Record, run: str, program: Program, base: Path) -> None:
    """Record the identities of a program that runs as it is, so that experiments can use what it makes.

    Large programs and those with large inputs are left out: it would take longer than it is worth.
    """
    if len(program.tasks) <= MOST_TASKS:
        found = program_identities(program, base, largest=LARGEST_INPUT)
        note_identities(
            record, run, found.tasks.values(), {i: found.items[i] for i in program.producer}, found.codes
        )


def find_kept(record: Record, wanted: Iterable[str], *, contents: bool = True) -> dict[str, list[Kept]]:
    """The kept values of each identity, newest first: O(wanted), or O(values kept) if that is less.

    Without `contents` only whether there are any, not what they are.
    """
    database = with_tables(record)
    query = _KEPT.format(content="k.content" if contents else "NULL")
    names = list(dict.fromkeys(wanted))
    ((stored,),) = database.rows("SELECT count(*) FROM kept")
    rows: list[tuple[Any, ...]] = []
    if len(names) > stored:
        known = set(names)
        rows = [row for row in database.rows(query) if row[0] in known]
    else:
        for k in range(0, len(names), _AT_ONCE):
            some = names[k : k + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows += database.rows(f"{query} WHERE i.identity IN ({marks})", some)
    found: dict[str, list[Kept]] = {}
    for identity, item, file, content, checksum, size, run in sorted(
        rows, key=lambda row: row[-1], reverse=True
    ):
        if "/" in file or file.startswith(".") or "/" in run or run.startswith("."):
            raise database.broken("the record contains an invalid row: a file name that is not its own")
        found.setdefault(identity, []).append(Kept(item, file, content, checksum, int(size), run))
    return found


def intact_kept(
    record: Record, wanted: Iterable[str], say: Callable[[str], None] = lambda text: None
) -> dict[str, Kept]:
    """A kept value of each identity that is as it was committed: O(bytes). Damaged ones are named and forgotten."""
    good: dict[str, Kept] = {}
    damaged: dict[str, list[str]] = {}
    folders: dict[str, Any] = {}
    for identity, candidates in find_kept(record, wanted).items():
        for kept in candidates:
            folder = folders.get(kept.run)
            if folder is None:
                folder = folders[kept.run] = record.kept_folder(kept.run)
            problem = folder.problem(replace(kept, run=""))
            if not problem:
                good[identity] = kept
                break
            say(f"item {kept.item!r} of run {kept.run} is lost, and is made again if it is needed: {problem}")
            damaged.setdefault(kept.run, []).append(kept.item)
    for run, items in damaged.items():
        record.forget_kept(run, items)
    return good


def noted_tasks(record: Record, identity: str) -> list[Noted]:
    """The runs that noted a task of this identity, newest first."""
    database = with_tables(record)
    query = (
        "SELECT run, task, identity, code, facts FROM task_identities WHERE identity = ? ORDER BY run DESC"
    )
    return [_noted(database, row) for row in database.rows(query, (identity,))]


def tasks_like(record: Record, task: str, runs: Iterable[str] = ()) -> list[Noted]:
    """Earlier tasks of this name, newest first; only of these runs, if any are given."""
    database = with_tables(record)
    query = "SELECT run, task, identity, code, facts FROM task_identities WHERE task = ? ORDER BY run DESC LIMIT 50"
    chosen = set(runs)
    rows = [row for row in database.rows(query, (task,)) if not chosen or row[0] in chosen]
    return [_noted(database, row) for row in rows]


def noted_of_run(record: Record, run: str) -> list[Noted]:
    """The tasks that a run noted."""
    database = with_tables(record)
    query = "SELECT run, task, identity, code, facts FROM task_identities WHERE run = ?"
    return [_noted(database, row) for row in database.rows(query, (run,))]


def _noted(database: Database, row: tuple[Any, ...]) -> Noted:
    run, task, identity, code, text = row
    try:
        read = json.loads(text)
        facts = TaskFacts(
            identity, task, str(read["base"]), code, read["parameters"], read["inputs"], read["declared"],
            read["labels"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise database.broken(f"the facts of task {task!r} cannot be read: {error}") from None
    return Noted(run, facts)


def code_parts(record: Record, digest: str) -> tuple[Part, ...]:
    """The parts of a code that was noted; empty if it was not."""
    database = with_tables(record)
    rows = database.rows("SELECT parts FROM task_codes WHERE digest = ?", (digest,))
    if not rows:
        return ()
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(rows[0][0], _MAX_BYTES)
        if unpacking.unconsumed_tail:
            raise ValueError("too large")
        return tuple(Part(*each) for each in json.loads(text))
    except (zlib.error, ValueError, TypeError) as error:
        raise database.broken(f"a code cannot be read: {error}") from None


def _packed(code: Code) -> bytes:
    return zlib.compress(json.dumps([list(part) for part in code.parts]).encode(), 1)
