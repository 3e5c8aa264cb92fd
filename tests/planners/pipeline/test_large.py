"""Many hosts: rounding, bounds, and what a time limit leaves. Sizes are small enough for every commit."""

from __future__ import annotations

import time

import numpy as np
import pytest
from bench.generated.pipelines import mixed_machines

from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem, Source
from headrace.planners.pipeline import search as searching
from headrace.planners.pipeline.classes import find_classes
from headrace.planners.pipeline.column_generation import relax
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.portfolio import ask
from headrace.planners.pipeline.rates import find_rates
from headrace.planners.pipeline.rounding import decide, purify, round_up
from planners.pipeline.instances import small


@pytest.mark.parametrize(
    ("hosts", "clusters", "kinds"),
    [pytest.param(400, 6, 5, marks=pytest.mark.slow), (250, 5, 0), (1000, 8, 8)],
)
def test_many_hosts_within_one_percent(hosts: int, clusters: int, kinds: int) -> None:
    problem = mixed_machines(hosts, clusters, kinds, seed=3)
    made = deploy_lpsched(problem, seconds=30.0, gap=0.01)
    assert made.check() == []
    assert made.gap <= 0.01
    assert len(made.flows) < 4 * hosts + len(problem.pipeline.streams) * clusters**2


def test_classes_are_hosts_that_nothing_tells_apart() -> None:
    problem = mixed_machines(300, 4, 3, seed=1)
    rates = find_rates(problem)
    classes = find_classes(rates)
    assert classes.size.sum() == 300
    for g in range(classes.n):
        hosts = classes.members(g)
        assert classes.first[g] == hosts.min()
        assert len(hosts) == classes.size[g]
        for values in (rates.core, rates.share):
            assert np.all(values[:, hosts] == values[:, hosts[:1]])
        assert np.all(rates.zone[hosts] == classes.zone[g])
    assert classes.n < 40


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed % 6 else ()) for seed in range(0, 60, 3)]
)
def test_rounding_stays_between_zero_and_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way for many hosts, taken with few, where the optimum is known."""
    problem = small(seed)
    try:
        best = deploy_lpsched(problem, gap=1e-9)
    except NoPlan:
        return
    monkeypatch.setattr(searching, "DIRECT", 0)
    monkeypatch.setattr(searching, "FINISH", 0)
    found = deploy_lpsched(problem, seconds=20.0, gap=1e-9)
    assert found.check() == []
    scale = 1e-6 * max(1.0, abs(best.objective))
    assert found.objective <= best.objective + scale
    assert found.bound >= best.objective - scale


def test_rounding_is_near_the_bound() -> None:
    """All different, with links that limit: what is lost by whole hosts is small."""
    for seed in (1, 4):
        problem = mixed_machines(300, 6, 0, seed=seed)
        question = ask(problem)
        case = question.cases[0]
        relaxed = relax(case.rates, case.groups, case.weights)
        counts = purify(case.rates, case.groups, case.weights, relaxed, seconds=20.0)
        divided = np.abs(counts - np.rint(counts)) > 1e-6
        assert divided.any(axis=0).sum() < 50
        up = round_up(case.groups, counts)
        assert np.all(up.sum(axis=0) <= case.groups.size)
        whole = decide(case.rates, case.groups, case.weights, up, end=time.monotonic() + 20)
        assert whole is not None
        assert relaxed.bound * 0.9 <= whole.objective <= relaxed.bound


def test_a_time_limit_leaves_the_best_found_and_its_gap() -> None:
    problem: PipelineProblem = mixed_machines(60, 3, 0, seed=5, reader_speed=3.0)
    made = deploy_lpsched(problem, seconds=0.5, gap=0.0)
    assert made.check() == []
    assert made.bound >= made.objective > 0
    assert made.gap < 0.5


def test_many_sources_are_looked_at_by_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty copies of the input, one of them on faster hosts: that one is found, and the bound covers all."""
    monkeypatch.setattr(searching, "DIRECT", 0)
    problem = mixed_machines(120, 3, 3, seed=2)
    hosts = [h.name for h in problem.platform.hosts]
    speed = {h.name: h.speed for h in problem.platform.hosts}
    pipeline = problem.pipeline.with_sources([Source(h, {h: 1.0}) for h in hosts[10:40]])
    made = deploy_lpsched(PipelineProblem(pipeline, problem.platform), seconds=20.0, gap=0.01)
    assert made.check() == []
    assert made.gap < 0.02
    assert speed[made.source] >= np.quantile([speed[h] for h in hosts[10:40]], 0.5)
