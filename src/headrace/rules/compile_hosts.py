"""Conditions on the hosts of tasks: which hosts are allowed, and which tasks run together or apart."""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools
from headrace.rules.compile_parts import Allow, Apart, Found, Part, Together
from headrace.rules.compile_reading import (
    HOST,
    MIRROR,
    MOST_CELLS,
    Reader,
    direct_columns,
    is_plain,
    scheduled,
    split,
)
from headrace.rules.frames import Frame
from headrace.rules.membership import member
from headrace.rules.select import Context, like, one_of
from headrace.rules.tree import Column, Compare, Comparison, Condition, Expression, In, Like, Select, Text
from headrace.rules.vectors import Codes, Vector, compare, disjunction, is_tolerant, tests_per_row
from headrace.rules.walk import all_columns, is_static

MOST_PAIRS = 50_000
"""Pairs of tasks that must be apart, beyond which a rule is not compiled."""


def host_condition(condition: Condition, reader: Reader) -> Found | None:
    """A condition on one select of tasks, whose outcome the host of each task decides."""
    select = _only_select(condition)
    alias = None if select is None else host_alias(select)
    if select is None or alias is None:
        return None
    static, moving = split(select)
    frame = reader.rows(select, static)
    tasks = frame.rows[alias]
    free = not _row_columns([select.columns[0], *moving], alias)
    if free:
        frame = frame.take(np.arange(min(1, frame.length)))
    if frame.length * len(reader.platform.hosts) > MOST_CELLS:
        return None
    if not len(tasks):
        return Found()
    on = reader.on_hosts(frame, alias)
    context = Context(on)
    x = reader.evaluator.value(select.columns[0], context).spread(on.length)
    passed = ~_false(condition, select, x, reader)
    for part in moving:
        passed |= ~reader.evaluator.truth(part, context).spread(on.length).true
    return Found(() if passed.all() else (_allow(tasks, passed.reshape(frame.length, -1), free),))


def _only_select(condition: Condition) -> Select | None:
    """The one select that depends on the schedule, if it stands alone on its side."""
    match condition:
        case Compare(left=Select() as left, right=right) if is_static(right):
            return left
        case Compare(left=left, right=Select() as right) if is_static(left):
            return right
        case In(operand=Select() as operand, options=Select() as options) if is_static(options):
            return operand
        case In(operand=Select() as operand, options=tuple(options)):
            # Selects in a list are axes of their own.
            if all(isinstance(o, Text) or (is_static(o) and not isinstance(o, Select)) for o in options):
                return operand
        case Like(operand=Select() as operand):
            return operand
    return None


def host_alias(select: Select) -> str | None:
    """The one source whose host decides which rows there are and what they are; None if that is not so."""
    if not is_plain(select):
        return None
    parts = [select.columns[0], *split(select)[1]]
    found = [column for part in parts for column in direct_columns(part)]
    every = [column for part in parts for column in scheduled(part)]
    aliases = {column.source for column in found}
    if len(aliases) != 1 or len(every) != len(found) or any(c.attribute not in HOST for c in found):
        return None
    return aliases.pop()


def _row_columns(parts: list[Expression | Condition], alias: str) -> bool:
    """Whether the parts also depend on the row itself."""
    return any(c.source != alias or c.attribute not in HOST for part in parts for c in all_columns(part))


def _false(condition: Condition, select: Select, x: Vector, reader: Reader) -> Bools:
    """Where some test of these values fails."""
    match condition:
        case Compare(op=op, left=left, right=right):
            op, other = (op, right) if left is select else (MIRROR[op], left)
            values = reader.fixed_value(other)
            return tests_per_row(op, x, values, is_tolerant(select, other)).false > 0
        case In(options=Select() as options, negated=negated):
            rows = reader.evaluator.table(options)
            found = member(x, np.zeros(1, np.int64), rows.owner, rows.value, is_tolerant(select, options))
            return found.negated(negated).false
        case In(options=tuple(options), negated=negated):
            if x.words is not None and all(isinstance(option, Text) for option in options):
                return one_of(x, [o.value for o in options if isinstance(o, Text)]).negated(negated).false
            tests = [compare("=", x, reader.fixed_value(o), is_tolerant(select, o)) for o in options]
            return disjunction(tests).negated(negated).false
        case Like():
            return like(condition, x).false
    raise AssertionError(condition)


