"""The journal of a run: events from any thread, committed in groups by a dedicated thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.model.errors import BadProgram, HeadraceError, RunStopped, UsageError
from headrace.model.events import DataMoved, Event, RuleDropped, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.record.database import Database
from headrace.record.identity import LifeSign
from headrace.record.kept import KeptFolder
from headrace.record.rows import ENDINGS, Session, Status
from headrace.runtime.durable import flush_folder
from headrace.runtime.kept_files import Kept

GROUP_SIZE = 500
GROUP_SECONDS = 0.2

_INSERTS = {
    "tasks": "INSERT INTO tasks"
    " (run, task, kind, host, start, finish, input_bytes, output_bytes, status, error, session)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "transfers": "INSERT INTO transfers (run, item, source, target, start, finish, size)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)",
    "items": "INSERT OR REPLACE INTO items VALUES (?, ?, ?)",
    "results": "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)",
    "kept": "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?)",
    "dropped_rules": "INSERT INTO dropped_rules VALUES (?, ?, ?, ?)",
}


class RunRecord:
    """The record of one run. Use it in a `with` statement, or call `finish` at the end.

    A group is committed about every 0.2 s, or every 500 rows if that is sooner: a killed process
    loses at most its last group. `observe` never waits for the disk.
    """

    def __init__(
        self,
        database: Database,
        graph: Graph,
        session: Session,
        results_folder: Path,
        kept: KeptFolder,
        life: LifeSign,
        clock: Callable[[], float],
    ) -> None:
        self.id = session.run
        self.session = session
        self.results_folder = results_folder
        self.kept = kept
        self._database = database
        self._graph = graph
        self._life = life
        self._clock = clock
        self._task_number = {name: t for t, name in enumerate(graph.task_names)}
        self._item_number = {name: i for i, name in enumerate(graph.item_names)}
        self._size = graph.known_size.tolist()
        self._last_time = session.offset
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self._changed = threading.Condition()
        self._ending = False
        self._finished = False
        self._thread = threading.Thread(target=self._flush_groups, name=f"record {self.id}", daemon=True)
        self._thread.start()

    def observe(self, event: Event) -> None:
        """Record an event; thread-safe."""
        with self._changed:
            self._refuse_if_finished()
            self._add([(table, self._checked(row)) for table, row in self._rows_of(event)])
            self._last_time = max(self._last_time, self._since_start(event.time))

    def stored(self, item: str, location: str, checksum: str = "", size: float = 0.0) -> None:
        """Record where a result is stored."""
        number = self._item_number.get(item)
        producer = -1 if number is None else int(self._graph.producer[number])
        task = self._graph.task_names[producer] if producer >= 0 else ""
        with self._changed:
            self._refuse_if_finished()
            self._add([("results", (self.id, item, task, location, checksum, float(size)))])

    def keep(self, kept: Kept) -> None:
        """Record a kept value; it is committed when its group is, after the name of its file is durable."""
        with self._changed:
            self._refuse_if_finished()
            row = (self.id, kept.item, kept.file, kept.content, kept.checksum, float(kept.size))
            self._add([("kept", row)])

    @property
    def cancelled(self) -> bool:
        """Whether another process has asked for the end of this run."""
        return self._life.asked_to_stop

    def finish(
        self,
        status: Status,
        makespan: float | None = None,
        bound: float | None = None,
        *,
        patience: float = 0.0,
    ) -> None:
        """Commit everything and close the run; the makespan defaults to the time of the last event.

        `bound` is the lower bound with measured run times, replacing the plan's. If the rows cannot be written, as on
        a full disk, it tries again for `patience` seconds.
        """
        if status not in ENDINGS:
            raise UsageError(
                f"status is {status!r}", where=f"run {self.id}", hint=f"use one of {', '.join(ENDINGS)}"
            )
        with self._changed:
            self._refuse_if_finished()
            self._finished = self._ending = True
            self._changed.notify_all()
        self._thread.join()
        try:
            self._commit_at_last(patience)
            with self._database.writing() as connection:
                connection.execute(
                    "UPDATE runs SET status = ?, finished = ?, makespan = ?, bound = coalesce(?, bound) WHERE id = ?",
                    (
                        status,
                        self._clock(),
                        self._last_time if makespan is None else self._since_start(makespan),
                        bound,
                        self.id,
                    ),
                )
        finally:
            self._life.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            return
        if kind is None:
            self.finish("done")
        else:
            self.finish("stopped" if issubclass(kind, KeyboardInterrupt | RunStopped) else "failed")

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise UsageError("the run is finished", where=f"run {self.id}", hint="begin a new one")

    def _add(self, rows: list[tuple[str, tuple[Any, ...]]]) -> None:
        before = len(self._waiting)
        self._waiting += rows
        if before == 0 or before < GROUP_SIZE <= len(self._waiting):
            self._changed.notify_all()

    def _rows_of(self, event: Event) -> list[tuple[str, tuple[Any, ...]]]:
        match event:
            case TaskFinished(time=finish, task=task, host=host, start=start, sizes=sizes):
                kind, read = self._known(task)
                for item, size in sizes:
                    self._measure(item, size)
                written = sum(size for _, size in sizes)
                times = self._since_start(start), self._since_start(finish)
                row = (self.id, task, kind, host, *times, read, written, "done", "", self.session.number)
                return [("tasks", row), *(("items", (self.id, item, size)) for item, size in sizes)]
            case TaskErred(time=finish, task=task, host=host, error=error):
                kind, read = self._known(task)
                failed = (self._since_start(finish), read, 0.0, "failed", error, self.session.number)
                return [("tasks", (self.id, task, kind, host, None, *failed))]
            case DataMoved(time=finish, item=item, source=source, target=target, start=start, size=size):
                self._measure(item, size)
                times = self._since_start(start), self._since_start(finish)
                return [("transfers", (self.id, item, source, target, *times, size))]
            case RuleDropped(time=time, rule=rule, why=why):
                return [("dropped_rules", (self.id, self._since_start(time), rule, why))]
        return []

    def _since_start(self, time: float) -> float:
        """Seconds since the run began, without the time between its sessions."""
        return self.session.offset + float(time)

    def _checked(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Convert numbers to finite floats: one that cannot be stored would block all later rows."""
        plain = tuple(v if v is None or isinstance(v, str) else float(v) for v in row)
        for value in plain:
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(
                    f"an event holds the number {value}: {row}",
                    where=f"run {self.id}",
                    hint="give finite times and sizes",
                )
        return plain

    def _known(self, task: str) -> tuple[str, float]:
        """A task's kind and the bytes it reads, measured if possible, otherwise estimated."""
        number = self._task_number.get(task)
        if number is None:
            raise BadProgram(
                f"there is no task {task!r}", where=f"run {self.id}", hint="record the program that runs"
            )
        graph = self._graph
        return graph.kinds[graph.kind[number]], sum(self._size[i] for i in graph.reads_of(number).tolist())

    def _measure(self, item: str, size: float) -> None:
        if item in self._item_number:
            self._size[self._item_number[item]] = size

    def _flush_groups(self) -> None:
        """The writer thread: wait for a first row, then briefly for more, and commit them together."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                self._changed.wait_for(self._group_is_full, timeout=GROUP_SECONDS)
                if self._ending:
                    return
                group, self._waiting = self._waiting, []
            try:
                self._commit(group)
            except HeadraceError:
                # The rows are kept for the next attempt; `finish` makes the last one and raises its error.
                with self._changed:
                    self._waiting = group + self._waiting
                time.sleep(GROUP_SECONDS)

    def _commit_at_last(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while True:
            try:
                self._commit(self._waiting)
                return
            except HeadraceError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(GROUP_SECONDS)

    def _group_is_full(self) -> bool:
        return self._ending or len(self._waiting) >= GROUP_SIZE

    def _commit(self, group: list[tuple[str, tuple[Any, ...]]]) -> None:
        tables: dict[str, list[tuple[Any, ...]]] = {}
        for table, row in group:
            tables.setdefault(table, []).append(row)
        if tables:
            if any(row[2] for row in tables.get("kept", ())):
                flush_folder(self.kept.folder)
            with self._database.writing() as connection:
                for table, rows in tables.items():
                    self._database.insert(connection, _INSERTS[table], rows)
