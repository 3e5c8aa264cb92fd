"""Planners learn sizes of outputs while a sweep runs, where its estimates are wrong."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from headrace.core.estimate_sources import ServiceEstimates
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.experiment.distribution import constant
from headrace.experiment.generate import SweepSpec, generate_sweep
from headrace.experiment.grids import ClusterSpec, GridSpec, generate_grid
from headrace.model.plan import Plan
from headrace.planners.batch.minmin import MinMin
from headrace.planners.registry import Entry, _by_name, register
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program


class Watched(MinMin):
    """Min-min that remembers which sizes of outputs it was told."""

    seen: ClassVar[list[set[float]]] = []

    def plan(self, problem: Problem) -> Plan:
        graph = problem.graph
        Watched.seen.append(set(np.round(graph.size[graph.producer >= 0]).tolist()))
        return super().plan(problem)


@pytest.mark.parametrize("estimates", ["user", "forecast", "perfect"])
def test_sizes_of_outputs_are_learned(estimates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.planners.registry._by_name", dict(_by_name))
    register(Entry("watched", __name__, "Watched", "all", "", ""))
    Watched.seen.clear()
    spec = SweepSpec(tasks=24, files=2, output_size=constant(1e4), size_error=constant(5.0), outputs=1)
    program, grid = generate_sweep(spec, 0), generate_grid(GridSpec((ClusterSpec(3),)), 0)
    simulate_program(program, grid, "watched", SimulationConfig(ReplanPolicy("S2"), estimates=estimates))
    assert len(Watched.seen) > 1
    assert Watched.seen[0] == {5e4 if estimates == "perfect" else 1e4}
    assert Watched.seen[-1] == {1e4 if estimates == "user" else 5e4}


def test_only_what_has_ended_is_known() -> None:
    spec = SweepSpec(tasks=6, files=1, output_size=constant(1e4), size_error=constant(2.0))
    program, grid = generate_sweep(spec, 0), generate_grid(GridSpec((ClusterSpec(1),)), 0)
    told = ServiceEstimates(program.graph, grid.platform, program.real, "forecast")
    made = program.graph.producer >= 0
    nobody = np.zeros(6, np.bool_)
    assert told.sizes(nobody, program.real.size)[made].tolist() == [1e4] * 6
    nobody[2] = True
    assert told.sizes(nobody, program.real.size)[made].tolist() == [2e4] * 6
