"""Records of earlier versions, and questions whose cost does not grow with the age of a record."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import BadFile
from headrace.model.events import RuleDropped, TaskFinished
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.predict.history import Measurement
from headrace.record import Record, queries, schema
from headrace.record.database import APPLICATION_ID, Database
from headrace.record.identity import program_digest
from headrace.record.store import FILE_NAME

PLATFORM = Platform.pairwise([1.0], bandwidth=1.0)


def a_program() -> Program:
    program = Program("p")
    program.task(None, name="a", kind="k", outputs=["x", "y"])
    program.task(None, name="b", kind="l", inputs=["x"], outputs=["z"])
    return program


def first_version(folder: Path, *, dropped_rules: bool) -> None:
    """A record as version 1 wrote it."""
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.executescript(schema._FIRST)
    if dropped_rules:
        connection.execute(
            "CREATE TABLE dropped_rules"
            " (run TEXT NOT NULL, time REAL NOT NULL, rule TEXT NOT NULL, why TEXT NOT NULL)"
        )
        connection.execute("INSERT INTO dropped_rules VALUES ('old', 1, 'r', 'w')")
    digest = program_digest(a_program().graph)
    connection.execute(
        "INSERT INTO runs VALUES ('old', 'p', ?, 'lab', 'heft', 'done', 5, 9, 4, 3)", (digest,)
    )
    connection.execute(
        "INSERT INTO tasks VALUES (1, 'old', 'a', 'k', 'h', 0, 2, 10, 20, 'done', ''),"
        " (2, 'old', 'b', 'l', 'h', NULL, 3, 10, 0, 'failed', 'why')"
    )
    connection.execute("INSERT INTO results VALUES ('old', 'a', '/somewhere/x')")
    connection.execute("INSERT INTO items VALUES ('old', 'x', 7)")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("dropped_rules", [False, True])
def test_a_record_of_version_1_is_read_and_continued(tmp_path, dropped_rules):
    first_version(tmp_path, dropped_rules=dropped_rules)
    program = a_program()
    with Record.open(tmp_path) as record:
        assert [(r.id, r.status, r.makespan, r.bound) for r in record.runs()] == [("old", "done", 4, 3)]
        assert [(t.task, t.status, t.location, t.session) for t in record.tasks("old")] == [
            ("a", "done", "/somewhere/x", 1),
            ("b", "failed", "", 1),
        ]
        assert len(record.dropped_rules("old")) == int(dropped_rules)
        assert record.measurements() == [Measurement("k", "h", 2.0, 10.0)]
        assert record.item_sizes(program.graph) == {"x": 7.0}
        assert [(s.number, s.started) for s in record.sessions("old")] == [(1, 5.0)]
        assert record.launch("old") == ""
        with record.begin("p", program.graph, PLATFORM, "heft") as run:
            run.observe(RuleDropped(2.0, "on-h0", "why"))
            run.stored("x", "/x", "ab", 3.0)
            run.stored("y", "/y", "cd", 4.0)
        assert [(r.item, r.task, r.checksum) for r in record.results(run.id)] == [
            ("x", "a", "ab"),
            ("y", "a", "cd"),
        ]


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    first_version(tmp_path, dropped_rules=True)
    broken = schema._SECOND + "; INSERT INTO nowhere VALUES (1)"
    monkeypatch.setattr(schema, "_STEPS", (schema._FIRST, broken))
    with pytest.raises(BadFile, match="nowhere"):
        Record.open(tmp_path)
    monkeypatch.undo()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    with Record.open(tmp_path) as record:
        assert record.results("old")[0].location == "/somewhere/x"


def test_a_migrated_record_has_the_tables_of_a_new_one(tmp_path):
    (tmp_path / "old").mkdir()
    first_version(tmp_path / "old", dropped_rules=False)

    def tables(folder: Path) -> dict[str, list[tuple[object, ...]]]:
        with Record.open(folder):
            pass
        connection = sqlite3.connect(folder / FILE_NAME)
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in names}
        indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
        connection.close()
        return found | {"indexes": sorted(indexes)}

    assert tables(tmp_path / "old") == tables(tmp_path / "new")


KINDS, HOSTS = ["", "k", "l", "m"], ["h", "i", "j"]
EXECUTIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(HOSTS), st.integers(0, 9), st.booleans()), max_size=40
)


@settings(max_examples=40, deadline=None)
@given(EXECUTIONS, st.integers(1, 4), st.none() | st.sets(st.sampled_from([*KINDS, "other"])))
def test_the_newest_measurements_of_each_kind_on_each_host(tmp_path_factory, executions, newest, kinds):
    folder = tmp_path_factory.mktemp("record")
    program = Program("p")
    for number, (kind, _, _, _) in enumerate(executions):
        program.task(None, name=f"t{number}", kind=kind)
    with Record.open(folder) as record:
        with record.begin("p", program.graph, PLATFORM, "heft") as run:
            for number, (_, host, seconds, done) in enumerate(executions):
                if done:
                    run.observe(TaskFinished(float(seconds), f"t{number}", host, 0.0))
        found = record.measurements(kinds, newest)
    wanted = [
        (kind, host, float(seconds))
        for kind, host, seconds, done in executions
        if done and kind != "" and (kinds is None or kind in kinds)
    ]
    for kind in KINDS:
        for host in HOSTS:
            own = [s for k, h, s in wanted if (k, h) == (kind, host)][-newest:]
            assert [m.seconds for m in found if (m.kind, m.host) == (kind, host)] == own
    order = [(m.kind, m.host, m.seconds) for m in found]
    rest = iter(wanted)
    assert all(row in rest for row in order)  # a subsequence: oldest first


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (queries._NEXT_KIND, ("",)),
        (queries._NEXT_HOST, ("k", "")),
        (queries._OF_KIND_ON_HOST, ("k", "h", 3)),
        ("SELECT id FROM runs WHERE status = 'running'", ()),
        ("SELECT id FROM runs WHERE digest = ? ORDER BY started DESC, id DESC LIMIT ?", ("d", 3)),
    ],
)
def test_questions_at_the_start_of_a_run_search_an_index(tmp_path, query, values):
    database = Database(tmp_path / FILE_NAME)
    plan = " ".join(row[3] for row in database.rows(f"EXPLAIN QUERY PLAN {query}", values))
    database.close()
    assert "INDEX" in plan
    assert "SCAN tasks" not in plan
    assert "SCAN runs" not in plan or "runs_running" in plan


def test_sizes_come_from_the_newest_run_that_has_them(tmp_path):
    program = a_program()
    with Record.open(tmp_path) as record:
        for sizes in ({"x": 1.0, "y": 2.0}, {"x": 3.0}):
            with record.begin("p", program.graph, PLATFORM, "heft") as run:
                run.observe(TaskFinished(1.0, "a", "h", 0.0, tuple(sizes.items())))
        assert record.item_sizes(program.graph) == {"x": 3.0, "y": 2.0}
