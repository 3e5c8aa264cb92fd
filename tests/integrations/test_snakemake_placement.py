"""Decisions of the Snakemake plugin, by themselves: what is started, where, and that something always is."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .snakemake_runs import PLUGIN

SPEC = importlib.util.spec_from_file_location("headrace_snakemake_placement", PLUGIN / "placement.py")
assert SPEC is not None
assert SPEC.loader is not None
placement: Any = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = placement
SPEC.loader.exec_module(placement)

QUIET = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
shapes = st.lists(st.tuples(st.sampled_from([0.5, 1.0, 2.0, 4.0]), st.integers(1, 4)), min_size=1, max_size=4)
jobs_given = st.lists(st.tuples(st.floats(0.1, 50.0), st.integers(1, 4)), min_size=1, max_size=10)


def hosts_of(shapes: list[tuple[float, int]]) -> list[Any]:
    return [placement.HostState(f"h{k}", speed, cores) for k, (speed, cores) in enumerate(shapes)]


def wishes_of(jobs: list[tuple[float, int]], hosts: list[Any]) -> list[Any]:
    return [
        placement.Wish(k, cores, {"_cores": cores}, lambda host, work=work: work / host.speed, hosts)
        for k, (work, cores) in enumerate(jobs)
    ]


def simulate(jobs: list[tuple[float, int]], shapes: list[tuple[float, int]]) -> float:
    """The makespan when all jobs are ready at the beginning."""
    total = sum(cores for _, cores in shapes)
    waiting, running, now = dict(enumerate(jobs)), [], 0.0
    while waiting or running:
        hosts = hosts_of(shapes)
        for placing in running:
            if placing.host:
                hosts[int(placing.host[1:])].busy.append((placing.expected_end(now), placing.cores))
        free = total - sum(p.cores for p in running)
        wishes = [
            placement.Wish(k, cores, {"_cores": cores}, lambda host, work=work: work / host.speed, hosts)
            for k, (work, cores) in waiting.items()
        ]
        placed = placement.place(wishes, hosts, now, {"_cores": free})
        assert placed or running, "jobs wait, and nothing runs"
        for placing in placed:
            del waiting[placing.job]
            placing.started = now
            running.append(placing)
        assert sum(p.cores for p in running) <= total
        for k in range(len(shapes)):
            assert sum(p.cores for p in running if p.host == f"h{k}") <= shapes[k][1]
        first = min(running, key=lambda p: p.finish)
        now = first.finish
        running.remove(first)
    return now


@QUIET
@given(jobs_given, shapes)
def test_all_jobs_run_within_cores(jobs, shapes):
    most = max(cores for _, cores in shapes)
    simulate([(work, min(cores, most)) for work, cores in jobs], shapes)


@QUIET
@given(
    st.lists(st.floats(0.5, 5.0), min_size=1, max_size=6),
    st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=3),
)
def test_within_twice_the_optimum_of_all_assignments(work, speeds):
    best = min(
        max(sum(w for w, at in zip(work, placed, strict=True) if at == k) / s for k, s in enumerate(speeds))
        for placed in itertools.product(range(len(speeds)), repeat=len(work))
    )
    assert simulate([(w, 1) for w in work], [(s, 1) for s in speeds]) <= 2 * best + 1e-9


def test_a_slow_host_stays_idle_if_the_fast_one_is_sooner_free():
    hosts = hosts_of([(4.0, 1), (1.0, 1)])
    hosts[0].busy.append((1.0, 1))
    assert placement.place(wishes_of([(8.0, 1)], hosts), hosts, 0.0, {"_cores": 1}) == []
    hosts = hosts_of([(4.0, 1), (1.0, 1)])
    hosts[0].busy.append((10.0, 1))
    (placed,) = placement.place(wishes_of([(8.0, 1)], hosts), hosts, 0.0, {"_cores": 1})
    assert placed.host == "h1"


def test_resources_are_not_exceeded():
    hosts = hosts_of([(1.0, 8)])
    wishes = [placement.Wish(k, 1, {"_cores": 1, "mem_mb": 600}, lambda host: 1.0, hosts) for k in range(4)]
    placed = placement.place(wishes, hosts, 0.0, {"_cores": 8, "mem_mb": 1500, "_nodes": "many"})
    assert [p.job for p in placed] == [0, 1]


def test_a_job_that_fits_no_host_has_the_closest_one_for_itself():
    hosts = [
        placement.HostState("small", 4.0, 4, room={"mem_mb": 1000.0}),
        placement.HostState("large", 1.0, 4, room={"mem_mb": 4000.0}),
    ]

    def wish(name: str, memory: int) -> Any:
        return placement.Wish(name, 1, {"_cores": 1, "mem_mb": memory}, lambda host: 1 / host.speed, hosts)

    large = placement.place([wish("a", 9000), wish("b", 2000), wish("c", 10)], hosts, 0.0, {"_cores": 8})
    assert [(p.job, p.host, p.alone) for p in large] == [("a", "large", True), ("c", "small", False)]
    # Snakemake counts what the job asked for, not what its host has.
    assert (large[0].cores, large[0].resources["mem_mb"]) == (1, 9000)
    for now, expected in ((0.0, []), (10.0, ["only"])):  # it waits until its host is idle
        only = [placement.HostState("only", 1.0, 4, [(10.0, 1)])]
        wide = placement.Wish("wide", 6, {"_cores": 6}, lambda host: 1.0, only)
        assert [p.host for p in placement.place([wide], only, now, {"_cores": 8})] == expected


def test_what_no_host_has_is_told():
    def host(name: str, **room: float) -> Any:
        return placement.HostState(name, 1.0, 4, room=room)

    hosts = [host("a", mem_mb=1000.0), host("b", mem_mb=4000.0)]
    assert placement.shortage(hosts, 1, {"mem_mb": 4000}) is None
    assert placement.shortage([], 1, {}) is None
    needs, closest, has = placement.shortage(hosts, 1, {"mem_mb": 9000, "disk_mb": 5})
    assert (needs, closest.name, has) == ({"mem_mb": 9000}, "b", {"mem_mb": 4000})
    # Each of them is somewhere, but both on no host.
    apart = [host("memory", mem_mb=9000.0, gpu=0), host("gpu", mem_mb=4000.0, gpu=1)]
    needs, closest, has = placement.shortage(apart, 1, {"mem_mb": 8000, "gpu": 1})
    assert (needs, closest.name) == ({"mem_mb": 8000, "gpu": 1}, "gpu")
    assert has == {"mem_mb": 4000, "gpu": 1}


def test_a_job_whose_host_is_not_listed_needs_only_resources():
    wishes = [placement.Wish("j", 4, {"_cores": 4}, lambda host: 1.0, [])]
    assert [p.host for p in placement.place(wishes, [], 0.0, {"_cores": 4})] == [""]
    assert placement.place(wishes, [], 0.0, {"_cores": 3}) == []


def test_out_of_time_starts_what_was_found():
    hosts = hosts_of([(1.0, 4)])
    placed = placement.place(wishes_of([(1.0, 1)] * 3, hosts), hosts, 0.0, {"_cores": 4}, lambda: True)
    assert [p.job for p in placed] == [0]


def test_a_late_job_is_expected_to_go_on():
    placing = placement.Placing("j", "h0", 1, finish=10.0, started=0.0)
    assert placing.expected_end(5.0) == 10.0
    assert placing.expected_end(14.0) == pytest.approx(18.0)


@QUIET
@given(st.integers(2, 8), st.data())
def test_ranks_are_longest_ways(n, data):
    work = {k: data.draw(st.floats(0.0, 10.0)) for k in range(n)}
    inputs = {k: [j for j in range(k) if data.draw(st.booleans())] for k in range(n)}

    def longest(job: int) -> float:
        return work[job] + max((longest(k) for k in range(n) if job in inputs[k]), default=0.0)

    ranks = placement.upward_ranks(work, inputs)
    assert ranks == pytest.approx({k: longest(k) for k in range(n)})


def test_jobs_wait_for_memory_and_resources_of_their_host() -> None:
    """Two jobs that need 3 GB each, on a host with 4 GB: the second waits, what needs none does not."""
    large = placement.HostState("large", 4.0, 8, room={"mem_mb": 4000, "gpu": 0})
    slow = placement.HostState("slow", 1.0, 8, room={"gpu": 1})
    hosts = [large, slow]

    def wish(name: str, **resources: int) -> Any:
        return placement.Wish(name, 1, {"_cores": 1, **resources}, lambda host: 8.0 / host.speed, hosts)

    wishes = [wish("a", mem_mb=3000), wish("b", gpu=1), wish("c", mem_mb=3000), wish("d", gpu=1), wish("e")]
    placed = placement.place(wishes, hosts, 0.0, {"_cores": 16})
    # c waits for a on the fast host rather than run on the slow one; d waits for the only GPU.
    assert [(p.job, p.host) for p in placed] == [("a", "large"), ("b", "slow"), ("e", "large")]
    assert placed[0].resources == {"_cores": 1, "mem_mb": 3000}
