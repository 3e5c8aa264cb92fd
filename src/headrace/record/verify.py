"""Whether the files of a run are as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.record.result_files import result_problem
from headrace.record.store import Record


@dataclass(frozen=True)
class Verified:
    """What was found out about a run."""

    run: str
    intact: int
    problems: list[dict[str, str]]
    """What it is (`result` or `kept`), its name, and the problem."""


def verify(record: Record, run: str) -> Verified:
    """Compute the checksums of a run's results and kept values again: O(bytes)."""
    found = record.run(run).id
    folder = record.kept_folder(found)
    checked = [("result", row.item, result_problem(row)) for row in record.results(found)]
    checked += [("kept", kept.item, folder.problem(kept)) for kept in record.kept(found)]
    problems = [
        {"what": what, "name": name, "problem": problem} for what, name, problem in checked if problem
    ]
    return Verified(found, len(checked) - len(problems), problems)
