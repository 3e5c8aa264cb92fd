"""Experiments on real workers: what runs, what is reused, what is asked afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bench.experiments_case import FILES, fresh, recorded, truth, write_case
from bench.resume_flips import flipped

import headrace as hr
from headrace.explaining import why
from headrace.model.errors import BadFile, UsageError
from headrace.quoting import quote
from headrace.record import Record
from headrace.record.forgetting import delete, plan_forgetting, plan_keeping
from headrace.record.verify import verify
from headrace.record.views import query
from headrace.runtime.cluster import Cluster
from headrace.sweeping import Swept, sweep


class Place:
    """A folder with the case, and its record."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.case, self.home, self.cluster = folder / "case", folder / "home", cluster
        self.file = write_case(self.case)
        self.said: list[str] = []

    def sweep(self, **more: object) -> Swept:
        fresh()
        done = sweep(
            self.file, self.cluster, record=self.home, scheduler="dask", say=self.said.append, **more
        )
        assert done.failure is None
        return done

    def why(self, task: str):
        fresh()
        return why("case", task, record=self.home)


@pytest.fixture
def place(tmp_path: Path, cluster: Cluster) -> Place:
    return Place(tmp_path, cluster)


def test_each_distinct_task_runs_once_and_is_reused(place: Place) -> None:
    first = place.sweep()
    assert (first.points, first.alone, first.reused) == (12, 60, 0)
    assert first.run is not None
    assert len(first.run.outcome.events) > 0
    assert recorded(place.home) == truth(place.file)
    again = place.sweep()
    assert (again.tasks, again.reused, again.run) == (first.tasks, first.tasks, None)
    assert recorded(place.home) == truth(place.file)
    fresh()
    assert quote(place.file, record=place.home).left == 0


def test_a_change_runs_what_depends_on_it_and_says_why(place: Place) -> None:
    first = place.sweep()
    steps = FILES["steps_of_case.py"].replace("43", "47")
    write_case(place.case, {"steps_of_case.py": steps})
    (answer, *_) = place.why("join@data_a,first,scale=1")
    assert answer.status == "must run"
    assert (
        "steps_of_case.ending changed: steps_of_case.py, line 11: return x * 43 + LAST" in answer.reasons[0]
    )
    fresh()
    told = quote(place.file, record=place.home, workers=2)
    assert 0 < told.left < first.tasks
    assert told.low < told.seconds < told.high
    second = place.sweep()
    assert second.reused == first.tasks - told.left
    assert recorded(place.home) == truth(place.file)
    (answer, *_) = place.why("join@data_a,first,scale=1")
    assert answer.status == "kept"
    assert answer.ran["run"] == second.run.id  # type: ignore[union-attr]


def test_why_names_inputs_parameters_and_what_is_lost(place: Place) -> None:
    place.sweep()
    (place.case / "data_b.bin").write_bytes(b"other")
    (answer,) = place.why("load@data_b")
    assert answer.reasons == ("the contents of input 'data' changed",)
    write_case(place.case, {"case.toml": FILES["case.toml"].replace("[1, 2, 3]", "[1, 2, 4]")})
    (answer,) = place.why("first@data_a,first,scale=4")
    assert answer.reasons[-1] == "parameter scale is 4, and was 3"
    write_case(place.case)
    with Record.open(place.home) as record:
        record.forget_kept(record.last().id, ["loaded@data_a"])
    (answer,) = place.why("load@data_a")
    assert "not kept any more" in answer.reasons[0]
    with pytest.raises(UsageError, match="no task"):
        place.why("nothing")


