"""What a worker keeps, and the rule by which it decides."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from headrace.model.program import Program
from headrace.runtime import commit
from headrace.runtime.cluster import Cluster
from headrace.runtime.hooks import RunHooks
from headrace.runtime.kept_files import TOKEN_FILE, Keep, Keeping, Kept, folder_token, load_kept
from headrace.runtime.spooled import fetch_spooled, is_spooled

from .tasks import OneHost

KEY = bytes(32)
LARGE = bytes(200_000)


def keeping(folder: Path, keep: Keep = "auto") -> Keeping:
    (folder / TOKEN_FILE).write_text(folder_token(KEY))
    return Keeping("r", str(folder), KEY, keep)


@pytest.fixture(autouse=True)
def steady_rate(monkeypatch):
    """Writing 200 kB takes 2 + 2 ms, whatever this disk does."""
    monkeypatch.setattr(commit, "_rate", commit._Rate())
    monkeypatch.setattr(commit._Rate, "learn", lambda *_: None)


@pytest.mark.parametrize(
    ("keep", "value", "again", "must", "kept"),
    [
        ("results", 5, 9.0, False, "no"),
        ("results", 5, 0.0, True, "small"),
        ("results", LARGE, 0.0, True, "file"),
        ("auto", 5, 0.0, False, "small"),
        ("auto", LARGE, 0.0, True, "file"),
        ("auto", LARGE, 0.079, False, "no"),
        ("auto", LARGE, 0.081, False, "file"),
        ("all", LARGE, 0.0, False, "file"),
    ],
)
def test_the_rule(tmp_path, keep, value, again, must, kept):
    where = keeping(tmp_path, keep)
    entry = commit.keep_value(where, "x", value, again, must)
    assert ("no" if entry is None else "file" if entry[1] else "small") == kept
    if entry is not None:
        assert load_kept(Kept(*entry), tmp_path, KEY, "r") == value


def test_a_disk_that_is_nearly_full_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(commit, "FREE_SHARE", 1.0)
    assert commit.keep_value(keeping(tmp_path), "x", LARGE, again=60.0, must=False) is None


def test_what_is_written_fast_is_worth_more(monkeypatch):
    monkeypatch.undo()
    rate = commit._Rate()
    before = rate.cost(10**8)
    for _ in range(20):
        rate.learn(10**9, 1.0)
    assert rate.cost(10**8) < before / 5


def large(seconds: float) -> bytes:
    time.sleep(seconds)
    return bytes(20_000_000)


def reduce(data: bytes) -> np.ndarray:
    return np.zeros(3000) + len(data)


def run_keeping(
    cluster: Cluster, program: Program, where: Keeping
) -> tuple[dict[str, Kept], dict[str, object]]:
    """Execute a program; what its workers kept, and the results."""
    entries: dict[str, Kept] = {}

    def measured(task, report):
        entries.update({entry[0]: Kept(*entry) for entry in report["kept"]})

    hooks = RunHooks(measured=measured, keeping=where)
    return entries, cluster.execute(program, None, timeout=60, hooks=hooks).results


def test_what_a_value_costs_includes_what_must_be_made_before_it(cluster, tmp_path):
    """The large value is not worth a file: 0.5 s against 4 s. What is computed from it in no time is."""
    program = Program("p")
    seconds = program.input("s", value=0.5)
    data = program.task(large, inputs=[seconds], outputs=["data"])
    small = program.task(reduce, inputs=[data], outputs=["small"])
    last = program.task(len, inputs=[small], outputs=["n"])
    program.output(last)
    entries, results = run_keeping(cluster, program, keeping(tmp_path))
    assert results == {"n": 3000}
    assert set(entries) == {"small", "n"}
    assert entries["small"].file
    assert load_kept(entries["small"], tmp_path, KEY, "r")[0] == 20_000_000


def test_a_note_tells_other_workers_what_a_value_costs(tmp_path):
    where = keeping(tmp_path)
    commit._remember(where, "far", 3.0)
    commit._seconds_again.clear()  # as in another process
    assert commit._again(where, "far", LARGE) == 3.0
    assert commit._again(where, "far", 5) == 0.0
    assert commit._again(where, "unknown", LARGE) == 0.0


def test_several_outputs_are_kept_one_by_one(cluster, tmp_path):
    program = Program("p")
    program.task(
        divmod, inputs=[program.input("a", value=7), program.input("b", value=2)], outputs=["q", "r"]
    )
    entries, _ = run_keeping(cluster, program, keeping(tmp_path))
    assert {k: load_kept(v, tmp_path, KEY, "r") for k, v in entries.items()} == {"q": 3, "r": 1}


def lock() -> object:
    return threading.Lock()


def test_a_value_that_cannot_be_kept_does_not_end_the_run(cluster, tmp_path):
    program = Program("p")
    made = program.task(lock, outputs=["lock"], name="make")
    program.output(program.task(lambda held: held.locked(), inputs=[made], outputs=["held"]))
    reports = {}
    hooks = RunHooks(
        measured=lambda task, report: reports.update({task: dict(report)}), keeping=keeping(tmp_path, "all")
    )
    host = cluster.platform.hosts[0].name
    outcome = cluster.execute(program, OneHost(host, {}), timeout=60, hooks=hooks)
    assert outcome.results == {"held": False}
    assert not reports["make"]["kept"]
    ((item, reason),) = reports["make"]["unkept"]
    assert (item, "cannot be pickled" in reason) == ("lock", True)


def test_a_worker_that_cannot_reach_the_folder_leaves_it_to_the_client(cluster, tmp_path):
    """The folder has another record's token, as if the worker saw a folder of the same name elsewhere."""
    there = tmp_path / "there"
    there.mkdir()
    (there / TOKEN_FILE).write_text("other")
    program = Program("p")
    program.output(program.task(large, inputs=[program.input("s", value=0.0)], outputs=["data"]))
    entries, _ = run_keeping(cluster, program, Keeping("r", str(there), KEY, "auto"))
    kept = entries["data"]
    assert is_spooled(kept.file)
    assert [p.name for p in there.iterdir()] == [TOKEN_FILE]
    here = tmp_path / "here"
    here.mkdir()
    name = fetch_spooled(cluster.client, kept.file, here)
    assert load_kept(Kept("data", name, None, kept.checksum, kept.size), here, KEY, "r") == bytes(20_000_000)
    with pytest.raises(OSError):
        fetch_spooled(cluster.client, kept.file, here)  # the worker has removed it
    assert [p.name for p in here.iterdir()] == [name]
