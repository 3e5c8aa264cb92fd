"""The objective weights of a deployment problem as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem


@dataclass(frozen=True, eq=False)
class Weights:
    """The objective weights as arrays."""

    host_cost: float
    spare: float
    least: Floats
    """Of each filter."""

    @staticmethod
    def of(problem: PipelineProblem) -> Weights:
        knobs = problem.knobs
        least = np.array([knobs.least_share(f.name) for f in problem.pipeline.order])
        return Weights(knobs.host_cost, knobs.spare, least)
