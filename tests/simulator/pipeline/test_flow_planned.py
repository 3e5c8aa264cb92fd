"""What a planned deployment promises comes true in simulation; dealing buffers out in turn loses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from bench.generated.flows import flow_case

from headrace.model.deployment import Deployment
from headrace.planners.pipeline.plan import PLANNERS, deploy_lpsched
from headrace.simulator.pipeline.flow import simulate_deployment

CASES = 50
TOLERANCE = 0.05


@cache
def planned(seed: int) -> Deployment:
    made = deploy_lpsched(flow_case(seed), gap=0.01)
    assert made.check() == []
    return made


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed % 4 else ()) for seed in range(CASES)]
)
def test_planned_throughput_comes_true(seed):
    happened = simulate_deployment(planned(seed))
    assert happened.of_planned == pytest.approx(1.0, abs=TOLERANCE)
    assert happened.makespan >= planned(seed).predicted_seconds * (1 - TOLERANCE)
    for placement in planned(seed).placements:
        assert placement.busy <= placement.copies * (1 + 1e-6)


@pytest.mark.slow
def test_round_robin_loses_and_never_gains():
    shares = np.array([simulate_deployment(planned(seed), "round-robin").of_planned for seed in range(20)])
    assert np.all(shares <= 1 + TOLERANCE)
    assert np.sum(shares < 0.8) >= 5


@pytest.mark.parametrize("planner", ["trivial", "total"])
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else ()) for seed in (0, 2, 6, 8, 14)]
)
def test_the_simple_planners_promises_come_true(planner, seed):
    made = PLANNERS[planner](flow_case(seed))
    assert simulate_deployment(made).of_planned == pytest.approx(1.0, abs=TOLERANCE)
