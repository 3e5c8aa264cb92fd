"""The record of runs: `Record.open().begin(...)` starts one, `Record.open().runs()` lists all."""

from headrace.record.journal import RunRecord
from headrace.record.rows import PlanRow, RunRow, TaskRow, TransferRow
from headrace.record.store import Record

__all__ = ["PlanRow", "Record", "RunRecord", "RunRow", "TaskRow", "TransferRow"]
