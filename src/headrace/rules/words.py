"""Values and tests of rules in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.units import show_size
from headrace.rules.tree import (
    Absolute,
    Aggregate,
    Arithmetic,
    Column,
    Condition,
    Expression,
    In,
    IsUnknown,
    Like,
    Negative,
    Number,
    RelationName,
    Select,
    Text,
    Type,
)

if TYPE_CHECKING:
    from headrace.rules.counting import Axis, Product
    from headrace.rules.relations import Relations
    from headrace.rules.select import Evaluator
    from headrace.rules.vectors import Vector

NOUN: dict[RelationName, str] = {"task": "task", "proc": "processor", "dep": "dependency"}
_UNIT = {Type.TIME: " s", Type.POWER: " W", Type.ENERGY: " J"}


def show_value(relations: Relations, type: Type, vector: Vector, row: int) -> str:
    """A value with its unit; ids as names."""
    if not vector.known[row]:
        return "UNKNOWN"
    if vector.words is not None:
        return repr(vector.word(row))
    value = float(vector.values[row])
    whole = value.is_integer() and value >= 0
    if type is Type.TASK and whole and value < relations.length("task"):
        return relations.name("task", int(value))
    if type is Type.PROC and whole and value < relations.length("proc"):
        return relations.name("proc", int(value))
    if type is Type.SIZE:
        return show_size(value)
    return f"{value:.10g}{_UNIT.get(type, '')}"


def show_expression(expression: Expression) -> str:
    """What is compared, in short: a select by its column."""
    match expression:
        case Number(value=value):
            return f"{value:g}"
        case Text(value=text):
            return repr(text)
        case Column(attribute=attribute):
            return attribute
        case Arithmetic(op=op, left=left, right=right):
            return f"{show_expression(left)} {op} {show_expression(right)}"
        case Negative(operand=operand):
            return f"-{show_expression(operand)}"
        case Absolute(operand=operand):
            return f"abs({show_expression(operand)})"
        case Aggregate(name=name, operand=inner):
            return f"{name}({'*' if inner is None else show_expression(inner)})"
        case Select(columns=columns):
            return show_expression(columns[0]) if columns else "*"
    return "unknown"


def show_row(axis: Axis, row: int) -> str:
    """The row of a select: `task FFT.3`, or nothing for an aggregate over all rows."""
    frame = axis.rows.frame
    if frame is None:
        return ""
    named = [
        f"{NOUN[source.relation]} {frame.relations.name(source.relation, int(frame.rows[source.alias][row]))}"
        for source in axis.select.sources
    ]
    return ("group of " if axis.select.group_by else "") + " with ".join(named)


def subject(evaluator: Evaluator, product: Product, index: int) -> str:
    """`task FFT.3: task-assigned-proc-id is oddvar`."""
    named = ", ".join(text for axis, row in product.position(index) if (text := show_row(axis, row)))
    shown = show_value(evaluator.relations, product.expression.type, product.value, index)
    if isinstance(product.expression, Number | Text):
        return shown
    told = f"{show_expression(product.expression)} is {shown}"
    return f"{named}: {told}" if named else told


def _some(texts: list[str]) -> str:
    """The first texts of a list."""
    shown = ", ".join(texts[:5])
    return f"({shown}, ...)" if len(texts) > 5 else f"({shown})"


def wanted(condition: Condition, shown: str) -> str:
    """What a test other than a comparison asks for; `shown` is an element of a list."""
    match condition:
        case In(negated=negated, options=options):
            listed = "what is selected" if isinstance(options, Select) else f"the list, which has {shown}"
            if not shown and not isinstance(options, Select):
                listed = _some([option.value for option in options if isinstance(option, Text)])
            return f"wanted {'not ' * negated}in {listed}"
        case Like(pattern=pattern, negated=negated):
            return f"wanted {'not ' * negated}like {pattern!r}"
        case IsUnknown(negated=negated):
            return f"wanted {'known' if negated else 'unknown'}"
    return "wanted otherwise"
