"""Resumable local search over decisions: more trials never give a worse plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats
from headrace.planners.coschedule.instance import NONE, Instance
from headrace.planners.coschedule.list_scheduler import ANY, Decisions, ListScheduler
from headrace.planners.coschedule.schedule_jobs import FAILED, LATE

LAST_USE_WEIGHT = 0.02
"""Weight of the mean last use of hosts and links, relative to the makespan."""
LIST = 40
"""A trial is accepted if it is no worse than the current solution this many trials ago."""
SNAPSHOTS = 32
"""Number of snapshots along the order, so that a trial starts at the first change."""
PATIENCE = 60, 60
"""After this many trials, plus this many for each job, without a better plan the search restarts near the best."""
MOST_BYTES = 2e8
"""Maximum bytes of all snapshots."""
_NEAR = 16
_LUCK = 0.2
"""Scale of the random part in the choice of a host by costs, relative to the mean run time."""
_TOGETHER = 0.5
"""Share of the changes of a host that bring a job to another one with which it shares a file."""
_CANDIDATES = 4
"""Number of exchanges of hosts of which the one with the least costs is tried."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The state when the order had been placed up to some position."""

    state: list[list[Any]]
    end: float
    late: float


class Search:
    """Late-acceptance search from given decisions; the sequence of trials follows from the seed alone.

    Jobs before position `first` in the order are not changed. A trial costs a list schedule from the first change on,
    or a whole one if disks are finite and a job that shares files moves to another host.
    """

    def __init__(
        self,
        scheduler: ListScheduler,
        start: Decisions,
        seed: int,
        first: int = 0,
        costs: Floats | None = None,
    ) -> None:
        """With `costs` [jobs, hosts], changes of hosts that save costs are more likely."""
        self.scheduler = scheduler
        self._costs = costs
        self.best = start.copy()
        self._now = start.copy()
        self._first = first
        self._random = np.random.default_rng(seed)
        self._turn = 0
        self._in_vain = 0
        self._snapshots: list[_Snapshot] = []
        self._alone = _shares_nothing(scheduler)
        self._sharing = _jobs_sharing(scheduler.instance)
        self._luck = _LUCK * float(scheduler.instance.seconds.min(axis=1).mean())
        self._make_room()
        self.value = self._value_now = self._value(0)
        self._score = self.value + LAST_USE_WEIGHT * scheduler.mean_last_use()
        self._history: Floats = np.full(LIST, self._score)

    def _make_room(self) -> None:
        n = len(self._now.order)
        each = sum(array.nbytes for part in self.scheduler.state for array in part)
        count = max(1, min(SNAPSHOTS, n, int(MOST_BYTES / each)))
        self._width = -(-n // count)
        self._snapshots = []
        self._room = self.scheduler.room

    def run(self, trials: int) -> None:
        """Run this many trials."""
        if len(self._now.order) - self._first < 2:
            return
        for _ in range(trials):
            self._trial()

    def _trial(self) -> None:
        self._in_vain += 1
        if self._in_vain > PATIENCE[0] + PATIENCE[1] * len(self._now.order):
            self._leave()
        changed, undo = self._change()
        value = self._value(changed)
        score = value + LAST_USE_WEIGHT * self.scheduler.mean_last_use()
        slot = self._turn % LIST
        self._turn += 1
        if score <= self._history[slot] or score <= self._score:
            self._score, self._value_now = score, value
            del self._snapshots[changed // self._width + 1 if changed >= 0 else 0 :]
            if value < self.value * (1 - 1e-12):
                self.value = value
                self.best = self._now.copy()
                self._in_vain = 0
        else:
            for array, at, old in undo:
                array[at] = old
        self._history[slot] = self._score

    def _leave(self) -> None:
        """Leave a local optimum: continue from the best decisions with a few changes, whatever they cost."""
        self._in_vain = 0
        self._now, self._snapshots = self.best.copy(), []
        for _ in range(int(self._random.integers(2, 5))):
            self._change()
        value = self._value(0)
        if value >= FAILED:
            self._now, self._snapshots = self.best.copy(), []
            value = self._value(0)
        self._value_now = value
        self._score = value + LAST_USE_WEIGHT * self.scheduler.mean_last_use()
        self._history[:] = self._score

    def _value(self, changed: int) -> float:
        """The value of the decisions, changed from a position on; takes snapshots up to it for later trials."""
        scheduler, n = self.scheduler, len(self._now.order)
        if changed < 0:
            return scheduler.value(self._now)
        if scheduler.room != self._room:  # others that use the scheduler have let it grow
            self._make_room()
        chosen = self._now.arrays()
        while True:
            at = min(len(self._snapshots) - 1, changed // self._width)
            if at < 0:
                scheduler.clear(chosen)
                end, late, at = 0.0, 0.0, 0
                self._snapshots.append(_Snapshot(scheduler.snapshot(), end, late))
            else:
                scheduler.restore(self._snapshots[at].state)
                end, late = self._snapshots[at].end, self._snapshots[at].late
            while at < changed // self._width and end < FAILED:
                end, late = scheduler.place(chosen, at * self._width, (at + 1) * self._width, end, late)
                at += 1
                if end < FAILED:
                    self._snapshots.append(_Snapshot(scheduler.snapshot(), end, late))
            if end < FAILED:
                end, late = scheduler.place(chosen, at * self._width, n, end, late)
            if not scheduler.full:
                return end + LATE * late
            scheduler.grow()
            self._make_room()

    def _position(self) -> int:
        """A random position, biased towards the end: jobs placed late fill gaps, and their trials are cheap."""
        n = len(self._now.order)
        return n - 1 - int(self._random.integers(0, n - self._first, 2).min())

    def _late_position(self) -> int:
        """A random position; in half of the cases that of a job that ends late."""
        position = self._position()
        if self._random.random() < 0.5:
            done, order = self.scheduler.schedule.delivered, self._now.order
            for _ in range(12):
                if done[order[position]] >= 0.97 * self._value_now:
                    break
                position = self._position()
        return position

    def _change(self) -> tuple[int, list[tuple[Any, Any, Any]]]:
        """Change the decisions in one of five ways; returns the first changed position, and how to undo the change."""
        now, random = self._now, self._random
        kind = int(random.integers(10))
        i, k = self._late_position(), self._position()
        if kind <= 1:
            n = len(now.order)
            k = min(n - 1, max(self._first, i + int(random.integers(-_NEAR, _NEAR + 1))))
        a, b = int(now.order[i]), int(now.order[k])
        if kind <= 4:
            low, high = min(i, k), max(i, k) + 1
            undo = [(now.order, slice(low, high), now.order[low:high].copy())]
            if kind == 4:
                now.order[i], now.order[k] = b, a
            else:
                now.order[low:high] = np.roll(now.order[low:high], -1 if i < k else 1)
            return low, undo
        if kind <= 6:
            return self._from(i, a), self._move(a, self._other_host(a))
        if kind <= 8:
            k = self._partner(a, k)
            b = int(now.order[k])
            to_a, to_b = int(now.host[b]), int(now.host[a])
            seconds = self.scheduler.instance.seconds
            if not (np.isfinite(seconds[a, to_a]) and np.isfinite(seconds[b, to_b])):
                return max(i, k), []
            return min(self._from(i, a), self._from(k, b)), self._move(a, to_a) + self._move(b, to_b)
        return i, self._reroute(a, draw=True)

    def _other_host(self, job: int) -> int:
        """A random host for a job, often that of a job with which it shares a file; with costs, one with low costs."""
        able = np.flatnonzero(self.scheduler.instance.can_run[job])
        first, last = self._sharing[0][job : job + 2].tolist()
        if first < last and self._random.random() < _TOGETHER:
            host = int(self._now.host[self._sharing[1][self._random.integers(first, last)]])
            if host in able:
                return host
        if self._costs is None or len(able) < 2:
            return int(self._random.choice(able))
        able = able[able != self._now.host[job]]
        luck = self._luck * self._random.gumbel(size=len(able))
        return int(able[np.argmin(self._costs[job, able] - luck)])

    def _partner(self, job: int, position: int) -> int:
        """The position of a job to exchange hosts with: with costs, of some random ones that with the least."""
        if self._costs is None:
            return position
        now, costs, here = self._now, self._costs, int(self._now.host[job])
        positions = [position, *(self._position() for _ in range(_CANDIDATES - 1))]
        others = now.order[positions]
        there = now.host[others]
        change = costs[job, there] + costs[others, here] - costs[others, there]
        return positions[int(np.argmin(np.where(there == here, np.inf, change)))]

    def _from(self, position: int, job: int) -> int:
        """From which position on the schedule changes if a job moves to another host; -1: all of it.

        How long earlier jobs hold a copy on a disk depends on who reads it later at the same place.
        """
        return position if self._alone[job] else -1

    def _move(self, job: int, host: int) -> list[tuple[Any, Any, Any]]:
        undo = [(self._now.host, job, int(self._now.host[job])), *self._reroute(job, draw=False)]
        self._now.host[job] = host
        return undo

    def _reroute(self, job: int, *, draw: bool) -> list[tuple[Any, Any, Any]]:
        """Choose other paths for the files of a job: random ones, or those with the earliest arrival."""
        instance = self.scheduler.instance
        undo = []
        for paths, ptr in (
            (self._now.input_path, instance.read_ptr),
            (self._now.output_path, instance.write_ptr),
        ):
            at = slice(int(ptr[job]), int(ptr[job + 1]))
            undo.append((paths, at, paths[at].copy()))
            paths[at] = self._random.integers(ANY, 8, at.stop - at.start) if draw else ANY
        return undo


def _jobs_sharing(instance: Instance) -> tuple[Int64s, Int64s]:
    """For each job, others that read the same file from outside, as ptr and jobs; at most some for each file."""
    job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
    outside = instance.source[instance.reads] != NONE
    readers: dict[int, list[int]] = {}
    for item, reader in zip(instance.reads[outside].tolist(), job[outside].tolist(), strict=True):
        readers.setdefault(item, []).append(reader)
    others: list[list[int]] = [[] for _ in range(instance.n)]
    for jobs in readers.values():
        for k, reader in enumerate(jobs if len(jobs) > 1 else ()):
            others[reader] += [x for x in jobs[max(0, k - _NEAR) : k + _NEAR] if x != reader]
    ptr = np.zeros(instance.n + 1, np.int64)
    np.cumsum([len(listed) for listed in others], out=ptr[1:])
    return ptr, np.array([x for listed in others for x in listed], np.int64)


def _shares_nothing(scheduler: ListScheduler) -> Bools:
    """Which jobs share no file with others, or all if disks are unlimited: O(files)."""
    instance = scheduler.instance
    alone = np.ones(instance.n, np.bool_)
    if scheduler.arrays.limited_storage:
        readers = np.bincount(instance.reads, minlength=len(instance.size))
        for ptr, items, most in (
            (instance.read_ptr, instance.reads, 1),
            (instance.write_ptr, instance.writes, 0),
        ):
            job = np.repeat(np.arange(instance.n), np.diff(ptr))
            alone[job[readers[items] > most]] = False
        job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
        alone[job[instance.problem.graph.producer[instance.reads] >= 0]] = False
    return alone
