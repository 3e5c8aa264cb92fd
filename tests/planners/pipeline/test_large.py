"""Many hosts: rounding, bounds, and what a time limit leaves. Sizes are small enough for every commit."""

from __future__ import annotations

import numpy as np
import pytest
from bench.generated.pipelines import mixed_machines

from headrace.model.pipeline import PipelineProblem, Source
from headrace.planners.pipeline import search as searching
from headrace.planners.pipeline.classes import find_classes
from headrace.planners.pipeline.compact import Weights, build_compact
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.rates import find_rates
from headrace.planners.pipeline.search import search
from planners.pipeline.instances import small


@pytest.mark.parametrize(("hosts", "clusters", "kinds"), [(400, 6, 5), (250, 5, 0), (1000, 8, 8)])
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


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_rounding_stays_between_zero_and_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way for many hosts, taken with few, where the optimum is known."""
    monkeypatch.setattr(searching, "DIRECT", 0)
    problem = small(seed)
    rates = find_rates(problem)
    for strict in (True, False):
        program = build_compact(rates, find_classes(rates), Weights.of(problem), strict=strict)
        best = solve(program.linear, gap=1e-9)
        found = search(program, seconds=20.0, gap=1e-9)
        assert (found.x is None) == (best.x is None)
        if found.x is None or best.x is None:
            continue
        scale = max(1.0, abs(best.objective))
        assert found.objective <= best.objective + 1e-6 * scale
        assert found.bound >= best.objective - 1e-6 * scale
        if found.proven:
            assert found.objective >= best.objective - 1e-6 * scale
        product = program.linear.times(found.x)
        assert np.all(product <= program.linear.row_high + 1e-6 * scale)
        assert np.all(product >= program.linear.row_low - 1e-6 * scale)


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
