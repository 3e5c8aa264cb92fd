"""Columns of the relations for batches of partial schedules: what a placement changes, changed in place.

A `Batch` is a partial schedule with one more task placed, in several ways. Its columns are those of the schedule it
comes from, repeated, with the entries of the placed task, its host and its dependencies replaced. `as_they_are` gives
the columns with UNKNOWN for what is not placed; `completed` gives, for every value, an interval that holds it in every
semi-active completion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.rules import incremental_values as iv
from headrace.rules.attributes import LABEL, RELATIONS
from headrace.rules.incremental_compile import Key
from headrace.rules.incremental_values import Array, Values
from headrace.rules.like import matcher
from headrace.rules.relations import Relations
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.tree import RelationName, Type


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """A partial schedule."""

    host: Ints
    """[tasks] -1: not placed."""
    start: Floats
    finish: Floats
    free: Floats
    """[hosts, cores] when each core becomes free, ascending."""

    @property
    def placed(self) -> int:
        return int((self.host >= 0).sum())


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """A partial schedule with one more task, in several ways: task, host and start of each."""

    parent: Placement
    task: Ints
    at: Ints
    start: Floats
    finish: Floats
    since: Floats = field(default_factory=lambda: np.zeros(1))
    """[batch or 1] no other task starts earlier in the completions that `completed` looks at."""

    def __len__(self) -> int:
        return len(self.task)

    def child(self, number: int, space: ScheduleSpace) -> Placement:
        """One of the schedules."""
        parent, task, at = self.parent, int(self.task[number]), int(self.at[number])
        host, start = parent.host.copy(), parent.start.copy()
        finish, free = parent.finish.copy(), parent.free.copy()
        host[task], start[task], finish[task] = at, self.start[number], self.finish[number]
        free[at, : int(space.graph.cores[task])] = self.finish[number]
        free[at] = np.sort(free[at])
        return Placement(host, start, finish, free)


def unchanged(placement: Placement) -> Batch:
    """A schedule as a batch of one that places nothing."""
    none = np.full(1, -1, np.int32)
    return Batch(placement, none, none, np.zeros(1), np.zeros(1))


class Columns:
    """All columns of a problem's relations, for any batch of its partial schedules."""

    def __init__(self, space: ScheduleSpace, texts: Sequence[str]) -> None:
        graph, platform = space.graph, space.platform
        self.space = space
        self.relations = Relations(graph, platform)
        words = {*texts, *(h.name for h in platform.hosts), *(s.name for s in platform.sites)}
        for relation, attributes in RELATIONS.items():
            for name, attribute in attributes.items():
                if attribute.type is Type.TEXT and not attribute.scheduled:
                    words.update(self.relations.column(relation, name).words or ())
        for label in graph.labels:
            name = LABEL + label.replace("_", "-")
            words.update(self.relations.column("task", name, Type.TEXT).words or ())
        self.words = sorted(words)
        self._code = {word: i for i, word in enumerate(self.words)}
        tasks = np.arange(graph.n_tasks)
        finite = np.where(np.isfinite(space.run), space.run, np.nan)
        self.run_low, self.run_high = np.nanmin(finite, axis=1), np.nanmax(finite, axis=1)
        self.price = self._per_second("proc-price") / 3600.0
        self.watts = self._per_second("proc-watts")
        self.horizon = space.horizon
        self._deps(tasks)

    def _per_second(self, attribute: str) -> Floats:
        return self.relations.column("proc", attribute).values

    def _deps(self, tasks: Array) -> None:
        """Rows of `dep`: its tasks, and the transfer times of its item between all pairs of hosts."""
        graph, relations = self.space.graph, self.relations
        self.dep_from = relations.column("dep", "dep-from").values.astype(np.int64)
        self.dep_to = relations.column("dep", "dep-to").values.astype(np.int64)
        item = graph.reads[graph.producer[graph.reads] >= 0]
        hosts = len(self.space.platform.hosts)
        shape = (len(item), hosts, hosts)
        self.dep_seconds = np.array([self.space.seconds[i] for i in item.tolist()]).reshape(shape)
        finite = np.where(np.isfinite(self.dep_seconds), self.dep_seconds, 0.0)
        self.dep_low, self.dep_high = finite.min(axis=(1, 2)), finite.max(axis=(1, 2))
        self.dep_mean = relations.column("dep", "non-local-comm-time").values
        self.dep_rows = [np.flatnonzero((self.dep_from == t) | (self.dep_to == t)) for t in tasks.tolist()]

    # The catalog of the compiler.

    def rows(self, relation: RelationName) -> int:
        return self.relations.length(relation)

    def code(self, text: str) -> int:
        return self._code[text]

    def matching(self, pattern: str) -> Bools:
        matches = matcher(pattern)
        return np.array([matches(word) for word in self.words], np.bool_)

    def fixed(self, key: Key) -> Values:
        relation, attribute, text = key
        vector = self.relations.column(relation, attribute, Type.TEXT if text else Type.NUMBER)  # type: ignore[arg-type]
        values = vector.values
        if vector.words is not None:
            codes = np.array([self._code[word] for word in vector.words] or [0], np.float64)
            values = codes[values.astype(np.int64)]
        known = iv.TRUE if vector.known.all() else vector.known[None]
        return iv.exactly(values[None], known)

    def is_fixed(self, key: Key) -> bool:
        relation, attribute, _ = key
        return attribute.startswith(LABEL) or not RELATIONS[relation][attribute].scheduled  # type: ignore[index]

    def host_codes(self, attribute: str) -> Floats:
        """The code of a text of each host."""
        codes: Floats = self.fixed(("proc", attribute, True)).low[0]
        return codes


