"""The SQLite file of a record: safe opening, grouped writes, and clear errors for corrupt files."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile
from headrace.record.private import create_private
from headrace.record.schema import VERSION, prepare_schema

APPLICATION_ID = 0x48647263
"""SQLite application id that identifies our files: "Hdrc"."""
BUSY_SECONDS = 10.0
"""How long to wait for a lock held by another process."""


class Database:
    """One connection, shared by the threads of this process under a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with suppress(OSError):  # SQLite then says what is wrong; its other files get the mode of this one
            create_private(path)
        with self._typed_errors():
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock, self._typed_errors():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """An exclusive write transaction: committed as a whole or not at all."""
        with self._lock, self._typed_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @staticmethod
    def insert(connection: sqlite3.Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows; lone surrogates, which external names may contain, become question marks."""
        connection.executemany(statement, (tuple(map(_storable, row)) for row in rows))

    def broken(self, problem: str) -> BadFile:
        return BadFile(
            problem, where=str(self.path), hint="move the file away, or set HEADRACE_HOME to another folder"
        )

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise BadFile(
                    "there is no room for the record",
                    where=str(self.path),
                    hint="make room on its disk, or set HEADRACE_HOME to a folder on another one",
                ) from None
            raise self.broken(f"the record cannot be used: {error}") from None

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA trusted_schema = OFF")
        self._refuse_others()
        self._switch_to_wal()
        # What is committed must survive a power failure: a group is flushed before it counts, which takes milliseconds.
        run("PRAGMA synchronous = FULL")
        if self._number("user_version") == VERSION:
            return
        with self.writing() as connection:
            self._refuse_others()  # another process may have created it meanwhile
            prepare_schema(connection, self._number("user_version"))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _switch_to_wal(self) -> None:
        """Retry: SQLite does not wait for a lock here."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _refuse_others(self) -> None:
        """Reject, without changing it, a file of another program or of a later version of Headrace."""
        version = self._number("user_version")
        filled = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
        if (filled or version) and self._number("application_id") != APPLICATION_ID:
            raise self.broken("this database belongs to another program")
        if version > VERSION:
            raise BadFile(
                f"the record has format version {version}, but this Headrace supports only up to {VERSION}",
                where=str(self.path),
                hint="use a newer Headrace",
            )

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _storable(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value
