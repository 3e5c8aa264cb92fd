"""Rules without a compiled form, evaluated on one schedule by the evaluation that `check` uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.rules.evaluate import evaluate_on
from headrace.rules.incremental_columns import Placement
from headrace.rules.incremental_values import Array
from headrace.rules.relations import Relations
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.tree import Rule, RuleSet


class Measured(NamedTuple):
    """A rule on one schedule."""

    broken: bool
    scaled: float
    priority: float


class Measures(NamedTuple):
    """A rule on a batch of schedules."""

    broken: Array
    """A requirement that surely fails."""
    scaled: Array = np.zeros(1)
    """The scaled value of a preference, or a lower bound."""
    priority: Array = np.zeros(1)
    most_priority: Array = np.zeros(1)
    """An upper bound of the priority."""


def measure(rule: Rule, space: ScheduleSpace, placement: Placement, source: str) -> Measured:
    """One rule on one schedule, partial or not."""
    (verdict,) = evaluate_on(RuleSet((rule,), source), Relations(space.graph, space.platform, placement))
    return Measured(verdict.failed > 0, verdict.scaled or 0.0, verdict.priority)
