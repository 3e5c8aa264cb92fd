"""Seeded runs with faults under random constraints that are known by rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays.problem import problem_arrays
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem, Scheduler
from headrace.model.behaviour import Change
from headrace.model.constraints import Constraints, bound_graph
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.online.adapter import accepted_policy, make_scheduler, obeying
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.testing.fault_runs import fault_case
from headrace.testing.faults import PROFILES
from planners.constraints.random_constraints import satisfied_by

KINDS = ("allowed", "before", "release", "together", "site", "apart", "count", "at_once")
"""Seconds of run time are left out: what tasks really take is not known when they are placed."""
_FIELDS = {
    "allowed": ("allowed", "allowed_class"),
    "together": ("together",),
    "site": ("together_at_site",),
    "apart": ("apart",),
    "before": ("before",),
    "release": ("release",),
}


def by_rule(constraints: Constraints) -> Constraints:
    """The same constraints, with a rule for each kind and each limit; the order of rules is fixed."""

    def some(names: tuple[str, ...]) -> Constraints:
        none = Constraints.none(len(constraints.together), constraints.allowed.shape[1])
        given = {name: getattr(constraints, name) for kind in names for name in _FIELDS.get(kind, ())}
        limits = tuple(limit for limit in constraints.limits if limit.rule in names)
        return replace(none, limits=limits, **given)

    names = (*_FIELDS, *(limit.rule for limit in constraints.limits))
    return replace(constraints, rules=names, of_rules=some)


@dataclass(frozen=True)
class ConstrainedRun:
    """A run to be simulated, by seed."""

    graph: Graph
    real: Graph
    platform: Platform
    changes: list[Change]
    constraints: Constraints
    scheduler: Scheduler
    policy: ExecutionPolicy

    def go(self) -> SimulatedRun:
        return simulate_scheduler(
            self.graph,
            self.platform,
            self.scheduler,
            changes=self.changes,
            real=self.real,
            policy=self.policy,
        )


def constrained_run(
    name: str, seed: int, policy: ReplanPolicy, kinds: tuple[str, ...] = KINDS
) -> ConstrainedRun:
    """A run with faults, stealing and duplicates by seed, under constraints that hold before anything fails."""
    case = fault_case(seed, PROFILES[seed % len(PROFILES)], ["workqueue"])
    platform = case.platform
    if np.isfinite(platform.network.storage).any():  # tight storage can end a run as well
        platform = replace(platform, sites=tuple(replace(site, storage=np.inf) for site in platform.sites))
    graph = replace(case.graph, cores=np.ones(case.graph.n_tasks, np.int32))
    problem = Problem(graph, platform)
    hosts = np.random.default_rng(seed).integers(0, len(platform.hosts), graph.n_tasks).astype(np.int32)
    arrays = problem_arrays(problem)
    witness = list_plan(problem, graph.order, "random", host_constraints(arrays, fixed=hosts), arrays)
    constraints = by_rule(satisfied_by(witness, seed, kinds))
    bound = bound_graph(graph, constraints)
    made = make_scheduler(name, accepted_policy(name, policy))
    return ConstrainedRun(
        bound,
        bound.with_work(case.real.work),
        platform,
        list(case.changes),
        constraints,
        obeying(made, constraints),
        replace(case.policy, steal=seed % 2 == 0, duplicate=seed % 3 == 0),
    )
