"""Run times as a product of powers of input size and parameters, fitted so that outliers do not mislead."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.predict.robust import slope

LEAST_POINTS = 6
"""Executions from which a dependency is fitted."""
_POINTS_PER_FEATURE = 4
_LEAST_RANGE = math.log(1.5)
"""A feature that varies less tells nothing."""
_CLEARER = 0.8
"""A feature counts if it reduces what is left unexplained at least to this share."""
_EXACT = 1e-3
"""What is left is at least this much: smaller differences are rounding errors."""
_TRUSTED = 0.85
"""The share of values, those closest to the fit, that tells what is left unexplained."""
_MOST_EXPONENT = 3.0
_MOST_FEATURES = 4
_MOST_POINTS = 600
_ROUNDS = 12
_TUNING = 1.345


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """log(work) is `level` + `exponents` . log(features); the first feature is the input size."""

    level: float
    exponents: Floats
    left: float
    """What it does not explain: the mean deviation of logarithms, without the worst values."""
    tells_size: bool
    """Whether the exponent of the size is fitted; 0 otherwise means not known."""

    @property
    def is_constant(self) -> bool:
        return not self.exponents.any()

    def applies_to(self, logs: Floats) -> bool:
        """Whether every feature that counts is known for all of these tasks."""
        return bool(np.isfinite(logs[:, self.exponents != 0.0]).all())

    def predict(self, logs: Floats) -> Floats:
        """Logarithms of work for logarithms of features, one row for each task."""
        used = self.exponents != 0.0
        return np.asarray(self.level + logs[:, used] @ self.exponents[used], np.float64)

    @property
    def growth(self) -> float:
        """The exponent of the input size; 1 if the executions could not tell."""
        return float(self.exponents[0]) if self.tells_size else 1.0


def fit_power_law(logs: Floats, value: Floats) -> PowerLaw:
    """Choose the features that clearly explain the values, and fit their exponents.

    `logs` has the logarithms of the features, one row for each value; nan: not known or not positive. Rows in which a
    feature is not known count where it is not used. Starts with all features, and drops those that explain little.
    O(values * features^3) for each of 12 rounds.

    >>> size, width = np.log(np.arange(1.0, 13.0)), np.log(np.tile([1.0, 2.0, 5.0], 4))
    >>> law = fit_power_law(np.column_stack((size, width)), 0.5 + 1.0 * size + 2.0 * width)
    >>> [round(float(e), 6) for e in law.exponents]
    [1.0, 2.0]
    """
    logs, value = logs[-_MOST_POINTS:], value[-_MOST_POINTS:]
    known = np.isfinite(logs)
    possible = [column for column in range(logs.shape[1]) if _tells(logs[:, column], known[:, column])]
    tells_size = 0 in possible

    def fit(columns: list[int]) -> PowerLaw:
        return _fitted(logs, known, value, columns, tells_size)

    alone = sorted(possible, key=lambda column: (fit([column]).left, column))
    most = min(_MOST_FEATURES, len(value) // _POINTS_PER_FEATURE)
    chosen = sorted(alone[:most])
    best = fit(chosen)
    while chosen:
        fewer = [(fit([one for one in chosen if one != column]), column) for column in chosen]
        found, column = min(fewer, key=lambda each: (each[0].left, -each[1]))
        if best.left <= _CLEARER * found.left:
            break
        best, chosen = found, [one for one in chosen if one != column]
    return best


def _tells(column: Floats, known: Bools) -> bool:
    return bool(known.sum() >= LEAST_POINTS) and float(np.ptp(column[known])) >= _LEAST_RANGE


def _fitted(logs: Floats, known: Bools, value: Floats, columns: list[int], tells_size: bool) -> PowerLaw:
    """The fit over some features; what it leaves is infinite if there are too few values for it."""
    rows = known[:, columns].all(axis=1)
    exponents = np.zeros(logs.shape[1])
    if columns and rows.sum() < max(LEAST_POINTS, _POINTS_PER_FEATURE * len(columns)):
        return PowerLaw(0.0, exponents, math.inf, tells_size)
    x, y = logs[rows][:, columns], value[rows]
    if columns:
        found = np.array([slope(x[:, 0], y)]) if len(columns) == 1 else _robust_slopes(x, y)
        exponents[columns] = np.clip(found, -_MOST_EXPONENT, _MOST_EXPONENT)
        exponents[0] = max(exponents[0], 0.0)  # more input never takes less time
    rest = y - x @ exponents[columns]
    left = max(deviation(rest), _EXACT) * math.sqrt(len(y) / max(1, len(y) - len(columns)))
    return PowerLaw(float(np.median(rest)), exponents, left, tells_size)


def deviation(values: Floats) -> float:
    """The mean deviation from the median of the 85 % of values that are closest to it.

    >>> deviation(np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 900.0]))
    0.2
    """
    distance = np.sort(np.abs(values - np.median(values)))
    return float(distance[: max(1, int(_TRUSTED * len(values)))].mean())


def _robust_slopes(x: Floats, y: Floats) -> Floats:
    """Slopes by Huber's estimator: least squares with weights that fall for values far off, in 12 rounds."""
    design = np.column_stack((np.ones(len(y)), x))
    weight = np.ones(len(y))
    found: Floats = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        root = np.sqrt(weight)
        found = np.asarray(np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0], np.float64)
        rest = np.abs(y - design @ found)
        scale = max(1.4826 * float(np.median(rest)), 1e-9)
        weight = np.minimum(1.0, _TUNING * scale / np.maximum(rest, 1e-12))
    return found[1:]
