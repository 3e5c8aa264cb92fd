"""Distributions of sizes, times and errors in generated programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats

Shape: TypeAlias = Literal["constant", "uniform", "normal", "lognormal"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class Distribution:
    """constant(a); uniform between a and b; normal with mean a and standard deviation b, never below 0;
    lognormal with median a and standard deviation b of the logarithm.

    >>> Distribution("uniform", 90.0, 110.0).draw(np.random.default_rng(0), 2).round(1).tolist()
    [102.7, 95.4]
    """

    shape: Shape
    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        good = math.isfinite(self.a) and math.isfinite(self.b) and self.a >= 0 and self.b >= 0
        if self.shape not in SHAPES:
            raise UsageError(f"the distribution is {self.shape!r}", hint=f"use one of {', '.join(SHAPES)}")
        if not good or (self.shape == "uniform" and self.b < self.a):
            raise UsageError(
                f"{self.shape} of {self.a:g} and {self.b:g}",
                hint="give finite numbers of 0 or more; for uniform, the second must not be below the first",
            )

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Independent values; a normal value below 0 is reflected about the mean."""
        if self.shape == "constant":
            return np.full(count, self.a)
        if self.shape == "uniform":
            return rng.uniform(self.a, self.b, count)
        if self.shape == "lognormal":
            return np.asarray(self.a * np.exp(rng.normal(0.0, self.b, count)))
        values = rng.normal(self.a, self.b, count)
        return np.clip(np.where(values < 0, 2 * self.a - values, values), 0.0, None)

    def scaled(self, factor: float) -> Distribution:
        """The distribution of values multiplied by a factor."""
        spread = self.b if self.shape == "lognormal" else self.b * factor
        return Distribution(self.shape, self.a * factor, spread)


def constant(value: float) -> Distribution:
    return Distribution("constant", value)


def uniform(low: float, high: float) -> Distribution:
    return Distribution("uniform", low, high)


def normal(mean: float, deviation: float) -> Distribution:
    return Distribution("normal", mean, deviation)


def lognormal(median: float, deviation: float) -> Distribution:
    return Distribution("lognormal", median, deviation)