def test_a_flipped_bit_is_found_and_made_again(place: Place) -> None:
    place.sweep()
    with Record.open(place.home) as record:
        run = record.last().id
        kept = next(k for k in record.kept(run) if k.item.startswith("value@"))
        with record.database.writing() as connection:
            values = (flipped(kept.content or b"", random.Random(1)), run, kept.item)
            connection.execute("UPDATE kept SET content = ? WHERE run = ? AND item = ?", values)
    labels = kept.item.partition("@")[2]
    (answer,) = place.why(f"join@{labels}")
    assert answer.status == "must run"
    assert answer.reasons == (f"result {kept.item!r} of run {run}: this is not what was committed",)
    again = place.sweep()
    assert again.tasks - again.reused == 1
    assert [repr(kept.item) in text for text in place.said] == [True]
    assert recorded(place.home) == truth(place.file)
    with Record.open(place.home) as record:
        assert [verify(record, row.id).problems for row in record.runs()] == [[], []]


def test_plain_runs_are_reused_by_experiments(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.formats.loading import load_program

    monkeypatch.chdir(place.case)
    monkeypatch.syspath_prepend(place.case)
    fresh()
    program = load_program("case.py:program")
    done = hr.run(program, place.cluster, "dask", record=place.home, output=place.case, keep="all")
    assert done.failure is None
    swept = place.sweep()
    assert swept.reused >= 3  # load, second and third of the plain program
    assert recorded(place.home) == truth(place.file)
    (answer,) = why("last", "join@data_a,first,scale=2", record=place.home)
    assert answer.status == "kept"


def test_results_can_be_asked_for(place: Place) -> None:
    place.sweep()
    rows = hr.results("case", where="scale > 1 and data = 'data_a'", record=place.home, frame="rows")
    assert {(row["data"], row["scale"]) for row in rows} == {("data_a", 2), ("data_a", 3)}
    with pytest.raises(UsageError, match="no 'sigma'"):
        hr.results("case", where="sigma > 1", record=place.home)
    with pytest.raises(UsageError, match="no experiment 'cse'"):
        hr.results("cse", record=place.home)
    with Record.open(place.home) as record:
        columns, found = query(record, "select count(*) as n, min(value) from results")
        assert columns == ["n", "min(value)"]
        assert found[0][0] == 12
        for sql in (
            "delete from kept",
            "select * from kept",
            "attach 'x' as y",
            "select 1; select 2",
            "nonsense",
        ):
            with pytest.raises(UsageError):
                query(record, sql)


def test_only_what_nothing_needs_is_deleted(place: Place) -> None:
    place.sweep()
    write_case(
        place.case,
        {"case.toml": FILES["case.toml"].replace("[1, 2, 3]", "[1, 2]").replace('"case"', '"less"')},
    )
    less = place.sweep()
    assert (less.name, less.run) == ("less", None)
    expected = recorded(place.home, "less")
    with Record.open(place.home) as record:
        assert plan_keeping(record, 3600.0, None).values == ()
        deletion = plan_forgetting(record, "case")
        assert len(deletion.values) > 0
        assert len(deletion.needed) > 0
        delete(record, deletion)
    assert recorded(place.home, "less") == expected
    with pytest.raises(UsageError):
        recorded(place.home)
    again = place.sweep()
    assert again.run is None


def test_size_is_limited_by_what_was_used_least_recently(place: Place) -> None:
    place.sweep()
    with Record.open(place.home) as record:
        everything = plan_keeping(record, None, 0.0)
        assert everything.left == 0
        half = plan_keeping(record, None, everything.size / 2)
        assert 0 < half.left_bytes <= everything.size / 2
        flags = [value.result for value in half.values]
        assert flags == sorted(flags)
        delete(record, half)
        assert half.left == sum(len(record.kept(row.id)) for row in record.runs())


def test_results_with_files_have_one_for_each_combination(place: Place) -> None:
    text = FILES["case.py"] + 'program.output("value", "out/value.json")\n'
    write_case(place.case, {"case.py": text})
    first = place.sweep(output=place.case)
    names = {path.name for path in first.files.values()}
    assert "value-data_a,first,scale=1.json" in names
    assert all(path.exists() for path in first.files.values())
    for path in first.files.values():
        path.unlink()
    again = place.sweep(output=place.case)
    assert {path.name for path in again.files.values()} == names
    assert all(path.exists() for path in again.files.values())


def test_interrupted_experiments_go_on(place: Place) -> None:
    """A run that is cancelled in the middle: what it committed is not executed again."""
    from headrace.model.errors import RunStopped
    from headrace.model.events import TaskFinished

    seen: list[str] = []

    def observe(event: object) -> None:
        if isinstance(event, TaskFinished):
            seen.append(event.task)
            if len(seen) == 5:
                with Record.open(place.home) as record:
                    record.cancel("last")

    text = FILES["case.py"].replace("    found = 146", "    __import__('time').sleep(0.05)\n    found = 146")
    write_case(place.case, {"case.py": text})
    with pytest.raises(RunStopped) as caught:
        place.sweep(observe=observe)
    assert "headrace sweep" in caught.value.hint
    with Record.open(place.home) as record:
        committed = {kept.item for kept in record.kept(record.last().id)}
    done = place.sweep()
    assert done.reused > 0
    assert done.run is not None
    executed = {e.task for e in done.run.outcome.events if isinstance(e, TaskFinished)}
    assert (
        not {f"loaded@{task.partition('@')[2]}" for task in executed if task.startswith("load@")} & committed
    )
    assert recorded(place.home) == truth(place.file)


def test_prepared_values_may_come_from_several_runs(place: Place) -> None:
    place.sweep()
    write_case(place.case, {"case.toml": FILES["case.toml"].replace("[1, 2, 3]", "[2, 3, 4]")})
    second = place.sweep()
    assert second.run is not None
    write_case(place.case, {"case.toml": FILES["case.toml"].replace("[1, 2, 3]", "[1, 2, 3, 4]")})
    third = place.sweep()
    assert third.run is None
    assert recorded(place.home) == truth(place.file)


def test_a_workflow_file_with_allowed_commands(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "words.txt").write_text("b\na\nb\n")
    command = {"program": "head", "arguments": ["-n", "{lines}", "words.txt"], "stdout": "first.txt"}
    document = {
        "name": "flow",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"name": "cut", "id": "cut", "parents": [], "children": [], "inputFiles": ["words.txt"],
                     "outputFiles": ["first.txt"]}
                ],
                "files": [{"id": "words.txt", "sizeInBytes": 6}, {"id": "first.txt", "sizeInBytes": 2}],
            },
            "execution": {
                "makespanInSeconds": 1, "executedAt": "2024-01-01T00:00:00Z",
                "tasks": [{"id": "cut", "runtimeInSeconds": 1, "command": command}],
            },
        },
    }  # fmt: skip
    (folder / "flow.json").write_text(json.dumps(document))
    (folder / "flow.toml").write_text('program = "flow.json"\n[set.cut]\nlines = [1, 2]\n')
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    done = sweep("inner/flow.toml", cluster, record=home, allow_commands=True)
    assert (done.failure, done.tasks) == (None, 2)
    rows = hr.results("flow", record=home, frame="rows")
    assert [row["first.txt"] for row in rows] == ["b", "b\na"]
    with pytest.raises(BadFile, match="nothing to execute"):
        sweep("inner/flow.toml", cluster, record=tmp_path / "other")


def test_combinations_that_do_not_need_a_failed_task_go_on(place: Place) -> None:
    text = FILES["case.py"].replace(
        "def first(x, scale=2, *, shift=3):\n", "def first(x, scale=2, *, shift=3):\n    1 / (scale - 2)\n"
    )
    write_case(place.case, {"case.py": text})
    fresh()
    done = sweep(place.file, place.cluster, record=place.home, scheduler="dask")
    assert done.failure is not None
    assert sorted(done.failed) == ["first@data_a,first,scale=2", "first@data_b,first,scale=2"]
    values = recorded(place.home)
    assert sum(value is None for value in values.values()) == 2
    write_case(place.case)
    again = place.sweep()
    assert again.failure is None
    assert recorded(place.home) == truth(place.file)
    write_case(place.case, {"case.py": text.replace("(scale - 2)", "(scale - scale)")})
    fresh()
    few = sweep(place.file, place.cluster, record=place.home, scheduler="dask", most_failures=1)
    assert len(few.runs) == 1
