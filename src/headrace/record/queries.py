"""Questions to the record whose cost does not grow with its age."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.record.database import Database

NEWEST = 64
"""Executions of a kind on a host that are read, newest first: older ones weigh nothing in a prediction."""
NEWEST_RUNS = 20
"""Runs of a program that are searched for the size of an item, newest first."""

_NEXT_KIND = "SELECT min(kind) FROM tasks WHERE status = 'done' AND kind != '' AND kind > ?"
_NEXT_HOST = "SELECT min(host) FROM tasks WHERE status = 'done' AND kind != '' AND kind = ? AND host > ?"
_OF_KIND_ON_HOST = (
    "SELECT seq, kind, host, max(0, finish - start), input_bytes FROM tasks"
    " WHERE status = 'done' AND kind != '' AND kind = ? AND host = ? ORDER BY seq DESC LIMIT ?"
)


def measured_rows(
    database: Database, kinds: Iterable[str] | None, newest: int
) -> list[tuple[str, str, float, float]]:
    """Kind, host, seconds and input bytes of the newest executions of each kind on each host, oldest first.

    O(kinds * hosts * (newest + log rows)): the index is searched, not read.
    """
    rows: list[tuple[int, str, str, float, float]] = []
    for kind in _all_kinds(database) if kinds is None else dict.fromkeys(kinds):
        host = ""
        while (host := _following(database, _NEXT_HOST, kind, host)) != "":
            rows += database.rows(_OF_KIND_ON_HOST, (kind, host, newest))
    rows.sort(key=lambda row: row[0])
    return [row[1:] for row in rows]


def newest_sizes(database: Database, digest: str, items: int) -> dict[str, float]:
    """The latest measured size of each item of a program, from its newest runs."""
    runs = database.rows(
        "SELECT id FROM runs WHERE digest = ? ORDER BY started DESC, id DESC LIMIT ?", (digest, NEWEST_RUNS)
    )
    found: dict[str, float] = {}
    for (run,) in runs:
        found = dict(database.rows("SELECT item, size FROM items WHERE run = ?", (run,))) | found
        if len(found) >= items:
            break
    return found


def _all_kinds(database: Database) -> list[str]:
    kinds: list[str] = []
    kind = ""
    while (kind := _following(database, _NEXT_KIND, kind)) != "":
        kinds.append(kind)
    return kinds


def _following(database: Database, query: str, *values: str) -> str:
    """The next value of an index, or "" after the last."""
    return str(database.rows(query, values)[0][0] or "")


def mean_outputs(database: Database, kinds: Iterable[str]) -> dict[str, float]:
    """Mean bytes that up to 64 executions of each kind have made, for kinds with executions."""
    found: dict[str, float] = {}
    for kind in dict.fromkeys(kinds):
        rows = database.rows(
            "SELECT avg(output_bytes) FROM (SELECT output_bytes FROM tasks"
            " WHERE status = 'done' AND kind != '' AND kind = ? LIMIT ?)",
            (kind, NEWEST),
        )
        if rows[0][0] is not None:
            found[kind] = float(rows[0][0])
    return found
