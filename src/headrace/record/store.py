"""The record: all runs, in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.model.errors import BadFile, UsageError
from headrace.model.events import RuleDropped
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.predict.history import Measurement
from headrace.record.database import Database
from headrace.record.identity import LifeSign, program_digest, time_stamp
from headrace.record.journal import RunRecord
from headrace.record.rows import PlanRow, RunRow, TaskRow, TransferRow

FILE_NAME = "record.sqlite"
_Row = TypeVar("_Row")


class Record:
    """A folder with a database of runs and their results.

    >>> import tempfile
    >>> import headrace as hr
    >>> program = hr.Program("one")
    >>> done = program.task(None, work=1.0)
    >>> with tempfile.TemporaryDirectory() as folder, Record.open(Path(folder)) as record:
    ...     with record.begin("one", program.graph, hr.Platform.pairwise([1.0], bandwidth=1e6), "heft") as run:
    ...         run.finish("done", makespan=1.0)
    ...     [(row.program, row.scheduler, row.status, row.makespan) for row in record.runs()]
    [('one', 'heft', 'done', 1.0)]
    """

    def __init__(self, folder: Path, database: Database, clock: Callable[[], float]) -> None:
        self.folder = folder
        self._database = database
        self._clock = clock

    @classmethod
    def open(cls, folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> Self:
        """Open the record in a folder, creating it if needed; defaults to $HEADRACE_HOME or ./.headrace.

        Runs whose process is gone are marked as lost.
        """
        chosen = Path(folder or os.environ.get("HEADRACE_HOME") or ".headrace").absolute()
        try:
            for part in (chosen, chosen / "results", chosen / "alive"):
                part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(
                f"the record's folder cannot be created: {error.strerror}",
                where=str(chosen),
                hint="set HEADRACE_HOME to a writable folder",
            ) from None
        record = cls(chosen, Database(chosen / FILE_NAME), clock)
        try:
            record._mark_lost()
        except BaseException:
            record.close()
            raise
        return record

    def close(self) -> None:
        self._database.close()

    @property
    def database(self) -> Database:
        """The database, for modules that keep tables of their own in it."""
        return self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(
        self,
        program_name: str,
        graph: Graph,
        platform: Platform,
        scheduler_name: str,
        plan: Plan | None = None,
    ) -> RunRecord:
        """Start recording a run: O(tasks + reads)."""
        started = self._clock()
        digest = program_digest(graph)
        with self._database.writing() as connection:
            run, results = self._new_run(connection, time_stamp(started))
            life = LifeSign(self.folder / "alive" / run)
            try:
                bound = plan.bound if plan is not None else None
                self._database.insert(
                    connection,
                    "INSERT INTO runs VALUES (?, ?, ?, ?, ?, 'running', ?, NULL, NULL, ?)",
                    [(run, program_name, digest, platform.name, scheduler_name, started, bound)],
                )
                if plan is not None:
                    rows = ((run, t.id, t.host, t.start, t.finish) for t in plan.tasks())
                    self._database.insert(connection, "INSERT INTO plans VALUES (?, ?, ?, ?, ?)", rows)
            except BaseException:
                life.end()
                raise
        return RunRecord(run, self._database, graph, results, life, self._clock)

    def runs(self) -> list[RunRow]:
        """All runs, oldest first."""
        return self._read(RunRow, "SELECT * FROM runs ORDER BY started, id")

    def run(self, run: str) -> RunRow:
        """One run by its id."""
        found = self._read(RunRow, "SELECT * FROM runs WHERE id = ?", (run,))
        if not found:
            latest = ", ".join(row.id for row in self.runs()[-3:]) or "none so far"
            raise UsageError(
                f"there is no run {run!r}",
                where=str(self.folder),
                hint=f"use a recorded run; the latest: {latest}",
            )
        return found[0]

    def tasks(self, run: str) -> list[TaskRow]:
        """Executions of tasks in a run, in the order they ended; a task that ran twice is listed twice."""
        query = (
            "SELECT t.task, kind, host, start, finish, input_bytes, output_bytes, status, error,"
            " coalesce(location, '') FROM tasks t LEFT JOIN results r ON r.run = t.run AND r.task = t.task"
            " WHERE t.run = ? ORDER BY seq"
        )
        return self._read(TaskRow, query, (self.run(run).id,))

    def transfers(self, run: str) -> list[TransferRow]:
        """Transfers in a run, in the order they ended."""
        query = "SELECT item, source, target, start, finish, size FROM transfers WHERE run = ? ORDER BY seq"
        return self._read(TransferRow, query, (self.run(run).id,))

    def dropped_rules(self, run: str) -> list[RuleDropped]:
        """The rules that a run has left out, because they could not be kept any more, in order."""
        query = "SELECT time, rule, why FROM dropped_rules WHERE run = ? ORDER BY rowid"
        return self._read(RuleDropped, query, (self.run(run).id,))

    def planned(self, run: str) -> list[PlanRow]:
        """The planned tasks of a run, sorted by start; empty if it had no plan."""
        query = "SELECT task, host, start, finish FROM plans WHERE run = ? ORDER BY rowid"
        return self._read(PlanRow, query, (self.run(run).id,))

    def measurements(self, kinds: Iterable[str] | None = None) -> list[Measurement]:
        """Measured run times, oldest first, of these kinds or of all tasks with a kind."""
        query = (
            "SELECT kind, host, max(0, t.finish - t.start), input_bytes"
            " FROM tasks t JOIN runs r ON r.id = t.run WHERE t.status = 'done' AND kind != ''"
            " ORDER BY r.started + t.finish, seq"
        )
        wanted = None if kinds is None else set(kinds)
        return [m for m in self._read(Measurement, query) if wanted is None or m.kind in wanted]

    def item_sizes(self, graph: Graph) -> dict[str, float]:
        """Size of each item in bytes, from the latest run of this program that measured it."""
        query = (
            "SELECT item, size FROM items i JOIN runs r ON r.id = i.run WHERE digest = ?"
            " ORDER BY r.started, r.id"
        )
        return dict(self._read(lambda item, size: (item, size), query, (program_digest(graph),)))

    def _read(self, make: Callable[..., _Row], query: str, values: tuple[Any, ...] = ()) -> list[_Row]:
        try:
            return [make(*row) for row in self._database.rows(query, values)]
        except (TypeError, ValueError, UsageError) as error:
            raise self._database.broken(f"the record contains an invalid row: {error}") from None

    def _new_run(self, connection: Connection, stamp: str) -> tuple[str, Path]:
        """The first free id of this second, under the write lock; existing results are not overwritten."""
        number = 1
        while True:
            run = f"{stamp}-{number:03d}"
            taken = connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone()
            results = self.folder / "results" / run
            if taken is None:
                try:
                    results.mkdir()
                    return run, results
                except FileExistsError:
                    pass
                except OSError as error:
                    raise BadFile(
                        f"the results folder cannot be created: {error.strerror}",
                        where=str(results),
                        hint="set HEADRACE_HOME to a folder that you may write to",
                    ) from None
            number += 1

    def _mark_lost(self) -> None:
        running = [run for (run,) in self._database.rows("SELECT id FROM runs WHERE status = 'running'")]
        for run in running:
            sign = self.folder / "alive" / str(run)
            if LifeSign.seen(sign):
                continue
            with self._database.writing() as connection:
                query = "UPDATE runs SET status = 'lost' WHERE id = ? AND status = 'running'"
                connection.execute(query, (run,))
            sign.unlink(missing_ok=True)
