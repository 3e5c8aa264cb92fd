"""What a planned deployment promises comes true in simulation; dealing buffers out in turn loses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from headrace.model.deployment import Deployment
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.deploy.plan import PLANNERS, deploy_lpsched
from headrace.simulator.flow import simulate_deployment

CASES = 50
TOLERANCE = 0.05


def random_platform(rng: np.random.Generator) -> Platform:
    """1 to 3 clusters of 6 to 14 hosts of four powers, some loaded, some with four cores."""
    powers = rng.uniform(0.5, 3.0, 4).round(2).tolist()
    sites = []
    for s in range(int(rng.integers(1, 4))):
        hosts = tuple(
            Host(
                f"s{s}h{i}",
                float(rng.choice(powers)),
                int(rng.choice([1, 1, 1, 4])),
                load=float(rng.choice([0, 0, 0.5])),
            )
            for i in range(int(rng.integers(6, 15)))
        )
        sites.append(Site(f"s{s}", hosts, bandwidth=float(rng.uniform(8e6, 40e6))))
    links = tuple(
        Link(f"s{a}", f"s{b}", float(rng.uniform(2e6, 20e6)), shared=bool(rng.integers(2)))
        for a in range(len(sites))
        for b in range(a)
    )
    return Platform(tuple(sites), links=links)


def random_problem(seed: int) -> PipelineProblem:
    """2 to 5 filters, a chain or with a fork and a join; every fifth case lets filters share hosts."""
    rng = np.random.default_rng(seed)
    platform = random_platform(rng)
    count = int(rng.integers(2, 6))
    filters = [FilterProfile("f0", 10.0, float(rng.uniform(50, 150)))] + [
        FilterProfile(f"f{k}", float(rng.uniform(1, 60)), float(rng.uniform(5, 300))) for k in range(1, count)
    ]
    streams = None
    if count >= 4 and rng.integers(2):
        ends = [(0, 1), (0, 2), (1, 3), (2, 3), *((k, k + 1) for k in range(3, count - 1))]
        streams = [Stream(f"f{a}", f"f{b}") for a, b in ends]
    names = [h.name for h in platform.hosts]
    sources = []
    for option in range(int(rng.integers(1, 4))):
        readers = rng.choice(names, int(rng.integers(1, min(4, len(names) - count + 1))), replace=False)
        shares = rng.dirichlet(np.full(len(readers), 5.0))
        sources.append(Source(f"o{option}", dict(zip(readers.tolist(), shares.tolist(), strict=True))))
    pipeline = Pipeline("random", filters, streams, sources)
    return PipelineProblem(pipeline, platform, Knobs(host_cost=0.01), several_per_host=seed % 5 == 4)


@cache
def planned(seed: int) -> Deployment:
    made = deploy_lpsched(random_problem(seed), gap=0.01)
    assert made.check() == []
    return made


@pytest.mark.parametrize("seed", range(CASES))
def test_planned_throughput_comes_true(seed):
    happened = simulate_deployment(planned(seed))
    assert happened.of_planned == pytest.approx(1.0, abs=TOLERANCE)
    assert happened.makespan >= planned(seed).predicted_seconds * (1 - TOLERANCE)
    for placement in planned(seed).placements:
        assert placement.busy <= placement.copies * (1 + 1e-6)


def test_round_robin_loses_and_never_gains():
    shares = np.array([simulate_deployment(planned(seed), "round-robin").of_planned for seed in range(20)])
    assert np.all(shares <= 1 + TOLERANCE)
    assert np.sum(shares < 0.8) >= 5


@pytest.mark.parametrize("planner", ["trivial", "total"])
@pytest.mark.parametrize("seed", [0, 2, 6, 8, 14])
def test_the_simple_planners_promises_come_true(planner, seed):
    made = PLANNERS[planner](random_problem(seed))
    assert simulate_deployment(made).of_planned == pytest.approx(1.0, abs=TOLERANCE)
