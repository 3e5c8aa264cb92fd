"""Proven optima of small problems with any network, without contention or with turns on links (`fifo`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints
from headrace.model.graph import OUTSIDE
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Contention
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

GRAIN = 1e-4
"""The time unit of the integer model, in seconds."""


def proven_optimum(problem: Problem, seconds: float = 60.0) -> tuple[float, float] | None:
    """Bounds (lower, upper) on the optimal makespan, which differ by rounding only; None if it was not proven in time.

    The model has everything of the model but storage and fair links: cores per task, releases, hosts that tasks may
    use, copies that are passed on by any place, and under `fifo` the order of transfers on every link.

    >>> from headrace.model.platform import Platform
    >>> case = Problem(random_program(1, tasks=1).graph, Platform.pairwise([1.0, 2.0], 1e6))
    >>> lower, upper = proven_optimum(case)
    >>> bool(lower <= case.graph.work[0] / 2.0 <= upper)
    True
    """
    from ortools.sat.python import cp_model

    found = solved_makespan(problem, seconds)
    if found.status != cp_model.OPTIMAL:
        return None
    steps = 2 * (problem.graph.n_tasks + problem.graph.n_items * problem.platform.network.n_places)
    return found.makespan - steps * GRAIN, found.makespan + steps * GRAIN


class Solved(NamedTuple):
    """What a solver found in its time: makespans in seconds."""

    makespan: float
    """inf if it found no plan."""
    bound: float
    status: int


def solved_makespan(problem: Problem, seconds: float) -> Solved:
    """The shortest plan that a plain constraint program finds in this time, and what it proves.

    Durations are rounded down to whole units, so its makespan may be a little below that of the plan.
    """
    from ortools.sat.python import cp_model

    assert problem.platform.contention != "fair"
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    model = cp_model.CpModel()
    _Exact(problem, model).build()
    status = solver.solve(model)
    has_plan = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    makespan = float(solver.objective_value) * GRAIN if has_plan else float("inf")
    return Solved(makespan, float(solver.best_objective_bound) * GRAIN, int(status))


class _Exact:
    def __init__(self, problem: Problem, model: Any) -> None:
        self.problem, self.model = problem, model
        self.graph, self.network = problem.graph, problem.platform.network
        rates = problem.platform.rates(self.graph)
        run = self.graph.work[:, None] / rates[self.graph.speed_class]
        self.run = np.floor(run / GRAIN + 1e-9).astype(np.int64)
        way = max(
            (self._way(p, q, float(self.graph.size.max(initial=0.0))) for p, q in self._routes()), default=0
        )
        items, releases = self.graph.n_items, float(self.graph.release.max(initial=0.0))
        total = int(self.run.max(axis=1).sum()) + (way + 1) * items * self.network.n_places
        self.horizon = total + int(releases / GRAIN) + 1
        self.makespan = self.time()
        self.held: dict[int, list[tuple[Any, Any, list[int]]]] = {}

    def time(self) -> Any:
        return self.model.new_int_var(0, self.horizon, "")

    def _routes(self) -> list[tuple[int, int]]:
        places = range(self.network.n_places)
        return [(p, q) for p in places for q in places if p != q and self.network.bandwidth(p, q) > 0]

    def _way(self, p: int, q: int, size: float) -> int:
        return max(1, int(np.floor(self.network.seconds(p, q, size) / GRAIN + 1e-9)))

    def build(self) -> None:
        self._tasks()
        busy: dict[int, list[Any]] = {}
        for item in range(self.graph.n_items):
            if self.graph.size[item] > 0:
                self._item(item, busy)
            elif self.graph.producer[item] != OUTSIDE:
                for task in self.graph.readers_of(item).tolist():
                    self.model.add(self.start[task] >= self.end[int(self.graph.producer[item])])
        if self.problem.platform.contention == "fifo":
            for intervals in busy.values():
                self.model.add_no_overlap(intervals)
        self.model.minimize(self.makespan)

    def _tasks(self) -> None:
        model, graph, hosts = self.model, self.graph, self.problem.platform.hosts
        rules = self.problem.constraints
        self.start = [self.time() for _ in range(graph.n_tasks)]
        self.end = [self.time() for _ in range(graph.n_tasks)]
        self.on: list[dict[int, Any]] = []
        pools: list[list[tuple[Any, int]]] = [[] for _ in hosts]
        for t in range(graph.n_tasks):
            need = int(graph.cores[t])
            fits = [h for h, host in enumerate(hosts) if host.cores >= need]
            if rules is not None:
                fits = [h for h in fits if rules.allowed[rules.allowed_class[t], h]]
            here = {h: model.new_bool_var("") for h in fits}
            self.on.append(here)
            model.add_exactly_one(here.values())
            model.add(self.end[t] == self.start[t] + sum(int(self.run[t, h]) * v for h, v in here.items()))
            model.add(self.start[t] >= int(np.floor(graph.release[t] / GRAIN)))
            model.add(self.makespan >= self.end[t])
            for h, v in here.items():
                interval = model.new_optional_fixed_size_interval_var(
                    self.start[t], int(self.run[t, h]), v, ""
                )
                pools[h].append((interval, need))
        for h, host in enumerate(hosts):
            model.add_cumulative([i for i, _ in pools[h]], [n for _, n in pools[h]], host.cores)

    def _at(self, task: int, place: int) -> Any:
        """Whether a task runs at a place, as a sum of 0 and 1."""
        return sum(v for h, v in self.on[task].items() if self.network.host_place[h] == place)

    def _item(self, item: int, busy: dict[int, list[Any]]) -> None:
        """Where an item is, from when, and the transfers that bring it there."""
        model, graph, network = self.model, self.graph, self.network
        maker, size = int(graph.producer[item]), float(graph.size[item])
        if maker == OUTSIDE and network.origin == EVERYWHERE and not self.problem.holders.get(item):
            return
        initial = self.problem.holders.get(item) or (network.origin,)
        places = range(network.n_places)
        since = [self.time() for _ in places]
        made = [self._at(maker, p) if maker != OUTSIDE else int(p in initial) for p in places]
        sent = {(p, q): model.new_bool_var("") for p, q in self._routes()}
        has = [made[q] + sum(v for (_, to), v in sent.items() if to == q) for q in places]
        for q in places:
            model.add(has[q] <= 1)
            if maker != OUTSIDE:
                for h, v in self.on[maker].items():
                    if network.host_place[h] == q:
                        model.add(since[q] >= self.end[maker]).only_enforce_if(v)
        for (p, q), v in sent.items():
            start, way = self.time(), self._way(p, q, size)
            model.add(has[p] >= 1).only_enforce_if(v)
            model.add(start >= since[p]).only_enforce_if(v)
            model.add(since[q] >= start + way).only_enforce_if(v)
            model.add(self.makespan >= start + way).only_enforce_if(v)
            for link in network.route(p, q):
                use = network.busy_seconds(p, q, size, link)
                units = int(np.floor(use / GRAIN + 1e-9))
                interval = model.new_optional_fixed_size_interval_var(start, units, v, "")
                busy.setdefault(link, []).append(interval)
        self._needed(item, has, since)

    def _needed(self, item: int, has: list[Any], since: list[Any]) -> None:
        model, graph, network = self.model, self.graph, self.network
        maker = int(graph.producer[item])
        for task in graph.readers_of(item).tolist():
            if maker != OUTSIDE:
                model.add(self.start[task] >= self.end[maker])
            for h, v in self.on[task].items():
                place = int(network.host_place[h])
                model.add(has[place] >= 1).only_enforce_if(v)
                model.add(self.start[task] >= since[place]).only_enforce_if(v)
        if graph.result[item] and maker != OUTSIDE and network.origin != EVERYWHERE:
            model.add(has[network.origin] >= 1)


def linked_case(seed: int, contention: Contention) -> Problem:
    """3 to 6 tasks on 2 or 3 hosts, with any network and origin; some tasks need several cores, a release or a host."""
    random = np.random.default_rng([seed, 11])
    tasks = int(random.integers(3, 7))
    graph = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)]).graph
    network, origin = NETWORKS[seed // 5 % len(NETWORKS)], ORIGINS[seed // 25 % len(ORIGINS)]
    hosts = int(random.integers(2, 4))
    platform = random_platform(seed, network, contention=contention, hosts=hosts, origin=origin)
    if random.random() < 0.3:
        most = max(host.cores for host in platform.hosts)
        graph = graph.with_fields(cores=random.integers(1, most + 1, tasks).astype(np.int32))
    if random.random() < 0.3:
        graph = graph.with_fields(
            release=np.where(random.random(tasks) < 0.5, random.uniform(0, 20, tasks), 0.0)
        )
    problem = Problem(graph, platform)
    if random.random() < 0.3 and int(graph.cores.max()) == 1:
        allowed = random.random((2, hosts)) < 0.6
        allowed[:, int(random.integers(hosts))] = True
        chosen = random.integers(0, 2, tasks).astype(np.int32)
        rules = replace(Constraints.none(tasks, hosts), allowed=allowed, allowed_class=chosen)
        problem = replace(problem, constraints=rules)
    return problem
