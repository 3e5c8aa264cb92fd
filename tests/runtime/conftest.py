from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from headrace.runtime.cluster import Cluster, open_local


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Three workers that no test kills."""
    with open_local(3) as opened:
        yield opened


@pytest.fixture(scope="package")
def _restarting() -> Iterator[Cluster]:
    with open_local(3) as opened:
        yield opened


@pytest.fixture
def hardy(_restarting: Cluster) -> Cluster:
    """Three workers that tests may kill or retire: they are started again, and all there when a test begins."""
    end = time.monotonic() + 60
    while True:
        there = _restarting.client.scheduler_info(n_workers=-1)["workers"].values()
        if {info["name"] for info in there} == {"w0", "w1", "w2"}:
            return _restarting
        assert time.monotonic() < end, "workers did not come back"
        time.sleep(0.05)
