"""Schedulers keep constraints on hosts during a run: where tasks ran, judged after the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints, bound_graph
from headrace.model.graph import make_graph
from headrace.model.platform import Platform
from headrace.online.adapter import make_scheduler, obeying
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.check_constraints import check_constraints
from headrace.testing.generate import cases
from planners.constraints.random_constraints import satisfied_by

KINDS = ("allowed", "before", "release", "together", "site", "apart", "count", "seconds")
ONLINE = ("lheft", "workqueue")
"""They keep limits on tasks at once as well."""


@pytest.mark.parametrize("name", ["heft", "sufferage", "dheft", "lheft", "workqueue"])
def test_hosts_order_and_releases_are_kept(name: str) -> None:
    for i, (program, platform) in enumerate(cases(15, seed=21, tasks=12)):
        graph = program.graph
        problem = Problem(graph, platform)
        rng = np.random.default_rng(i)
        hosts = rng.integers(0, len(platform.hosts), graph.n_tasks).astype(np.int32)
        arrays = problem_arrays(problem)
        witness = list_plan(problem, graph.order, "random", host_constraints(arrays, fixed=hosts), arrays)
        constraints = satisfied_by(witness, i, (*KINDS, "at_once") if name in ONLINE else KINDS)
        scheduler = obeying(make_scheduler(name), constraints)
        run = simulate_scheduler(bound_graph(graph, constraints), platform, scheduler)
        assert check_constraints(constraints, run.executed) == [], (i, name)


def test_plans_made_during_a_run_keep_groups() -> None:
    """Replanned after every eighth of the run: groups and limits hold across plans."""
    for i, (program, platform) in enumerate(cases(30, seed=22, tasks=14)):
        graph = program.graph
        problem = Problem(graph, platform)
        hosts = np.random.default_rng(i).integers(0, len(platform.hosts), graph.n_tasks).astype(np.int32)
        arrays = problem_arrays(problem)
        witness = list_plan(problem, graph.order, "random", host_constraints(arrays, fixed=hosts), arrays)
        constraints = satisfied_by(
            witness, i, ("together", "site", "allowed", "apart", "count", "seconds"), share=0.7
        )
        policy = ReplanPolicy(events="S1", interval=max(witness.makespan / 8, 0.5))
        scheduler = obeying(make_scheduler("heft", policy), constraints)
        run = simulate_scheduler(bound_graph(graph, constraints), platform, scheduler)
        assert check_constraints(constraints, run.executed) == [], i


def test_lheft_counts_transfers_when_its_choice_is_forbidden() -> None:
    """The data lie on h0, which is forbidden: h2 is the fastest host left, but behind a slow link."""
    graph = make_graph(work=[10.0, 10.0], size=[100.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
    bandwidth = np.array([[1.0, 50.0, 1.0], [50.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    platform = Platform.pairwise([20.0, 1.0, 10.0], bandwidth)
    rows = np.array([[True, False, False], [False, True, True]])
    constraints = replace(Constraints.none(2, 3), allowed=rows, allowed_class=np.array([0, 1], np.int32))
    run = simulate_scheduler(graph, platform, obeying(make_scheduler("lheft"), constraints))
    assert run.executed.host.tolist() == [0, 1]
    assert run.makespan == pytest.approx(0.5 + 2.0 + 10.0)


def test_lheft_spreads_a_batch_over_permitted_hosts() -> None:
    """Every decision counts the work that the decisions before it have placed."""
    graph = make_graph(work=[1.0] * 8, size=[], producer=[], read_ptr=[0] * 9, reads=[])
    constraints = replace(Constraints.none(8, 3), allowed=np.array([[False, True, True]]))
    platform = Platform.pairwise([50.0, 1.0, 1.0], bandwidth=1.0)
    run = simulate_scheduler(graph, platform, obeying(make_scheduler("lheft"), constraints))
    assert run.makespan == pytest.approx(4.0)
