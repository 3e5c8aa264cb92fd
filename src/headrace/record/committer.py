"""The client's side of keeping: what workers report as kept is committed, and results become files at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from headrace.model.errors import RunStopped
from headrace.record.journal import RunRecord
from headrace.record.result_files import ResultFiles
from headrace.runtime.files import StagedFile
from headrace.runtime.hooks import RunHooks
from headrace.runtime.kept_files import Keep, Keeping, Kept
from headrace.runtime.spooled import fetch_spooled, is_spooled


class Committer:
    """Takes the reports of workers during one run."""

    def __init__(
        self, entry: RunRecord, results: ResultFiles, client: Any, say: Callable[[str], None]
    ) -> None:
        self._entry = entry
        self._results = results
        self._client = client
        self._say = say
        self._said: set[str] = set()
        self._remote: SimpleQueue[Kept | None] = SimpleQueue()
        self._fetcher: threading.Thread | None = None
        self._places: dict[str, Path] = {}
        """The kept contents of files."""

    def hooks(self, keep: Keep) -> RunHooks:
        """What the run is to call, and what its workers need."""
        kept = self._entry.kept
        return RunHooks(
            measured=self.take,
            check=self._stop_if_cancelled,
            keeping=Keeping(kept.run, str(kept.folder), kept.key, keep),
        )

    def take(self, task: str, measured: Mapping[str, Any]) -> None:
        """Commit what a worker has kept of a task's outputs."""
        for reported in measured.get("kept", ()):
            kept = Kept(*reported)
            if is_spooled(kept.file):
                self._fetch_later(kept)
            else:
                self._commit(kept)
        for item, reason in measured.get("unkept", ()):
            self._warn(item, reason, task)
        if isinstance(measured, dict):
            measured.pop("kept", None)  # its contents are not needed twice

    def complete(self, results: Mapping[str, Any]) -> ResultFiles:
        """Wait for everything: what is still to be fetched, and all results as files."""
        if self._fetcher is not None:
            self._remote.put(None)
            while self._fetcher.is_alive():
                self._fetcher.join(0.5)
        for item, value in results.items():
            self._results.offer_value(item, value)
        self._results.finish()
        return self._results

    def located(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Results in which files have the paths at which they are now."""
        found = dict(results)
        for item, value in results.items():
            if isinstance(value, StagedFile):
                place = self._results.files.get(item) or self._places.get(item) or Path(value.path)
                found[item] = replace(value, path=str(place.absolute()) if str(place) != "." else "")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # After an error too, results that are there are written, as far as there is room.
        self._results.finish(wait=False)

    def _commit(self, kept: Kept) -> None:
        self._entry.keep(kept)
        if kept.is_staged:
            self._places[kept.item] = self._entry.kept.folder / kept.file
        self._results.offer(kept)

    def _fetch_later(self, kept: Kept) -> None:
        if self._fetcher is None:
            self._fetcher = threading.Thread(target=self._fetch_all, name="fetch kept values", daemon=True)
            self._fetcher.start()
        self._remote.put(kept)

    def _fetch_all(self) -> None:
        while (kept := self._remote.get()) is not None:
            try:
                name = fetch_spooled(self._client, kept.file, self._entry.kept.folder)
            except OSError as error:
                self._warn(kept.item, f"cannot be fetched: {error.strerror}")
                continue
            self._commit(replace(kept, file=name))

    def _warn(self, item: str, reason: str, task: str = "") -> None:
        if reason not in self._said:
            self._said.add(reason)
            self._say(f"item {item!r}{f' of task {task!r}' if task else ''} is not kept: {reason}")

    def _stop_if_cancelled(self) -> None:
        if self._entry.cancelled:
            raise RunStopped(
                "cancelled", where=f"run {self._entry.id}", hint=f"headrace resume {self._entry.id}"
            )
