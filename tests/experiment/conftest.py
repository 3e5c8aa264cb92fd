from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.runtime.cluster import Cluster, open_local


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Two workers that no test kills."""
    with open_local(2) as opened:
        yield opened
