"""The sources of a select, joined as its conditions allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.rules.frames import Frame, cross, equal_pairs, expand, one_key, require_rows
from headrace.rules.task_names import tasks_named
from headrace.rules.tree import Compare, Condition, Source, Span
from headrace.rules.vectors import Codes, Vector, is_tolerant
from headrace.rules.walk import is_static, sources_of

if TYPE_CHECKING:
    from headrace.rules.select import Evaluator


class _Test:
    """A condition that must be TRUE for a row to stay, and what no schedule changes of it."""

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.fixed = is_static(condition)
        """No schedule changes it."""
        self.rows: Codes | None = None
        """The rows of its only source for which it is TRUE, in order, if it is fixed and they have been looked for."""

    @cached_property
    def sources(self) -> set[str]:
        return sources_of(self.condition)


@dataclass
class _Joining:
    """A join in progress."""

    evaluator: Evaluator
    frame: Frame
    owner: Codes
    tests: list[_Test]
    """Those not yet applied."""
    own: list[str] = field(default_factory=list)
    """Sources joined so far, without those around the select."""


def join(
    evaluator: Evaluator,
    sources: tuple[Source, ...],
    where: list[Condition],
    outer: Frame,
    at: Span,
    *,
    ordered: bool = True,
) -> tuple[Frame, Codes]:
    """The rows of some sources for which conditions are all TRUE, and the row of `outer` that each belongs to.

    Sources are first filtered alone. Then the next is always the one that equalities connect with what is joined so
    far and that gives the fewest pairs; such a join sorts one side and takes O((n + m) log m + result). Only without an
    equality all pairs are made. If `ordered`, rows are in lexicographic order: by row of `outer`, then by rows of the
    sources as listed.
    """
    tests = [_test(evaluator, part) for part in where]
    if len(sources) == 1 and outer.length == 1 and not outer.rows:  # stands alone: nothing to join
        frame = _filtered(evaluator, sources[0], tests)
        return frame, np.zeros(frame.length, np.int64)
    listed = [source.alias for source in sources]
    outer = outer.keep(set(outer.rows) - set(listed))
    state = _Joining(evaluator, outer, np.arange(outer.length), tests)
    _apply(state)
    alone = {source.alias: _alone(state, source) for source in sources}
    waiting = list(listed)
    while waiting:
        name, match = _next(state, alone, waiting)
        waiting.remove(name)
        _add(state, alone[name], match, at)
        _apply(state)
    if len(listed) > 1 and ordered:
        order = np.lexsort((*(state.frame.rows[name] for name in reversed(listed)), state.owner))
        return state.frame.take(order), state.owner[order]
    return state.frame, state.owner


def _alone(state: _Joining, source: Source) -> Frame:
    """The rows of one source that pass the tests of that source alone."""
    own = [test for test in state.tests if test.sources == {source.alias}]
    state.tests[:] = [test for test in state.tests if test.sources != {source.alias}]
    return _filtered(state.evaluator, source, own)


def _filtered(evaluator: Evaluator, source: Source, tests: list[_Test]) -> Frame:
    """The rows of one source that pass tests of which none is about another one."""
    relations, alias = evaluator.relations, source.alias
    rows = [_fixed_rows(evaluator, test, source) for test in tests if test.fixed]
    chosen = min(rows, key=len) if rows else relations.every(source.relation)
    for others in rows:
        if others is not chosen:
            chosen = np.intersect1d(chosen, others, assume_unique=True)
    frame = Frame(relations, {alias: chosen}, {alias: source.relation}, len(chosen))
    for test in tests:
        if not test.fixed:
            frame = _passing(evaluator, test.condition, frame)[0]
    return frame


def _test(evaluator: Evaluator, condition: Condition) -> _Test:
    """The same object for the same condition, which it keeps alive."""
    known = evaluator.relations.conditions
    found: _Test | None = known.get(id(condition))
    if found is None:
        found = known[id(condition)] = _Test(condition)
    return found


def _fixed_rows(evaluator: Evaluator, test: _Test, source: Source) -> Codes:
    """The rows of a whole relation for which a condition is TRUE, in order; found once for all schedules."""
    from headrace.rules.select import Context

    relations = evaluator.relations
    if test.rows is None and source.relation == "task":
        test.rows = tasks_named(relations.task_names, test.condition)
    if test.rows is None:
        every = relations.every(source.relation)
        whole = Frame(relations, {source.alias: every}, {source.alias: source.relation}, len(every))
        test.rows = np.flatnonzero(evaluator.truth(test.condition, Context(whole)).spread(len(every)).true)
    return test.rows


def _passing(evaluator: Evaluator, condition: Condition, frame: Frame) -> tuple[Frame, Codes]:
    from headrace.rules.select import Context

    chosen = np.flatnonzero(evaluator.truth(condition, Context(frame)).spread(frame.length).true)
    return (frame.take(chosen) if len(chosen) < frame.length else frame), chosen


def _apply(state: _Joining) -> None:
    """Apply the tests whose sources have all been joined."""
    for test in [test for test in state.tests if test.sources <= set(state.frame.rows)]:
        state.tests.remove(test)
        state.frame, chosen = _passing(state.evaluator, test.condition, state.frame)
        state.owner = state.owner[chosen]


def _links(state: _Joining, name: str) -> list[tuple[_Test, bool]]:
    """Equalities between a source and what has been joined, and whether the source is on the left."""
    here = set(state.frame.rows)
    found = []
    for test in state.tests:
        if isinstance(test.condition, Compare) and test.condition.op == "=":
            left, right = sources_of(test.condition.left), sources_of(test.condition.right)
            if right == {name} and left and left <= here:
                found.append((test, False))
            elif left == {name} and right and right <= here:
                found.append((test, True))
    return found


class _Match(NamedTuple):
    """How a source can be joined by equalities."""

    total: int
    """Pairs of rows."""
    used: list[_Test]
    pairs: tuple[Codes, Codes, Codes]
    """As `equal_pairs` returns them."""


def _match(state: _Joining, name: str, alone: Frame) -> _Match | None:
    """The join of one more source by all equalities that can be one exact key, or by one with tolerance."""
    links = _links(state, name)
    if not links:
        return None
    n, m = state.frame.length, alone.length
    sides = [(test, *_sides(state, test, on_left, alone)) for test, on_left in links]
    exact = [(test, a, b) for test, a, b in sides if not _tolerant(test) or (_whole(a) and _whole(b))]
    if exact:
        left, right = one_key([a for _, a, _ in exact], [b for _, _, b in exact], n, m)
    else:
        left, right = sides[0][1].spread(n), sides[0][2].spread(m)
    pairs = equal_pairs(left, right, tolerant=not exact)
    return _Match(int(pairs[2].sum()), [test for test, _, _ in exact or sides[:1]], pairs)


def _whole(vector: Vector) -> bool:
    """Whether all values are whole numbers, too small for tolerance to make two of them equal."""
    values = vector.values
    return bool(((values == np.rint(values)) & (np.abs(values) < 1e8)).all())


def _next(state: _Joining, alone: dict[str, Frame], waiting: list[str]) -> tuple[str, _Match | None]:
    """The source whose join gives the fewest rows; without equalities, the first."""
    matches = [(name, _match(state, name, alone[name])) for name in waiting]
    linked = [(match.total, k) for k, (_, match) in enumerate(matches) if match is not None]
    return matches[min(linked)[1]] if linked else (waiting[0], None)


def _add(state: _Joining, alone: Frame, match: _Match | None, at: Span) -> None:
    """Join one more source."""
    source = state.evaluator.source
    if match is None:
        mine, others = cross(state.frame.length, alone.length, at, source)
    else:
        require_rows(match.total, at, source)
        mine, others = expand(*match.pairs)
        for test in match.used:
            state.tests.remove(test)
    state.frame = state.frame.beside(alone, mine, others)
    state.owner = state.owner[mine]


def _tolerant(test: _Test) -> bool:
    assert isinstance(test.condition, Compare)
    return is_tolerant(test.condition.left, test.condition.right)


def _sides(state: _Joining, test: _Test, on_left: bool, alone: Frame) -> tuple[Vector, Vector]:
    """The values of an equality: on what has been joined, and on the new source."""
    from headrace.rules.select import Context

    assert isinstance(test.condition, Compare)
    ends = (test.condition.left, test.condition.right)
    mine, others = ends[::-1] if on_left else ends
    return state.evaluator.value(mine, Context(state.frame)), state.evaluator.value(others, Context(alone))
