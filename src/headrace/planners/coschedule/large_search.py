"""Search in large neighbourhoods: jobs that meet at a site, a link, a disk or a file are decided anew together."""

from __future__ import annotations

import contextlib
import math
from functools import partial

import numpy as np

from headrace.model.errors import BadPlan
from headrace.model.graph import Bools, Floats
from headrace.model.plan import Plan
from headrace.planners.coschedule.cp import ticks_of
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.judge import is_valid
from headrace.planners.coschedule.list_scheduler import ANY, Decisions, ListScheduler
from headrace.planners.coschedule.neighbourhood import arc_numbers, decide_anew
from headrace.planners.coschedule.relaxation import arcs_on
from headrace.planners.coschedule.schedule_jobs import FAILED
from headrace.planners.coschedule.workers import WORKERS
from headrace.planners.side_by_side import rounds_of, together
from headrace.simulator.replay.replay import replay

LEAST_JOBS, MOST_JOBS = 4, 24
"""Size of a neighbourhood; it grows while the solver finishes early and shrinks while it does not."""
SOLVING = 1.2
"""Seconds of deterministic work for one neighbourhood."""
_MEAN_WEIGHT = 0.1
"""Weight of the mean delivery of all jobs, relative to the makespan: later neighbourhoods gain from it."""


