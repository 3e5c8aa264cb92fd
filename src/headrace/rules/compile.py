"""Requirements as constraints that planners obey directly.

A requirement is read by its meaning: what it selects is evaluated with the relations of the program and the platform,
and what it asks of hosts, times and counts becomes allowed hosts, groups, order, limits, releases and deadlines. Where
only something stronger can be said in these terms (results in order, said as tasks one after the other), both are
given: constraints without it, which every schedule that keeps the rules satisfies, and constraints with it.
Requirements of other shapes are left to planners that judge schedules by evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace.model.constraints import Constraints
from headrace.rules.collecting import without_collection
from headrace.rules.compile_counts import count_condition
from headrace.rules.compile_hosts import host_condition, host_pairs
from headrace.rules.compile_parts import Apart, Found, Part, Together, constraints_by_rule
from headrace.rules.compile_reading import HOST, NEGATED, Reader, in_plans, is_plain, split
from headrace.rules.compile_times import order_rule, time_condition
from headrace.rules.counting import count_tests
from headrace.rules.relations import Relations
from headrace.rules.tree import (
    And,
    Between,
    Column,
    Compare,
    Condition,
    In,
    IsUnknown,
    Like,
    Not,
    Or,
    Ordering,
    Relationship,
    Rule,
    RuleSet,
    Value,
)
from headrace.rules.walk import conjuncts, is_static, top_selects

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.platform import Platform

Coverage = Literal["exactly", "stronger", "other"]
"""How constraints cover a requirement: they mean the same, they imply it, or they say nothing or only a part of it."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """The requirements of a rule set as constraints."""

    implied: Constraints
    """Every schedule that keeps the requirements satisfies these."""
    sufficient: Constraints
    """These too, and every schedule that satisfies them keeps the requirements that are covered."""
    coverage: dict[str, Coverage]
    """By the name of the requirement."""

    def names(self, coverage: Coverage) -> list[str]:
        return [name for name, found in self.coverage.items() if found == coverage]

    @property
    def complete(self) -> bool:
        """Whether plans that satisfy `sufficient` keep all requirements."""
        return "other" not in self.coverage.values()

    @property
    def stronger(self) -> bool:
        """Whether `sufficient` asks for more than the requirements."""
        return "stronger" in self.coverage.values()


def compile_rules(rules: RuleSet, graph: Graph, platform: Platform) -> Compiled:
    """The requirements that can be said as constraints, and how each requirement is covered.

    Each rule takes O(n log n) in the number n of rows that it selects or joins, and O(tasks) or O(hosts) more.

    >>> import headrace as hr
    >>> from headrace.rules.parser import parse_rules
    >>> program = hr.Program()
    >>> _ = program.task(None, work=4.0, name="FFT.1"), program.task(None, work=2.0, name="sort")
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> rules = parse_rules('''on-h1: assert relationship requirement (
    ...     (select task-assigned-proc-name from task where task-name = "FFT") = "h1")''')
    >>> compiled = compile_rules(rules, program.graph, lab)
    >>> compiled.coverage, compiled.implied.allowed[compiled.implied.allowed_class].tolist()
    ({'on-h1': 'exactly'}, [[False, True], [True, True]])
    """
    return compile_on(rules, Relations(graph, platform))


@without_collection
def compile_on(rules: RuleSet, relations: Relations) -> Compiled:
    """Like `compile_rules`, on the relations of a program and a platform that exist already."""
    graph, platform = relations.graph, relations.platform
    reader = Reader.of(relations, rules.source)
    implied: dict[str, list[Part]] = {}
    sufficient: dict[str, list[Part]] = {}
    coverage: dict[str, Coverage] = {}
    for rule in rules.requirements:
        found = _Parts(*_compiled(rule, reader))
        coverage[rule.name] = found.coverage
        sure = [part for each in found.found if each.exact and found.sure for part in each.parts]
        enough = sure if found.other else [part for each in found.found for part in each.parts]
        implied[rule.name], sufficient[rule.name] = sure, enough
    tasks, hosts = graph.n_tasks, len(platform.hosts)
    necessary = constraints_by_rule(implied, tasks, hosts)
    same = all(len(implied[name]) == len(sufficient[name]) for name in implied)  # each is a part of the other
    return Compiled(necessary, necessary if same else constraints_by_rule(sufficient, tasks, hosts), coverage)


def implied_parts(rules: RuleSet, relations: Relations) -> dict[str, list[Part]]:
    """For each requirement, the constraints that it implies."""
    reader = Reader.of(relations, rules.source)
    parts: dict[str, list[Part]] = {}
    for rule in rules.requirements:
        found = _Parts(*_compiled(rule, reader))
        parts[rule.name] = [part for each in found.found if each.exact and found.sure for part in each.parts]
    return parts


@dataclass(frozen=True, eq=False, slots=True)
class _Parts:
    """What was found for the conditions of a requirement that must all hold."""

    found: list[Found]
    other: bool
    """There are more conditions, for which nothing was found."""
    sure: bool = True
    """The requirement implies each of its conditions, because all its selects always have rows."""

    @property
    def coverage(self) -> Coverage:
        if self.other:
            return "other"
        return "exactly" if self.sure and all(each.exact for each in self.found) else "stronger"


def _compiled(rule: Rule, reader: Reader) -> tuple[list[Found], bool, bool]:
    body = in_plans(rule.body)
    if isinstance(body, Value):
        high, low = in_plans(rule.high), in_plans(rule.low)
        if isinstance(body.function, Relationship | Ordering):
            at_most_0 = high is not None and is_static(high) and _is_zero(high, reader)
            if not at_most_0 or low is not None:
                return [], True, True
            body = body.function
        else:
            parts: list[Condition] = []
            parts += [] if high is None else [Compare("<=", body.function, high, body.at)]
            parts += [] if low is None else [Compare(">=", body.function, low, body.at)]
            body = Relationship(And(tuple(parts), body.at), body.at)
    if isinstance(body, Ordering):
        found = _host_order(body, reader) or order_rule(body, reader)
        return ([], True, True) if found is None else ([found], False, True)
    return _relationship(body, reader, rule.name)


def _is_zero(expression: object, reader: Reader) -> bool:
    value = reader.fixed_value(expression)  # type: ignore[arg-type]
    return value.length == 1 and bool(value.known[0]) and 0 <= value.values[0] < 1


def _relationship(body: Relationship, reader: Reader, name: str) -> tuple[list[Found], bool, bool]:
    condition = _positive(body.condition, False)
    rows = [reader.sure_rows(select) for select in top_selects(body)]
    if False in rows:
        return [], False, True  # nothing is tested
    found, other = [], False
    parts = conjuncts(condition)
    for part in parts:
        one = _atom(part, reader, name)
        if one is None:
            other = True
        else:
            found.append(one)
    return found, other, len(parts) == 1 or all(rows)


def _positive(condition: Condition, negate: bool) -> Condition:
    """The same condition without `not` and `between`."""
    if not negate and isinstance(condition, Compare | In | Like | IsUnknown):
        return condition  # the same object, of which other functions may know something already
    match condition:
        case Not(part=part):
            return _positive(part, not negate)
        case And(parts=parts, at=at) | Or(parts=parts, at=at):
            inner = tuple(_positive(part, negate) for part in parts)
            return And(inner, at) if isinstance(condition, And) != negate else Or(inner, at)
        case Compare(op=op, left=left, right=right, at=at):
            return Compare(NEGATED[op] if negate else op, left, right, at)
        case In(operand=operand, options=options, negated=negated, at=at):
            return In(operand, options, negated != negate, at)
        case Like(operand=operand, pattern=pattern, negated=negated, at=at):
            return Like(operand, pattern, negated != negate, at)
        case IsUnknown(operand=operand, negated=negated, at=at):
            return IsUnknown(operand, negated != negate, at)
        case Between(operand=x, low=low, high=high, negated=negated, at=at):
            if negated != negate:
                return Or((Compare("<", x, low, at), Compare(">", x, high, at)), at)
            return And((Compare(">=", x, low, at), Compare("<=", x, high, at)), at)


def _atom(condition: Condition, reader: Reader, name: str) -> Found | None:
    """One condition as constraints; None if it has no such form."""
    if is_static(condition):
        return Found() if not count_tests(reader.evaluator, condition).false else None
    found = host_condition(condition, reader)
    found = host_pairs(condition, reader) if found is None else found
    found = time_condition(condition, reader) if found is None else found
    return count_condition(condition, reader, name) if found is None else found


def _host_order(body: Ordering, reader: Reader) -> Found | None:
    """All hosts of a sequence are the same, or all are different."""
    match body.sequence.columns:
        case (Column(source=alias, attribute=attribute),) if attribute in HOST and body.test in ("=", "<>"):
            static, moving = split(body.sequence)
            if moving or not is_plain(body.sequence) or body.sequence.distinct:
                return None
            tasks = reader.rows(body.sequence, static).rows[alias]
            if len(np.unique(tasks)) < len(tasks):
                return None
            if len(tasks) < 2:
                return Found()
            if body.test == "=":
                return Found((Together(tasks, attribute == "task-site"),))
            return None if attribute == "task-site" else Found((Apart(tasks),))
    return None
