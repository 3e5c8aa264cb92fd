"""Memory and named resources in real runs: what was recorded never needs more at once than a worker has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.execution import run
from headrace.model.errors import NoPlan, UsageError
from headrace.model.events import Event, TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local

from .tasks import nap, one


def napping(count: int, seconds: float = 0.15) -> Program:
    """Tasks with a GPU, tasks with much memory, and tasks that need little."""
    program = Program("needs")
    pause = program.input("pause", value=seconds)
    for i in range(count):
        needs = ({"resources": {"gpu": 1}}, {"memory": 3e6}, {"memory": 1e6})[i % 3]
        program.task(nap, inputs=[pause], outputs=[f"x{i}"], name=f"t{i}", work=seconds, **needs)
    return program


def two_hosts() -> Platform:
    """Workers with three threads each; only the first has a GPU."""
    hosts = (Host("w0", cores=3, memory=5e6, resources={"gpu": 1}), Host("w1", cores=3, memory=4e6))
    return Platform((Site("here", hosts, bandwidth=1e8),), name="described")


def most_at_once(program: Program, events: Sequence[Event], host: str, name: str) -> float:
    """The most that tasks of a host needed at one moment, by the recorded times."""

    def needed(task: str) -> float:
        found = program.tasks[task]
        return found.memory if name == "memory" else found.resources.get(name, 0)

    spans = [
        (e.start, e.time, needed(e.task)) for e in events if isinstance(e, TaskFinished) and e.host == host
    ]
    slack = 0.005  # clocks are read a moment before and after
    return max((sum(n for s, f, n in spans if s <= start < f - slack) for start, _, _ in spans), default=0.0)


@pytest.fixture(scope="module")
def wide() -> object:
    with open_local(2, threads=3) as cluster:
        yield cluster


@pytest.mark.parametrize("scheduler", ["heft", "lheft", "workqueue", "auto", "minmin"])
def test_recorded_times_keep_within_memory_and_resources(
    wide: Cluster, tmp_path: Path, scheduler: str
) -> None:
    program, platform = napping(12), two_hosts()
    done = run(program, on=wide, scheduler=scheduler, platform=platform, record=tmp_path, output=tmp_path)
    assert done.failure is None
    events = done.outcome.events
    assert len([e for e in events if isinstance(e, TaskFinished)]) == 12
    for host in platform.hosts:
        assert most_at_once(program, events, host.name, "memory") <= host.memory
        assert most_at_once(program, events, host.name, "gpu") <= host.resources.get("gpu", 0)
    with_gpu = {e.host for e in events if isinstance(e, TaskFinished) and program.tasks[e.task].resources}
    assert with_gpu == {"w0"}


def test_what_no_worker_has_is_refused_before_anything_runs(wide: Cluster, tmp_path: Path) -> None:
    program = Program("fpga")
    program.task(one, outputs=["x"], name="odd", resources={"fpga": 1})
    with pytest.raises(NoPlan, match="task 'odd' needs 1 of 'fpga', but no host has more than 0"):
        run(program, on=wide, scheduler="heft", platform=two_hosts(), record=tmp_path, output=tmp_path)


def test_the_engine_alone_does_not_know_where_tasks_fit(wide: Cluster, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the engine does not know where tasks fit"):
        run(napping(3), on=wide, scheduler="dask", platform=two_hosts(), record=tmp_path, output=tmp_path)


@pytest.mark.slow
def test_resources_with_which_workers_were_started(tmp_path: Path) -> None:
    """Without a described platform, a worker has what `dask worker --resources` says."""
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=3, processes=True, dashboard_address=None, resources={"gpu": 1}
    ) as engine:
        program = napping(6)
        done = run(program, on=engine.scheduler_address, scheduler="heft", record=tmp_path, output=tmp_path)
        assert done.failure is None
        (host,) = {e.host for e in done.outcome.events if isinstance(e, TaskFinished)}
        assert most_at_once(program, done.outcome.events, host, "gpu") == 1
        with Client(engine, set_as_default=False) as client:
            (probed,) = Platform.probe(client).hosts
            (about,) = client.scheduler_info()["workers"].values()
            with pytest.raises(UsageError, match="workers and speeds apply only to local runs"):
                run(program, on=client, workers=1, record=tmp_path)
            with pytest.raises(UsageError, match="certificates apply only to clusters"):
                run(program, on=client, tls={"ca": "ca.pem"}, record=tmp_path)
        assert dict(probed.resources) == {"gpu": 1}
        assert probed.memory == about["memory_limit"]
        with pytest.raises(UsageError, match="the client is closed"):
            Platform.probe(client)
        with pytest.raises(UsageError, match="the client is closed"):
            run(program, on=client, record=tmp_path)
