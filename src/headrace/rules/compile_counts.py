"""Conditions on numbers of tasks and sums of run times: limits, empty hosts, groups of tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headrace.model.constraints import Limit
from headrace.model.graph import Bools, Floats
from headrace.rules.compile_hosts import apart_pairs, distinct_hosts, host_mask, same_pairs
from headrace.rules.compile_parts import Allow, Apart, Found, Part, joined
from headrace.rules.compile_reading import (
    FINISH,
    HOST,
    MIRROR,
    NEGATED,
    START,
    Reader,
    affine,
    direct_columns,
    is_plain,
    scheduled,
    split,
)
from headrace.rules.compile_times import order_of_pairs
from headrace.rules.grouping import groups_of
from headrace.rules.select import Context
from headrace.rules.tree import (
    Aggregate,
    Column,
    Compare,
    Comparison,
    Condition,
    Expression,
    IsUnknown,
    Select,
)
from headrace.rules.vectors import Codes
from headrace.rules.walk import is_static, sources_of

COUNT, SECONDS = "proc-task-count", "proc-total-running-time"
_ROUNDING = 1e-9


def count_condition(condition: Condition, reader: Reader, rule: str) -> Found | None:
    """A bound on what hosts have, or on a count or sum over tasks."""
    match condition:
        case IsUnknown(operand=Select() as select, negated=False):
            return _empty_hosts(select, reader)
        case Compare(op=op, left=Select() as select, right=right) if is_static(right):
            pass
        case Compare(op=op, left=left, right=Select() as select) if is_static(left):
            op, right = MIRROR[op], left
        case _:
            return None
    if select.having is not None:
        return None
    bounds = reader.fixed_value(right)
    values = bounds.values[bounds.known]
    if not len(values):
        return Found()
    for read in (_of_hosts, _of_tasks, _at_once, _no_pairs, _distinct):
        found = read(select, op, values, reader, rule)
        if found is not None:
            return found
    return None


def _most(op: Comparison, values: Floats, least: float = 0.0) -> float | None:
    """The upper bound that all comparisons together ask of a number that is at least `least`; None if there is more.

    >>> _most("<=", np.array([3.0, 2.0])), _most("=", np.array([0.0])), _most("=", np.array([1.0]))
    (2.0, 0.0, None)
    """
    if op == "<=" or (op == "=" and (values == least).all()):
        return float(values.min())
    if op == "<":
        return float(np.nextafter(values.min() - _ROUNDING * (1 + abs(values.min())), -np.inf))
    if op in (">=", ">") and (values.max() < least or (op == ">=" and values.max() == least)):
        return math.inf
    return None


def _limits(
    tasks: Bools, hosts: Bools, most: float, seconds: bool, reader: Reader, rule: str
) -> Found | None:
    """A limit on the number of these tasks, or on their total run time, over these hosts together."""
    if most < 0:
        return None
    if math.isinf(most):
        return Found()
    none = most < _ROUNDING if seconds else math.floor(most + _ROUNDING) == 0
    if none:
        exact = not seconds or bool((reader.graph.work[tasks] > 0).all())
        return Found((Allow(np.flatnonzero(tasks), ~hosts),) if tasks.any() and hosts.any() else (), exact)
    if seconds:
        return Found((Limit(tasks, hosts, seconds=most, rule=rule),))
    count = math.floor(most + _ROUNDING)
    if count >= np.count_nonzero(tasks) or not hosts.any():
        return Found()
    return Found((Limit(tasks, hosts, count=count, rule=rule),))


# Attributes of hosts.


def _empty_hosts(select: Select, reader: Reader) -> Found | None:
    """The task list of some hosts is UNKNOWN: they have no tasks."""
    static, moving = split(select)
    match select.columns:
        case (Column(source=alias, attribute="proc-task-list"),) if is_plain(select) and not moving:
            hosts = _mask(reader.rows(select, static).rows[alias], len(reader.platform.hosts))
            every = np.ones(reader.graph.n_tasks, np.bool_)
            return _limits(every, hosts, 0.0, False, reader, "")
    return None


def _of_hosts(select: Select, op: Comparison, values: Floats, reader: Reader, rule: str) -> Found | None:
    """`proc-task-count` or `proc-total-running-time` of some hosts, each, the largest, or their sum."""
    column, total = select.columns[0], False
    if isinstance(column, Aggregate) and column.operand is not None and not column.distinct:
        if column.name not in ("max", "sum") or select.group_by or (column.name == "max" and op == "="):
            return None
        total, column = column.name == "sum", column.operand
    elif not is_plain(select):
        return None
    targets, (static, moving) = direct_columns(column), split(select)
    if (
        len(targets) != 1
        or len(scheduled(column)) != 1
        or moving
        or targets[0].attribute not in (COUNT, SECONDS)
    ):
        return None
    target = targets[0]
    if not affine(column, target) or len(select.sources) != 1:
        return None
    frame = reader.rows(select, static)
    hosts = frame.rows[target.source]
    a, b, known = reader.coefficients(column, target, frame)
    if not known.all() or (a <= 0).any() or (total and (a != a[:1]).any()):
        return None
    seconds, every = target.attribute == SECONDS, np.ones(reader.graph.n_tasks, np.bool_)
    n = len(reader.platform.hosts)
    groups = (
        [(_mask(hosts, n), a[:1], b.sum())]
        if total
        else [(_mask(h, n), x, y) for h, x, y in zip(hosts, a, b, strict=True)]
    )
    found = []
    for mask, x, y in groups if len(hosts) else ():
        most = _most(op, (values - y) / x)
        found.append(None if most is None else _limits(every, mask, most, seconds, reader, rule))
    return None if None in found else _merged_allows(joined(f for f in found if f is not None))


def _merged_allows(found: Found) -> Found:
    """Hosts that the same tasks must keep off, as one part."""
    allows = [part for part in found.parts if isinstance(part, Allow)]
    if len(allows) < 2 or any(not np.array_equal(part.tasks, allows[0].tasks) for part in allows):
        return found
    hosts = np.logical_and.reduce([part.hosts for part in allows])
    others = [part for part in found.parts if not isinstance(part, Allow)]
    return Found((Allow(allows[0].tasks, hosts), *others), found.exact)


def _mask(rows: Codes | int, length: int) -> Bools:
    mask = np.zeros(length, np.bool_)
    mask[rows] = True
    return mask


# Counts and sums over tasks.


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The tasks of a select, the hosts on which they count, and how they are grouped."""

    groups: list[Bools]
    """By what is known before planning."""
    hosts: Bools
    by: str
    """Also grouped by this attribute of the task's host; empty: not."""