class Frames:
    """The columns of one batch that the rules read."""

    def __init__(self, columns: Columns, batch: Batch) -> None:
        self.columns, self.batch, self.space = columns, batch, columns.space
        self.row = np.arange(len(batch))
        self.changed = bool(len(batch)) and int(batch.task[0]) >= 0
        self.host = self._task_column(batch.parent.host, batch.at)
        self.placed = self.host >= 0
        self.complete = bool(self.placed.all())
        self._known = iv.TRUE if self.complete else self.placed

    def _task_column(self, parent: Array, new: Array) -> Array:
        """[batch, tasks] the parent's column, with a new entry for the placed task."""
        column = np.repeat(parent[None], len(self.batch), axis=0)
        if self.changed:
            column[self.row, self.batch.task] = new
        return column

    def _per_host(self, values: Floats, new: Floats) -> Floats:
        """[batch, hosts] sums over the tasks of each host: `values` of the parent's tasks, `new` of the placed one."""
        parent, hosts = self.batch.parent, len(self.space.cores)
        there = parent.host >= 0
        sums = np.bincount(parent.host[there], values[there], minlength=hosts)
        column = np.repeat(sums[None].astype(np.float64), len(self.batch), axis=0)
        if self.changed:
            column[self.row, self.batch.at] += new
        return column

    @property
    def start(self) -> Floats:
        return self._task_column(self.batch.parent.start, self.batch.start)

    @property
    def finish(self) -> Floats:
        return self._task_column(self.batch.parent.finish, self.batch.finish)

    def run(self) -> Floats:
        """[batch, tasks] run times of placed tasks, 0 for the others."""
        parent = self.batch.parent
        placed = np.where(parent.host >= 0, parent.finish - parent.start, 0.0)
        return self._task_column(placed, self.batch.finish - self.batch.start)

    def _sum(self, rate: Floats) -> Floats:
        """[batch, hosts] run time times cores times a rate of the host."""
        parent, batch, cores = self.batch.parent, self.batch, self.space.graph.cores
        run = np.where(parent.host >= 0, parent.finish - parent.start, 0.0)
        return self._per_host(
            run * cores * rate[parent.host], (batch.finish - batch.start) * cores[batch.task] * rate[batch.at]
        )

    def count(self) -> Floats:
        ones = np.ones(len(self.batch.parent.host))
        return self._per_host(ones, np.ones(len(self.batch)))

    def running(self) -> Floats:
        parent = self.batch.parent
        run = np.where(parent.host >= 0, parent.finish - parent.start, 0.0)
        return self._per_host(run, self.batch.finish - self.batch.start)

    def last(self) -> Floats:
        """[batch, hosts] the last finish on each host, 0 without tasks."""
        parent = self.batch.parent
        last = np.zeros(len(self.space.cores))
        there = parent.host >= 0
        np.maximum.at(last, parent.host[there], parent.finish[there])
        column = np.repeat(last[None], len(self.batch), axis=0)
        if self.changed:
            at = (self.row, self.batch.at)
            column[at] = np.maximum(column[at], self.batch.finish)
        return column

    def transfer(self) -> tuple[Floats, Bools]:
        """[batch, deps] transfer times between the hosts of both tasks, and where both have one."""
        columns, parent = self.columns, self.batch.parent
        a, b = columns.dep_from, columns.dep_to
        both = (parent.host[a] >= 0) & (parent.host[b] >= 0)
        seconds = columns.dep_seconds[np.arange(len(a)), parent.host[a], parent.host[b]]
        wide = np.repeat(np.where(both, seconds, columns.dep_mean)[None], len(self.batch), axis=0)
        known = np.repeat(both[None], len(self.batch), axis=0)
        for task in np.unique(self.batch.task).tolist() if self.changed else ():
            rows, which = columns.dep_rows[task], np.flatnonzero(self.batch.task == task)
            if not len(rows):
                continue
            host = self.host[which]
            left, right = host[:, a[rows]], host[:, b[rows]]
            now = (left >= 0) & (right >= 0)
            seconds = columns.dep_seconds[rows[None], left, right]
            cells = np.ix_(which, rows)
            known[cells] = now
            wide[cells] = np.where(now, seconds, columns.dep_mean[rows])
        return wide, known

    # As they are.

    def as_they_are(self, attribute: str) -> Values:
        return iv.exactly(*_AS_THEY_ARE[attribute](self))

    # In every completion.

    def completed(self, attribute: str, times: tuple[Floats, Floats] | None) -> Values:
        """An interval for each value; `times` are those of `earliest`, for times of tasks."""
        if attribute in ("task-start-time", "task-finish-time"):
            assert times is not None
            return self._times(attribute == "task-finish-time", *times)
        return _COMPLETED[attribute](self)

    def between(self, value: Floats, low: Floats, high: Floats) -> Values:
        """The value of placed tasks; for the others, an interval for each task."""
        return Values(np.where(self.placed, value, low), np.where(self.placed, value, high), iv.TRUE, iv.TRUE)

    def of_host(self, attribute: str) -> Values:
        codes = self.columns.host_codes(attribute)
        return self.between(codes[self.host], np.array(codes.min()), np.array(codes.max()))

    def of_rate(self, rate: Floats) -> Values:
        run = np.where(np.isfinite(self.space.run), self.space.run, np.nan) * rate
        cores = self.space.graph.cores
        value = self.run() * cores * rate[self.host]
        return self.between(value, np.nanmin(run, axis=1) * cores, np.nanmax(run, axis=1) * cores)

    def _times(self, finish: bool, start: Floats, end: Floats) -> Values:
        columns = self.columns
        if finish:
            return self.between(self.finish, end, np.array(columns.horizon))
        return self.between(self.start, start, columns.horizon - columns.run_low)

    def more(self, now: Floats, each: Floats) -> Values:
        """A sum over tasks of each host: what unplaced tasks, [tasks, hosts] `each`, may add."""
        parent = self.batch.parent
        finite = np.where(np.isfinite(each), each, 0.0)
        left = finite[parent.host < 0].sum(axis=0)
        wide = np.repeat(left[None], len(self.batch), axis=0)
        if self.changed:
            wide -= finite[self.batch.task]
        return Values(now, now + np.maximum(wide, 0.0), iv.TRUE, iv.TRUE)

    def earliest(self) -> tuple[Floats, Floats]:
        """[batch, tasks] earliest start and finish of every task in any completion: exact for placed ones."""
        space, batch = self.space, self.batch
        start, finish = self.start, self.finish
        free = self._free()
        for task in space.graph.order.tolist():
            if batch.parent.host[task] >= 0:
                continue
            ready = np.maximum(space.outside[task][None], batch.since[:, None])
            for maker, seconds in space.inputs[task]:
                delay = np.where(
                    self.placed[:, maker, None], seconds[self.host[:, maker]], seconds.min(axis=0)[None]
                )
                ready = np.maximum(ready, finish[:, maker, None] + delay)
            ready = np.maximum(ready, free[:, :, int(space.graph.cores[task]) - 1])
            run = space.run[task][None]
            first = np.where(np.isfinite(run), ready, np.inf).min(axis=1)
            end = (ready + run).min(axis=1)
            start[:, task] = np.where(
                self.placed[:, task], start[:, task], np.minimum(first, self.columns.horizon)
            )
            finish[:, task] = np.where(
                self.placed[:, task], finish[:, task], np.minimum(end, self.columns.horizon)
            )
        return start, finish

    def _free(self) -> Floats:
        """[batch, hosts, cores] when each core becomes free."""
        batch = self.batch
        free = np.repeat(batch.parent.free[None], len(batch), axis=0)
        if not self.changed:
            return free
        wanted = self.space.graph.cores[batch.task]
        rows = free[self.row, batch.at]
        rows = np.where(np.arange(free.shape[2])[None] < wanted[:, None], batch.finish[:, None], rows)
        free[self.row, batch.at] = np.sort(rows, axis=1)
        return free


