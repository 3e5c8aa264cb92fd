"""Orders of events that a real cluster shows only now and then, on stand-ins of the engine's scheduler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.core.scheduler import Fetch
from headrace.runtime.dask_hosts import Hosts
from headrace.runtime.dask_transfers import PlannedTransfers

OLD, NEW, OTHER = "tls://10.0.0.1:1", "tls://10.0.0.1:2", "tls://10.0.0.2:1"


def hosts_with(**addresses: str) -> tuple[Hosts, dict[str, Any]]:
    """Hosts of which all workers were noted, and the engine's dictionary of workers."""
    workers = {address: SimpleNamespace(name=name) for name, address in addresses.items()}
    hosts = Hosts(SimpleNamespace(workers=workers), {"a", "b"}.__contains__, 20.0)
    for name, address in addresses.items():
        hosts.note(address, name)
    return hosts, workers


def test_workers_that_change_while_a_scheduler_plans_are_found() -> None:
    """The engine calls no hook of a plugin that has not started, and planning is part of its start."""
    hosts, workers = hosts_with(a=OLD, b=OTHER)
    assert hosts.overlooked() == ([], [])
    del workers[OLD]
    workers[NEW] = SimpleNamespace(name="a")
    assert hosts.overlooked() == ([OLD], [NEW])
    assert hosts.forget(OLD) == "a"
    hosts.note(NEW, "a")
    assert hosts.overlooked() == ([], [])
    assert hosts.usable() == {"a": NEW, "b": OTHER}


def test_a_host_with_a_new_worker_does_not_leave_with_the_old_one() -> None:
    hosts, workers = hosts_with(a=OLD, b=OTHER)
    workers[NEW] = SimpleNamespace(name="a")
    hosts.note(NEW, "a")
    del workers[OLD]
    assert hosts.forget(OLD) == ""
    assert hosts.usable() == {"a": NEW, "b": OTHER}
    assert hosts.overlooked() == ([], [])


def test_a_silent_host_can_be_forgotten() -> None:
    hosts, workers = hosts_with(a=OLD, b=OTHER)
    hosts.tell("a", OLD, "silent")
    assert hosts.usable() == {"b": OTHER}
    del workers[OLD]
    assert hosts.overlooked() == ([OLD], [])
    assert hosts.forget(OLD) == "a"
    assert hosts.told == {"b": "up"}


class _Comm(list[Any]):
    send = list.append


def test_nothing_is_sent_to_a_worker_that_is_about_to_leave() -> None:
    """Its connection is closed before it is removed. When its host has another worker, transfers go there."""
    item = SimpleNamespace(who_has=[SimpleNamespace(address=OTHER)], nbytes=10)
    comms: dict[str, _Comm] = {}
    address = {"a": OLD, "b": OTHER}
    transfers = PlannedTransfers(
        SimpleNamespace(tasks={"kx": item, "ky": item}, stream_comms=comms), {"x": "kx", "y": "ky"}, address
    )
    transfers.replace([Fetch("x", "b", "a", 0.0), Fetch("y", "b", "a", 1.0)])
    transfers.start_next()
    address["a"], comms[NEW] = NEW, _Comm()
    transfers.start_next()
    assert [list(message["who_has"]) for message in comms[NEW]] == [["ky"]]


@pytest.mark.parametrize(("share", "under_way"), [(1.0, ["kx"]), (0.6, ["kx"]), (0.3, ["kx", "ky"])])
def test_a_worker_receives_several_transfers_only_over_slow_links(share: float, under_way: list[str]) -> None:
    """Each takes this share of the worker's link; another one starts while at most half of it is taken."""
    item = SimpleNamespace(who_has=[SimpleNamespace(address=OTHER)], nbytes=10)
    comms = {OLD: _Comm()}
    keys = {name: f"k{name}" for name in "xyz"}
    engine = SimpleNamespace(tasks=dict.fromkeys(keys.values(), item), stream_comms=comms)
    transfers = PlannedTransfers(engine, keys, {"a": OLD, "b": OTHER}, lambda source, target: share)
    transfers.replace([Fetch(name, "b", "a", float(rank)) for rank, name in enumerate("xyz")])
    transfers.start_next()
    transfers.start_next()
    assert [key for message in comms[OLD] for key in message["who_has"]] == under_way
