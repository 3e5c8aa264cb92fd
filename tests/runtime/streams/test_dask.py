"""Copies on the workers of a TLS cluster that somebody else started."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.errors import BadPlan
from headrace.runtime.cluster import connect
from headrace.runtime.streams.dask_hosts import DaskHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import UnitResult
from headrace.runtime.streams.supervisor import Supervisor
from headrace.streaming import stream

from .made import arrays

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
            n_workers=2, processes=True, threads_per_worker=1, security=security, dashboard_address=None
        ) as cluster,
    ):
        yield cluster.scheduler_address, {name: str(folder / name) for name in files}


def test_a_pipeline_runs_on_it(address, tmp_path: Path):
    url, tls = address
    assert url.startswith("tls://")
    with connect(url, **tls) as cluster:
        info = cluster.client.scheduler_info(n_workers=-1)["workers"]
        with DaskHosts(cluster, {f"n{i}": found for i, found in enumerate(sorted(info))}) as hosts:
            assert hosts.tls is not None
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
