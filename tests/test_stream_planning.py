"""From an application to a deployment: trial run, forecast of load, plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import stream_planning
from headrace.model.errors import UsageError
from headrace.model.pipeline import Pipeline
from headrace.model.platform import Platform
from headrace.runtime.filters import App, Filter, Reader
from headrace.runtime.streams.plan import even_plan
from headrace.stream_planning import deployed_problem, measured_pipeline, plan_alone


class Blocks(Reader):
    def read(self, out):
        for _ in range(50):
            out.send(bytes(range(250)) * 40)


class Sort(Filter):
    def process(self, buffer, out):
        out.send(bytes(sorted(buffer.data))[:1000])


class Keep(Filter):
    pass


def app() -> App:
    made = App("sorting", buffer=10_000)
    made.filter("blocks", Blocks)
    made.filter("sort", Sort, inputs=["blocks"])
    made.filter("keep", Keep, inputs=["sort"])
    return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that keeps a trial run from test to test."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def home(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(kept))
    return kept


def test_a_trial_run_is_kept_and_the_load_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setattr(stream_planning, "load_of_machine", lambda: (0.0, 8))
    idle = plan_alone(app(), 4, None, None, said.append)
    assert any(line.startswith("trial run") for line in said)
    assert not any("forecast" in line for line in said)
    said.clear()
    # Others keep all eight cores busy: each of the four workers gets 8 / 12 of one.
    monkeypatch.setattr(stream_planning, "load_of_machine", lambda: (1.0, 8))
    loaded = plan_alone(app(), 4, None, None, said.append)
    assert not any(line.startswith("trial run") for line in said)
    assert any("67% of a core for each of 4 workers" in line for line in said)
    assert loaded.throughput == pytest.approx(idle.throughput * 8 / 12, rel=0.05)


@pytest.mark.slow
def test_emulated_hosts_have_no_load(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream_planning, "load_of_machine", lambda: (0.99, 1))
    slow = plan_alone(app(), None, [1.0, 1.0, 1.0], None, lambda line: None)
    fast = plan_alone(app(), None, [1.0, 2.0, 4.0], None, lambda line: None)
    assert all(host.load == 0.0 for host in slow.problem.platform.hosts)
    assert fast.throughput <= slow.throughput * 1.01  # the fastest of both is this machine


@pytest.mark.slow
def test_a_changed_application_is_measured_again(home: Path):
    said: list[str] = []
    measured_pipeline(app(), lambda line: None)
    other = App("sorting", buffer=20_000)
    other.filter("blocks", Blocks)
    other.filter("keep", Keep, inputs=["blocks"])
    measured_pipeline(other, said.append)
    assert not any("earlier" in line for line in said)
    measured_pipeline(app(), said.append)
    assert "earlier" in said[-1]


@pytest.mark.slow
def test_a_kept_trial_run_that_is_broken_is_replaced(home: Path):
    measured_pipeline(app(), lambda line: None)
    for file in (home / "trials").iterdir():
        file.write_text("[filter")
    said: list[str] = []
    measured_pipeline(app(), said.append)
    assert any("cannot be read" in line for line in said)
    measured_pipeline(app(), said.append)
    assert "earlier" in said[-1]


def test_workers_that_make_no_sense(home: Path):
    with pytest.raises(UsageError, match="3 workers with 2 speeds"):
        plan_alone(app(), 3, [1.0, 2.0], None, lambda line: None)
    with pytest.raises(UsageError, match="workers have no effect"):
        plan_alone(app(), 3, None, Platform.local(2), lambda line: None)


def test_a_deployment_file_keeps_its_readers(home: Path):
    pipeline = measured_pipeline(app(), lambda line: None)
    plan = even_plan(app(), {"blocks": 2, "sort": 2}, ["w0", "w1", "w2", "w3", "w4"])
    problem = deployed_problem(plan, pipeline, Platform.local(6))
    (source,) = problem.sources
    assert source.shares == {"w0": 0.5, "w1": 0.5}
    assert not problem.several_per_host
    crowded = deployed_problem(even_plan(app(), {}, ["w0"]), pipeline, Platform.local(2))
    assert crowded.several_per_host
    fewer = Pipeline("other", pipeline.filters[:2])
    with pytest.raises(UsageError, match="'keep' is not in both"):
        deployed_problem(plan, fewer, Platform.local(6))
