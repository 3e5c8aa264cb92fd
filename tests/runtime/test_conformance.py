"""Local workers keep the contract of a back end."""

from __future__ import annotations

from headrace.runtime.cluster import Cluster
from headrace.testing.conformance import check_backend


def test_local_workers_conform(cluster: Cluster) -> None:
    check_backend(cluster)
