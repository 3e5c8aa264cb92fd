"""Measured links in the record: what a probe found, when, and the transfers of the runs since."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from statistics import median
from typing import TYPE_CHECKING

from headrace.model.machines import MachineLinks
from headrace.predict.links import Transfer
from headrace.predict.overheads import Overheads
from headrace.record.database import Database

if TYPE_CHECKING:
    from headrace.record.store import Record

OLDEST = 24 * 3600.0
"""Seconds after which links are measured again."""
NEWEST_RUNS = 10
_LATEST_RUNS = 200
"""Runs among which those on a platform are looked for."""
_MOST_TRANSFERS = 5000
_TABLE = (
    "CREATE TABLE IF NOT EXISTS probes (cluster TEXT NOT NULL, machine TEXT NOT NULL, measured REAL NOT NULL,"
    " up REAL, down REAL, latency REAL, inside REAL, inside_latency REAL,"
    " PRIMARY KEY (cluster, machine)) WITHOUT ROWID"
)
_OVERHEADS = (
    "CREATE TABLE IF NOT EXISTS run_overheads (run TEXT PRIMARY KEY, task REAL NOT NULL, transfer REAL NOT NULL)"
    " WITHOUT ROWID"
)
_FIGURES = tuple(field.name for field in fields(MachineLinks))[1:]


@dataclass(frozen=True, slots=True)
class Probed:
    """Links as measured, and when: seconds since 1970, of the oldest of them."""

    links: tuple[MachineLinks, ...]
    measured: float


def save_links(
    record: Record, cluster: str, links: Iterable[MachineLinks], clock: Callable[[], float] = time.time
) -> None:
    """Keep what a probe of a cluster found, in place of what an earlier one did."""
    database = _with_table(record)
    now = clock()
    rows = [(cluster, link.machine, now, *(getattr(link, name) for name in _FIGURES)) for link in links]
    with database.writing() as connection:
        database.insert(connection, "INSERT OR REPLACE INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def saved_links(
    record: Record,
    cluster: str,
    machines: Iterable[str],
    oldest: float = OLDEST,
    clock: Callable[[], float] = time.time,
) -> Probed | None:
    """What is kept of these machines; None unless all of them were measured, at most `oldest` seconds ago."""
    database = _with_table(record)
    rows = database.rows(
        f"SELECT machine, measured, {', '.join(_FIGURES)} FROM probes WHERE cluster = ?", (cluster,)
    )
    kept = {row[0]: row for row in rows if 0 <= clock() - row[1] <= oldest}
    wanted = list(machines)
    if not wanted or any(machine not in kept for machine in wanted):
        return None
    try:
        links = tuple(MachineLinks(machine, *map(_figure, kept[machine][2:])) for machine in wanted)
    except (TypeError, ValueError) as error:
        raise database.broken(f"the record contains an invalid probe: {error}") from None
    return Probed(links, min(kept[machine][1] for machine in wanted))


def transfers_since(record: Record, platform: str, since: float) -> list[Transfer]:
    """Transfers of the latest runs on a platform that began after a time, at most 5000 of 10 runs."""
    database = record.database
    runs = database.rows(
        "SELECT id FROM runs WHERE platform = ? AND started >= ? ORDER BY started DESC, id DESC LIMIT ?",
        (platform, since, NEWEST_RUNS),
    )
    found: list[Transfer] = []
    for (run,) in runs:
        rows = database.rows(
            "SELECT source, target, start, finish, size, run FROM transfers WHERE run = ? ORDER BY seq LIMIT ?",
            (run, _MOST_TRANSFERS - len(found)),
        )
        found += [Transfer(*row) for row in rows]
    return found


def transfers_of(record: Record, run: str) -> list[Transfer]:
    """All transfers of a run, in the order they ended."""
    query = "SELECT source, target, start, finish, size, run FROM transfers WHERE run = ? ORDER BY seq"
    return [Transfer(*row) for row in record.database.rows(query, (run,))]


def save_overheads(record: Record, run: str, found: Overheads) -> None:
    """Keep what the engine took for each task and transfer of a run."""
    database = record.database
    database.rows(_OVERHEADS)
    with database.writing() as connection:
        row = (run, found.task, found.transfer)
        database.insert(connection, "INSERT OR REPLACE INTO run_overheads VALUES (?, ?, ?)", [row])


def saved_overheads(record: Record, platform: str) -> Overheads:
    """The median of what the engine took in the latest 10 runs on a platform; 0 without any."""
    database = record.database
    database.rows(_OVERHEADS)
    rows = database.rows(
        "SELECT o.task, o.transfer FROM (SELECT id, platform FROM runs ORDER BY started DESC, id DESC LIMIT ?) r"
        " JOIN run_overheads o ON o.run = r.id WHERE r.platform = ? LIMIT ?",
        (_LATEST_RUNS, platform, NEWEST_RUNS),
    )
    try:
        task, transfer = ([float(row[k]) for row in rows if row[k] > 0] for k in (0, 1))
    except TypeError as error:
        raise database.broken(f"the record contains an invalid overhead: {error}") from None
    return Overheads(median(task) if task else 0.0, median(transfer) if transfer else 0.0)


def _figure(value: object) -> float | None:
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    if not 0 < number < 1e15:
        raise ValueError(f"{number} is not a rate or a latency")
    return number


def _with_table(record: Record) -> Database:
    record.database.rows(_TABLE)
    return record.database
