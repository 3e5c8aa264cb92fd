"""A tree back to text: parsing the text gives the same tree, but for places and the text itself."""

from __future__ import annotations

from headrace.rules.tree import (
    Absolute,
    Aggregate,
    And,
    Arithmetic,
    Between,
    Body,
    Column,
    Compare,
    Condition,
    Expression,
    In,
    IsUnknown,
    Like,
    Negative,
    Not,
    Number,
    Or,
    OrderBy,
    Ordering,
    Relationship,
    Rule,
    RuleSet,
    Select,
    Source,
    Text,
    Type,
    Unknown,
)

_UNITS = {Type.TIME: " s", Type.SIZE: " B"}


def show_rules(rules: RuleSet) -> str:
    """The rules as text, each with its name, without comments.

    >>> from headrace.rules.parser import parse_rules
    >>> print(show_rules(parse_rules("a: ASSERT requirement relationship ((select task_id from task)!=1)")), end="")
    a: assert relationship requirement (
      (select task.task-id from task) <> 1)
    """
    return "\n".join(f"{show_rule(rule)}\n" for rule in rules.rules)


def show_rule(rule: Rule) -> str:
    """One rule as text, with its name."""
    settings = [("priority", rule.priority), ("min", rule.low), ("max", rule.high)]
    shown = [f"{name} = {show_expression(value)}" for name, value in settings if value is not None]
    body = rule.body
    if isinstance(body, Relationship | Ordering):
        parts = [_show_body(body), *shown]
    else:
        goal = [f"opt-type = {body.goal}"] if body.goal else []
        counts = isinstance(body.function, Relationship | Ordering)
        function = _show_nested(body.function) if counts else show_expression(body.function)  # type: ignore[arg-type]
        parts = [*goal, f"function = {function}", *shown]
    inner = ",\n  ".join(parts)
    return f"{rule.name}: assert {rule.kind} {rule.importance} (\n  {inner})"


def _show_nested(body: Relationship | Ordering) -> str:
    kind = "ordering" if isinstance(body, Ordering) else "relationship"
    return f"assert {kind} preference ({_show_body(body)})"


def _show_body(body: Body) -> str:
    match body:
        case Relationship(condition=condition):
            return show_condition(condition)
        case Ordering(sequence=sequence, test=test):
            return f"{show_expression(sequence)}, {test}"
    raise TypeError(f"{type(body).__name__} has no text of its own")


def show_condition(condition: Condition) -> str:
    """A condition as text."""
    match condition:
        case And(parts=parts):
            return " and ".join(_inner(part, (And, Or)) for part in parts)
        case Or(parts=parts):
            return " or ".join(_inner(part, (Or,)) for part in parts)
        case Not(part=part):
            return f"not {_inner(part, (And, Or))}"
        case Compare(op=op, left=left, right=right):
            return f"{show_expression(left)} {op} {show_expression(right)}"
        case In(operand=operand, options=options, negated=negated):
            shown = (
                show_expression(options)
                if isinstance(options, Select)
                else f"({', '.join(map(show_expression, options))})"
            )
            return f"{show_expression(operand)}{_not(negated)} in {shown}"
        case Between(operand=operand, low=low, high=high, negated=negated):
            limits = f"{show_expression(low)} and {show_expression(high)}"
            return f"{show_expression(operand)}{_not(negated)} between {limits}"
        case Like(operand=operand, pattern=pattern, negated=negated):
            return f"{show_expression(operand)}{_not(negated)} like {quoted(pattern)}"
        case IsUnknown(operand=operand, negated=negated):
            return f"{show_expression(operand)} is{_not(negated)} unknown"


def _not(negated: bool) -> str:
    return " not" if negated else ""


def _inner(part: Condition, in_parentheses: tuple[type, ...]) -> str:
    shown = show_condition(part)
    return f"({shown})" if isinstance(part, in_parentheses) else shown


_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}


def show_expression(expression: Expression, strength: int = 0) -> str:
    """An expression as text, in parentheses if it binds less than `strength`."""
    match expression:
        case Number(value=value, type=kind):
            return f"{show_number(value)}{_UNITS.get(kind, '')}"
        case Text(value=value):
            return quoted(value)
        case Unknown():
            return "unknown"
        case Column(source=source, attribute=attribute):
            return f"{source}.{attribute}" if source else attribute
        case Arithmetic(op=op, left=left, right=right):
            own = _STRENGTH[op]
            shown = f"{show_expression(left, own)} {op} {show_expression(right, own + 1)}"
            return f"({shown})" if own < strength else shown
        case Negative(operand=operand):
            shown = show_expression(operand, 3)
            return f"- {shown}" if shown.startswith("-") else f"-{shown}"  # two hyphens begin a comment
        case Absolute(operand=operand):
            return f"abs({show_expression(operand)})"
        case Aggregate(name=name, operand=operand, distinct=distinct):
            inner = "*" if operand is None else show_expression(operand)
            return f"{name}({'distinct ' if distinct else ''}{inner})"
        case Select():
            return f"({_show_select(expression)})"


def _show_select(select: Select) -> str:
    columns = ", ".join(map(show_expression, select.columns)) or "*"
    text = f"select {'distinct ' if select.distinct else ''}{columns}"
    text += f" from {', '.join(map(_show_source, select.sources))}"
    if select.where is not None:
        text += f" where {show_condition(select.where)}"
    if select.group_by:
        text += f" group by {', '.join(map(show_expression, select.group_by))}"
    if select.having is not None:
        text += f" having {show_condition(select.having)}"
    if select.order_by:
        text += f" order by {', '.join(map(_show_key, select.order_by))}"
    return text


def _show_source(source: Source) -> str:
    return source.relation if source.alias == source.relation else f"{source.relation} {source.alias}"


def _show_key(key: OrderBy) -> str:
    return show_expression(key.key) + (" desc" if key.descending else "")


def quoted(text: str) -> str:
    """Text as it is written in a rule.

    >>> print(quoted('a "b"'))
    "a ""b\"""
    """
    return '"' + text.replace('"', '""') + '"'


def show_number(value: float) -> str:
    """The shortest text that is read as the same number.

    >>> show_number(3.0), show_number(0.1), show_number(1e30)
    ('3', '0.1', '1e+30')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
