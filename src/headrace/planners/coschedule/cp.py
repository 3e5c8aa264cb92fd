"""The exact model for small problems: one CP-SAT model of hosts, paths, times and disks."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.check_case import overlaps
from headrace.model.errors import BadPlan
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.planners.coschedule.holding import without_needless_moves
from headrace.planners.coschedule.instance import NONE, Instance
from headrace.planners.coschedule.judge import is_valid
from headrace.planners.coschedule.list_scheduler import first_cores
from headrace.planners.coschedule.room import add_room
from headrace.simulator.replay.replay import replay

MOST_CHOICES, FEW_CHOICES = 1_200, 150
"""Maximum of jobs times hosts plus files times arcs for which the model is tried, and is tried before all else."""
_UNITS = (1.0, 0.5, 0.1, 0.01, 0.001)
"""Time units that are checked for being exact."""
_TICKS = 1 << 24
"""Number of ticks in the horizon if no unit is exact."""
_MOST_TICKS = 1 << 40
FIRST_SHARE = 0.6
"""Share of the time for the first of two ways to search."""
_PACE = 0.4
"""Units of the solver's deterministic time per second on an ordinary machine."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A better plan than the initial one, if found; a proven bound; work done."""

    plan: Plan | None
    bound: float
    work: float
    impossible: bool = False


def fits(instance: Instance, most: int = MOST_CHOICES) -> bool:
    """Whether the model is small enough."""
    files = len(np.unique(instance.reads)) + len(instance.writes)
    return instance.n * len(instance.host_place) + files * len(instance.paths.arcs.tail) <= most


def solve(
    instance: Instance, start: Plan | None, bound: float, limit: float, until: float = math.inf
) -> Answer:
    """Improve a plan for `limit` units of deterministic time; uses one thread, so the answer is reproducible.

    On a slow machine it ends when the work clock says `until`.

    Without a plan to start from, the lower bound is raised first until a plan meets it: where disks are so full that
    plans are rare, that finds one long before a search for better and better plans does.
    """
    first, then = (False, True) if start is not None else (True, False)
    answer = _valid_answer(instance, start, bound, FIRST_SHARE * limit, until, from_below=first)
    best = start if answer.plan is None else answer.plan
    if answer.impossible or answer.work >= limit or (best and best.makespan <= answer.bound * (1 + 1e-9)):
        return answer
    left = limit - answer.work
    again = _valid_answer(instance, best, max(bound, answer.bound), left, until, from_below=then)
    return Answer(
        again.plan or answer.plan,
        max(answer.bound, again.bound),
        answer.work + again.work,
        best is None and again.impossible,
    )


def _valid_answer(
    instance: Instance, start: Plan | None, bound: float, limit: float, until: float, *, from_below: bool
) -> Answer:
    answer = _solve(instance, start, bound, limit, until, strict=False, from_below=from_below)
    if answer.plan is None or is_valid(answer.plan, instance.problem):
        return answer
    # Copies that arrive at two destinations at the same time: solve again with the tie decided as `check` does.
    if limit <= answer.work:
        return replace(answer, plan=None)
    again = _solve(instance, start, bound, limit - answer.work, until, strict=True, from_below=from_below)
    plan = again.plan if again.plan is not None and is_valid(again.plan, instance.problem) else None
    return Answer(plan, answer.bound, answer.work + again.work)


def solve_plainly(instance: Instance, seconds: float, threads: int) -> Plan | None:
    """What the model alone finds in some seconds of wall-clock time on some threads, for comparisons."""
    from ortools.sat.python import cp_model

    model = _Model(instance, ticks_of(instance, None), None, 0.0, strict=True)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = threads
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model.model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return _with_cores_free(model.plan(solver), instance) if found else None


