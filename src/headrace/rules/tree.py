"""The typed tree of a rule file: what the parser returns, and what evaluation, search and compilers read.

All nodes are immutable values. After `rules.types` has resolved names, every expression has a `type`, every
`Column` names a relation's alias and a known attribute, and every quoted quantity compared with a time or a size is a
`Number`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias, TypeVar, dataclass_transform

_Node = TypeVar("_Node")


@dataclass_transform(frozen_default=True)
def _node(kind: type[_Node]) -> type[_Node]:
    """A data class, frozen for type checkers only: really frozen ones take longer to make."""
    return dataclass(slots=True, unsafe_hash=True)(kind)


class Type(Enum):
    """What a value means; only values of one type are compared, and a plain number fits every numeric type."""

    NUMBER = "number"
    TIME = "time"
    SIZE = "size"
    MONEY = "money"
    POWER = "power"
    ENERGY = "energy"
    TEXT = "text"
    TASK = "task id"
    PROC = "processor id"
    TASKS = "task list"
    """An ordered list of task ids; it can only be compared with UNKNOWN."""

    def __init__(self, meaning: str) -> None:
        self.numeric = meaning not in ("text", "task list")


@_node
class Span:
    """A place in the text: line and column of its first character, from 1, and its length."""

    line: int
    column: int
    length: int = 1


Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
Operator = Literal["+", "-", "*", "/"]
AggregateName = Literal["min", "max", "sum", "avg", "count"]
RelationName = Literal["task", "proc", "dep"]


class Facts(NamedTuple):
    """What a node consists of."""

    columns: tuple[Column, ...]
    """Every column in it, also in its selects, in order."""
    scheduled: tuple[Column, ...]
    """Those that depend on the schedule."""


class Part:
    """An expression or a condition."""

    __slots__ = ("facts",)
    facts: Facts
    """Set by `walk.facts` when it is first asked for."""


# Expressions.


@_node
class Number(Part):
    value: float
    at: Span
    type: Type = Type.NUMBER


@_node
class Text(Part):
    value: str
    at: Span
    type: Type = Type.TEXT


@_node
class Unknown(Part):
    """The value of an attribute that a partial schedule does not have yet."""

    at: Span
    type: Type = Type.NUMBER


@_node
class Column(Part):
    """An attribute of one source of the enclosing select, or of a select around it."""

    source: str
    """The alias of the source; the relation's own name if it has none."""
    attribute: str
    """With hyphens, as listed in `attributes`."""
    at: Span
    type: Type = Type.NUMBER


@_node
class Arithmetic(Part):
    op: Operator
    left: Expression
    right: Expression
    at: Span
    type: Type = Type.NUMBER


@_node
class Negative(Part):
    operand: Expression
    at: Span
    type: Type = Type.NUMBER


@_node
class Absolute(Part):
    operand: Expression
    at: Span
    type: Type = Type.NUMBER


@_node
class Aggregate(Part):
    """An aggregate over the rows of the enclosing select, or of each of its groups. UNKNOWN values are left out.

    Over no known values, `count` is 0, `sum` is 0, and the others are UNKNOWN.
    """

    name: AggregateName
    operand: Expression | None
    """None: `count(*)`."""
    distinct: bool
    at: Span
    type: Type = Type.NUMBER


Expression: TypeAlias = (
    "Number | Text | Unknown | Column | Arithmetic | Negative | Absolute | Aggregate | Select"
)


# Conditions. Their logic has three values: a comparison with UNKNOWN is UNKNOWN.


@_node
class Compare(Part):
    op: Comparison
    left: Expression
    right: Expression
    at: Span


@_node
class In(Part):
    """`x in (1, 2)` or `x in (select ...)`."""

    operand: Expression
    options: tuple[Expression, ...] | Select
    negated: bool
    at: Span


@_node
class Between(Part):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    at: Span


@_node
class Like(Part):
    """SQL's pattern match: % is any text, _ one character; upper and lower case differ."""

    operand: Expression
    pattern: str
    negated: bool
    at: Span


@_node
class IsUnknown(Part):
    """`x is unknown`, `x is null`, and `x = unknown`: never itself UNKNOWN."""

    operand: Expression
    negated: bool
    at: Span


@_node
class And(Part):
    parts: tuple[Condition, ...]
    at: Span


@_node
class Or(Part):
    parts: tuple[Condition, ...]
    at: Span


@_node
class Not(Part):
    part: Condition
    at: Span


Condition: TypeAlias = "Compare | In | Between | Like | IsUnknown | And | Or | Not"


@_node
class Source:
    relation: RelationName
    alias: str
    at: Span


@_node
class OrderBy:
    key: Expression
    descending: bool


@_node
class Select(Part):
    """A query. As an expression it has one column; its value is that column, one value per row."""

    columns: tuple[Expression, ...]
    """Exactly one after parsing."""
    sources: tuple[Source, ...]
    where: Condition | None
    group_by: tuple[Expression, ...]
    having: Condition | None
    order_by: tuple[OrderBy, ...]
    distinct: bool
    at: Span
    type: Type = Type.NUMBER

    @property
    def single(self) -> bool:
        """Whether it always has exactly one row: aggregates without `group by`."""
        return not self.group_by and bool(self.columns) and all(_has_aggregate(c) for c in self.columns)


def _has_aggregate(expression: Expression) -> bool:
    match expression:
        case Aggregate():
            return True
        case Arithmetic(left=left, right=right):
            return _has_aggregate(left) or _has_aggregate(right)
        case Negative(operand=operand) | Absolute(operand=operand):
            return _has_aggregate(operand)
    return False


# Rules.


@_node
class Relationship:
    """A condition over top-level expressions, tested on the cross product of the rows of its selects.

    `(select a ...) <= 2 * (select b ...)` is tested once for every pair of rows. A condition made of `and` and `or`
    is tested as a whole on the cross product of all its selects.
    """

    condition: Condition
    at: Span


@_node
class Ordering:
    """Every element of a sequence compared with every later one: `test` should hold between them."""

    sequence: Select
    test: Comparison
    at: Span


@_node
class Value:
    """A number to minimise or maximise; as a requirement, a number that must lie between `min` and `max`."""

    goal: Literal["minimize", "maximize"] | None
    """None for requirements."""
    function: Expression | Relationship | Ordering
    """A nested relationship or ordering counts its failed tests."""
    at: Span


Body: TypeAlias = Relationship | Ordering | Value
Importance = Literal["requirement", "preference"]
Kind = Literal["relationship", "value", "ordering"]


@_node
class Rule:
    """One `assert` of a rule file."""

    name: str
    """Given in the file, or `rule-3` for the third one."""
    importance: Importance
    kind: Kind
    body: Body
    priority: Expression | None
    """Preferences only; None: 1."""
    low: Expression | None
    """`min`: preferences are scaled from here; None: 0."""
    high: Expression | None
    """`max`: up to here; None: the number of tests (required for value preferences)."""
    at: Span
    text: str
    """The rule as written, for messages."""

    @property
    def line(self) -> int:
        return self.at.line


@dataclass(frozen=True)
class RuleSet:
    """The rules of one file or text, in order, with different names."""

    rules: tuple[Rule, ...] = ()
    source: str = "rules"
    """The file, for messages."""
    text: str = ""

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def requirements(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.importance == "requirement")

    @property
    def preferences(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.importance == "preference")

    def without(self, *names: str) -> RuleSet:
        """The same rules without those of these names."""
        return RuleSet(tuple(r for r in self.rules if r.name not in names), self.source, self.text)