def _grouped(select: Select, reader: Reader) -> _Grouped | None:
    """A select of tasks from one source, grouped by static values and at most one attribute of the host."""
    if len(select.sources) != 1 or select.sources[0].relation != "task":
        return None
    alias = select.sources[0].alias
    static, moving = split(select)
    hosts = host_mask(moving, alias, reader)
    by = [key.attribute for key in select.group_by if isinstance(key, Column) and key.attribute in HOST]
    keys = [key for key in select.group_by if is_static(key)]
    if hosts is None or len(by) + len(keys) < len(select.group_by) or len(by) > 1:
        return None
    frame = reader.rows(select, static)
    tasks = frame.rows[alias]
    number = np.zeros(len(tasks), np.int64)
    if keys:
        values = [reader.evaluator.value(key, Context(frame)) for key in keys]
        number = np.asarray(groups_of(frame, number, values)[0].group, np.int64)
    n = reader.graph.n_tasks
    groups = [_mask(tasks[number == g], n) for g in range(int(number.max(initial=0 if not keys else -1)) + 1)]
    return _Grouped(groups, hosts, by[0] if by else "")


def _counted(column: Expression) -> str | None:
    """Whether a column counts the rows or sums their run times."""
    match column:
        case Aggregate(name="count", operand=None):
            return "count"
        case Aggregate(name="count", operand=Column(attribute="task-id" | "task-label")):
            return "count"
        case Aggregate(name="count", operand=Column(attribute=attribute), distinct=False) if (
            attribute in HOST
        ):
            return "count"
        case Aggregate(name="sum", operand=Column(attribute="task-exec-time"), distinct=False):
            return "seconds"
    return None


