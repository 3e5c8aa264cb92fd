"""Which types fit together: a time is not compared with a name, and the quotient of two times is a number."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.model.units import quantity
from headrace.rules.attributes import LABEL
from headrace.rules.messages import Problem
from headrace.rules.tree import (
    Column,
    Expression,
    Number,
    Operator,
    Select,
    Span,
    Text,
    Type,
)

_IDS = (Type.TASK, Type.PROC)
_PRODUCTS = {
    frozenset((Type.POWER, Type.TIME)): Type.ENERGY,
}
_QUOTIENTS = {
    (Type.ENERGY, Type.TIME): Type.POWER,
    (Type.ENERGY, Type.POWER): Type.TIME,
}


def require_number(expression: Expression, what: str) -> Expression:
    """The expression as a number of some kind; a label is read as a number.

    Raises
    ------
    Problem
        If it is text or a list.
    """
    expression = label_as_number(expression)
    if not expression.type.numeric:
        raise Problem(f"{what} needs a number, not {named(expression.type)}", expression.at)
    return expression


def named(type: Type) -> str:
    """
    >>> named(Type.TEXT), named(Type.TIME), named(Type.ENERGY)
    ('text', 'a time', 'energy')
    """
    counted = type not in (Type.TEXT, Type.MONEY, Type.POWER, Type.ENERGY)
    return f"a {type.value}" if counted else type.value


def plain(type: Type) -> Type:
    """The type of what is computed from values of this type: numbers of tasks and hosts become plain numbers.

    >>> plain(Type.TASK), plain(Type.TIME)
    (<Type.NUMBER: 'number'>, <Type.TIME: 'time'>)
    """
    return Type.NUMBER if type in _IDS else type


def result_type(op: Operator, left: Type, right: Type, at: Span) -> Type:
    """The type of an arithmetic expression of two numeric types.

    Raises
    ------
    Problem
        If the result has no type.
    """
    left, right = plain(left), plain(right)
    if op in "+-":
        found = right if left is Type.NUMBER else left if right in (left, Type.NUMBER) else None
    elif op == "*":
        found = right if left is Type.NUMBER else left if right is Type.NUMBER else None
        found = found or _PRODUCTS.get(frozenset((left, right)))
    elif right is Type.NUMBER:
        found = left
    else:
        found = Type.NUMBER if left in (right, Type.NUMBER) else _QUOTIENTS.get((left, right))
    if found is None:
        raise Problem(
            f"{left.value} {op} {right.value} has no meaning",
            at,
            "divide by a unit to get a plain number, as in x / 1 s or x / 1 MB",
        )
    return found


def fitted(left: Expression, right: Expression, at: Span) -> tuple[Expression, Expression]:
    """Two expressions that are compared: labels and quoted quantities take the type of the other side.

    Raises
    ------
    Problem
        If they have types that cannot be compared.
    """
    if right.type.numeric:
        left = as_numeric(left, right.type)
    if left.type.numeric:
        right = as_numeric(right, left.type)
    if Type.TASKS in (left.type, right.type):
        raise Problem("a task list can only be compared with unknown", at, "use proc-task-count")
    if not fits(left.type, right.type):
        raise Problem(
            f"{named(left.type)} cannot be compared with {named(right.type)}", at, _help(left, right)
        )
    return left, right


def fits(left: Type, right: Type) -> bool:
    """Whether values of the two types can be compared: the same type, or a plain number and any numeric type.

    >>> fits(Type.NUMBER, Type.TIME), fits(Type.SIZE, Type.TIME), fits(Type.TASK, Type.PROC)
    (True, False, False)
    """
    return left is right or (left.numeric and right.numeric and Type.NUMBER in (left, right))


def as_numeric(expression: Expression, wanted: Type) -> Expression:
    """Labels as numbers, and text such as "2 h" as the quantity that it names where a time or size is wanted."""
    if isinstance(expression, Text) and wanted in (Type.TIME, Type.SIZE):
        try:
            return Number(quantity(expression.value, wanted.value), expression.at, wanted)
        except HeadraceError as error:
            raise Problem(error.problem, expression.at, error.hint) from None
    return label_as_number(expression)


def label_as_number(expression: Expression) -> Expression:
    """The expression, with the label of which it consists read as a number."""
    if expression.type is Type.TEXT:
        match expression:
            case Column(attribute=name) if name.startswith(LABEL):
                return replace(expression, type=Type.NUMBER)
            case Select(columns=(column,)) if (changed := label_as_number(column)) is not column:
                group_by = tuple(changed if same(key, column) else key for key in expression.group_by)
                return replace(expression, columns=(changed,), group_by=group_by, type=Type.NUMBER)
    return expression


def same(left: Any, right: Any) -> bool:
    """Whether two trees are equal but for their places in the text."""
    return bool(_unplaced(left) == _unplaced(right))


def _unplaced(node: Any) -> Any:
    if isinstance(node, tuple):
        return tuple(map(_unplaced, node))
    names = part_names(type(node))
    return (type(node).__name__, *(_unplaced(getattr(node, name)) for name in names)) if names else node


_PARTS: dict[type, tuple[str, ...]] = {Span: ()}


def part_names(kind: type) -> tuple[str, ...]:
    """The fields of a node that make up its meaning; none if the type is not that of a node."""
    if kind not in _PARTS:
        found = fields(kind) if is_dataclass(kind) else ()
        _PARTS[kind] = tuple(field.name for field in found if field.name != "at")
    return _PARTS[kind]


def _help(left: Expression, right: Expression) -> str:
    if {left.type, right.type} == {Type.TASK, Type.PROC}:
        return "task-assigned-proc-id is the processor of a task"
    if Type.TEXT in (left.type, right.type) and Type.PROC in (left.type, right.type):
        return "compare a processor's name: proc-name, task-assigned-proc-name"
    if Type.TEXT in (left.type, right.type) and Type.TASK in (left.type, right.type):
        return "compare a task's name: task-name, task-label"
    return ""
