"""The record: all runs, in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from socket import gethostname
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.model.arguments import checked_path
from headrace.model.errors import BadFile, UsageError
from headrace.model.events import RuleDropped
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.predict.history import Measurement
from headrace.record.database import Database
from headrace.record.identity import LifeSign, program_digest, time_stamp
from headrace.record.journal import RunRecord
from headrace.record.kept import KeptFolder, record_key
from headrace.record.private import private_folder
from headrace.record.queries import NEWEST, measured_rows, newest_sizes
from headrace.record.rows import PlanRow, ResultRow, RunRow, Session, TaskRow, TransferRow
from headrace.runtime.kept_files import Kept

FILE_NAME = "record.sqlite"
_Row = TypeVar("_Row")
_RUN = "id, program, digest, platform, scheduler, status, started, finished, makespan, bound"


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
    def open(cls, folder: str | Path | None = None, *, clock: Callable[[], float] = time.time) -> Self:
        """Open the record in a folder, creating it if needed; defaults to $HEADRACE_HOME or ./.headrace.

        Runs whose process is gone are marked as lost.
        """
        if folder is not None:
            folder = checked_path(folder, "folder of the record")
        chosen = Path(folder or os.environ.get("HEADRACE_HOME") or ".headrace").absolute()
        private_folder(chosen, ("results", "alive", "kept"))
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
        *,
        digest: str = "",
        launch: str = "",
    ) -> RunRecord:
        """Start recording a run: O(tasks + reads).

        `launch` is what `resume` needs to find the program again; see `headrace.record.launch`.
        """
        started = self._clock()
        with self._database.writing() as connection:
            run, results = self._new_run(connection, time_stamp(started))
            life = LifeSign(self.folder / "alive" / run)
            try:
                bound = plan.bound if plan is not None else None
                names = (run, program_name, digest or program_digest(graph), platform.name, scheduler_name)
                self._database.insert(
                    connection,
                    "INSERT INTO runs VALUES (?, ?, ?, ?, ?, 'running', ?, NULL, NULL, ?, ?)",
                    [(*names, started, bound, launch)],
                )
                session = self._new_session(connection, run, started, plan)
            except BaseException:
                life.end()
                raise
        return self._recording(session, graph, results, life)

    def resume(self, run: str, graph: Graph, plan: Plan | None = None) -> RunRecord:
        """Go on recording a run whose process has ended; `graph` is what is left of its program."""
        row = self.run(run)
        with self._database.writing() as connection:
            changed = connection.execute(
                "UPDATE runs SET status = 'running' WHERE id = ? AND status != 'running'", (row.id,)
            )
            if changed.rowcount == 0:
                raise UsageError(f"run {row.id} is running", hint=f"headrace cancel {row.id}")
            life = LifeSign(self.folder / "alive" / row.id)
            try:
                session = self._new_session(connection, row.id, self._clock(), plan)
            except BaseException:
                life.end()
                raise
        results = self.folder / "results" / row.id
        results.mkdir(mode=0o700, exist_ok=True)
        return self._recording(session, graph, results, life)

    def cancel(self, run: str) -> None:
        """Ask the process of a run to end it; it does so within a second or two, unless it hangs."""
        row = self.run(run)
        if row.status != "running":
            raise UsageError(f"run {row.id} is not running: {row.status}", hint="headrace runs")
        LifeSign.ask_to_stop(self.folder / "alive" / row.id)

    def kept_folder(self, run: str) -> KeptFolder:
        """Where the kept values of a run are."""
        return KeptFolder(run, self.folder / "kept" / run, record_key(self.folder))

    def logs_folder(self, run: str) -> Path:
        """The folder of what the tasks of a run have printed; it exists if one has."""
        return self.folder / "logs" / run

    def runs(self) -> list[RunRow]:
        """All runs, oldest first."""
        return self._read(RunRow, f"SELECT {_RUN} FROM runs ORDER BY started, id")

    def last(self) -> RunRow:
        """The latest run."""
        found = self._read(RunRow, f"SELECT {_RUN} FROM runs ORDER BY started DESC, id DESC LIMIT 1")
        if not found:
            raise UsageError("there are no runs", where=str(self.folder), hint="headrace run PROGRAM")
        return found[0]

    def run(self, run: str) -> RunRow:
        """One run by its id; `last` is the latest."""
        if run.lower() == "last":
            return self.last()
        found = self._read(RunRow, f"SELECT {_RUN} FROM runs WHERE id = ?", (run,))
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
            " coalesce(location, ''), session FROM tasks t LEFT JOIN"
            " (SELECT task, min(location) AS location FROM results WHERE run = ?1 GROUP BY task) r"
            " ON r.task = t.task WHERE t.run = ?1 ORDER BY seq"
        )
        return self._read(TaskRow, query, (self.run(run).id,))

    def results(self, run: str) -> list[ResultRow]:
        """Results of a run that were written to files, by name."""
        query = "SELECT item, task, location, checksum, size FROM results WHERE run = ? ORDER BY item"
        return self._read(ResultRow, query, (self.run(run).id,))

    def kept(self, run: str) -> list[Kept]:
        """Committed values of a run, in the order they were committed."""
        query = "SELECT item, file, content, checksum, size FROM kept WHERE run = ? ORDER BY rowid"
        return self._read(_kept, query, (self.run(run).id,))

    def drop_intermediates(self, run: str, results: Collection[str]) -> None:
        """Forget the kept values of a run that are not results."""
        self.forget_kept(run, [kept.item for kept in self.kept(run) if kept.item not in results])

    def forget_kept(self, run: str, items: Collection[str]) -> None:
        """Forget that items were kept; a run that needs them makes them again."""
        dropped = [(run, item) for item in items]
        with self._database.writing() as connection:
            self._database.insert(connection, "DELETE FROM kept WHERE run = ? AND item = ?", dropped)

    def sessions(self, run: str) -> list[Session]:
        """When and where a run was begun and resumed."""
        query = "SELECT run, number, started, host FROM sessions WHERE run = ? ORDER BY number"
        return self._read(Session, query, (self.run(run).id,))

    def launch(self, run: str) -> str:
        """What was stored with `begin`."""
        return str(self._database.rows("SELECT launch FROM runs WHERE id = ?", (self.run(run).id,))[0][0])

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

    def measurements(self, kinds: Iterable[str] | None = None, newest: int = NEWEST) -> list[Measurement]:
        """Measured run times, oldest first, of these kinds or of all tasks with a kind.

        The `newest` of each kind on each host are returned, so that the cost does not grow with the record.
        """
        return self._made(Measurement, measured_rows(self._database, kinds, newest))

    def item_sizes(self, graph: Graph) -> dict[str, float]:
        """Size of each item in bytes, from the latest run of this program that measured it."""
        produced = int((graph.producer >= 0).sum())
        return newest_sizes(self._database, program_digest(graph), produced)

    def _read(self, make: Callable[..., _Row], query: str, values: tuple[Any, ...] = ()) -> list[_Row]:
        return self._made(make, self._database.rows(query, values))

    def _made(self, make: Callable[..., _Row], rows: Iterable[tuple[Any, ...]]) -> list[_Row]:
        try:
            return [make(*row) for row in rows]
        except (TypeError, ValueError, UsageError) as error:
            raise self._database.broken(f"the record contains an invalid row: {error}") from None

    def _recording(self, session: Session, graph: Graph, results: Path, life: LifeSign) -> RunRecord:
        try:
            kept = self.kept_folder(session.run)
            kept.create()
        except BaseException:
            life.end()
            raise
        return RunRecord(self._database, graph, session, results, kept, life, self._clock)

    def _new_session(self, connection: Connection, run: str, started: float, plan: Plan | None) -> Session:
        """Number the session and store its plan, in place of earlier plans for the same tasks."""
        (number,) = connection.execute("SELECT count(*) FROM sessions WHERE run = ?", (run,)).fetchone()
        (offset,) = connection.execute(
            "SELECT coalesce(max(finish), 0) FROM tasks WHERE run = ?", (run,)
        ).fetchone()
        session = Session(run, number + 1, started, gethostname(), offset)
        row = (run, session.number, session.started, session.host)
        self._database.insert(connection, "INSERT INTO sessions VALUES (?, ?, ?, ?)", [row])
        if plan is not None:
            if number:
                again = ((run, t.id) for t in plan.tasks())
                self._database.insert(connection, "DELETE FROM plans WHERE run = ? AND task = ?", again)
            rows = ((run, t.id, t.host, offset + t.start, offset + t.finish) for t in plan.tasks())
            self._database.insert(connection, "INSERT INTO plans VALUES (?, ?, ?, ?, ?)", rows)
        return session

    def _new_run(self, connection: Connection, stamp: str) -> tuple[str, Path]:
        """The first free id of this second, under the write lock; existing results are not overwritten."""
        number = 1
        while True:
            run = f"{stamp}-{number:03d}"
            taken = connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone()
            results = self.folder / "results" / run
            if taken is None:
                try:
                    results.mkdir(mode=0o700)
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


def _kept(item: str, file: str, content: bytes | None, checksum: str, size: float) -> Kept:
    """A row as it was written by us; a file name that could leave the folder is not one of ours."""
    if "/" in file or file.startswith("."):
        raise ValueError(f"file name {file!r}")
    return Kept(str(item), str(file), content, str(checksum), int(size))
