"""Existing Dask code inside `headrace.dask.steering`, on a real cluster whose scheduler checks itself."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace.dask
from headrace.dask import SteeringWarning, steering
from headrace.model.errors import BadPlatform, UsageError
from headrace.model.platform import Platform
from headrace.record import Record
from headrace.record.steering_rows import saved_speeds, steered_rows
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.dask_steering import SteeringPlugin


@pytest.fixture(scope="module")
def unequal() -> Iterator[Cluster]:
    with open_local(speeds=[4, 2, 1], stretch=1.0) as opened:
        scheduler_of(opened).validate = True
        yield opened


def scheduler_of(cluster: Cluster) -> Any:
    return cluster._engine.scheduler


def snapshot(scheduler: Any) -> dict[str, Any]:
    """All that steering could leave behind."""
    stealing = scheduler.extensions["stealing"]
    return {
        "plugins": sorted(name for name in scheduler.plugins),
        "attributes": sorted(scheduler.__dict__),
        "table": scheduler._TRANSITIONS_TABLE is type(scheduler)._TRANSITIONS_TABLE,
        "stealing": sorted(stealing.__dict__),
        "shuffles": sorted(scheduler.extensions["shuffle"].__dict__),
        "callbacks": sorted(scheduler.periodic_callbacks),
        "saturation": scheduler.WORKER_SATURATION,
        "tasks": sorted(map(str, scheduler.tasks)),
    }


def settled(scheduler: Any) -> dict[str, Any]:
    """A snapshot when nothing is left of the tasks of a test."""
    end = time.monotonic() + 10
    while scheduler.tasks and time.monotonic() < end:
        time.sleep(0.02)
    return snapshot(scheduler)


def nap(seconds: float, *inputs: Any) -> float:
    time.sleep(seconds)
    return seconds + sum(inputs)


def double(x: int) -> int:
    return 2 * x


def test_the_same_results_and_the_cluster_as_it_was(unequal, tmp_path):
    import dask.bag as db
    from dask import delayed

    scheduler, client = scheduler_of(unequal), unequal.client
    before = settled(scheduler)
    with steering(client, record=tmp_path) as block:
        assert [h.name for h in block.platform.hosts] == ["w0-4x", "w1-2x", "w2-1x"]
        leaves = [delayed(nap)(0.01 * k) for k in range(12)]
        total = delayed(sum)([delayed(nap)(0.01, leaf) for leaf in leaves])
        assert total.compute(scheduler=client) == pytest.approx(0.78)
        assert client.gather(client.map(double, range(30))) == [2 * k for k in range(30)]
        assert db.from_sequence(range(50), npartitions=10).map(double).sum().compute(scheduler=client) == 2450
        assert any(isinstance(p, SteeringPlugin) for p in scheduler.plugins.values())
    assert not block.active
    assert block.error == ""
    assert block.measured > 30
    assert settled(scheduler) == before


def test_arrays(unequal, tmp_path):
    da = pytest.importorskip("dask.array")
    x = da.arange(10_000, chunks=500).reshape((100, 100)).rechunk((20, 30))
    with steering(unequal.client, record=tmp_path):
        assert int((x + x.T).sum().compute(scheduler=unequal.client)) == 2 * sum(range(10_000))


@pytest.mark.slow
def test_data_frames(unequal, tmp_path):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = pd.DataFrame({"key": [k % 7 for k in range(700)], "x": range(700)})
    with steering(unequal.client, record=tmp_path):
        table = dd.from_pandas(frame, npartitions=6).groupby("key").x.sum().compute(scheduler=unequal.client)
    assert table.sort_index().to_list() == frame.groupby("key").x.sum().to_list()


@pytest.mark.slow
def test_fast_workers_get_more_of_a_shuffle(unequal, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    import dask
    import pandas as pd
    from distributed.shuffle import ShuffleSchedulerPlugin

    client, scheduler = unequal.client, scheduler_of(unequal)
    before = settled(scheduler)
    frame = pd.DataFrame({"key": range(1400), "x": range(1400)})
    pinned: list[dict[int, str]] = []
    original = ShuffleSchedulerPlugin._calculate_worker_for

    def noted(self: Any, spec: Any) -> dict[int, str]:
        pinned.append(original(self, spec))
        return pinned[-1]

    monkeypatch.setattr(ShuffleSchedulerPlugin, "_calculate_worker_for", noted)

    def shares() -> list[int]:
        """Number of output partitions on each worker."""
        with client.as_current(), dask.config.set({"dataframe.shuffle.method": "p2p"}):
            table = dd.from_pandas(frame, npartitions=4).shuffle("key", npartitions=14)
            assert sorted(table.x.compute(scheduler=client)) == list(range(1400))
        names = [scheduler.workers[address].name for address in pinned.pop().values()]
        assert not pinned
        return [names.count(name) for name in ("w0-4x", "w1-2x", "w2-1x")]

    with steering(client, record=tmp_path) as block:
        speeds = [h.speed for h in block.platform.hosts]
        steered = shares()
    assert sum(steered) == 14
    for share, speed in zip(steered, speeds, strict=True):
        assert share == pytest.approx(14 * speed / sum(speeds), abs=1.0)
    assert sorted(shares()) == [4, 5, 5]
    assert settled(scheduler) == before


def test_an_idle_cluster_uses_its_fastest_worker(unequal, tmp_path):
    """Sleeping takes the same time everywhere: it is the described speeds that decide."""
    platform = Platform.pairwise([8.0, 1.0, 1.0], bandwidth=1e9)
    names = ["w0-4x", "w1-2x", "w2-1x"]
    from dataclasses import replace

    sites = tuple(
        replace(s, hosts=tuple(replace(h, name=n) for h, n in zip(s.hosts, names, strict=True)))
        for s in platform.sites
    )
    with steering(unequal.client, replace(platform, sites=sites), record=tmp_path):
        futures = []
        for _ in range(6):  # one after the other: all workers are idle, and Dask would take turns
            futures.append(unequal.client.submit(nap, 0.01, pure=False))
            futures[-1].result()
        where = unequal.client.who_has(futures)
    fast = next(a for a, w in scheduler_of(unequal).workers.items() if w.name == "w0-4x")
    assert set(where.values()) == {(fast,)}


def test_run_times_and_speeds_are_kept(unequal, tmp_path):
    with steering(unequal.client, record=tmp_path):
        unequal.client.gather(unequal.client.map(nap, [0.02] * 5, pure=False))
    with Record.open(tmp_path) as book:
        rows = steered_rows(book)
        assert {row[0] for row in rows} == {"nap"}
        assert all(row[2] >= 0.015 for row in rows)
        names = ["w0-4x", "w1-2x", "w2-1x"]
        cluster = unequal.client.scheduler.address
        assert set(saved_speeds(book, cluster, names)) == set(names)
        assert saved_speeds(book, cluster, names[:2]) is None  # other workers: measured again
        later = time.time() + 25 * 3600
        assert saved_speeds(book, cluster, names, clock=lambda: later) is None


def test_learn_off_leaves_no_trace(unequal, tmp_path):
    with steering(unequal.client, record=tmp_path, learn=False):
        unequal.client.submit(double, 4).result()
    with Record.open(tmp_path) as book:
        assert steered_rows(book) == []


def test_a_record_that_cannot_be_used(unequal, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    told = pytest.warns(SteeringWarning, match="neither used nor kept")
    with told, steering(unequal.client, record=tmp_path / "file"):
        assert unequal.client.submit(double, 8).result() == 16


def test_workers_that_cannot_be_measured_count_as_equal(unequal, tmp_path, monkeypatch):
    from headrace.model.errors import HeadraceError

    def fails(client: Any) -> Any:
        raise HeadraceError("a worker cannot load headrace")

    monkeypatch.setattr("headrace.runtime.probe.probe_speeds", fails)
    told = pytest.warns(SteeringWarning, match="cannot load headrace")
    with told, steering(unequal.client, record=tmp_path) as block:
        assert block.platform is None
        assert block.active
        assert unequal.client.gather(unequal.client.map(nap, [0.01] * 9, pure=False)) == [0.01] * 9
    assert block.measured == 9


def test_workers_may_come_later(tmp_path, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(headrace.dask, "_PATIENCE", 0.1)
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=0, **settings) as engine, Client(engine) as client:

        def scale_inside() -> tuple[list[int], bool, int]:
            with steering(client, record=tmp_path) as steered:
                futures = client.map(double, range(20), pure=False)
                engine.scale(2)
                found, active = client.gather(futures), steered.active
            return found, active, steered.measured

        with pytest.raises(UsageError, match="no workers"):
            steering(client, Platform.pairwise([1.0, 2.0], bandwidth=1e6), record=tmp_path).__enter__()
        with pytest.warns(SteeringWarning, match="there was no worker yet"):
            found, active, measured = scale_inside()
    assert found == [2 * k for k in range(20)]
    assert active
    assert measured == 20


def test_a_seceded_task_does_not_keep_its_worker_busy(unequal, tmp_path):
    def held(gate: str, number: int) -> int:
        from distributed import secede

        secede()
        while not Path(gate).exists():
            time.sleep(0.02)
        return number

    client, gate = unequal.client, tmp_path / "gate"
    with steering(client, record=tmp_path):
        waiting = client.map(held, [str(gate)] * 3, range(3), pure=False)
        assert client.gather(client.map(nap, [0.001] * 6, pure=False)) == [0.001] * 6
        assert not any(future.done() for future in waiting)
        gate.touch()
        assert client.gather(waiting) == [0, 1, 2]


def test_only_observe(unequal, tmp_path):
    scheduler = scheduler_of(unequal)
    with steering(unequal.client, scheduler="Dask", record=tmp_path):
        assert scheduler._TRANSITIONS_TABLE is type(scheduler)._TRANSITIONS_TABLE
        assert unequal.client.submit(double, 21, pure=False).result() == 42
    with Record.open(tmp_path) as book:
        assert [row[0] for row in steered_rows(book)] == ["double"]


def test_priorities_by_rank_when_run_times_are_known_and_restored_after(unequal, tmp_path):
    client, scheduler = unequal.client, scheduler_of(unequal)
    with steering(client, record=tmp_path):
        client.gather(client.map(nap, [0.3, 0.01, 0.01, 0.01]))
    before = settled(scheduler)
    with steering(client, record=tmp_path):
        futures = client.map(nap, [0.3, 0.01, 0.01, 0.01])
        end = time.monotonic() + 5
        while len(scheduler.tasks) < 4 and time.monotonic() < end:
            time.sleep(0.001)
        priorities = {f.key: scheduler.tasks[f.key].priority for f in futures}
        assert priorities[futures[0].key] == min(priorities.values())
        assert priorities[futures[0].key][2] < -0.1
    assert client.gather(futures) == [0.3, 0.01, 0.01, 0.01]
    assert all(scheduler.tasks[f.key].priority[2] >= 0 for f in futures)
    del futures
    assert settled(scheduler) == before


def test_leaving_early_leaves_tasks_to_dask(unequal, tmp_path):
    client, scheduler = unequal.client, scheduler_of(unequal)
    with steering(client, record=tmp_path):
        futures = client.map(nap, [0.05] * 40, pure=False)
        time.sleep(0.1)
    assert client.gather(futures) == [0.05] * 40
    del futures
    settled(scheduler)
    scheduler.validate_state()


def test_without_the_engines_queue(unequal, tmp_path):
    client, scheduler = unequal.client, scheduler_of(unequal)
    saturation, scheduler.WORKER_SATURATION = scheduler.WORKER_SATURATION, float("inf")
    try:
        with steering(client, record=tmp_path):
            futures = client.map(nap, [0.02] * 40, pure=False)
            time.sleep(0.05)
        assert client.gather(futures) == [0.02] * 40
    finally:
        scheduler.WORKER_SATURATION = saturation


def test_an_error_inside_hands_everything_back_with_one_warning(unequal, tmp_path, monkeypatch):
    import headrace.runtime.dask_steering as module

    client, scheduler = unequal.client, scheduler_of(unequal)
    before = settled(scheduler)
    calls = []

    def fails_later(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise ZeroDivisionError("a defect")
        return dispatch(*args)

    dispatch = module.dispatch
    monkeypatch.setattr(module, "dispatch", fails_later)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with steering(client, record=tmp_path) as block:
            futures = client.map(nap, [0.01] * 30, pure=False)
            assert client.gather(futures) == [0.01] * 30
            del futures
    told = [w for w in caught if issubclass(w.category, SteeringWarning)]
    assert len(told) == 1
    assert "ZeroDivisionError: a defect" in str(told[0].message)
    assert len(calls) == 2
    assert block.error
    assert settled(scheduler) == before


@pytest.mark.parametrize("hook", ["_enqueue", "_entered", "_left", "_know"])
def test_errors_anywhere_do_not_stop_the_work(unequal, tmp_path, monkeypatch, hook):
    client = unequal.client

    def fails(*args: Any) -> Any:
        raise KeyError("lost")

    if hook == "_enqueue":
        monkeypatch.setattr("headrace.runtime.dask_steering.ready_task", fails)
    else:
        monkeypatch.setattr(SteeringPlugin, hook, fails)
    with pytest.warns(SteeringWarning, match="KeyError"), steering(client, record=tmp_path):
        assert client.gather(client.map(nap, [0.01] * 20, pure=False)) == [0.01] * 20
    before = scheduler_of(unequal)
    assert before._TRANSITIONS_TABLE is type(before)._TRANSITIONS_TABLE


def test_restrictions_and_resources_are_dasks_business(unequal, tmp_path):
    client, scheduler = unequal.client, scheduler_of(unequal)
    slow = next(a for a, w in scheduler.workers.items() if w.name == "w2-1x")
    with steering(client, record=tmp_path):
        futures = client.map(nap, [0.01] * 6, pure=False, workers=[slow])
        client.gather(futures)
        assert set(client.who_has(futures).values()) == {(slow,)}


def test_tasks_that_submit_tasks(unequal, tmp_path):
    def outer(n: int) -> int:
        from distributed import worker_client

        with worker_client() as inner:  # it gives its thread back
            return sum(inner.gather(inner.map(double, range(n), pure=False)))

    with steering(unequal.client, record=tmp_path):
        assert unequal.client.gather(unequal.client.map(outer, [3, 4, 5, 6], pure=False)) == [6, 12, 20, 30]


def test_errors_of_tasks_arrive_and_retries_work(unequal, tmp_path):
    with steering(unequal.client, record=tmp_path):
        futures = unequal.client.map(double, [None, 1, 2], retries=1)
        with pytest.raises(TypeError):
            futures[0].result()
        assert futures[1].result() == 2


def test_another_client_works_beside(unequal, tmp_path, caplog):
    from distributed import Client

    client = unequal.client
    with (
        Client(client.scheduler.address, set_as_default=False, security=client.security) as other,
        steering(client, record=tmp_path),
    ):
        mine = client.map(nap, [0.02] * 30, pure=False)
        others = other.map(nap, [0.03] * 30, pure=False)
        assert other.gather(others) == [0.03] * 30
        assert client.gather(mine) == [0.02] * 30
        told = pytest.warns(
            SteeringWarning, match="^Dask places the tasks by itself: another client already steers"
        )
        with told, steering(other, record=tmp_path):
            assert other.submit(double, 5).result() == 10
        told = pytest.warns(
            SteeringWarning, match="^this client already steers this cluster: the outer block places"
        )
        with told, steering(client, record=tmp_path):
            assert client.submit(double, 6).result() == 12
    assert "Traceback" not in caplog.text


@pytest.mark.slow
def test_cancelled_tasks_are_forgotten(unequal, tmp_path):
    client, scheduler = unequal.client, scheduler_of(unequal)
    with steering(client, record=tmp_path):
        futures = client.map(nap, [0.05] * 30, pure=False)
        client.cancel(futures[5:])
        assert client.gather(futures[:5]) == [0.05] * 5
        plugin = next(p for p in scheduler.plugins.values() if isinstance(p, SteeringPlugin))
        assert len(plugin.queue) <= 5
    del futures
    settled(scheduler)


@pytest.mark.slow
def test_a_worker_that_dies_and_returns(hardy, tmp_path):
    client = hardy.client
    with steering(client, record=tmp_path):
        futures = client.map(nap, [0.1] * 20, pure=False)
        time.sleep(0.3)
        os.kill(hardy.pids["w0"], signal.SIGKILL)
        assert client.gather(futures) == [0.1] * 20
        end = time.monotonic() + 30
        while len(client.scheduler_info(n_workers=-1)["workers"]) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        assert client.gather(client.map(nap, [0.02] * 20, pure=False)) == [0.02] * 20


def test_wrong_use(unequal, tmp_path):
    with pytest.raises(UsageError, match="not a Dask client"), steering("tcp://1.2.3.4:1"):
        pass
    with pytest.raises(UsageError, match="scheduler is 'heft'"), steering(unequal.client, scheduler="heft"):
        pass
    with pytest.raises(UsageError, match="folder of the record is 3"), steering(unequal.client, record=3):
        pass
    with pytest.raises(BadPlatform), steering(unequal.client, Platform.pairwise([1.0], bandwidth=1.0)):
        pass
    file = Path(tmp_path, "lab.toml")
    with pytest.raises(headrace.HeadraceError), steering(unequal.client, file, record=tmp_path):
        pass