def _solve(
    instance: Instance,
    start: Plan | None,
    bound: float,
    limit: float,
    until: float,
    *,
    strict: bool,
    from_below: bool,
) -> Answer:
    from ortools.sat.python import cp_model

    ticks = ticks_of(instance, start)
    model = _Model(instance, ticks, start, bound, strict)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.use_objective_lb_search = from_below
    solver.parameters.random_seed = instance.problem.seed % 2**31
    solver.parameters.max_deterministic_time = limit * _PACE
    # On most machines the limit of deterministic work ends the search; on a slow one, the clock.
    solver.parameters.max_time_in_seconds = min(1.25 * limit + 1, max(1.0, until - work_clock()))
    status = solver.solve(model.model)
    work = float(solver.response_proto.deterministic_time) / _PACE + 0.02
    if status == cp_model.INFEASIBLE:
        # No plan is better than the initial one; without an initial plan, none exists if the numbers are exact.
        proven = start.makespan if start is not None and ticks.exact and model.proves else 0.0
        return Answer(None, proven, work, start is None and ticks.exact)
    proven = 0.0
    if model.proves:
        lost = 0.0 if ticks.exact else model.operations * ticks.unit
        proven = max(0.0, solver.best_objective_bound * ticks.unit - lost)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(None, proven, work)
    plan = _with_cores_free(model.plan(solver), instance)
    return Answer(plan if plan is None or ticks.exact else _with_exact_times(plan, instance), proven, work)


def _with_exact_times(plan: Plan, instance: Instance) -> Plan:
    """The plan with the times that follow from its orders, if these are valid: those of the model are rounded up."""
    if instance.problem.platform.contention == "fair" or instance.problem.free_at:
        return plan
    with contextlib.suppress(BadPlan):
        exact = replay(plan, holders=instance.problem.holders)
        if exact.makespan <= plan.makespan and is_valid(exact, instance.problem):
            return exact
    return plan


def _with_cores_free(plan: Plan, instance: Instance) -> Plan | None:
    """The plan with zero-duration jobs moved to times at which a core is free; None if that violates a constraint.

    The model assigns them no core, so that its proofs hold for all plans.
    """
    core = plan.host.astype(np.int64) * int(instance.host_cores.max()) + plan.core
    if not len(overlaps(core, plan.start, plan.finish)[0]):
        return plan
    moved = replay(plan, holders=instance.problem.holders)
    return moved if is_valid(moved, instance.problem) else None


@dataclass(frozen=True)
class Ticks:
    """Integer time: a time is a number of units, durations are rounded up."""

    unit: float
    exact: bool
    horizon: int

    def up(self, seconds: float) -> int:
        return math.ceil(seconds / self.unit - (1e-6 if self.exact else 1e-9))


def ticks_of(instance: Instance, start: Plan | None) -> Ticks:
    """The coarsest unit of which all durations are multiples, or a fine one if there is none."""
    graph, arcs = instance.problem.graph, instance.paths.arcs
    items = np.unique(np.concatenate((instance.reads, instance.writes)))
    sizes = instance.size[items][:, None]
    moves = arcs.latency[None, :] + sizes / arcs.bandwidth[None, :]
    uses = arcs.busy_latency[None, :] + sizes / arcs.busy_bandwidth[None, :]
    values = np.concatenate(
        (
            instance.seconds[instance.can_run],
            moves.ravel(),
            uses.ravel(),
            graph.release,
            graph.deadline[np.isfinite(graph.deadline)],
            instance.host_free,
            instance.link_free,
            instance.arrival,
        )
    )
    if start is not None:
        total = start.makespan
    else:
        slowest = np.where(instance.can_run, instance.seconds, 0.0).max(axis=1)
        hops = instance.places * (len(instance.reads) + len(instance.writes))
        begins = (graph.release, instance.host_free, instance.link_free, instance.arrival)
        latest = max(float(times.max(initial=0.0)) for times in begins)
        total = latest + float(slowest.sum()) + hops * float(moves.max(initial=0.0))
    for unit in _UNITS:
        whole = values / unit
        if (
            np.all(np.abs(whole - np.round(whole)) <= 1e-9 * np.maximum(1.0, whole))
            and total / unit < _MOST_TICKS
        ):
            return Ticks(unit, True, math.ceil(total / unit + 1e-6))
    unit = total / _TICKS
    slack = 4 * (instance.n + len(instance.reads) + len(instance.writes)) * instance.places
    return Ticks(unit, False, _TICKS + slack)


