"""What happened, kept: `Record.open().begin(...)` for a run, `Record.open().runs()` for all."""

from headrace.record.journal import RunRecord
from headrace.record.rows import PlanRow, RunRow, TaskRow, TransferRow
from headrace.record.store import Record

__all__ = ["PlanRow", "Record", "RunRecord", "RunRow", "TaskRow", "TransferRow"]
