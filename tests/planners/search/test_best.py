"""auto and best: never worse than the trivial plans, close to the optimum on small cases, reproducible."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import make
from headrace.planners.search.best import Best
from headrace.planners.search.critical_chain import critical_tasks
from headrace.simulator.replay.replay import replay
from headrace.testing.exact import proven_makespan, small_case
from headrace.testing.generate import SHAPES, random_platform, random_program
from planners.cases import OWN, read_dag, read_net
from planners.oracle import best_makespan

TRIVIAL = ("heft", "single-host", "round-robin", "subset")


def limited(seed: int, contention: str, network: str = "ports") -> Problem:
    """4 to 64 hosts whose data goes through limited links, of 10 to 1000 Mbit/s."""
    random = np.random.default_rng([seed, 3])
    hosts = [Host(f"h{i}", float(random.uniform(1, 4))) for i in range(int(2 ** random.integers(2, 7)))]
    limits = 1.25e6 * 10 ** random.uniform(0, 2, 4)
    sites = [
        Site(
            f"s{s}",
            tuple(hosts[s :: 1 if network == "ports" else 3]),
            bandwidth=float(limits[s]) if network == "ports" or random.random() < 0.5 else None,
            uplink=float(limits[s]) if network == "uplinks" else None,
        )
        for s in range(1 if network == "ports" else 3)
    ]
    links = [Link("s0", "s1", float(limits[2])), Link("s1", "s2", float(limits[3]), shared=True)]
    platform = Platform(
        (*sites, Site("store")) if network == "uplinks" else tuple(sites),
        tuple(links) if network == "sites" else (),
        contention=contention,  # type: ignore[arg-type]
        origin={"ports": None, "uplinks": "store", "sites": "s0"}[network],
    )
    return Problem(random_program(seed, tasks=40, shape=SHAPES[seed % len(SHAPES)]).graph, platform)


@pytest.mark.parametrize("contention", ["fifo", "fair"])
@pytest.mark.parametrize("network", ["ports", "uplinks", "sites"])
def test_never_worse_than_the_trivial_plans_on_limited_links(contention: str, network: str) -> None:
    """Judged by carrying plans out; what is promised is what happens."""
    beaten = 0
    for seed in range(10):
        problem = limited(seed, contention, network)
        least = min(replay(make(name).plan(problem)).makespan for name in TRIVIAL)
        for plan in (make("auto").plan(problem), Best(time=0.03).plan(problem)):
            happened = replay(plan).makespan
            assert happened <= least * (1 + 1e-9), f"{plan.scheduler}, seed {seed}"
            assert happened == pytest.approx(plan.makespan, rel=1e-6 if contention == "fifo" else 0.05)
            assert check(problem.graph, problem.platform, plan) == []
        beaten += happened < least * (1 - 1e-9)
    assert beaten >= 1


def test_matches_brute_force_on_small_cases() -> None:
    hits = 0
    for seed in range(40):
        program = random_program(seed, tasks=5, shape=SHAPES[seed % len(SHAPES)])
        problem = Problem(program.graph, random_platform(seed, "pairs", hosts=3))
        optimum = best_makespan(problem)
        found = Best(time=0.1).plan(problem).makespan
        assert found >= optimum * (1 - 1e-9), f"seed {seed}: the oracle is not the optimum"
        hits += found <= optimum * (1 + 1e-9)
    assert hits >= 38


@pytest.mark.slow
def test_matches_the_proven_optimum_of_up_to_12_tasks() -> None:
    """A sample; `python -m bench.exact` has 200."""
    hits = 0
    for seed in range(0, 40, 4):
        problem = small_case(seed)
        lower, upper = proven_makespan(problem)
        found = Best(time=0.5).plan(problem).makespan
        assert lower_bound(problem) <= upper
        assert found >= lower * (1 - 1e-9), f"seed {seed}: the oracle is not the optimum"
        hits += found <= upper
    assert hits >= 9


def test_search_shortens_the_plan_of_heft_and_repeats_itself() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    heft = make("heft").plan(problem)
    first, again = (Best(time=0.5).plan(problem) for _ in range(2))
    assert first.makespan < heft.makespan * 0.98
    assert np.array_equal(first.start, again.start)
    assert np.array_equal(first.host, again.host)
    assert check(problem.graph, problem.platform, first) == []


def test_progress_only_gets_better() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    heard: list[float] = []
    Best(time=0.3, tell=lambda seconds, makespan, bound: heard.append(makespan)).plan(problem)
    assert len(heard) > 1
    assert heard == sorted(heard, reverse=True)


def test_the_critical_chain_explains_the_makespan() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    plan = make("heft").plan(problem)
    chain = critical_tasks(plan)
    assert plan.finish[chain[0]] == plan.makespan
    assert np.all(np.diff(plan.start[chain]) < 0)
    assert plan.start[chain[-1]] == 0.0


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'heft' does not accept 'time' \(try: best"):
        make("heft", time=1.0)
    with pytest.raises(UsageError, match="time is 0"):
        make("best", time=0)


def test_where_only_coschedule_fits_the_storage_its_plan_is_taken() -> None:
    program = hr.Program("disks")
    for k in range(6):
        program.input(f"in{k}", size="3 GB")
        program.task(None, name=f"t{k}", work=10.0, inputs=[f"in{k}"], outputs={f"out{k}": "1 GB"})
    near = hr.Site("a", [hr.Host("h1", cores=2)], bandwidth="1 GB/s", uplink="1 GB/s", storage="10 GB")
    far = hr.Site("b", [hr.Host("h2")], bandwidth="1 GB/s", uplink="1 GB/s", storage="10 GB")
    platform = hr.Platform([near, far, hr.Site("o", uplink="2 GB/s")], origin="o", contention="fifo")
    plan = hr.plan(program, platform, "best", time=1.0)
    assert hr.check(program, platform, plan) == []
    assert plan.scheduler == "best"
    assert any("coschedule" in note for note in plan.notes)
