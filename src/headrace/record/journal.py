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
from headrace.record.rows import ENDINGS, Status

GROUP_SIZE = 500
GROUP_SECONDS = 0.2

_INSERTS = {
    "tasks": "INSERT INTO tasks"
    " (run, task, kind, host, start, finish, input_bytes, output_bytes, status, error)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "transfers": "INSERT INTO transfers (run, item, source, target, start, finish, size)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)",
    "items": "INSERT OR REPLACE INTO items VALUES (?, ?, ?)",
    "results": "INSERT OR REPLACE INTO results VALUES (?, ?, ?)",
    "dropped_rules": "INSERT INTO dropped_rules VALUES (?, ?, ?, ?)",
}


class RunRecord:
    """The record of one run. Use it in a `with` statement, or call `finish` at the end.

    A group is committed about every 0.2 s, or every 500 rows if that is sooner: a killed process
    loses at most its last group. `observe` never waits for the disk.
    """

    def __init__(
        self,
        run_id: str,
        database: Database,
        graph: Graph,
        results_folder: Path,
        life: LifeSign,
        clock: Callable[[], float],
    ) -> None:
        self.id = run_id
        self.results_folder = results_folder
        self._database = database
        self._graph = graph
        self._life = life
        self._clock = clock
        self._task_number = {name: t for t, name in enumerate(graph.task_names)}
        self._item_number = {name: i for i, name in enumerate(graph.item_names)}
        self._size = graph.known_size.tolist()
        self._last_time = 0.0
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self._changed = threading.Condition()
        self._ending = False
        self._finished = False
        self._thread = threading.Thread(target=self._flush_groups, name=f"record {run_id}", daemon=True)
        self._thread.start()

    def observe(self, event: Event) -> None:
        """Record an event; thread-safe."""
        with self._changed:
            self._refuse_if_finished()
            self._add([(table, self._checked(row)) for table, row in self._rows_of(event)])
            self._last_time = max(self._last_time, float(event.time))

    def stored(self, task: str, location: str) -> None:
        """Record where a task's result is stored."""
        with self._changed:
            self._refuse_if_finished()
            self._add([("results", (self.id, task, location))])

    def finish(self, status: Status, makespan: float | None = None, bound: float | None = None) -> None:
        """Commit everything and close the run; the makespan defaults to the time of the last event.

        `bound` is the lower bound with measured run times, replacing the plan's.
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
            self._commit(self._waiting)
            with self._database.writing() as connection:
                connection.execute(
                    "UPDATE runs SET status = ?, finished = ?, makespan = ?, bound = coalesce(?, bound) WHERE id = ?",
                    (
                        status,
                        self._clock(),
                        self._last_time if makespan is None else makespan,
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
                row = (self.id, task, kind, host, start, finish, read, written, "done", "")
                return [("tasks", row), *(("items", (self.id, item, size)) for item, size in sizes)]
            case TaskErred(time=finish, task=task, host=host, error=error):
                kind, read = self._known(task)
                return [("tasks", (self.id, task, kind, host, None, finish, read, 0.0, "failed", error))]
            case DataMoved(time=finish, item=item, source=source, target=target, start=start, size=size):
                self._measure(item, size)
                return [("transfers", (self.id, item, source, target, start, finish, size))]
            case RuleDropped(time=time, rule=rule, why=why):
                return [("dropped_rules", (self.id, time, rule, why))]
        return []

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

    def _group_is_full(self) -> bool:
        return self._ending or len(self._waiting) >= GROUP_SIZE

    def _commit(self, group: list[tuple[str, tuple[Any, ...]]]) -> None:
        tables: dict[str, list[tuple[Any, ...]]] = {}
        for table, row in group:
            tables.setdefault(table, []).append(row)
        if tables:
            with self._database.writing() as connection:
                for table, rows in tables.items():
                    self._database.insert(connection, _INSERTS[table], rows)
