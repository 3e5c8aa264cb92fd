"""Rules on partial schedules: all successors of a state judged at once, from what each placement changes.

`as_they_are` judges partial schedules with UNKNOWN for what is not placed, as `evaluate` does. `completed` says what
holds in every semi-active completion: a requirement that no completion satisfies, and a lower bound of the score over
all of them. On complete schedules both are the verdict of `evaluate`.

Rules without a compiled form (`group by`, `distinct`, orders that depend on the schedule) are evaluated schedule by
schedule; over completions nothing is concluded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.rules import incremental_values as iv
from headrace.rules.incremental_bodies import Counted, compile_ordering, compile_relationship
from headrace.rules.incremental_columns import Batch, Columns, Frames, Placement, unchanged
from headrace.rules.incremental_compile import Compiler, Frame, NotCompiled, walk
from headrace.rules.incremental_values import Array, Values
from headrace.rules.incremental_whole import Measured, Measures, measure
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.tree import (
    Condition,
    Expression,
    Number,
    Ordering,
    Relationship,
    Rule,
    RuleSet,
    Span,
    Text,
    Value,
)

NOWHERE = Span(0, 0)
ZERO, ONE = Number(0.0, NOWHERE), Number(1.0, NOWHERE)


class Judged(NamedTuple):
    """A batch of schedules under the rules."""

    allowed: Bools
    """[batch] no requirement fails; of completions: some completion may satisfy them all."""
    cost: Floats
    """[batch] sum of scaled preferences times their priorities; of completions: a lower bound."""
    weight: Floats
    """[batch] sum of priorities."""

    @property
    def score(self) -> Floats:
        return self.cost / np.where(self.weight > 0, self.weight, 1.0)


CompiledRule: TypeAlias = Callable[[Frame], Measures]


class PartialRules:
    """The rules of one problem, for any of its partial schedules.

    >>> from headrace.model.graph import make_graph
    >>> from headrace.model.platform import Platform
    >>> from headrace.rules.parser import parse_rules
    >>> from headrace.rules.semi_active import schedule_space
    >>> g = make_graph(work=[2.0, 4.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    >>> space = schedule_space(g, Platform.pairwise([1.0, 2.0], bandwidth=1e6))
    >>> on_time = "assert relationship requirement ((select max(task-finish-time) from task) <= 2)"
    >>> rules = PartialRules(parse_rules(on_time), space)
    >>> root = rules.empty()
    >>> batch = rules.successors(root, [(0, 0), (1, 0), (1, 1)])
    >>> batch.finish.tolist(), rules.as_they_are(batch).allowed.tolist()
    ([2.0, 4.0, 2.0], [True, False, True])
    """

    def __init__(self, rules: RuleSet, space: ScheduleSpace) -> None:
        self.rules, self.space = rules, space
        texts = {n.value for rule in rules.rules for n in _nodes(rule) if isinstance(n, Text)}
        self.columns = Columns(space, sorted(texts))
        self._compiler = Compiler(self.columns)
        self._compiled = [self._compile(rule) for rule in rules.rules]
        keys = sorted(self._compiler.used)
        self._fixed = {key: self.columns.fixed(key) for key in keys if self.columns.is_fixed(key)}
        self._moving = [key for key in keys if key not in self._fixed]

    @property
    def compiled(self) -> int:
        """The number of rules judged in batches."""
        return sum(rule is not None for rule in self._compiled)

    def empty(self) -> Placement:
        """The schedule of no task."""
        n = self.space.graph.n_tasks
        return Placement(np.full(n, -1, np.int32), np.zeros(n), np.zeros(n), self.space.empty_cores())

    def successors(self, parent: Placement, places: Sequence[tuple[int, int]]) -> Batch:
        """A schedule with one more task: each of these (task, host), appended to the cores that are free first.

        Predecessors of the tasks must be placed. O(places + tasks * hosts).
        """
        space = self.space
        task = np.array([t for t, _ in places], np.int32)
        at = np.array([h for _, h in places], np.int32)
        ready = {t: space.ready(t, parent.host, parent.finish) for t in sorted(set(task.tolist()))}
        start = np.array([ready[t][h] for t, h in places])
        start = np.maximum(start, parent.free[at, space.graph.cores[task] - 1])
        return Batch(parent, task, at, start, start + space.run[task, at])

    def judge(self, placement: Placement) -> Judged:
        """A single schedule, as it is."""
        return self.as_they_are(unchanged(placement))

    def as_they_are(self, batch: Batch) -> Judged:
        """The verdict on these schedules, UNKNOWN for what is not placed."""
        frames = Frames(self.columns, batch)
        frame = {**self._fixed, **{key: frames.as_they_are(key[1]) for key in self._moving}}
        return self._judged(batch, frame, whole=True)

    def completed(self, batch: Batch) -> Judged:
        """What holds in every completion in which no task starts before `batch.since`."""
        frames = Frames(self.columns, batch)
        if frames.complete:
            return self.as_they_are(batch)
        times = frames.earliest() if any(k[1] in _TIMES for k in self._moving) else None
        frame = {**self._fixed, **{key: frames.completed(key[1], times) for key in self._moving}}
        return self._judged(batch, frame, whole=False)

    def _judged(self, batch: Batch, frame: Frame, whole: bool) -> Judged:
        size = len(batch)
        allowed, cost, weight = np.ones(size, np.bool_), np.zeros(size), np.zeros(size)
        placements: list[Placement] | None = None
        for rule, compiled in zip(self.rules.rules, self._compiled, strict=True):
            if compiled is not None:
                measures = compiled(frame)
            elif whole:
                if placements is None:
                    changed = size > 0 and int(batch.task[0]) >= 0
                    placements = (
                        [batch.child(i, self.space) for i in range(size)] if changed else [batch.parent]
                    )
                measures = _together([measure(rule, self.space, p, self.rules.source) for p in placements])
            else:
                measures = _nothing_known(rule)
            if rule.importance == "requirement":
                allowed &= ~np.broadcast_to(measures.broken, size)
            else:
                cost += np.broadcast_to(measures.scaled * measures.priority, size)
                weight += np.broadcast_to(measures.most_priority, size)
        return Judged(allowed, cost, weight)

    # Compiling.

    def _compile(self, rule: Rule) -> CompiledRule | None:
        used = set(self._compiler.used)
        try:
            if rule.importance == "requirement":
                return self._requirement(rule)
            return self._preference(rule)
        except NotCompiled:
            self._compiler.used.clear()
            self._compiler.used.update(used)
            return None

    def _counts(self, body: Relationship | Ordering) -> Callable[[Frame], Counted]:
        if isinstance(body, Relationship):
            return compile_relationship(self._compiler, body)
        return compile_ordering(self._compiler, body)

    def _requirement(self, rule: Rule) -> CompiledRule:
        if not isinstance(rule.body, Value):
            count = self._counts(rule.body)
            return lambda frame: Measures(count(frame).failed > 0)
        value = self._number(rule.body.function)
        tests = []
        for op, limit in ((">=", rule.low), ("<=", rule.high)):
            if limit is not None:
                tests.append((op, self._compiler.value(limit)))

        def broken(frame: Frame) -> Measures:
            known = value(frame)
            found = [iv.compare(op, known, limit(frame)).false for op, limit in tests]
            return Measures(np.logical_or.reduce([np.broadcast_to(f, _size(found)) for f in found]))

        return broken

    def _number(self, function: Expression | Relationship | Ordering) -> Callable[[Frame], Values]:
        """The function of a value rule; of a nested rule, its number of failed tests."""
        if not isinstance(function, Relationship | Ordering):
            return self._compiler.value(function)
        count = self._counts(function)

        def failed(frame: Frame) -> Values:
            counted = count(frame)
            low, high = (a.astype(np.float64) for a in (counted.failed, counted.most_failed))
            return Values(low, low if counted.failed is counted.most_failed else high, iv.TRUE, iv.TRUE)

        return failed

    def _preference(self, rule: Rule) -> CompiledRule:
        body, compiler = rule.body, self._compiler
        priority = compiler.value(rule.priority or ONE)
        low = compiler.value(rule.low or ZERO)
        high = None if rule.high is None else compiler.value(rule.high)
        maximize = isinstance(body, Value) and body.goal == "maximize"
        count = None if isinstance(body, Value) else self._counts(body)
        number = self._number(body.function) if isinstance(body, Value) else None

        def measured(frame: Frame) -> Measures:
            if count is not None:
                counted = count(frame)
                value = Values(counted.failed * 1.0, counted.most_failed * 1.0, iv.TRUE, iv.TRUE)
                top = Values(counted.tests * 1.0, counted.most_tests * 1.0, iv.TRUE, iv.TRUE)
            else:
                assert number is not None
                value = top = number(frame)
            if high is not None:
                top = high(frame)
            return scaled(value, low(frame), top, priority(frame), maximize)

        return measured


_TIMES = ("task-start-time", "task-finish-time")


def _size(arrays: Sequence[Array]) -> int:
    return max((a.shape[0] for a in arrays if a.ndim), default=1)


def scaled(value: Values, low: Values, high: Values, priority: Values, maximize: bool) -> Measures:
    """The least scaled value of a preference within the intervals of its parts.

    The scale (v - low) / (high - low), clipped, rises with v and falls with either end, so its least value is at the
    least v and the greatest ends. An UNKNOWN value counts as 0.
    """
    least = _scale(value.low, low.high, high.high)
    if maximize:
        least = 1.0 - _scale(value.high, low.low, high.low)
    least = np.where(value.known & low.known & high.known, least, 0.0)
    weight = np.maximum(np.where(priority.known, priority.low, 0.0), 0.0)
    most = np.maximum(np.where(priority.maybe, priority.high, 0.0), 0.0)
    return Measures(np.zeros(1, np.bool_), least, weight, most)


def _scale(value: Array, low: Array, high: Array) -> Array:
    width = high - low
    flat = width <= 0
    share = np.clip((value - low) / np.where(flat, 1.0, width), 0.0, 1.0)
    return np.where(flat, (value > low).astype(np.float64), share)


def _nothing_known(rule: Rule) -> Measures:
    """A rule of which no completion is excluded."""
    zero = np.zeros(1)
    most = np.full(1, rule.priority.value) if isinstance(rule.priority, Number) else np.ones(1)
    if rule.priority is not None and not isinstance(rule.priority, Number):
        most = np.full(1, np.inf)
    return Measures(np.zeros(1, np.bool_), zero, zero, most)


def _together(measured: list[Measured]) -> Measures:
    columns = [np.array(column) for column in zip(*measured, strict=True)]
    return Measures(columns[0], columns[1], columns[2], columns[2])


def _nodes(rule: Rule) -> list[Expression | Condition]:
    """All nodes of a rule."""
    body = rule.body.function if isinstance(rule.body, Value) else rule.body
    parts: list[Expression | Condition] = [p for p in (rule.priority, rule.low, rule.high) if p is not None]
    if isinstance(body, Relationship):
        parts.append(body.condition)
    elif isinstance(body, Ordering):
        parts.append(body.sequence)
    else:
        parts.append(body)
    return [node for part in parts for node in walk(part)]


__all__ = ["Batch", "Judged", "PartialRules", "Placement"]
