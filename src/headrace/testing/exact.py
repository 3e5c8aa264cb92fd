"""Proven optima of small problems without contention, by CP-SAT."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Platform
from headrace.testing.generate import SHAPES, random_program

GRAIN = 1e-5
"""The time unit of the integer model, in seconds."""


def proven_makespan(problem: Problem, seconds: float = 60.0) -> tuple[float, float]:
    """Bounds (lower, upper) on the optimal makespan; they differ by the rounding of times to whole GRAINs.

    Hosts must have one core, and the platform no origin. Data may be relayed through other hosts.

    >>> case = Problem(random_program(1, tasks=1).graph, Platform.pairwise([1.0, 2.0], 1e6))
    >>> lower, upper = proven_makespan(case)
    >>> bool(lower <= case.graph.work[0] / 2.0 <= upper)
    True
    """
    from ortools.sat.python import cp_model

    assert problem.platform.contention == "none"
    assert problem.platform.network.origin == EVERYWHERE
    assert all(host.cores == 1 for host in problem.platform.hosts)
    model = _model(problem, cp_model.CpModel())
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, f"{problem.graph.name}: not proven in {seconds:g} s"
    # Each task and each transfer on a longest chain was rounded down by less than a unit.
    units = float(solver.objective_value)
    return units * GRAIN, (units + 2 * problem.graph.n_tasks) * GRAIN


def _model(problem: Problem, model: Any) -> Any:
    """Tasks as optional intervals on the hosts, and transfer times between them."""
    graph, rates = problem.graph, problem.platform.rates(problem.graph)
    tasks, hosts = range(graph.n_tasks), range(len(problem.platform.hosts))
    run = [[_units(graph.work[t] / rates[graph.speed_class[t], h]) for h in hosts] for t in tasks]
    longest = max((_units(float(_ways(problem, item).max())) for item in range(graph.n_items)), default=0)
    horizon = sum(max(row) for row in run) + graph.n_tasks * longest
    start = [model.new_int_var(0, horizon, f"s{t}") for t in tasks]
    end = [model.new_int_var(0, horizon, f"e{t}") for t in tasks]
    on = [[model.new_bool_var(f"x{t}.{h}") for h in hosts] for t in tasks]
    for t in tasks:
        model.add_exactly_one(on[t])
        model.add(end[t] == start[t] + sum(run[t][h] * on[t][h] for h in hosts))
        for item in graph.reads_of(t).tolist():
            maker = int(graph.producer[item])
            if maker == OUTSIDE:
                continue
            ways = _ways(problem, item)
            model.add(start[t] >= end[maker])
            for a, b in ((a, b) for a in hosts for b in hosts if a != b):
                later = model.add(start[t] >= end[maker] + _units(float(ways[a, b])))
                later.only_enforce_if([on[maker][a], on[t][b]])
    for h in hosts:
        model.add_no_overlap(
            [model.new_optional_fixed_size_interval_var(start[t], run[t][h], on[t][h], "") for t in tasks]
        )
    makespan = model.new_int_var(0, horizon, "makespan")
    model.add_max_equality(makespan, end)
    model.minimize(makespan)
    return model


def _units(seconds: float) -> int:
    return int(np.floor(seconds / GRAIN + 1e-9))


def _ways(problem: Problem, item: int) -> Floats:
    """[hosts, hosts] transfer time of an item in seconds, through other hosts where that is quicker."""
    network, size = problem.platform.network, float(problem.graph.size[item])
    places = network.host_place.tolist()
    ways: Floats = np.array([[network.seconds(a, b, size) for b in places] for a in places])
    for k in range(len(places)):
        ways = np.minimum(ways, ways[:, k : k + 1] + ways[k : k + 1, :])
    return ways


def small_case(seed: int) -> Problem:
    """6 to 12 tasks of any shape on 3 hosts; bandwidths within a factor of two, so that no detour is quicker."""
    random = np.random.default_rng([seed, 7])
    program = random_program(seed, tasks=int(random.integers(6, 13)), shape=SHAPES[seed % len(SHAPES)])
    bandwidth = random.uniform(1e6, 2e6, (3, 3))
    return Problem(program.graph, Platform.pairwise(random.uniform(1.0, 4.0, 3), bandwidth))