def _of_tasks(select: Select, op: Comparison, values: Floats, reader: Reader, rule: str) -> Found | None:
    """The number or run time of tasks: in all, or on each host or at each site."""
    what = _counted(select.columns[0])
    if what is None:
        return None
    grouped, most = _grouped(select, reader), _most(op, values)
    if grouped is None or most is None:
        return None
    if math.isinf(most):
        return Found()
    found: list[Found | None] = []
    for tasks in grouped.groups:
        count = np.count_nonzero(tasks)
        if what == "count" and not grouped.by and grouped.hosts.all():  # all of them run somewhere
            found.append(Found() if count <= most + _ROUNDING else None)
        elif what == "count" and 1 <= most + _ROUNDING < 2 and grouped.hosts.all() and grouped.by in _HOSTS:
            found.append(Found((Apart(np.flatnonzero(tasks)),) if count > 1 else ()))
        else:
            places = _places(grouped, reader)
            found += [_limits(tasks, hosts, most, what == "seconds", reader, rule) for hosts in places]
    return None if None in found else _merged_allows(joined(f for f in found if f is not None))


_HOSTS = ("task-assigned-proc-id", "task-assigned-proc-name")


def _places(grouped: _Grouped, reader: Reader) -> list[Bools]:
    """The hosts of each group by host or site."""
    n = len(reader.platform.hosts)
    if not grouped.by:
        return [grouped.hosts]
    if grouped.by in _HOSTS:
        return [_mask(int(h), n) for h in np.flatnonzero(grouped.hosts)]
    site = reader.evaluator.relations.site_of_host.values
    return [grouped.hosts & (site == s) for s in np.unique(site[grouped.hosts])]


def _distinct(select: Select, op: Comparison, values: Floats, reader: Reader, rule: str) -> Found | None:
    """The number of different hosts or sites of tasks."""
    match select.columns[0]:
        case Aggregate(name="count", operand=Column(attribute=attribute), distinct=True) if attribute in HOST:
            grouped = _grouped(select, reader)
        case _:
            return None
    if grouped is None or grouped.by or not grouped.hosts.all():
        return None
    found = []
    for tasks in grouped.groups:
        found += [distinct_hosts(np.flatnonzero(tasks), attribute, op, float(v)) for v in values]
    return None if None in found else joined(f for f in found if f is not None)


# Two tasks at a time.


@dataclass(frozen=True, eq=False)
class _Joined:
    """The conditions of a count over two task sources that depend on the schedule."""

    aliases: tuple[str, str]
    alone: dict[str, list[Condition]]
    both: list[Compare]


def _joined(select: Select) -> _Joined | None:
    """A count of rows of two tasks, one of which may be joined with known values."""
    match select.columns[0]:
        case Aggregate(name="count", operand=None):
            pass
        case _:
            return None
    tasks = [source.alias for source in select.sources if source.relation == "task"]
    _, moving = split(select)
    aliases = sorted({column.source for part in moving for column in scheduled(part)})
    if len(aliases) != 2 or not set(aliases) <= set(tasks):
        return None
    alone: dict[str, list[Condition]] = {alias: [] for alias in aliases}
    both = []
    for part in moving:
        used = sources_of(part)
        if len(used) == 1:
            alone[used.pop()].append(part)
        elif isinstance(part, Compare) and isinstance(part.left, Column) and isinstance(part.right, Column):
            both.append(part)
        else:
            return None
    return _Joined((aliases[0], aliases[1]), alone, both)


