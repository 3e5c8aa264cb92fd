from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.runtime.streams.hosts import LocalHosts


@pytest.fixture(scope="package")
def hosts() -> Iterator[LocalHosts]:
    """Two agents that no test kills."""
    with LocalHosts(["h0", "h1"]) as opened:
        yield opened
