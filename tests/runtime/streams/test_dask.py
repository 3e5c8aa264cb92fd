"""Copies on Dask workers: of a TLS cluster that somebody else started, and workers that are lost."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from headrace.model.errors import BadPlan, TaskFailed
from headrace.runtime.cluster import connect, open_local
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.dask_hosts import DaskHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.supervisor import Supervisor
from headrace.streaming import stream

from .apps import multiset
from .made import Slow, arrays, build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A TLS cluster of two workers, and the files of its certificates."""
    import dask
    from distributed import LocalCluster, Security

    security = Security.temporary()
    folder = tmp_path_factory.mktemp("tls")
    files = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in files.items():
        (folder / name).write_text(text)
    with (
        dask.config.set({"distributed.scheduler.http.routes": []}),
        LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            security=security,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
    ):
        yield cluster.scheduler_address, {name: str(folder / name) for name in files}


def test_a_pipeline_runs_on_it(address, tmp_path: Path):
    url, tls = address
    assert url.startswith("tls://")
    with connect(url, **tls) as cluster:
        info = cluster.client.scheduler_info(n_workers=-1)["workers"]
        with DaskHosts(cluster, {f"n{i}": found for i, found in enumerate(sorted(info))}) as hosts:
            assert hosts.tls == {}  # keys stay with their workers
            app = arrays(100)
            units: list[UnitResult] = []
            plan = even_plan(app, {"sum": 2}, hosts.names)
            Supervisor(app, plan, hosts, StreamOptions(), commit=units.append).run()
        assert sorted(map(int, units[0].results["sum"])) == list(range(100))
        assert cluster.client.run(agents_left) == dict.fromkeys(info, 0)


def agents_left() -> int:
    import time

    from headrace.runtime.streams.dask_hosts import _AGENTS

    for _ in range(100):
        if not _AGENTS:
            break
        time.sleep(0.1)
    return len(_AGENTS)


def test_without_a_deployment_and_with_a_wrong_one(address, tmp_path: Path, monkeypatch):
    url, tls = address
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    done = stream(arrays(60), url, tls=tls)
    assert sorted(map(int, done.results["sum"])) == list(range(60))
    assert done.planned is not None
    file = tmp_path / "d.ini"
    file.write_text(
        "[deployment]\nthroughput = 1\n[copies read]\nn1 = 1, 1\n[copies sum]\nnobody = 1, 1\n"
        "[flow read -> sum]\nn1 -> nobody = 1\n"
    )
    with pytest.raises(BadPlan, match="no worker named 'n1'"):
        stream(arrays(60), url, file, tls=tls)


def descendants(pid: int) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


@pytest.mark.parametrize(
    ("sent", "restarts"), [(signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGSTOP, 1)]
)
def test_a_worker_that_is_lost(restarts: int, sent: signal.Signals):
    """The worker process that hosts a copy is killed, or stopped and not heard from."""
    app = build("chain", 1, 1, [[50] * 300] * 3)
    app.filters["f0"] = partial(Slow, app.filters["f0"])
    units: list[UnitResult] = []
    below: list[int] = []
    with open_local(3, restart=False) as cluster:
        info = cluster.client.scheduler_info(n_workers=-1)["workers"]
        address = {worker["name"]: found for found, worker in info.items()}

        def strike(progress: Progress) -> None:
            if not below and len(progress.copies) == 4 and progress.copies[1]["buffers_in"]:
                below.extend(descendants(cluster.pids["w1"]))
                os.kill(cluster.pids["w1"], sent)

        with DaskHosts(cluster, address) as hosts:
            plan = even_plan(app, {"f0": 2}, ["w0", "w1", "w2"])
            options = StreamOptions(restarts=restarts, stall=3.0)
            run = Supervisor(app, plan, hosts, options, commit=units.append, observe=strike)
            if restarts:
                run.run()
                assert multiset(units) == Counter(run_here(app)["collect"])
                assert "w1" not in run.plan.hosts
            else:
                with pytest.raises(TaskFailed, match="the host") as caught:
                    run.run()
                assert caught.value.where.endswith("w1")
    assert len(below) >= 2
    for pid in below:
        assert gone(pid), f"process {pid} is left"


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
