"""Hosts of a platform file and workers of a cluster."""

from __future__ import annotations

import pytest

from headrace.model.errors import BadPlatform
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.matching import Worker, match_hosts


def lab(*hosts: Host, origin: str | None = None) -> Platform:
    return Platform((Site("s", hosts, bandwidth=1e6),), name="lab", origin=origin)


def test_by_name_and_by_address():
    described = lab(
        Host("big", 2.0, cores=8, price=3.0), Host("10.0.0.2"), Host("10.0.0.3:41"), origin="10.0.0.2"
    )
    workers = [
        Worker("big", "tls://10.0.0.1:40", 4),
        Worker("second", "tls://10.0.0.2:41", 1),
        Worker("third", "tls://10.0.0.3:41", 1),
    ]
    matched = match_hosts(described, workers)
    assert [(h.name, h.cores, h.price) for h in matched.hosts] == [
        ("big", 4, 3.0),
        ("second", 1, 0.0),
        ("third", 1, 0.0),
    ]
    assert matched.origin == "second"


def test_hosts_without_a_worker():
    with pytest.raises(BadPlatform, match=r"no worker for hosts b, c; .* not described: x at 10.0.0.9"):
        match_hosts(
            lab(Host("a"), Host("b"), Host("c")), [Worker("a", "tls://h:1"), Worker("x", "tls://10.0.0.9:1")]
        )


def test_workers_that_are_not_described():
    with pytest.raises(BadPlatform, match="a worker that is not described: b at h"):
        match_hosts(lab(Host("a")), [Worker("a", "tls://h:1"), Worker("b", "tls://h:2")])


def test_two_workers_at_one_address_need_names():
    with pytest.raises(BadPlatform, match="2 workers are at 'h': a, b"):
        match_hosts(lab(Host("h")), [Worker("a", "tls://h:1"), Worker("b", "tls://h:2")])