def _no_pairs(select: Select, op: Comparison, values: Floats, reader: Reader, rule: str) -> Found | None:
    """No pair of tasks for which a comparison of their hosts or times holds."""
    most, pair = _most(op, values), _joined(select)
    if pair is None or most is None or not 0 <= most < 1 or len(pair.both) != 1 or any(pair.alone.values()):
        return None
    test = pair.both[0]
    assert isinstance(test.left, Column)
    assert isinstance(test.right, Column)
    frame = reader.rows(select, split(select)[0])
    first, second = frame.rows[test.left.source], frame.rows[test.right.source]
    if not len(first):
        return Found()
    a, b = test.left.attribute, test.right.attribute
    if a in HOST and a == b and test.op in ("=", "<>"):
        return (apart_pairs if test.op == "=" else same_pairs)(first, second, a)
    if {a, b} <= {START, FINISH}:
        wanted = NEGATED[test.op]
        if wanted in (">", ">="):
            first, a, wanted, second, b = second, b, MIRROR[wanted], first, a
        return None if wanted in ("=", "<>") else order_of_pairs(first, a, wanted, second, b, 0.0, reader)
    return None


def _at_once(select: Select, op: Comparison, values: Floats, reader: Reader, rule: str) -> Found | None:
    """The number of tasks that run when one of them starts: as many as ever run at once."""
    pair, most = _joined(select), _most(op, values, least=-1.0)
    match select.group_by:
        case (Column(source=now, attribute="task-id" | "task-label"),):
            pass
        case _:
            return None
    if most is not None and math.isinf(most):
        return Found()
    if pair is None or most is None or most < 1 or len(select.sources) != 2 or now not in pair.aliases:
        return None
    other = pair.aliases[0] if pair.aliases[1] == now else pair.aliases[1]
    if not _run_together(pair, now, other):
        return None
    masks = [host_mask(pair.alone[alias], alias, reader) for alias in (now, other)]
    tasks = _alike(select, pair, reader)
    if tasks is None or masks[0] is None or masks[1] is None or (masks[0] != masks[1]).any():
        return None
    each = any(
        part.op == "=" and isinstance(part.left, Column) and part.left.attribute in HOST for part in pair.both
    )
    n, count = len(reader.platform.hosts), math.floor(most + _ROUNDING)
    hosts = [_mask(int(h), n) for h in np.flatnonzero(masks[0])] if each else [masks[0]]
    parts: list[Part] = [Limit(tasks, mask, at_once=count, rule=rule) for mask in hosts if mask.any()]
    return Found(tuple(parts) if tasks.any() else ())


def _run_together(pair: _Joined, now: str, other: str) -> bool:
    """Whether the conditions say that one runs when the other starts, on the same host or anywhere."""
    found = set()
    for part in pair.both:
        left, right = part.left, part.right
        assert isinstance(left, Column)
        assert isinstance(right, Column)
        op = part.op
        if left.source != now:
            left, right, op = right, left, MIRROR[op]
        host = left.attribute in _HOSTS and left.attribute == right.attribute and op == "="
        found.add("host" if host else f"{left.attribute} {op} {right.attribute}")
    return found - {"host"} == {f"{START} >= {START}", f"{START} < {FINISH}"}


def _alike(select: Select, pair: _Joined, reader: Reader) -> Bools | None:
    """The tasks that both sources have, if they have the same and no condition is about both."""
    static, _ = split(select)
    masks = []
    for source in select.sources:
        own = [part for part in static if sources_of(part) <= {source.alias}]
        alone = Select(select.columns, (source,), None, (), None, (), False, select.at)
        masks.append(_mask(reader.rows(alone, own).rows[source.alias], reader.graph.n_tasks))
    if any(len(sources_of(part)) > 1 for part in static) or (masks[0] != masks[1]).any():
        return None
    return masks[0]