def _comm(frames: Frames) -> tuple[Floats, Array]:
    return frames.transfer()[0], iv.TRUE


def _comm_completed(frames: Frames) -> Values:
    seconds, known = frames.transfer()
    low = np.where(known, seconds, frames.columns.dep_low)
    return Values(low, np.where(known, seconds, frames.columns.dep_high), iv.TRUE, iv.TRUE)


def _exec(frames: Frames) -> tuple[Floats, Array]:
    return np.where(frames.placed, frames.run(), frames.columns.relations.mean_run_seconds), iv.TRUE


_AS_THEY_ARE: dict[str, Callable[[Frames], tuple[Array, Array]]] = {
    "task-scheduled": lambda f: (f.placed.astype(np.float64), iv.TRUE),
    "task-assigned-proc-id": lambda f: (f.host.astype(np.float64), f._known),
    "task-assigned-proc-name": lambda f: (f.columns.host_codes("proc-name")[f.host], f._known),
    "task-site": lambda f: (f.columns.host_codes("proc-site")[f.host], f._known),
    "task-exec-time": _exec,
    "task-start-time": lambda f: (f.start, f._known),
    "task-finish-time": lambda f: (f.finish, f._known),
    "task-cost": lambda f: (f.run() * f.space.graph.cores * f.columns.price[f.host], f._known),
    "task-energy": lambda f: (f.run() * f.space.graph.cores * f.columns.watts[f.host], f._known),
    "proc-total-running-time": lambda f: (f.running(), iv.TRUE),
    "proc-finish-time": lambda f: (f.last(), iv.TRUE if f.complete else f.count() > 0),
    "proc-task-count": lambda f: (f.count(), iv.TRUE),
    "proc-task-list": lambda f: (f.count(), f.count() > 0),
    "proc-cost": lambda f: (f._sum(f.columns.price), iv.TRUE),
    "proc-energy": lambda f: (f._sum(f.columns.watts), iv.TRUE),
    "non-local-comm-time": _comm,
}