def byte_grain(instance: Instance) -> tuple[float, bool]:
    """Bytes per integer unit of storage, and whether this is exact."""
    sizes = instance.size
    finite = instance.storage[np.isfinite(instance.storage)]
    if not len(finite):
        return 1.0, True
    top = float(max(finite.max(), sizes.max(initial=0.0)))
    for grain in (1.0, 0.5, 0.1, 0.01):
        whole = np.concatenate((sizes, finite)) / grain
        if top / grain < 2**50 and np.allclose(whole, np.round(whole), rtol=0, atol=1e-6):
            return grain * max(1, int(np.gcd.reduce(np.round(whole).astype(np.int64)))), True
    return top / 2**40, False


class _Model:
    """Variables and constraints; docs/model.md explains them."""

    def __init__(
        self, instance: Instance, ticks: Ticks, start: Plan | None, bound: float, strict: bool = False
    ) -> None:
        from ortools.sat.python import cp_model

        self.instance, self.ticks, self._strict = instance, ticks, strict
        self.model: Any = cp_model.CpModel()
        graph = instance.problem.graph
        self._grain = byte_grain(instance)
        self.proves = instance.problem.platform.contention != "fair" and self._grain[1]
        self.makespan = self.model.new_int_var(0, ticks.horizon, "makespan")
        self.on: list[dict[int, Any]] = []
        self.begin: list[Any] = []
        self.end: list[Any] = []
        self._pool: list[list[tuple[Any, int]]] = [[] for _ in instance.host_place]
        """Intervals of jobs that may run on each host, with the job."""
        self._busy: list[list[Any]] = [[] for _ in range(instance.problem.platform.network.n_links)]
        self._disk: list[list[tuple[Any, int]]] = [[] for _ in instance.storage]
        self.moves: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.operations = instance.n + 1
        for job in range(instance.n):
            self._add_job(job)
        read = {i: [] for i in np.unique(instance.reads).tolist()}  # type: dict[int, list[int]]
        for job in range(instance.n):
            for i in instance.inputs(job):
                read[i].append(job)
        for item in sorted({*read, *instance.writes.tolist()}):
            self._add_item(item, read.get(item, []), int(graph.producer[item]))
        for job in range(instance.n):
            for before in instance.waits[instance.wait_ptr[job] : instance.wait_ptr[job + 1]].tolist():
                self.model.add(self.begin[job] >= self.end[before])
        self._add_resources()
        self.model.add(self.makespan >= max(0, math.floor(bound / ticks.unit + 1e-6)))
        if start is not None:
            self._hint(start)
        self.model.minimize(self.makespan)

    def _add_job(self, job: int) -> None:
        model, ticks, instance = self.model, self.ticks, self.instance
        graph = instance.problem.graph
        hosts = np.flatnonzero(instance.can_run[job]).tolist()
        release = ticks.up(float(graph.release[job]))
        begin = model.new_int_var(release, ticks.horizon, f"begin{job}")
        end = model.new_int_var(0, self._due(job), f"end{job}")
        on = {h: model.new_bool_var(f"on{job},{h}") for h in hosts}
        model.add_exactly_one(on.values())
        for h, chosen in on.items():
            seconds = ticks.up(float(instance.seconds[job, h]))
            interval = model.new_optional_interval_var(begin, seconds, end, chosen, f"run{job},{h}")
            self._pool[h].append((interval, job))
            if instance.host_free[h] > 0:
                model.add(begin >= ticks.up(float(instance.host_free[h]))).only_enforce_if(chosen)
        model.add(self.makespan >= end)
        self.on.append(on)
        self.begin.append(begin)
        self.end.append(end)

    def _due(self, job: int) -> int:
        deadline = float(self.instance.problem.graph.deadline[job])
        if not math.isfinite(deadline):
            return self.ticks.horizon
        return min(self.ticks.horizon, math.floor(deadline / self.ticks.unit + 1e-6))

    def _at(self, job: int, place: int) -> list[Any]:
        """Variables for a job running at a place: at most one of these is true."""
        return [chosen for h, chosen in self.on[job].items() if self.instance.host_place[h] == place]

    def _add_item(self, item: int, readers: list[int], maker: int) -> None:
        """Add variables for copies of an item: where, by which transfers, when, and the storage they occupy."""
        instance, model, ticks = self.instance, self.model, self.ticks
        arcs, places = instance.paths.arcs, instance.places
        initial_locations = (
            set(instance.paths.sets[instance.source[item]]) if instance.source[item] != NONE else set()
        )
        size = float(instance.size[item])
        has = [model.new_bool_var(f"has{item},{p}") for p in range(places)]
        ready = [model.new_int_var(0, ticks.horizon, f"ready{item},{p}") for p in range(places)]
        since = [model.new_int_var(0, ticks.horizon, f"since{item},{p}") for p in range(places)]
        until = [model.new_int_var(0, ticks.horizon, f"until{item},{p}") for p in range(places)]
        depth = [model.new_int_var(0, places, f"depth{item},{p}") for p in range(places)]
        into: list[list[Any]] = [[] for _ in range(places)]
        for a in range(len(arcs.tail)):
            p, q = int(arcs.tail[a]), int(arcs.head[a])
            if q in initial_locations:
                continue
            self.operations += 1
            used = model.new_bool_var(f"move{item},{a}")
            start = model.new_int_var(0, ticks.horizon, f"start{item},{a}")
            seconds = ticks.up(float(arcs.latency[a]) + size / float(arcs.bandwidth[a]))
            into[q].append(used)
            model.add_implication(used, has[p])
            model.add(start >= ready[p]).only_enforce_if(used)
            model.add(ready[q] == start + seconds).only_enforce_if(used)
            model.add(since[q] == start).only_enforce_if(used)
            model.add(until[p] >= start + seconds).only_enforce_if(used)
            model.add(depth[q] >= depth[p] + 1).only_enforce_if(used)
            model.add(self.makespan >= start + seconds).only_enforce_if(used)
            if instance.exclusive_links:
                for link, busy in arcs.busy(a, size):
                    interval = model.new_optional_fixed_size_interval_var(start, ticks.up(busy), used, "")
                    self._busy[link].append(interval)
            self.moves[(item, a)] = (used, start)
        destinations = (
            set(instance.paths.sets[instance.destination[item]])
            if instance.destination[item] != NONE
            else set()
        )
        kept = self._kept_copy(sorted(destinations), has, ready)
        for p in range(places):
            if p in initial_locations:
                model.add(has[p] == 1)
                model.add(ready[p] == ticks.up(instance.arrives(item, p)))
                model.add(since[p] == 0)
            else:
                made = [] if maker < 0 else self._at(maker, p)
                model.add(sum(into[p]) + sum(made) == has[p])
                for here in made:
                    model.add(ready[p] == self.end[maker]).only_enforce_if(here)
                    model.add(since[p] == self.begin[maker]).only_enforce_if(here)
                model.add(until[p] >= ready[p]).only_enforce_if(has[p])
            for job in readers:
                for here in self._at(job, p):
                    model.add_implication(here, has[p])
                    model.add(self.begin[job] >= ready[p]).only_enforce_if(here)
                    model.add(until[p] >= self.end[job]).only_enforce_if(here)
            if p in destinations:
                model.add(until[p] == ticks.horizon).only_enforce_if(kept[p])
                if maker >= 0:
                    model.add(ready[p] <= self._due(maker)).only_enforce_if(kept[p])
            site = int(instance.site[p])
            if np.isfinite(instance.storage[site]):
                length = model.new_int_var(0, ticks.horizon, f"length{item},{p}")
                held = model.new_optional_interval_var(since[p], length, until[p], has[p], f"held{item},{p}")
                self._disk[site].append((held, math.ceil(size / self._grain[0] - 1e-6)))

    def _kept_copy(self, goals: list[int], has: list[Any], ready: list[Any]) -> dict[int, Any]:
        """Which copy is the delivered one: the earliest at a destination. Other destinations may have copies as well.

        Of copies that arrive at the same time, `check` takes the lower place. The model may take any, so that its
        bound holds, unless `strict`.
        """
        model = self.model
        kept = {p: model.new_bool_var(f"kept{p}") for p in goals}
        if goals:
            model.add_exactly_one(kept.values())
        for p, chosen in kept.items():
            model.add_implication(chosen, has[p])
            for q in goals:
                if q != p:
                    later = 1 if self._strict and q < p else 0
                    model.add(ready[q] >= ready[p] + later).only_enforce_if(chosen, has[q])
        return kept

    def _add_resources(self) -> None:
        model, instance = self.model, self.instance
        cores = instance.problem.graph.cores
        for h, jobs in enumerate(self._pool):
            if jobs:
                wide = [int(cores[job]) for _, job in jobs]
                model.add_cumulative([run for run, _ in jobs], wide, int(instance.host_cores[h]))
                add_room(model, instance.room, h, jobs, lambda amount: ())
        for link, intervals in enumerate(self._busy):
            if intervals and instance.link_free[link] > 0:
                until = self.ticks.up(float(instance.link_free[link]))
                intervals.append(model.new_fixed_size_interval_var(0, until, f"under way{link}"))
            if len(intervals) > 1:
                model.add_no_overlap(intervals)
        for site, held in enumerate(self._disk):
            if held:
                room = math.floor(float(instance.storage[site]) / self._grain[0] + 1e-6)
                model.add_cumulative([i for i, _ in held], [s for _, s in held], room)

    def _hint(self, plan: Plan) -> None:
        """Give the solver a known plan as a hint."""
        unit = self.ticks.unit
        model, arcs = self.model, self.instance.paths.arcs
        for job, on in enumerate(self.on):
            for h, chosen in on.items():
                model.add_hint(chosen, int(plan.host[job]) == h)
            model.add_hint(self.begin[job], min(self.ticks.horizon, math.ceil(plan.start[job] / unit)))
        moved = {
            (int(i), int(p), int(q)): float(s)
            for i, p, q, s in zip(
                plan.move_item, plan.move_source, plan.move_target, plan.move_start, strict=True
            )
        }
        for (item, a), (used, start) in self.moves.items():
            at = moved.get((item, int(arcs.tail[a]), int(arcs.head[a])))
            model.add_hint(used, at is not None)
            if at is not None:
                model.add_hint(start, min(self.ticks.horizon, math.ceil(at / unit)))

    def plan(self, solver: Any) -> Plan:
        """The solution as a plan, with exact durations."""
        instance, unit = self.instance, self.ticks.unit
        graph, arcs = instance.problem.graph, instance.paths.arcs
        host = np.array(
            [next(h for h, chosen in on.items() if solver.boolean_value(chosen)) for on in self.on], np.int32
        )
        start: Floats = np.array([solver.value(b) for b in self.begin]) * unit
        finish = start + instance.seconds[np.arange(instance.n), host]
        used = [
            (item, a, solver.value(s) * unit)
            for (item, a), (u, s) in self.moves.items()
            if solver.boolean_value(u)
        ]
        item = np.array([i for i, _, _ in used], np.int32)
        arc = np.array([a for _, a, _ in used], np.int32)
        begin = np.array([s for _, _, s in used], np.float64)
        made = Plan(
            graph=graph,
            platform=instance.problem.platform,
            scheduler="coschedule",
            host=host,
            core=first_cores(graph, instance.host_cores, host, start, finish),
            start=start,
            finish=finish,
            move_item=item,
            move_source=arcs.tail[arc] if len(arc) else item,
            move_target=arcs.head[arc] if len(arc) else item,
            move_start=begin,
            move_finish=begin
            + (arcs.latency[arc] + instance.size[item] / arcs.bandwidth[arc] if len(arc) else 0.0),
        )
        return without_needless_moves(instance, made)
