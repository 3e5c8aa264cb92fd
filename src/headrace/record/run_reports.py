"""What is reported of a run besides its tasks: where its figures came from, and its makespan by cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.record.store import Record

FIGURES_ONLY = "the program's figures"
"""What a report says of the run times of a plan that no history went into."""
_MAX_CHARACTERS = 16_000_000
_TABLE = "CREATE TABLE IF NOT EXISTS run_reports (run TEXT PRIMARY KEY, report TEXT NOT NULL) WITHOUT ROWID"


def note_report(record: Record, run: str, report: Mapping[str, Any]) -> None:
    """Keep the report of a run."""
    database = record.database
    database.rows(_TABLE)
    with database.writing() as connection:
        database.insert(
            connection, "INSERT OR REPLACE INTO run_reports VALUES (?, ?)", [(run, json.dumps(report))]
        )


def report_of(record: Record, run: str) -> dict[str, Any]:
    """The report of a run; empty if there is none, as for a run that did not end."""
    database = record.database
    database.rows(_TABLE)
    rows = database.rows("SELECT report FROM run_reports WHERE run = ?", (record.run(run).id,))
    if not rows:
        return {}
    text = rows[0][0]
    try:
        if len(text) > _MAX_CHARACTERS:
            raise ValueError("it is too large")
        read = json.loads(text)
        if not isinstance(read, dict):
            raise TypeError("it is not an object")
        return read
    except (TypeError, ValueError) as error:
        raise database.broken(f"the report of run {run} cannot be read: {error}") from None


def makespan_ratios(record: Record, platform: str, newest: int = 20) -> list[float]:
    """Makespan over planned makespan of the newest complete runs on a platform, oldest first.

    They say how far the next plan may be off. Plans that were made with the program's own figures alone say nothing of
    that, and are left out. O(newest * plan).
    """
    database = record.database
    database.rows(_TABLE)
    rows = database.rows(
        "SELECT r.makespan, (SELECT max(p.finish) FROM plans p WHERE p.run = r.id) FROM runs r JOIN run_reports d"
        " ON d.run = r.id WHERE r.status = 'done' AND r.platform = ? AND r.makespan > 0"
        " AND json_valid(d.report) AND json_extract(d.report, '$.sources.run_times') != ?"
        " ORDER BY r.started DESC, r.id DESC LIMIT ?",
        (platform, FIGURES_ONLY, newest),
    )
    return [float(took) / float(planned) for took, planned in reversed(rows) if planned]
