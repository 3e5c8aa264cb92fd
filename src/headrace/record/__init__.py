"""The record of runs: `Record.open().begin(...)` starts one, `Record.open().runs()` lists all."""

from headrace.record.journal import RunRecord
from headrace.record.rows import PlanRow, ResultRow, RunRow, Session, TaskRow, TransferRow
from headrace.record.store import Record

__all__ = ["PlanRow", "Record", "ResultRow", "RunRecord", "RunRow", "Session", "TaskRow", "TransferRow"]