class LargeSearch:
    """Improves a plan; the sequence of neighbourhoods follows from the seed and from what was found."""

    def __init__(self, scheduler: ListScheduler, plan: Plan, seed: int, until: float = math.inf) -> None:
        """No neighbourhood is searched beyond `until` on the work clock."""
        self.instance = scheduler.instance
        self.best = plan
        self.decisions: Decisions | None = None
        """Decisions whose list schedule is the best plan; None if there are none."""
        self._scheduler = scheduler
        self._random = np.random.default_rng([seed, 2])
        self._until = until
        self._size = 8.0
        self._score = score_of(self.instance, plan)

    def replace(self, plan: Plan) -> None:
        """Go on from another plan."""
        self.best, self.decisions = plan, None
        self._score = score_of(self.instance, plan)

    def step(self) -> float:
        """Try two neighbourhoods at the same time; returns the seconds of work."""
        ticks, plan = ticks_of(self.instance, self.best), self.best
        tries = [
            partial(decide_anew, self.instance, plan, self._choose(), ticks, SOLVING, self._until)
            for _ in range(WORKERS)
        ]
        for found in (answers := together(tries)):
            early = found.work < 0.7 * SOLVING
            self._size = min(MOST_JOBS, self._size * 1.1) if early else max(LEAST_JOBS, self._size * 0.93)
            if found.plan is not None:
                self._offer(found.plan, ticks.exact)
        work = (
            max(found.work for found in answers) if rounds_of(WORKERS) == 1 else sum(f.work for f in answers)
        )
        return work + 0.01 + 1e-4 * self.instance.n

    def _offer(self, plan: Plan, exact: bool) -> None:
        """Take a plan, or the times or the list schedule that follow from its orders, if it is better."""
        for made, decisions in self._forms(plan, exact):
            score = score_of(self.instance, made)
            if score < self._score * (1 - 1e-12) and is_valid(made, self.instance.problem):
                self.best, self.decisions, self._score = made, decisions, score

    def _forms(self, plan: Plan, exact: bool) -> list[tuple[Plan, Decisions | None]]:
        forms: list[tuple[Plan, Decisions | None]] = [(plan, None)] if exact else []
        decisions = decisions_of(self.instance, plan)
        if self._scheduler.value(decisions) < FAILED:
            forms.append((self._scheduler.plan(decisions, plan.scheduler), decisions))
        if self.instance.problem.platform.contention == "fifo" and not self.instance.problem.free_at:
            with contextlib.suppress(BadPlan):  # orders of jobs and transfers that wait for each other
                forms.append((replay(plan, holders=self.instance.problem.holders), None))
        return forms

    def _choose(self) -> list[int]:
        """Jobs near a random one - a late one in half of the cases - that meet it in one of four ways."""
        random, plan, n = self._random, self.best, self.instance.n
        count = min(n, int(self._size))
        done = deliveries(self.instance, plan)
        if random.random() < 0.5:
            late = np.flatnonzero(done >= np.quantile(done, 1 - min(1.0, 12 / n)))
            centre = int(random.choice(late))
        else:
            centre = int(random.integers(n))
        distance = np.abs(plan.start - plan.start[centre])
        meets = self._meeting(centre, int(random.integers(4)))
        # Those that meet it come first, the nearest in time first, with some chance.
        key = distance * random.uniform(0.5, 1.5, n) + np.where(meets, 0.0, 2.0 * plan.makespan)
        half = np.lexsort((np.arange(n), key))[: -(-2 * count // 3)]
        near = np.lexsort((np.arange(n), distance * random.uniform(0.5, 1.5, n)))
        chosen = dict.fromkeys([centre, *half.tolist(), *near.tolist()])
        return sorted(list(chosen)[:count])

    def _meeting(self, job: int, kind: int) -> Bools:
        """Which jobs meet a job: at its site, on one of its links, at a file, or anywhere at the same time."""
        instance, plan = self.instance, self.best
        if kind == 0:
            at = instance.site[instance.host_place[plan.host]]
            same: Bools = at == at[job]
            return same
        if kind == 1 and len(plan.move_item):
            return self._on_same_link(job)
        if kind == 2:
            wanted = np.isin(instance.reads, instance.inputs(job))
            owner = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
            return np.isin(np.arange(instance.n), owner[wanted])
        return np.ones(instance.n, np.bool_)

    def _on_same_link(self, job: int) -> Bools:
        instance, plan = self.instance, self.best
        arcs = instance.paths.arcs
        number = arc_numbers(instance)[plan.move_source.astype(np.int64) * instance.places + plan.move_target]
        mine = np.isin(plan.move_item, [*instance.inputs(job), *instance.outputs(job)])
        links = np.unique(
            np.concatenate(
                [arcs.links[arcs.link_ptr[a] : arcs.link_ptr[a + 1]] for a in number[mine].tolist()]
                or [arcs.links[:0]]
            )
        )
        if not len(links):
            return np.ones(instance.n, np.bool_)
        items = plan.move_item[np.isin(number, arcs_on(instance, int(self._random.choice(links))))]
        found = np.zeros(instance.n, np.bool_)
        for ptr, listed in ((instance.read_ptr, instance.reads), (instance.write_ptr, instance.writes)):
            owner = np.repeat(np.arange(instance.n), np.diff(ptr))
            found[owner[np.isin(listed, items)]] = True
        return found


def deliveries(instance: Instance, plan: Plan) -> Floats:
    """When each job has finished and its results have arrived."""
    done = plan.finish.copy()
    maker = instance.problem.graph.producer[plan.move_item]
    np.maximum.at(done, maker[maker >= 0], plan.move_finish[maker >= 0])
    return done


def score_of(instance: Instance, plan: Plan) -> float:
    return plan.makespan + _MEAN_WEIGHT * float(deliveries(instance, plan).mean())


def decisions_of(instance: Instance, plan: Plan) -> Decisions:
    """The hosts and paths of a plan, with the jobs in the order of their starts; O(n log n + files * paths)."""
    order = np.lexsort((np.arange(instance.n), plan.start, instance.problem.graph.level)).astype(np.int32)
    if not (instance.problem.graph.producer[instance.reads] >= 0).any() and not len(instance.waits):
        order = np.lexsort((np.arange(instance.n), plan.start)).astype(np.int32)
    came: dict[tuple[int, int], int] = {
        (i, q): p
        for i, p, q in zip(
            plan.move_item.tolist(), plan.move_source.tolist(), plan.move_target.tolist(), strict=True
        )
    }
    place = instance.host_place[plan.host]
    number, paths = arc_numbers(instance), instance.paths
    known = {}
    for pair in np.flatnonzero(np.diff(paths.pair_ptr)).tolist():
        s, t = divmod(pair, len(paths.sets))
        for k, path in enumerate(paths.of(s, t)):
            known[s, t, tuple(paths.arcs_of(path))] = k

    def path_of(item: int, source: int, target: int, end: int) -> int:
        steps: list[int] = []
        while (item, end) in came and len(steps) <= instance.places:
            steps.append(int(number[came[item, end] * instance.places + end]))
            end = came[item, end]
        return known.get((source, target, tuple(reversed(steps))), ANY)

    input_path = np.full(len(instance.reads), ANY, np.int32)
    output_path = np.full(len(instance.writes), ANY, np.int32)
    for j in range(instance.n):
        for e in range(int(instance.read_ptr[j]), int(instance.read_ptr[j + 1])):
            item = int(instance.reads[e])
            if instance.source[item] >= 0:
                input_path[e] = path_of(item, int(instance.source[item]), int(place[j]), int(place[j]))
        for e in range(int(instance.write_ptr[j]), int(instance.write_ptr[j + 1])):
            item = int(instance.writes[e])
            goal = int(instance.destination[item])
            ends = [p for p in instance.paths.sets[goal] if (item, p) in came] if goal >= 0 else []
            if ends:
                output_path[e] = path_of(item, int(place[j]), goal, ends[0])
    return Decisions(order, plan.host.copy(), input_path, output_path)
