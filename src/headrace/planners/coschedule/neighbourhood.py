"""Some jobs of a plan decided anew with CP-SAT: their hosts, the paths and times of their files. The rest stays.

All transfers of a file that one of these jobs reads or writes are decided anew; jobs that stay keep their times and
need the file by then. Links, cores and disks are occupied by everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.coschedule.cp import Ticks, byte_grain
from headrace.planners.coschedule.holding import holdings, without_needless_moves
from headrace.planners.coschedule.instance import NONE, Instance
from headrace.planners.coschedule.list_scheduler import first_cores
from headrace.planners.coschedule.room import add_room

_PATHS = 3
"""Number of paths that a file may take between two places."""
_HOSTS = 8
"""Number of hosts that a job may move to."""
_PACE = 0.15
"""Units of the solver's deterministic time per second on an ordinary machine."""


@dataclass(frozen=True, eq=False)
class Better:
    """What the solver found: a plan (None if nothing better) and seconds of work."""

    plan: Plan | None
    work: float


def decide_anew(
    instance: Instance, plan: Plan, free: list[int], ticks: Ticks, seconds: float, until: float = math.inf
) -> Better:
    """Decide these jobs anew for some seconds of deterministic work, on one thread.

    On a slow machine, or where the solver counts less work than it does, it ends when the work clock says `until`.
    If the ticks are not exact, the times of the answer are rounded and must be derived again from its orders.
    """
    from ortools.sat.python import cp_model

    part = _Part(instance, plan, free, ticks)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1 + len(free)
    solver.parameters.max_deterministic_time = seconds * _PACE
    solver.parameters.max_time_in_seconds = min(3 * seconds + 1, max(0.1, until - work_clock()))
    solver.parameters.cp_model_presolve = True
    solver.parameters.symmetry_level = 0
    status = solver.solve(part.model)
    work = float(solver.response_proto.deterministic_time) / _PACE + 0.01 + 2e-5 * instance.n
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Better(None, work)
    return Better(part.answer(solver), work)