_COMPLETED: dict[str, Callable[[Frames], Values]] = {
    "task-scheduled": lambda f: iv.exactly(np.ones((1, f.space.graph.n_tasks))),
    "task-assigned-proc-id": lambda f: f.between(
        f.host.astype(np.float64), np.zeros(1), np.array([len(f.space.cores) - 1.0])
    ),
    "task-assigned-proc-name": lambda f: f.of_host("proc-name"),
    "task-site": lambda f: f.of_host("proc-site"),
    "task-exec-time": lambda f: f.between(f.run(), f.columns.run_low, f.columns.run_high),
    "task-cost": lambda f: f.of_rate(f.columns.price),
    "task-energy": lambda f: f.of_rate(f.columns.watts),
    "proc-total-running-time": lambda f: f.more(f.running(), f.space.run),
    "proc-finish-time": lambda f: Values(f.last(), np.full(1, f.columns.horizon), iv.TRUE, iv.TRUE),
    "proc-task-count": lambda f: f.more(f.count(), np.isfinite(f.space.run).astype(np.float64)),
    "proc-task-list": lambda f: Values(f.count(), np.full(1, 1e9), f.count() > 0, iv.TRUE),
    "proc-cost": lambda f: f.more(
        f._sum(f.columns.price), f.space.run * f.columns.price * f.space.graph.cores[:, None]
    ),
    "proc-energy": lambda f: f.more(
        f._sum(f.columns.watts), f.space.run * f.columns.watts * f.space.graph.cores[:, None]
    ),
    "non-local-comm-time": _comm_completed,
}
