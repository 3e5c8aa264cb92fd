"""Run times as powers of input size and parameters: found despite outliers, and not seen where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.test_learning import bag

from headrace.model.platform import Platform
from headrace.predict.kind_fit import OTHER
from headrace.predict.learning import Observed, learn
from headrace.predict.power_law import fit_power_law

LAB = Platform.pairwise([1.0, 1.0], bandwidth=1e9)


@given(st.floats(0.3, 2.5), st.floats(-2.0, 2.5), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_exponents_are_found_despite_outliers(size_exponent, exponent, seed):
    rng = np.random.default_rng(seed)
    logs = rng.uniform(0.0, 4.0, (60, 3))
    value = 1.0 + size_exponent * logs[:, 0] + exponent * logs[:, 1] + rng.normal(0.0, 0.05, 60)
    value[rng.choice(60, 6, replace=False)] += rng.uniform(1.0, 3.0, 6)
    law = fit_power_law(logs, value)
    at = rng.uniform(0.0, 4.0, (20, 3))
    expected = 1.0 + size_exponent * at[:, 0] + exponent * at[:, 1]
    assert np.abs(law.predict(at) - expected).max() < 0.35
    assert np.median(np.abs(law.predict(at) - expected)) < 0.12


def test_what_follows_no_feature_hardly_ever_has_a_law():
    laws = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        laws += not fit_power_law(rng.uniform(0.0, 4.0, (40, 4)), rng.normal(0.0, 0.5, 40)).is_constant
    assert laws <= 1


def test_features_that_are_not_known_do_not_count():
    logs = np.column_stack((np.full(12, np.nan), np.linspace(0.0, 3.0, 12)))
    law = fit_power_law(logs, 2.0 * logs[:, 1])
    assert law.exponents == pytest.approx([0.0, 2.0])
    assert law.applies_to(np.array([[np.nan, 1.0]]))
    assert not law.applies_to(np.array([[1.0, np.nan]]))
    assert law.growth == 1.0


def test_a_task_with_other_parameters_takes_as_long_as_these_say():
    sizes = [float(n) for n in (100, 150, 200, 300, 400, 500, 700, 1000)]
    seen = [
        Observed("job", OTHER, "h0", 1e-6 * n**2, 0.0, 1.0, parameters={"n": n, "seed": 0.0}) for n in sizes
    ]
    learned = learn(
        bag([1.0, 1.0]), LAB, seen, {"t0": {"n": 2000.0, "seed": 1.0}, "t1": {"n": 250.0, "seed": 2.0}}
    )
    assert learned.graph.work == pytest.approx([4.0, 0.0625], rel=1e-3)


def test_executions_of_the_same_task_come_before_the_law():
    numbers = [100.0 * 2**k for k in range(8)]
    seen = [Observed("job", t, "h0", 1e-3 * n, 0.0, 1.0, parameters={"n": n}) for t, n in enumerate(numbers)]
    odd = Observed("job", 3, "h0", 5.0, 0.0, 1.0, parameters={"n": numbers[3]})
    parameters = {f"t{t}": {"n": n} for t, n in enumerate([*numbers, 25600.0])}
    learned = learn(bag([1.0] * 9), LAB, [*seen[:3], odd, *seen[4:], *seen[:3], odd, *seen[4:]], parameters)
    assert learned.graph.work[8] == pytest.approx(25.6, rel=0.05)
    assert learned.graph.work[3] == pytest.approx(5.0, rel=0.1)
    assert learned.graph.work[0] == pytest.approx(0.1, rel=0.05)
