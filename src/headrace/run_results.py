"""The results of a real run by name, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import NoResult, TaskFailed, UsageError
from headrace.report.frames import event_rows
from headrace.report.table_files import is_table, write_table

if TYPE_CHECKING:
    from headrace.execution import Run


class Results(dict[str, Any]):
    """Results by name; one that is not there is an error that says why."""

    def __init__(self, values: Mapping[str, Any], failure: TaskFailed | None = None) -> None:
        super().__init__(values)
        self.failure = failure

    def __missing__(self, name: str) -> Any:
        if self.failure is None:
            known = ", ".join(map(str, self)) or "none"
            raise NoResult(f"the run has no result {name!r}", hint=f"its results: {known}")
        last = self.failure.problem.rstrip().rpartition("\n")[2]  # of a traceback, the exception
        told = f"{self.failure.where}: {last}" if self.failure.where else last
        raise NoResult(
            f"the run has no result {name!r}, because it failed: {told}", hint="raise its `failure` for more"
        )


def write_run(run: Run, path: str | Path) -> None:
    """Write a run in the format that the suffix of the file selects."""
    if str(path).lower().endswith(".svg"):
        run.gantt(path)
    elif is_table(path):
        write_table(path, *event_rows(run.outcome.events, run.graph))
    else:
        raise UsageError(
            f"the suffix of {str(path)!r} selects no format for a run", hint="use .csv, .parquet or .svg"
        )
