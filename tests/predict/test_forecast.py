"""Forecasters against plain recomputation, and against each predictor alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import UsageError
from headrace.predict.forecast import (
    GAINS,
    MEMORY,
    ORDER,
    PREDICTORS,
    TRIM,
    WINDOWS,
    Forecast,
    Forecaster,
    forecast,
)


def plain(series: list[float]) -> list[float]:
    """What every predictor says after a series, from scratch."""
    said = [series[-1], float(np.mean(series))]
    for length in WINDOWS:
        tail = np.sort(series[-length:])
        cut = int(len(tail) * TRIM / 2)
        said += [float(tail.mean()), float(np.median(tail)), float(tail[cut : len(tail) - cut].mean())]
    for gain in GAINS:
        smooth = series[0]
        for value in series[1:]:
            smooth += gain * (value - smooth)
        said.append(smooth)
    return [*said, yule_walker(np.array(series[-max(WINDOWS) :]))]


def yule_walker(window: np.ndarray) -> float:
    """The autoregressive forecast from the matrix of autocorrelations, as textbooks have it."""
    mean, off = window.mean(), window - window.mean()
    order = min(ORDER, len(window) - 1)
    if order == 0 or off @ off <= 1e-12 * (window @ window):
        return float(mean)
    like = np.array([off[lag:] @ off[: len(off) - lag] for lag in range(order + 1)])
    matrix = like[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
    weights = np.linalg.solve(matrix, like[1:])
    return float(mean + weights @ off[::-1][:order])


def plain_scores(series: list[float]) -> np.ndarray:
    score, weight = np.zeros(len(PREDICTORS)), 0.0
    for k in range(1, len(series)):
        off = np.abs(np.array(plain(series[:k])) - series[k])
        score = (1 - MEMORY) * score + MEMORY * off
        weight = (1 - MEMORY) * weight + MEMORY
    return score / weight if weight else score


@given(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 3.75]), min_size=1, max_size=70))
def test_it_is_what_the_definition_says(series: list[float]) -> None:
    made = forecast(series)
    chosen, scores = PREDICTORS.index(made.predictor), plain_scores(series)
    assert made.value == pytest.approx(plain(series)[chosen], abs=1e-9)
    assert made.error == pytest.approx(scores[chosen], abs=1e-9)
    assert scores[chosen] <= scores.min() + 1e-9


def off_by(series: list[float]) -> tuple[float, float]:
    """Mean error of the forecaster, and of the best single predictor chosen in hindsight."""
    told: list[Forecast] = []
    forecast(series, told.append)
    mine = np.mean([abs(f.value - v) for f, v in zip(told[:-1], series[1:], strict=True)])
    alone = np.mean(
        [np.abs(np.array(plain(series[: k + 1])) - series[k + 1]) for k in range(len(series) - 1)], axis=0
    )
    return float(mine), float(alone.min())


@pytest.mark.parametrize("kind", ["constant", "noise", "walk", "steps", "periodic"])
def test_nearly_as_good_as_the_best_predictor_in_hindsight(kind: str) -> None:
    rng = np.random.default_rng(5)
    n = 200
    series = {
        "constant": np.full(n, 0.4),
        "noise": np.clip(rng.normal(0.5, 0.1, n), 0, 1),
        "walk": np.cumsum(rng.normal(0, 0.05, n)),
        "steps": np.repeat(rng.uniform(0, 1, 5), n // 5),
        "periodic": 0.5 + 0.4 * np.sin(np.arange(n) / 8),
    }[kind].tolist()
    mine, best = off_by(series)
    assert mine <= 1.15 * best + 1e-9


def test_a_walk_is_followed_and_noise_is_averaged() -> None:
    rng = np.random.default_rng(6)
    walk = forecast(np.cumsum(rng.normal(0, 1, 300)).tolist())
    noise = forecast(rng.normal(0, 1, 300).tolist())
    assert walk.predictor in ("last value", "smoothing 0.9", "smoothing 0.75")
    assert abs(noise.value) < 0.5
    assert noise.error == pytest.approx(np.sqrt(2 / np.pi), rel=0.5)


def test_a_swinging_series_is_foretold_by_autoregression() -> None:
    rng = np.random.default_rng(7)
    value, series = 0.0, []
    for _ in range(300):
        value = -0.9 * value + rng.normal(0, 0.1)
        series.append(1.0 + value)
    told = forecast(series)
    assert told.predictor == f"autoregressive {ORDER}"
    assert told.error == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.5), "what is left is the noise"


def test_the_error_is_that_of_the_predictor_lately() -> None:
    load = Forecaster()
    for k in range(30):
        load.add(k, 2.0)
    assert load.forecast().error == 0.0
    load.add(30, 5.0)
    assert 0 < load.forecast().error < 1.0


def test_misuse_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing was measured"):
        Forecaster().forecast()
    load = Forecaster()
    load.add(1.0, 0.5)
    with pytest.raises(UsageError, match="order of their times"):
        load.add(1.0, 0.5)
    with pytest.raises(UsageError, match="is nan"):
        load.add(2.0, math.nan)
