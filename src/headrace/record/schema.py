"""The tables of a record, and how those of earlier versions become the present ones."""

from __future__ import annotations

from sqlite3 import Connection

VERSION = 2

_FIRST = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, program TEXT NOT NULL, digest TEXT NOT NULL, platform TEXT NOT NULL,
    scheduler TEXT NOT NULL, status TEXT NOT NULL, started REAL NOT NULL, finished REAL,
    makespan REAL, bound REAL);
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, task TEXT NOT NULL, kind TEXT NOT NULL,
    host TEXT NOT NULL, start REAL, finish REAL NOT NULL, input_bytes REAL NOT NULL,
    output_bytes REAL NOT NULL, status TEXT NOT NULL, error TEXT NOT NULL);
CREATE INDEX tasks_by_run ON tasks (run, task);
CREATE INDEX tasks_by_kind ON tasks (kind);
CREATE TABLE results (
    run TEXT NOT NULL, task TEXT NOT NULL, location TEXT NOT NULL, PRIMARY KEY (run, task)) WITHOUT ROWID;
CREATE TABLE items (
    run TEXT NOT NULL, item TEXT NOT NULL, size REAL NOT NULL, PRIMARY KEY (run, item)) WITHOUT ROWID;
CREATE TABLE transfers (
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, item TEXT NOT NULL, source TEXT NOT NULL,
    target TEXT NOT NULL, start REAL NOT NULL, finish REAL NOT NULL, size REAL NOT NULL);
CREATE INDEX transfers_by_run ON transfers (run);
CREATE TABLE plans (
    run TEXT NOT NULL, task TEXT NOT NULL, host TEXT NOT NULL, start REAL NOT NULL, finish REAL NOT NULL);
CREATE INDEX plans_by_run ON plans (run)
"""
_SECOND = """
CREATE TABLE IF NOT EXISTS dropped_rules (
    run TEXT NOT NULL, time REAL NOT NULL, rule TEXT NOT NULL, why TEXT NOT NULL);
ALTER TABLE runs ADD COLUMN launch TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN session INTEGER NOT NULL DEFAULT 1;
CREATE TABLE sessions (
    run TEXT NOT NULL, number INTEGER NOT NULL, started REAL NOT NULL, host TEXT NOT NULL,
    PRIMARY KEY (run, number)) WITHOUT ROWID;
INSERT INTO sessions SELECT id, 1, started, '' FROM runs;
ALTER TABLE results RENAME TO first_results;
CREATE TABLE results (
    run TEXT NOT NULL, item TEXT NOT NULL, task TEXT NOT NULL, location TEXT NOT NULL,
    checksum TEXT NOT NULL, size REAL NOT NULL, PRIMARY KEY (run, item)) WITHOUT ROWID;
INSERT INTO results SELECT run, task, task, location, '', 0 FROM first_results;
DROP TABLE first_results;
CREATE TABLE kept (
    run TEXT NOT NULL, item TEXT NOT NULL, file TEXT NOT NULL, content BLOB, checksum TEXT NOT NULL,
    size REAL NOT NULL, PRIMARY KEY (run, item));
DROP INDEX tasks_by_kind;
CREATE INDEX tasks_measured ON tasks (kind, host, seq) WHERE status = 'done' AND kind != '';
CREATE INDEX runs_by_digest ON runs (digest, started);
CREATE INDEX runs_by_start ON runs (started, id);
CREATE INDEX runs_running ON runs (id) WHERE status = 'running'
"""
_STEPS = (_FIRST, _SECOND)
"""What makes version 1, 2, ... of the version before it."""


def prepare_schema(connection: Connection, version: int) -> None:
    """Bring the tables of a version (0: an empty file) to the present one, in the transaction of the caller.

    From version 1: O(rows), once, for the new indexes.
    """
    for step in _STEPS[version:]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