class _Part:
    """The model: variables for free jobs and their files, constants for the rest."""

    def __init__(self, instance: Instance, plan: Plan, free: list[int], ticks: Ticks) -> None:
        from ortools.sat.python import cp_model

        self.instance, self.old, self.free, self.ticks = instance, plan, free, ticks
        self.model: Any = cp_model.CpModel()
        graph = instance.problem.graph
        self._files = np.zeros(len(instance.size), np.bool_)
        for job in free:
            self._files[instance.inputs(job)] = True
            self._files[instance.outputs(job)] = True
        self._grain = byte_grain(instance)[0]
        self.makespan = self.model.new_int_var(0, ticks.horizon, "")
        self.on: dict[int, dict[int, Any]] = {}
        self.begin: dict[int, Any] = {}
        self.end: dict[int, Any] = {}
        self.done: dict[int, Any] = {}
        self._pool: dict[int, list[tuple[Any, int]]] = {}
        self._busy: dict[int, list[Any]] = {}
        self._disk: dict[int, list[tuple[Any, int]]] = {}
        self.moves: dict[tuple[int, int], tuple[Any, Any]] = {}
        for job in free:
            self._add_job(job)
        self._add_orders()
        now = _arcs_used(instance, plan)
        for item in np.flatnonzero(self._files).tolist():
            readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]].tolist()
            self._add_file(item, readers, int(graph.producer[item]), now.get(item, {}))
        self._add_rest()
        for job in free:
            self.model.add(self.makespan >= self.done[job])
        self.model.minimize(2 * len(free) * self.makespan + sum(self.done.values()))

    def _tick(self, seconds: float) -> int:
        return round(seconds / self.ticks.unit)

    def _length(self, seconds: float) -> int:
        """At least one tick, so that a file cannot travel in a circle in no time.

        If ticks are not exact, lengths are rounded down and so is what the rest occupies: the plan as it is remains a
        solution, and orders are all that is taken from another one.
        """
        return max(1, self.ticks.up(seconds) if self.ticks.exact else math.floor(seconds / self.ticks.unit))

    def _add_job(self, job: int) -> None:
        model, instance, horizon = self.model, self.instance, self.ticks.horizon
        graph, now = instance.problem.graph, int(self.old.host[job])
        able = np.flatnonzero(instance.can_run[job])
        if len(able) > _HOSTS:
            able = able[np.argsort(instance.seconds[job, able], kind="stable")[:_HOSTS]]
        begin = model.new_int_var(self.ticks.up(float(graph.release[job])), horizon, "")
        end = model.new_int_var(0, self._due(job), "")
        on = {h: model.new_bool_var("") for h in sorted({now, *able.tolist()})}
        model.add_exactly_one(on.values())
        for h, chosen in on.items():
            length = self._length(float(instance.seconds[job, h]))
            run = model.new_optional_interval_var(begin, length, end, chosen, "")
            self._pool.setdefault(h, []).append((run, job))
            if instance.host_free[h] > 0:
                model.add(begin >= self.ticks.up(float(instance.host_free[h]))).only_enforce_if(chosen)
            model.add_hint(chosen, h == now)
        model.add_hint(begin, min(horizon, self._tick(float(self.old.start[job]))))
        self.on[job], self.begin[job], self.end[job] = on, begin, end
        self.done[job] = model.new_int_var(0, horizon, "")
        model.add(self.done[job] >= end)

    def _due(self, job: int) -> int:
        deadline = float(self.instance.problem.graph.deadline[job])
        if not math.isfinite(deadline):
            return self.ticks.horizon
        return min(self.ticks.horizon, math.floor(deadline / self.ticks.unit + 1e-6))

    def _times(self, job: int) -> tuple[Any, Any]:
        """Begin and end of a job: variables if it is free, else constants."""
        if job in self.on:
            return self.begin[job], self.end[job]
        return self._tick(float(self.old.start[job])), self._tick(float(self.old.finish[job]))

    def _add_orders(self) -> None:
        """Jobs that only wait for others, on either side."""
        instance = self.instance
        for job in range(instance.n) if len(instance.waits) else ():
            for before in instance.waits[instance.wait_ptr[job] : instance.wait_ptr[job + 1]].tolist():
                if job in self.on or before in self.on:
                    self.model.add(self._times(job)[0] >= self._times(before)[1])

    def _at(self, job: int, place: int) -> list[Any]:
        """Literals for a job running at a place; True for one that stays there."""
        if job in self.on:
            return [c for h, c in self.on[job].items() if self.instance.host_place[h] == place]
        return [True] if self.instance.host_place[self.old.host[job]] == place else []

    def _places(self, job: int) -> set[int]:
        hosts = list(self.on[job]) if job in self.on else [int(self.old.host[job])]
        return {int(self.instance.host_place[h]) for h in hosts}

    def _arcs(self, item: int, readers: list[int], maker: int, used: dict[int, float]) -> list[int]:
        """Arcs that the file may take: those of the best paths to each reader and to its destination."""
        instance, paths = self.instance, self.instance.paths
        sources = {int(instance.source[item])} if maker < 0 else self._places(maker)
        targets = set().union(*(self._places(job) for job in readers))
        if instance.destination[item] != NONE:
            targets.add(int(instance.destination[item]))
        found = set(used)
        for s in sources:
            for t in targets:
                for path in list(paths.of(s, t))[:_PATHS]:
                    found.update(paths.arcs_of(path))
        return sorted(found)

    def _add_file(self, item: int, readers: list[int], maker: int, used: dict[int, float]) -> None:
        """Variables for the copies of a file: where, by which transfers, when, and the disk they occupy."""
        instance, model, horizon = self.instance, self.model, self.ticks.horizon
        if maker < 0 and instance.source[item] == NONE:
            return
        first = set(instance.paths.sets[instance.source[item]]) if maker < 0 else set()
        arcs = self._arcs(item, readers, maker, used)
        tail, head = instance.paths.arcs.tail, instance.paths.arcs.head
        places = sorted(
            first.union(
                (int(tail[a]) for a in arcs),
                (int(head[a]) for a in arcs),
                *(self._places(job) for job in readers),
                self._places(maker) if maker >= 0 else (),
            )
        )
        copies = {p: self._new_copy() for p in places}
        into: dict[int, list[Any]] = {p: [] for p in places}
        for a in arcs:
            if int(head[a]) not in first:
                self._add_move(item, a, copies, into, used.get(a))
        for p, copy in copies.items():
            arrives = self.ticks.up(instance.arrives(item, p)) if p in first else None
            self._add_copy(copy, arrives, into[p], [] if maker < 0 else self._at(maker, p), maker)
            for job in readers:
                begin, end = self._times(job)
                for here in self._at(job, p):
                    model.add(copy.has == 1).only_enforce_if(here)
                    model.add(copy.ready <= begin).only_enforce_if(here)
                    model.add(copy.until >= end).only_enforce_if(here)
        self._add_delivery(item, maker, copies)
        for p, copy in copies.items():
            site = int(instance.site[p])
            if np.isfinite(instance.storage[site]):
                length = model.new_int_var(0, horizon, "")
                held = model.new_optional_interval_var(copy.since, length, copy.until, copy.has, "")
                need = math.ceil(float(instance.size[item]) / self._grain - 1e-6)
                self._disk.setdefault(site, []).append((held, need))

    def _new_copy(self) -> _Copy:
        times = [self.model.new_int_var(0, self.ticks.horizon, "") for _ in range(3)]
        return _Copy(times[0], times[1], times[2], self.model.new_bool_var(""))

    def _add_move(
        self, item: int, a: int, copies: dict[int, _Copy], into: dict[int, list[Any]], now: float | None
    ) -> None:
        """One possible transfer."""
        instance, model, horizon = self.instance, self.model, self.ticks.horizon
        arcs = instance.paths.arcs
        at, to = copies[int(arcs.tail[a])], copies[int(arcs.head[a])]
        used, start = model.new_bool_var(""), model.new_int_var(0, horizon, "")
        length = self._length(float(arcs.latency[a]) + float(instance.size[item]) / float(arcs.bandwidth[a]))
        into[int(arcs.head[a])].append(used)
        model.add_implication(used, at.has)
        model.add(start >= at.ready).only_enforce_if(used)
        model.add(to.ready == start + length).only_enforce_if(used)
        model.add(to.since == start).only_enforce_if(used)
        model.add(at.until >= start + length).only_enforce_if(used)
        model.add(self.makespan >= start + length).only_enforce_if(used)
        if instance.exclusive_links:
            for link, seconds in arcs.busy(a, float(instance.size[item])):
                busy = model.new_optional_fixed_size_interval_var(start, self._length(seconds), used, "")
                self._busy.setdefault(link, []).append(busy)
        model.add_hint(used, now is not None)
        if now is not None:
            model.add_hint(start, min(horizon, self._tick(now)))
        self.moves[item, a] = used, start

    def _add_copy(self, copy: _Copy, first: int | None, into: list[Any], made: list[Any], maker: int) -> None:
        """A copy that is there from the first (from a tick on), or that a transfer or a job brings."""
        model = self.model
        if first is not None:
            model.add(copy.has == 1)
            model.add(copy.ready == first)
            model.add(copy.since == 0)
            return
        model.add(sum(into) + sum(made) == copy.has)
        for here in made:
            begin, end = self._times(maker)
            model.add(copy.ready == end).only_enforce_if(here)
            model.add(copy.since == begin).only_enforce_if(here)
        model.add(copy.until >= copy.ready).only_enforce_if(copy.has)

    def _add_delivery(self, item: int, maker: int, copies: dict[int, _Copy]) -> None:
        """The earliest copy at a destination is kept until the end, and in time."""
        model, goal = self.model, int(self.instance.destination[item])
        if goal == NONE:
            return
        goals = [p for p in self.instance.paths.sets[goal] if p in copies]
        kept = {p: model.new_bool_var("") for p in goals}
        model.add_exactly_one(kept.values())
        for p, chosen in kept.items():
            model.add_implication(chosen, copies[p].has)
            model.add(copies[p].until == self.ticks.horizon).only_enforce_if(chosen)
            model.add(copies[p].ready <= self._due(maker)).only_enforce_if(chosen)
            if maker in self.done:
                model.add(self.done[maker] >= copies[p].ready).only_enforce_if(chosen)
            for q in goals:
                if q != p:
                    later = copies[p].ready + (1 if q < p else 0)
                    model.add(copies[q].ready >= later).only_enforce_if(chosen, copies[q].has)

    def _add_rest(self) -> None:
        """Cores, links and disks, with what the rest of the plan occupies."""
        model, instance, old = self.model, self.instance, self.old
        stays = np.ones(instance.n, np.bool_)
        stays[self.free] = False
        cores = instance.problem.graph.cores
        for h, runs in self._pool.items():
            here = np.flatnonzero(stays & (old.host == h))

            def others(amount: Any, here: Any = here) -> list[tuple[Any, int]]:
                held = _profile(old.start[here], old.finish[here], amount[here].astype(float), self.ticks)
                return [(model.new_fixed_size_interval_var(s, e - s, ""), round(x)) for s, e, x in held]

            limit = int(instance.host_cores[h])
            own = [(run, int(cores[job])) for run, job in runs]
            rest = [(run, min(limit, held)) for run, held in others(cores)]
            model.add_cumulative([i for i, _ in own + rest], [c for _, c in own + rest], limit)
            add_room(model, instance.room, h, runs, others)
        untouched = ~self._files[old.move_item]
        for link, moves in self._busy.items():
            here = np.flatnonzero(untouched & _on_link(instance, old, link))
            begin, end = (
                np.append(old.move_start[here], 0.0),
                np.append(old.move_finish[here], instance.link_free[link]),
            )
            fixed = _profile(begin, end, np.ones(len(begin)), self.ticks)
            model.add_no_overlap(
                moves + [model.new_fixed_size_interval_var(s, e - s, "") for s, e, _ in fixed]
            )
        if not self._disk:
            return
        held = holdings(instance, old)
        for site, copies in self._disk.items():
            mine = np.flatnonzero((instance.site[held.place] == site) & ~self._files[held.item])
            until = np.where(
                held.until[mine] >= old.makespan, self.ticks.horizon * self.ticks.unit, held.until[mine]
            )
            size = np.ceil(instance.size[held.item[mine]] / self._grain - 1e-6)
            room = math.floor(float(instance.storage[site]) / self._grain + 1e-6)
            fixed = _profile(held.since[mine], until, size, self.ticks)
            more = [
                (model.new_fixed_size_interval_var(s, e - s, ""), min(room, round(x))) for s, e, x in fixed
            ]
            model.add_cumulative([i for i, _ in copies + more], [c for _, c in copies + more], room)

    def answer(self, solver: Any) -> Plan:
        """The plan with these jobs and files decided anew."""
        instance, old, unit = self.instance, self.old, self.ticks.unit
        host, start, finish = old.host.copy(), old.start.copy(), old.finish.copy()
        for job, on in self.on.items():
            host[job] = next(h for h, chosen in on.items() if solver.boolean_value(chosen))
            start[job] = solver.value(self.begin[job]) * unit
            finish[job] = start[job] + instance.seconds[job, host[job]]
        keep = ~self._files[old.move_item]
        used = [
            (i, a, solver.value(s) * unit) for (i, a), (u, s) in self.moves.items() if solver.boolean_value(u)
        ]
        item = np.array([i for i, _, _ in used], np.int32)
        arc = np.array([a for _, a, _ in used], np.int32)
        begin = np.array([s for _, _, s in used], np.float64)
        arcs = instance.paths.arcs
        length = arcs.latency[arc] + instance.size[item] / arcs.bandwidth[arc]
        rounding = 0.0 if self.ticks.exact else 3 * unit
        made = replace(
            old,
            host=host,
            core=first_cores(old.graph, instance.host_cores, host, start, finish, rounding),
            start=start,
            finish=finish,
            move_item=np.concatenate((old.move_item[keep], item)),
            move_source=np.concatenate((old.move_source[keep], arcs.tail[arc])),
            move_target=np.concatenate((old.move_target[keep], arcs.head[arc])),
            move_start=np.concatenate((old.move_start[keep], begin)),
            move_finish=np.concatenate((old.move_finish[keep], begin + length)),
        )
        return without_needless_moves(instance, made)


