"""Measured links: on this machine, and behind limited links in network namespaces."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headrace as hr
from headrace.model.events import DataMoved, TaskFinished
from headrace.model.platform import Platform
from headrace.run_platform import platform_of_run
from headrace.runtime import network_probe
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.measured import measured_platform, workers_of
from headrace.runtime.probe import probe_speeds
from runtime.namespaces import lab, needs_root


def add(*values: int) -> int:
    return sum(values)


def small_program() -> hr.Program:
    program = hr.Program("small")
    made = [program.task(add, name=f"t{k}", outputs=[f"x{k}"], work=0.01) for k in range(4)]
    program.output(program.task(add, name="sum", inputs=made, outputs=["y"], work=0.01))
    return program


def test_workers_of_one_machine_are_one_site(cluster: Cluster) -> None:
    found = Platform.probe(cluster.client, "here")
    (site,) = found.sites
    assert [host.name for host in site.hosts] == ["w0", "w1", "w2"]
    assert site.bandwidth is not None
    assert 1e6 < site.bandwidth < 1e12
    assert 0 < site.latency < 1


@pytest.mark.slow
def test_links_are_measured_once_and_then_taken_from_the_record(cluster: Cluster, tmp_path: Path) -> None:
    first = hr.run(small_program(), cluster, record=tmp_path, output=tmp_path)
    again = hr.run(small_program(), cluster, record=tmp_path, output=tmp_path)
    fresh = hr.run(small_program(), cluster, record=tmp_path, output=tmp_path, learn=False)
    assert first.sources.links == "measured now"
    assert " ago" in again.sources.links
    assert fresh.sources.links == "measured now"
    assert first.sources.run_times == "the program's figures" == fresh.sources.run_times
    assert again.sources.run_times.startswith("5 of 5 tasks from earlier executions")
    assert first.deviations is not None
    assert first.deviations.happened.total == pytest.approx(first.makespan)


def test_a_described_platform_holds_with_its_prices(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(
        'name = "lab"\n[[site]]\nname = "s"\nbandwidth = "1 MB/s"\n'
        + "".join(f'[[site.host]]\nname = "w{k}"\nprice = 3600.0\nspeed = {k + 1}.0\n' for k in range(3))
    )
    found = platform_of_run(cluster, path)
    assert found.platform.sites[0].bandwidth == 1e6
    assert [host.speed for host in found.platform.hosts] == [1.0, 2.0, 3.0]
    done = hr.run(small_program(), cluster, platform=path, record=tmp_path, output=tmp_path)
    assert done.sources.links == "as described in lab"
    assert {host.price for host in done.platform.hosts} == {3600.0}


@needs_root
@pytest.mark.slow
def test_limited_links_are_measured_within_15_percent(tmp_path: Path) -> None:
    rates = {"n0": 100.0, "n1": 100.0, "n2": 10.0, "n3": 100.0}
    with lab([f"{rate:g}mbit" for rate in rates.values()], tmp_path) as made:
        found = Platform.probe(made.client)
        assert found.contention == "fifo"
        for site in found.sites:
            for host in site.hosts:
                ends = [link for link in found.links if site.name in (link.source, link.target)]
                assert len(ends) == 2
                for link in ends:
                    assert link.bandwidth * 8e-6 == pytest.approx(rates[host.name], rel=0.15)


@needs_root
@pytest.mark.slow
def test_a_run_avoids_a_slow_link_without_any_description(tmp_path: Path) -> None:
    with lab(["100mbit", "100mbit", "2mbit"], tmp_path) as made:
        plain = measured_platform(workers_of(made.client), probe_speeds(made.client), (), made.address)
        cluster = Cluster(made.client, plain, links_assumed=True)
        program = hr.Program("pairs")
        for k in range(4):
            item = program.task(lambda: bytes(2_000_000), name=f"a{k}", outputs={f"x{k}": 2e6}, work=0.5)
            program.output(program.task(len, name=f"b{k}", inputs=[item], outputs={f"y{k}": 10}, work=0.5))
        done = hr.run(program, cluster, record=tmp_path / "r", output=tmp_path)
        far = [
            e for e in done.outcome.events if type(e).__name__ == "DataMoved" and "n2" in (e.source, e.target)
        ]
        assert sum(e.size for e in far) < 1e6


@needs_root
@pytest.mark.slow
def test_inputs_are_sent_ahead_over_a_slow_link(tmp_path: Path) -> None:
    """The item of the first task reaches the other host while that host is busy with another task."""

    def nap(*values: bytes) -> bytes:  # sent by value: workers there cannot import the tests
        time.sleep(1.0)
        return b""

    with lab(["10mbit", "10mbit"], tmp_path) as made:
        plain = measured_platform(workers_of(made.client), probe_speeds(made.client), (), made.address)
        program = hr.Program("ahead")
        item = program.task(lambda: bytes(300_000), name="make", outputs={"x": 3e5}, work=0.01)
        program.task(nap, name="busy", outputs={"b": 1e3}, work=3.0)
        program.task(nap, name="other", inputs=[item], outputs={"c": 1e3}, work=3.0)
        program.output(program.task(nap, name="last", inputs=[item, "b"], outputs={"y": 10.0}, work=3.0))
        done = hr.run(
            program, Cluster(made.client, plain, links_assumed=True), "heft",
            record=tmp_path / "r", output=tmp_path,
        )  # fmt: skip
        assert done.failure is None, str(done.failure)
        runs = {e.task: e for e in done.outcome.events if isinstance(e, TaskFinished)}
        assert runs["busy"].host == runs["last"].host != runs["make"].host
        (move,) = [e for e in done.outcome.events if isinstance(e, DataMoved) and e.item == "x"]
        assert move.time < runs["busy"].time


def test_progress_is_told_after_the_first_second(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(network_probe, "_SILENT", 0.0)
    monkeypatch.setattr(network_probe, "machine_of", str)  # each worker on a machine of its own
    found = Platform.probe(cluster.client, "here", say=told.append)
    assert told[0] == "measuring the links of 3 machines: round 1 of 6"
    assert len(found.sites) == 4


def test_emulated_speeds_are_measured() -> None:
    with open_local(speeds=[4.0, 1.0], stretch=4.0) as cluster:
        speeds = probe_speeds(cluster.client)
        names = {worker.address: worker.name for worker in workers_of(cluster.client)}
        by_name = {names[address]: speed for address, speed in speeds.items()}
        assert by_name["w1-1x"] == 1.0
        assert 2.0 < by_name["w0-4x"] < 8.0
