"""Forecasts of load and bandwidth, as in the Network Weather Service.

Simple predictors run side by side; each is scored by how far it was off lately, and the best one speaks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import mul
from typing import NamedTuple

from headrace.model.errors import UsageError

WINDOWS = (5, 11, 21, 51)
GAINS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.9)
TRIM = 0.3
"""Share of a window that a trimmed mean omits, half at each end."""
ORDER = 3
"""Order of the autoregressive predictor; its coefficients are fitted to the longest window."""
MEMORY = 0.1
"""Weight of the latest error in the score of a predictor; earlier errors decay by a factor of 1 - MEMORY per step."""
_STILL = 1e-12
"""A variance below this share of the mean square is treated as rounding error."""


class Forecast(NamedTuple):
    """The forecast, the recent mean absolute error of the predictor used, and its name."""

    value: float
    error: float
    predictor: str


class Forecaster:
    """Takes measurements of one quantity one by one and forecasts the next.

    A measurement takes O(predictors), with a window's length as the constant; a forecast O(1).

    >>> load = Forecaster()
    >>> for second in range(40):
    ...     load.add(float(second), 0.25 if second % 2 else 0.75)
    >>> round(load.forecast().value, 2), load.forecast().predictor
    (0.74, 'autoregressive 3')
    """

    def __init__(self) -> None:
        self.count = 0
        self.time = -math.inf
        """When the latest measurement was taken."""
        self._mean = 0.0
        self._windows = [_Window(length) for length in WINDOWS]
        self._smooth = [0.0] * len(GAINS)
        self._values = [0.0] * len(PREDICTORS)
        self._score = [0.0] * len(PREDICTORS)
        self._weight = 0.0

    def add(self, time: float, value: float) -> None:
        """Add a measurement; times must increase."""
        if not math.isfinite(value):
            raise UsageError(f"a measurement is {value}", where="forecast", hint="give a finite number")
        if not time > self.time:
            raise UsageError(
                f"a measurement of {time} s after one of {self.time} s",
                where="forecast",
                hint="give measurements in the order of their times",
            )
        if self.count:
            self._judge(value)
        self._take(value)
        self.time = time
        self.count += 1

    def forecast(self) -> Forecast:
        """The forecast of the next value; ties between predictors go to the one listed first."""
        if not self.count:
            raise UsageError("nothing was measured yet", where="forecast", hint="add a measurement first")
        best = min(range(len(PREDICTORS)), key=self._score.__getitem__)
        error = self._score[best] / self._weight if self._weight else 0.0
        return Forecast(self._values[best], error, PREDICTORS[best])

    def _judge(self, value: float) -> None:
        keep = 1.0 - MEMORY
        self._weight = keep * self._weight + MEMORY
        for k, foretold in enumerate(self._values):
            self._score[k] = keep * self._score[k] + MEMORY * abs(foretold - value)

    def _take(self, value: float) -> None:
        first = self.count == 0
        self._mean += (value - self._mean) / (self.count + 1)
        for k, gain in enumerate(GAINS):
            self._smooth[k] = value if first else self._smooth[k] + gain * (value - self._smooth[k])
        values = [value, self._mean]
        for window in self._windows:
            window.add(value)
            values += [window.mean(), window.median(), window.trimmed()]
        latest = list(self._windows[-1].latest)
        self._values = [*values, *self._smooth, autoregressive(latest, self._windows[-1].mean())]


class _Window:
    """The latest values, in order of time and in order of size."""

    def __init__(self, length: int) -> None:
        self.latest: deque[float] = deque(maxlen=length)
        self.ordered: list[float] = []

    def add(self, value: float) -> None:
        if len(self.latest) == self.latest.maxlen:
            del self.ordered[bisect_left(self.ordered, self.latest[0])]
        self.latest.append(value)
        insort(self.ordered, value)

    def mean(self) -> float:
        return math.fsum(self.ordered) / len(self.ordered)

    def median(self) -> float:
        half, odd = divmod(len(self.ordered), 2)
        return self.ordered[half] if odd else (self.ordered[half - 1] + self.ordered[half]) / 2

    def trimmed(self) -> float:
        cut = int(len(self.ordered) * TRIM / 2)
        middle = self.ordered[cut : len(self.ordered) - cut]
        return math.fsum(middle) / len(middle)


def autoregressive(values: Sequence[float], mean: float, order: int = ORDER) -> float:
    """Autoregressive forecast: each value is a weighted sum of the previous `order` values: O(order * values).

    The weights solve the Yule-Walker equations for the autocorrelation of the values, by Levinson's recursion:
    of a finite series that varies, what is left unexplained is never 0.
    Of too few values, or values that do not vary, the mean is foretold.

    >>> swinging = [1.0, 0.0] * 20
    >>> round(autoregressive(swinging, 0.5), 2)
    0.99
    """
    off = [value - mean for value in values]
    like = [sum(map(mul, off[lag:], off)) for lag in range(min(order, len(off) - 1) + 1)]
    noise = like[0]
    if not noise > _STILL * sum(map(mul, values, values)):
        return mean
    weights: list[float] = []
    for lag in range(1, len(like)):
        reflected = (like[lag] - math.fsum(w * like[lag - 1 - k] for k, w in enumerate(weights))) / noise
        weights = [w - reflected * v for w, v in zip(weights, reversed(weights), strict=True)] + [reflected]
        noise *= 1.0 - reflected * reflected
    return mean + math.fsum(map(mul, weights, reversed(off)))


def _names() -> tuple[str, ...]:
    windows = [f"{what} of {n}" for n in WINDOWS for what in ("mean", "median", "trimmed mean")]
    smoothing = (f"smoothing {gain:g}" for gain in GAINS)
    return ("last value", "running mean", *windows, *smoothing, f"autoregressive {ORDER}")


PREDICTORS = _names()


def forecast(series: Iterable[float], tell: Callable[[Forecast], None] | None = None) -> Forecast:
    """The forecast after a series of evenly spaced measurements; `tell` is called with every forecast along the way.

    >>> forecast([3.0, 3.0, 3.0])
    Forecast(value=3.0, error=0.0, predictor='last value')
    """
    made = Forecaster()
    for k, value in enumerate(series):
        made.add(float(k), value)
        if tell is not None:
            tell(made.forecast())
    return made.forecast()