@dataclass(frozen=True, eq=False)
class _Copy:
    """Variables of a copy: when it can be used, from when and until when it is held, whether it exists."""

    ready: Any
    since: Any
    until: Any
    has: Any


def _profile(start: Floats, end: Floats, amount: Floats, ticks: Ticks) -> list[tuple[int, int, float]]:
    """Stretches of constant use, in ticks: (from, to, amount), without those of nothing."""
    if not len(start):
        return []
    if ticks.exact:
        first, last = np.rint(start / ticks.unit), np.rint(end / ticks.unit)
    else:
        first = np.ceil(start / ticks.unit)
        last = np.maximum(first, np.floor(end / ticks.unit))
    times = np.concatenate((first, last)).astype(np.int64)
    moments, at = np.unique(times, return_inverse=True)
    level = np.cumsum(np.bincount(at, np.concatenate((amount, -amount))))
    used = np.flatnonzero(level[:-1] > 1e-9)
    return [(int(moments[k]), int(moments[k + 1]), float(level[k])) for k in used.tolist()]


def _on_link(instance: Instance, plan: Plan, link: int) -> Any:
    """Which transfers of a plan use a link."""
    from headrace.planners.coschedule.relaxation import arcs_on

    arcs = instance.paths.arcs
    uses = arcs_on(instance, link)
    pairs = arcs.tail[uses].astype(np.int64) * instance.places + arcs.head[uses]
    return np.isin(plan.move_source.astype(np.int64) * instance.places + plan.move_target, pairs)


def _arcs_used(instance: Instance, plan: Plan) -> dict[int, dict[int, float]]:
    """For each file, the arcs that it takes in a plan and when."""
    number = arc_numbers(instance)
    found: dict[int, dict[int, float]] = {}
    key = plan.move_source.astype(np.int64) * instance.places + plan.move_target
    for item, arc, start in zip(
        plan.move_item.tolist(), number[key].tolist(), plan.move_start.tolist(), strict=True
    ):
        found.setdefault(item, {})[arc] = start
    return found


def arc_numbers(instance: Instance) -> Ints:
    """The arc between each pair of places, at tail * places + head; -1 if there is none."""
    arcs = instance.paths.arcs
    number = np.full(instance.places**2, -1, np.int32)
    number[arcs.tail.astype(np.int64) * instance.places + arcs.head] = np.arange(len(arcs.tail))
    return number
