"""The benchmarks of experiments in small, and the example experiments: slow ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench.experiments_mutations import mutations
from bench.experiments_overhead import merging
from bench.experiments_store import flips, kills

import headrace as hr
from headrace.runtime.cluster import Cluster
from headrace.sweeping import sweep

EXAMPLES = Path(__file__).parents[2] / "examples" / "experiments"


@pytest.mark.slow
def test_no_change_is_missed_and_harmless_ones_cost_nothing(tmp_path: Path) -> None:
    counts = mutations(tmp_path, 24, seed=5)
    assert (counts.changed, counts.stale, counts.harmless, counts.reused) == (24, 0, 24, 24), counts.wrong


@pytest.mark.slow
def test_flipped_bits_are_found(tmp_path: Path) -> None:
    counts = flips(tmp_path, 40, seed=3)
    assert (counts.flipped, counts.found, counts.wrong) == (40, 40, 0)


@pytest.mark.slow
def test_killed_experiments_go_on(tmp_path: Path) -> None:
    counts = kills(tmp_path, 2, seed=1)
    assert counts.kills == 2
    assert (counts.repeated, counts.wrong, counts.damaged, counts.failed) == (0, 0, 0, [])


@pytest.mark.slow
def test_many_combinations_are_quoted(tmp_path: Path) -> None:
    lines = merging(tmp_path, 3125).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "3125 combinations of 10 tasks, 4686 distinct",
        "3125 combinations of 10 tasks, 31250 distinct",
    ]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


@pytest.mark.slow
def test_a_sweep_of_commands_with_a_shared_file(examples: Path, tmp_path: Path, cluster: Cluster) -> None:
    home = tmp_path / "home"
    done = sweep(examples / "cell.toml", cluster, record=home)
    assert (done.failure, done.points, done.tasks) == (None, 12, 12)
    rows = hr.results("cell", record=home, frame="rows")
    assert all(0 < row["trace"] <= 1 for row in rows)
    mean = {rate: sum(r["trace"] for r in rows if r["rate"] == rate) for rate in (0.1, 0.5, 0.9)}
    assert mean[0.1] < mean[0.5]
    assert sweep(examples / "cell.toml", cluster, record=home).reused == 12
    (examples / "cell.geometry").write_text("size = 11\nmolecules = 40\nsteps = 200\n")
    assert sweep(examples / "cell.toml", cluster, record=home).reused == 0


@pytest.mark.slow
def test_a_sweep_of_commands_without_shared_data(examples: Path, tmp_path: Path, cluster: Cluster) -> None:
    home = tmp_path / "home"
    done = sweep(examples / "flow.toml", cluster, record=home)
    assert (done.failure, done.points, done.tasks) == (None, 12, 24)
    rows = hr.results("flow", record=home, frame="rows")
    assert all((row["lift"] > 0) == (row["angle"] > 0) for row in rows)


@pytest.mark.slow
def test_the_example_of_edges_under_a_rule(examples: Path, tmp_path: Path, cluster: Cluster) -> None:
    from headrace.model.events import TaskFinished

    home = tmp_path / "home"
    rules = examples / "region_a_first.rules"
    done = sweep(examples / "edges.toml", cluster, record=home, scheduler="lheft", rules=rules)
    assert (done.failure, done.points, done.alone, done.tasks) == (None, 30, 90, 30)
    assert done.run is not None
    events = [e for e in done.run.outcome.events if isinstance(e, TaskFinished)]
    last = max(e.time for e in events if "region_a" in e.task)
    assert last <= min(e.start for e in events if "region_b" in e.task)
    rows = hr.results("edges", where="detect = 'canny'", record=home, frame="rows")
    assert len(rows) == 10


@pytest.mark.slow
def test_two_processes_use_one_record(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    from bench.experiments_case import recorded, truth, write_case

    from headrace.record import Record
    from headrace.record.verify import verify

    file = write_case(tmp_path / "case")
    home = tmp_path / "home"
    argv = [sys.executable, "-m", "headrace.cli", "sweep", str(file), "--workers", "1", "--scheduler", "heft"]
    environment = {**os.environ, "HEADRACE_HOME": str(home)}
    both = [
        subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait(120) for process in both] == [0, 0]
    assert recorded(home) == truth(file)
    with Record.open(home) as record:
        assert [verify(record, row.id).problems for row in record.runs()] == [[]] * len(record.runs())
