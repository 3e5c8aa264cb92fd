"""The optimum of small problems with whole numbers, proven: a model over time slots, apart from the planner's.

For each file, arc and moment a 0-1 variable says that a transfer starts then; likewise for jobs, hosts and moments.
For each file, place and moment another says whether a copy lies there. Everything else is sums over these.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from headrace.model.platform import Platform
from headrace.model.program import Program

Timed = list[tuple[int, Any]]
"""Moments, each with the variable of what happens then."""


def least_makespan(program: Program, platform: Platform, horizon: int) -> int | None:
    """The least makespan up to the horizon; None if there is none. All times must be whole numbers."""
    return _Slots(program, platform, horizon).least()


class _Slots:
    """The model over time slots of one problem."""

    def __init__(self, program: Program, platform: Platform, horizon: int) -> None:
        self.graph, self.platform, self.network = program.graph, platform, platform.network
        self.model: Any = cp_model.CpModel()
        self.horizon = horizon
        self.makespan = self.model.new_int_var(0, horizon, "makespan")
        self.items = [i for i in range(self.graph.n_items) if self.graph.size[i] > 0]
        self.at_first = self.graph.initial_locations.places_by_item(self.graph, platform)
        self.goals = self.graph.destinations.places_by_item(self.graph, platform)
        self.rates = platform.rates(self.graph)
        # What happens to the copy of an item at a place: begun, arrived, used until.
        self.begun: dict[tuple[int, int], Timed] = defaultdict(list)
        self.arrived: dict[tuple[int, int], Timed] = defaultdict(list)
        self.used: dict[tuple[int, int], Timed] = defaultdict(list)
        self.needs: list[tuple[int, int, int, Any]] = []
        self.cores: dict[tuple[int, int], list[Any]] = defaultdict(list)
        self.links: dict[tuple[int, int], list[Any]] = defaultdict(list)

    def least(self) -> int | None:
        for item, places in self.at_first.items():
            for p in places:
                self.begun[item, p].append((0, 1))
                self.arrived[item, p].append((0, 1))
        for job in range(self.graph.n_tasks):
            self._add_job(job)
        for item in self.items:
            self._add_moves(item)
        for item, place, moment, v in self.needs:
            there = sum(x for t, x in self.arrived[item, place] if t <= moment)
            self.model.add(there >= 1).only_enforce_if(v)
        for (h, _), busy in self.cores.items():
            self.model.add(sum(busy) <= self.platform.hosts[h].cores)
        for carried in self.links.values():
            self.model.add(sum(carried) <= 1)
        kept = {item: self._kept(item, list(places)) for item, places in self.goals.items()}
        if np.isfinite(self.network.storage).any():
            self._add_storage(kept)
        self.model.minimize(self.makespan)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = 300
        status = solver.solve(self.model)
        assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), "the oracle proved nothing"
        return int(solver.value(self.makespan)) if status == cp_model.OPTIMAL else None

    def _add_job(self, job: int) -> None:
        graph, choices = self.graph, []
        for h, host in enumerate(self.platform.hosts):
            if host.cores < graph.cores[job]:
                continue
            place = int(self.network.host_place[h])
            took = _whole(float(graph.work[job] / self.rates[graph.speed_class[job], h]))
            last = int(min(self.horizon, graph.deadline[job])) - took
            for t in range(int(graph.release[job]), last + 1):
                v = self.model.new_bool_var("")
                choices.append(v)
                self.model.add(self.makespan >= t + took).only_enforce_if(v)
                for slot in range(t, t + took):
                    self.cores[h, slot].append(int(graph.cores[job]) * v)
                for i in graph.reads_of(job).tolist():
                    if graph.size[i] > 0:
                        self.needs.append((i, place, t, v))
                        self.used[i, place].append((t + took, v))
                for i in graph.writes_of(job).tolist():
                    self.begun[i, place].append((t, v))
                    self.arrived[i, place].append((t + took, v))
                    self.used[i, place].append((t + took, v))
        self.model.add_exactly_one(choices)

    def _add_moves(self, item: int) -> None:
        network, size = self.network, float(self.graph.size[item])
        places = range(network.n_places)
        for q in places:
            come = []
            for p in places:
                if p == q or network.bandwidth(p, q) <= 0 or q in self.at_first.get(item, ()):
                    continue
                seconds = _whole(network.seconds(p, q, size))
                for t in range(self.horizon - seconds + 1):
                    v = self.model.new_bool_var("")
                    come.append(v)
                    self.model.add(self.makespan >= t + seconds).only_enforce_if(v)
                    self.needs.append((item, p, t, v))
                    self.begun[item, q].append((t, v))
                    self.arrived[item, q].append((t + seconds, v))
                    self.used[item, q].append((t + seconds, v))
                    self.used[item, p].append((t + seconds, v))
                    for slot in range(t, t + seconds):
                        for link in network.route(p, q):
                            self.links[link, slot].append(v)
            made = [v for _, v in self.begun[item, q] if not isinstance(v, int) and v not in come]
            self.model.add(sum(come) + sum(made) <= 1)

    def _kept(self, item: int, goals: list[int]) -> dict[int, Any]:
        """Which copy counts as delivered: the one that is first at a destination; ties: the lower place."""
        model = self.model
        kept = {p: model.new_bool_var("") for p in goals}
        model.add_exactly_one(kept.values())
        maker = int(self.graph.producer[item])
        when = {p: sum(t * v for t, v in self.arrived[item, p]) for p in goals}
        there = {p: sum(v for _, v in self.arrived[item, p]) for p in goals}
        for p, chosen in kept.items():
            model.add(there[p] >= 1).only_enforce_if(chosen)
            if self.graph.deadline[maker] < self.horizon:
                model.add(when[p] <= int(self.graph.deadline[maker])).only_enforce_if(chosen)
            for q in goals:
                if q != p:
                    after = when[q] + (self.horizon + 1) * (1 - there[q])
                    model.add(after >= when[p] + (1 if q < p else 0)).only_enforce_if(chosen)
        return kept

    def _add_storage(self, kept: dict[int, dict[int, Any]]) -> None:
        """A copy takes room from when it is begun until it was last used; the delivered one until the end."""
        model, network = self.model, self.network
        for site in np.flatnonzero(np.isfinite(network.storage)).tolist():
            lies: dict[int, list[Any]] = {t: [] for t in range(self.horizon)}
            for p in np.flatnonzero(network.site == site).tolist():
                for i in self.items:
                    for t in range(self.horizon):
                        here = model.new_bool_var("")
                        started = sum(v for s, v in self.begun[i, p] if s <= t)
                        for v in [v for end, v in self.used[i, p] if end > t]:
                            model.add(here >= started + v - 1)
                        if p in kept.get(i, {}):
                            model.add(here >= started + kept[i][p] - 1)
                        lies[t].append(_whole(float(self.graph.size[i])) * here)
            for t in range(self.horizon):
                model.add(sum(lies[t]) <= int(network.storage[site]))


def _whole(value: float) -> int:
    assert abs(value - round(value)) < 1e-9, f"{value} is not whole"
    return round(value)
