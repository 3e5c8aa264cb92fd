"""Results as files, written while the run goes on: each whole or not at all, with its checksum in the record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import quote

from headrace.model.errors import BadFile, HeadraceError, TaskFailed
from headrace.model.program import Program
from headrace.model.units import show_time
from headrace.record.journal import RunRecord
from headrace.record.rows import ResultRow
from headrace.runtime.durable import has_no_room, write_whole
from headrace.runtime.file_trees import checksum_of_tree
from headrace.runtime.files import StagedFile
from headrace.runtime.kept_files import Kept
from headrace.runtime.results import copy_result, encode

DISK_SECONDS = 600.0
"""How long to wait for room on a full disk."""
MOST_BARE = 100
"""Results without a path that are written as files. If there are more, they are only kept in the record, where
`headrace.resume` finds them: making a file takes longer than many a task."""
_RETRY_SECONDS = 0.5


class ResultFiles:
    """Writes results in a thread of its own; `finish` waits for it.

    A result with a path is written relative to `base`, others to the run's folder of results, if they can be encoded
    and are not too many.
    On a full disk it waits, says so, and goes on when there is room; after `patience` seconds it gives up on what
    does not fit.
    """

    def __init__(
        self,
        program: Program,
        entry: RunRecord,
        base: str | Path = ".",
        *,
        say: Callable[[str], None] = lambda text: None,
        patience: float = DISK_SECONDS,
        written: Mapping[str, Path] | None = None,
    ) -> None:
        self.files: dict[str, Path] = {}
        self.failures: dict[str, HeadraceError] = {}
        self._entry = entry
        self._base = Path(base)
        self._paths = {item.name: item.path for item in program.results()}
        bare = [name for name, path in self._paths.items() if path is None]
        for name in bare if len(bare) > MOST_BARE else ():
            del self._paths[name]
        self._say = say
        self._patience = patience
        self._asked: set[str] = set()
        for item, path in (written or {}).items():
            wanted = self._paths.get(item)
            if item in self._paths and (wanted is None or path == (self._base / wanted).absolute()):
                self.files[item] = path
                self._asked.add(item)
        self._queue: SimpleQueue[tuple[str, Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"results {entry.id}", daemon=True)
        self._thread.start()

    def offer(self, kept: Kept) -> None:
        """Write a result that has been kept; other items are ignored."""
        self._put(kept.item, lambda: self._entry.kept.load(kept))

    def offer_value(self, item: str, value: Any) -> None:
        """Write a result, unless it has been offered before."""
        if item not in self._asked:
            self._put(item, lambda: value)

    def finish(self, wait: bool = True) -> None:
        """Wait until everything offered is written, or has failed; with `wait` false, not for room on the disk."""
        if not wait:
            self._patience = 0.0
        self._queue.put(None)
        # Joined in steps, so that Ctrl-C is noticed.
        while self._thread.is_alive():
            self._thread.join(_RETRY_SECONDS)
        self.files = {item: self.files[item] for item in self._paths if item in self.files}

    def _put(self, item: str, load: Callable[[], Any]) -> None:
        if item in self._paths:
            self._asked.add(item)
            self._queue.put((item, load))

    def _work(self) -> None:
        while (asked := self._queue.get()) is not None:
            item, load = asked
            try:
                self._write(item, load())
            except HeadraceError as error:
                self._failed(item, error)
            except Exception as error:  # unpickling a value runs its code
                problem = f"it cannot be read back: {type(error).__name__}: {error}"
                self._failed(item, TaskFailed(problem, where=f"result {item!r}"))

    def _failed(self, item: str, error: HeadraceError) -> None:
        if self._paths[item] is not None:
            self.failures[item] = error

    def _write(self, item: str, value: Any) -> None:
        path = self._paths[item]
        staged = isinstance(value, StagedFile)
        content, suffix = (b"", Path(value.name).suffix) if staged else encode(value, f"result {item!r}")
        if path is not None:
            target = self._base / path
            _make_folder(target, value)
        else:
            stem = quote(item, safe="")[:120]
            target = self._entry.results_folder / (stem if Path(stem).suffix else stem + suffix)
        own = path is None

        def write() -> str:
            if staged:
                return copy_result(value, target, own)
            return write_whole(target, [content], mode=0o600 if own else 0o666, durable=not own)

        size = value.size if staged else len(content)
        self._entry.stored(item, str(target.absolute()), self._written(target, write), size)
        self.files[item] = target
        self.failures.pop(item, None)

    def _written(self, target: Path, write: Callable[[], str]) -> str:
        """Write, as soon as there is room; what has no path of its own is also kept in the record, durably."""
        waited = 0.0
        while True:
            try:
                return write()
            except OSError as error:
                if not has_no_room(error) or waited >= self._patience:
                    if has_no_room(error):
                        self._patience = 0.0  # the next one does not wait again
                    raise BadFile(
                        f"cannot be written: {error.strerror}",
                        where=str(target),
                        hint="make room and resume the run"
                        if has_no_room(error)
                        else "choose a folder that you can write to",
                    ) from None
                if waited == 0.0:
                    self._say(
                        f"no room for {target}: waiting up to {show_time(self._patience)} for space on the disk"
                    )
            time.sleep(_RETRY_SECONDS)
            waited += _RETRY_SECONDS


def intact_files(results: Iterable[ResultRow]) -> dict[str, Path]:
    """Result files of an earlier session that are as they were written: O(bytes)."""
    return {row.item: Path(row.location) for row in results if not result_problem(row)}


def result_problem(row: ResultRow) -> str:
    """What is wrong with a result file; "" if it is as it was written."""
    try:
        found = checksum_of_tree(Path(row.location))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except HeadraceError as error:
        return error.problem
    if not row.checksum:
        return "was written without a checksum"
    return "" if found == row.checksum else "is not what was written"


def _make_folder(target: Path, value: Any) -> None:
    folder = isinstance(value, StagedFile) and value.folder
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if folder and target.is_dir() and any(target.iterdir()):
            raise BadFile(
                "the folder exists and is not empty",
                where=str(target),
                hint="remove it, or choose another one; headrace resume then writes it",
            )
        if target.is_dir() and not folder:
            raise IsADirectoryError(None, "Is a directory")
    except OSError as error:
        raise BadFile(
            f"cannot be written: {error.strerror}",
            where=str(target),
            hint="choose a file in an existing folder that you can write to",
        ) from None
