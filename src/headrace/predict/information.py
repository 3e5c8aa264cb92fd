"""Quality of the information that a scheduler receives about hosts, links and tasks.

- perfect: what will happen, as far as traces say;
- bounded: the same, wrong by up to a share, drawn from a seed;
- sampled: the mean of what was measured so far;
- forecast: what the best of several predictors makes of the measurements.

A change that a script brings later is foretold by none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.trace import Trace
from headrace.predict.forecast import Forecaster

Quality: TypeAlias = Literal["perfect", "bounded", "sampled", "forecast"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)
LEARNING: dict[str, Quality] = {"history+sampled": "sampled", "history+forecast": "forecast"}
"""Run times from history, combined with samples or forecasts of hosts and links."""
INTERVAL = 10.0
"""Seconds between measurements."""
HORIZON = 300.0
"""Perfect information is the mean over this many seconds ahead."""


class Information:
    """Information about resources of one type, each with a trace: available shares of hosts, or bandwidths of links.

    `at(now)` is the figure for each resource; `seconds(now, k, amount)` the time that an amount would take on
    resource k. The same seed and questions give the same answers, in whatever order they are asked.

    >>> hosts = [Trace.constant(0.5), Trace.steps([1.0, 0.0], 10.0)]
    >>> told = Information(hosts, "perfect")
    >>> told.at(0.0).tolist(), told.seconds(0.0, 1, 15.0)
    ([0.5, 0.5], 25.0)
    """

    def __init__(
        self,
        traces: Sequence[Trace],
        quality: Quality = "perfect",
        *,
        error: float = 0.0,
        seed: int = 0,
        interval: float = INTERVAL,
        horizon: float = HORIZON,
    ) -> None:
        if quality not in QUALITIES:
            raise UsageError(
                f"information is {quality!r}", where="information", hint=f"one of {', '.join(QUALITIES)}"
            )
        _check_error(error)
        if not (interval > 0 and horizon > 0):
            raise UsageError(
                f"interval is {interval}, horizon {horizon}", where="information", hint="give seconds above 0"
            )
        self.quality = quality
        self.error = error if quality == "bounded" else 0.0
        self.seed, self.interval, self.horizon = seed, interval, horizon
        self._traces = list(traces)
        self._still = [trace.steady for trace in self._traces]
        """Resources whose trace is constant, so that all measurements are equal."""
        self._measured = [-1] * len(self._traces)
        """Number of the latest measurement of each resource."""
        self._samples = [_Mean() for _ in self._traces]
        self._forecasters = [Forecaster() for _ in self._traces] if quality == "forecast" else []

    def change(self, resource: int, trace: Trace, now: float) -> None:
        """Switch a resource to another trace from now on; earlier measurements are kept."""
        self._measure(resource, now)
        self._still[resource] = False
        self._traces[resource] = trace

    def at(self, now: float) -> Floats:
        """The value for each resource at a time; times must not decrease."""
        return np.array([self._one(k, now) for k in range(len(self._traces))]) * self._errors(now)

    def seconds(self, now: float, resource: int, amount: float) -> float:
        """Time that an amount (seconds of a whole core, or bytes) would take, starting now."""
        if amount <= 0:
            return 0.0
        wrong = float(self._errors(now)[resource])
        if self.quality in ("perfect", "bounded"):
            return (self._traces[resource].finish(now, amount) - now) / wrong
        share = self._one(resource, now)
        return amount / share if share > 0 else math.inf

    def _one(self, k: int, now: float) -> float:
        if self.quality in ("perfect", "bounded"):
            return self._traces[k].work_between(now, now + self.horizon) / self.horizon
        if self._still[k]:
            return float(self._traces[k].value[0])
        self._measure(k, now)
        if self.quality == "sampled":
            return self._samples[k].value
        return max(0.0, self._forecasters[k].forecast().value)

    def _measure(self, k: int, now: float) -> None:
        """Take all measurements that are due: every `interval` seconds, starting at 0."""
        if self.quality in ("perfect", "bounded"):
            return
        due = math.floor(now / self.interval)
        numbers = np.arange(self._measured[k] + 1, due + 1, dtype=np.float64)
        for number, value in zip(
            numbers.tolist(), self._traces[k].sample(numbers * self.interval).tolist(), strict=True
        ):
            self._samples[k].add(value)
            if self._forecasters:
                self._forecasters[k].add(number * self.interval, value)
        self._measured[k] = max(self._measured[k], due)

    def _errors(self, now: float) -> Floats:
        """A random factor for each resource, constant within an interval and reproducible."""
        if not self.error:
            return np.ones(len(self._traces))
        rng = np.random.default_rng([self.seed, 21, max(0, math.floor(now / self.interval))])
        return 1.0 + rng.uniform(-self.error, self.error, len(self._traces))


class _Mean:
    def __init__(self) -> None:
        self.count = 0
        self.value = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / self.count


def told_work(
    estimated: Floats, real: Floats, quality: Quality = "perfect", *, error: float = 0.0, seed: int = 0
) -> Floats:
    """Run times given to a scheduler: the real ones, the real ones with an error, or the user's estimates.

    Perfect and bounded information is about tasks too; what is sampled and forecast are resources, so there
    tasks keep the user's figures.

    >>> told_work(np.array([9.0]), np.array([10.0])).tolist()
    [10.0]
    >>> told_work(np.array([9.0]), np.array([10.0]), "forecast").tolist()
    [9.0]
    """
    _check_error(error)
    if quality in ("sampled", "forecast"):
        return estimated
    if quality == "perfect" or not error:
        return real
    rng = np.random.default_rng([seed, 22])
    wrong: Floats = real * (1.0 + rng.uniform(-error, error, len(real)))
    return wrong


def told_sizes(real: Floats, *, error: float = 0.0, seed: int = 0) -> Floats:
    """Sizes of items given to a scheduler: the real ones with an error.

    >>> told_sizes(np.array([8.0, 0.0]), error=0.5, seed=1).round(3).tolist()
    [10.087, 0.0]
    """
    _check_error(error)
    if not error:
        return real
    rng = np.random.default_rng([seed, 23])
    wrong: Floats = real * (1.0 + rng.uniform(-error, error, len(real)))
    return wrong


def _check_error(error: float) -> None:
    if not 0 <= error < 1:
        raise UsageError(
            f"error is {error}", where="information", hint="give a share from 0 up to, not including, 1"
        )


def parse_quality(text: str) -> tuple[Quality, float]:
    """Parse a quality and its error as written on the command line.

    >>> parse_quality("bounded:0.3"), parse_quality("forecast")
    (('bounded', 0.3), ('forecast', 0.0))
    """
    name, _, number = text.partition(":")
    for quality in QUALITIES:
        if quality == name:
            break
    else:
        raise UsageError(
            f"estimates are {text!r}",
            hint="perfect, bounded:SHARE (such as bounded:0.3), sampled or forecast",
        )
    if (quality == "bounded") != bool(number):
        raise UsageError(
            f"estimates are {text!r}", hint="give an error to bounded, and only to it: bounded:0.3"
        )
    try:
        error = float(number) if number else 0.0
        _check_error(error)
    except (ValueError, UsageError):
        raise UsageError(f"the error of {text!r} is no share", hint="give a number from 0 to 1") from None
    return quality, error