def _allow(tasks: Codes, passed: Bools, free: bool) -> Allow:
    """Rows of the same task must all pass."""
    if free:
        return Allow(np.unique(tasks), passed[0])
    distinct, row = np.unique(tasks, return_inverse=True)
    hosts = np.ones((len(distinct), passed.shape[1]), np.bool_)
    np.logical_and.at(hosts, row.reshape(-1), passed)
    return Allow(distinct, hosts)


def host_mask(conditions: list[Condition], alias: str, reader: Reader) -> Bools | None:
    """The hosts for which conditions on a task's host are TRUE; None if they depend on anything else."""
    if not conditions:
        return reader.everywhere
    if any(c.source != alias or c.attribute not in HOST for p in conditions for c in all_columns(p)):
        return None
    task = Frame(reader.evaluator.relations, {}, {}, 1)
    context = Context(reader.on_hosts(task, alias))
    mask = reader.everywhere.copy()
    for part in conditions:
        mask &= reader.evaluator.truth(part, context).spread(len(mask)).true
    return mask


# Hosts of two tasks.


def host_pairs(condition: Condition, reader: Reader) -> Found | None:
    """`=` or `<>` between the hosts of two selects of tasks."""
    match condition:
        case Compare(op="=" | "<>" as op, left=Select() as left, right=Select() as right):
            first, second = _hosts_of(left, reader), _hosts_of(right, reader)
            if first is None or second is None or first[1] != second[1]:
                return None
            (a, attribute), (b, _) = first, second
            if not len(a) or not len(b):
                return Found()
            if op == "=":
                return Found((Together(np.union1d(a, b), attribute == "task-site"),))
            if len(a) * len(b) > MOST_PAIRS:
                return None
            return apart_pairs(np.repeat(a, len(b)), np.tile(b, len(a)), attribute)
    return None


def _hosts_of(select: Select, reader: Reader) -> tuple[Codes, str] | None:
    """The tasks of a select, and which attribute of their hosts it has."""
    match select.columns:
        case (Column(source=alias, attribute=attribute),) if attribute in HOST and is_plain(select):
            static, moving = split(select)
            return None if moving else (np.unique(reader.rows(select, static).rows[alias]), attribute)
    return None


def apart_pairs(first: Codes, second: Codes, attribute: str) -> Found | None:
    """The two tasks of every pair run on different hosts."""
    if attribute == "task-site" or (first == second).any():
        return None
    pairs = np.unique(np.sort(np.stack((first, second), axis=1), axis=1), axis=0)
    if len(pairs) > MOST_PAIRS:
        return None
    tasks = np.unique(pairs)
    if len(pairs) == len(tasks) * (len(tasks) - 1) // 2:
        return Found((Apart(tasks),))
    return Found(tuple(Apart(pair) for pair in pairs))


def same_pairs(first: Codes, second: Codes, attribute: str) -> Found:
    """The two tasks of every pair run on one host, or at one site."""
    pairs = np.unique(np.stack((first, second), axis=1), axis=0)
    parts: list[Part] = [Together(pair, attribute == "task-site") for pair in pairs]
    return Found(tuple(parts))


def distinct_hosts(tasks: Codes, attribute: str, op: Comparison, bound: float) -> Found | None:
    """A bound on the number of different hosts or sites of these tasks."""
    n = len(tasks)
    at_site = attribute == "task-site"
    most = bound if op == "<=" else np.ceil(bound) - 1 if op == "<" else bound if op == "=" else np.inf
    least = bound if op in (">=", "=") else np.floor(bound) + 1 if op == ">" else -np.inf
    if op == "<>" or n == 0 or least > n or most < 1:
        return Found() if op != "<>" and n == 0 and most >= 0 >= least else None
    parts: list[Part] = []
    if most < n:
        if most >= 2:
            return None
        parts.append(Together(tasks, at_site))
    if least > 1:
        if at_site or least <= n - 1:
            return None
        parts.append(Apart(tasks))
    return Found(tuple(parts))
