"""Every construct of the rules language, its meaning as a tree, and the places of its parts."""

from __future__ import annotations

import pytest

from headrace.rules.parser import parse_rules, read_rules
from headrace.rules.tree import (
    Absolute,
    Aggregate,
    And,
    Arithmetic,
    Between,
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
    Ordering,
    Relationship,
    Rule,
    Select,
    Span,
    Text,
    Type,
    Value,
)
from headrace.rules.walk import facts, is_static
from rules.texts import GOOD


def rule(text: str) -> Rule:
    (found,) = parse_rules(text).rules
    return found


def condition(text: str) -> Condition:
    body = rule(f"assert relationship requirement ({text})").body
    assert isinstance(body, Relationship)
    return body.condition


def where(text: str, sources: str = "task") -> Condition:
    found = condition(f"(select count(*) from {sources} where {text}) = 1")
    assert isinstance(found, Compare)
    assert isinstance(found.left, Select)
    assert found.left.where is not None
    return found.left.where


def expression(text: str) -> Expression:
    found = condition(f"{text} = 0")
    assert isinstance(found, Compare)
    return found.left


def select(text: str) -> Select:
    found = expression(f"({text})")
    assert isinstance(found, Select)
    return found


def test_all_good_rules_are_read() -> None:
    rules = parse_rules(GOOD)
    assert [r.name for r in rules.rules] == [
        "fft-on-lillith",
        "quiet-machines",
        "early-picture",
        "rule-4",
        "rule-5",
        "rule-6",
        "rule-7",
        "join",
        "label",
    ]
    assert [r.kind for r in rules.rules[3:7]] == ["ordering", "value", "value", "value"]
    assert len(rules.requirements) == 5
    assert rules.rules[0].text.startswith("fft-on-lillith: assert")
    assert rules.rules[0].text.endswith('"lillith"))')
    assert [r.line for r in rules.rules[:3]] == [3, 6, 8]


def test_an_empty_text_has_no_rules() -> None:
    assert len(parse_rules("")) == len(parse_rules(" -- nothing\n\n")) == 0


@pytest.mark.parametrize(
    "heading",
    ["relationship requirement", "requirement relationship", "RELATIONSHIP Requirement"],
)
def test_kind_and_importance_in_any_order_and_case(heading: str) -> None:
    found = rule(f"Assert {heading} (1 = 1)")
    assert (found.kind, found.importance) == ("relationship", "requirement")


def test_any_word_can_name_a_rule() -> None:
    names = ["min", "select", "a_b", "order", "größe", "x-1"]
    text = "\n".join(f"{name} : assert relationship requirement (1 = 1)" for name in names)
    assert [r.name for r in parse_rules(text).rules] == names


def test_priority_in_the_heading_and_in_the_body() -> None:
    for text in ("priority 5 (1 = 1)", "(1 = 1, priority = 5)", "priority (2 + 3 * 1) (1 = 1)"):
        assert rule(f"assert relationship preference {text}").priority is not None
    found = rule(
        "assert relationship preference priority 5 (1 = 1, min = 2, max = (select count(*) from task))"
    )
    assert isinstance(found.low, Number)
    assert isinstance(found.high, Select)


def test_ordering() -> None:
    found = rule("assert order requirement ((select task-finish-time from task order by task-id desc), !=)")
    assert found.kind == "ordering"
    assert isinstance(found.body, Ordering)
    assert found.body.test == "<>"
    assert [key.descending for key in found.body.sequence.order_by] == [True]


def test_value_settings_in_any_order_with_or_without_commas() -> None:
    texts = [
        "opt-type = maximize, function = 3, min = 1, max = 2, priority = 4",
        "max = 2 min = 1 priority = 4 function = 3 opt_type = maximise",
    ]
    for text in texts:
        found = rule(f"assert value preference ({text})")
        assert isinstance(found.body, Value)
        assert found.body.goal == "maximize"
        values = [e.value for e in (found.body.function, found.low, found.high, found.priority)]  # type: ignore[union-attr]
        assert values == [3, 1, 2, 4]


def test_minutes_and_the_setting_min_are_told_apart() -> None:
    found = rule("assert value requirement (max = 5 min function = 30 min min = 2 min)")
    assert isinstance(found.body, Value)
    assert [e.value for e in (found.high, found.body.function, found.low)] == [300, 1800, 120]  # type: ignore[union-attr]
    found = rule("assert value requirement (max = 5 min = 2, function = 3)")
    assert [e.value for e in (found.high, found.low)] == [5, 2]  # type: ignore[union-attr]
    compared = condition("30 min = (select task-start-time from task)")
    assert isinstance(compared, Compare)
    assert compared.left == Number(1800, compared.left.at, Type.TIME)


def test_the_function_of_a_value_rule_can_count_failed_tests() -> None:
    nested = "assert ordering preference ((select task-id from task), <)"
    found = rule(f"assert value preference (opt-type = minimize, function = {nested}, max = 3)")
    assert isinstance(found.body, Value)
    assert isinstance(found.body.function, Ordering)
    assert found.high is not None


@pytest.mark.parametrize(
    ("text", "value", "type"),
    [
        ("3", 3, Type.NUMBER),
        ("1_000.5e-1", 100.05, Type.NUMBER),
        (".5", 0.5, Type.NUMBER),
        ("30 min", 1800, Type.TIME),
        ("2h", 7200, Type.TIME),
        ("5 µs", 5e-6, Type.TIME),
        ("500 MB", 5e8, Type.SIZE),
        ("2 GiB", 2**31, Type.SIZE),
        (".5e1 s", 5, Type.TIME),
    ],
)
def test_numbers_and_quantities(text: str, value: float, type: Type) -> None:
    found = expression(text)
    assert isinstance(found, Number)
    assert found.value == pytest.approx(value)
    assert found.type is type


def test_quoted_quantities_take_the_type_of_the_other_side() -> None:
    for text, value in (('task-start-time > "2 h"', 7200), ("task-output-size in ('1 kB')", 1000)):
        found = where(text)
        right = found.right if isinstance(found, Compare) else found.options[0]  # type: ignore[union-attr,index]
        assert isinstance(right, Number)
        assert right.value == value
    found = where("task-start-time + '1 min' < 3")
    assert isinstance(found.left.right, Number)  # type: ignore[union-attr]


def test_text_in_both_quotes() -> None:
    for text in ('"it\'s ""so"""', "'it''s \"so\"'"):
        found = where(f"task-name = {text}")
        assert isinstance(found, Compare)
        assert isinstance(found.right, Text)
        assert found.right.value == 'it\'s "so"'


def test_precedence() -> None:
    found = expression("1 - 2 * 3 - -4")
    assert isinstance(found, Arithmetic)
    assert isinstance(found.left, Arithmetic)
    assert (found.op, found.left.op) == ("-", "-")
    assert isinstance(found.left.right, Arithmetic)
    assert isinstance(found.right, Negative)
    logic = condition("1 = 1 or 2 = 2 and not 3 = 3")
    assert isinstance(logic, Or)
    assert isinstance(logic.parts[1], And)
    assert isinstance(logic.parts[1].parts[1], Not)


def test_conditions() -> None:
    between = where("task-level not between 1 and 2 and task-id = 1")
    assert isinstance(between, And)
    assert isinstance(between.parts[0], Between)
    assert between.parts[0].negated
    listed = where("task-name in ('a', 'b')")
    assert isinstance(listed, In)
    assert isinstance(listed.options, tuple)
    selected = where("task-id not in (select dep-to from dep)")
    assert isinstance(selected, In)
    assert isinstance(selected.options, Select)
    like = where("task-name not like 'a%'")
    assert isinstance(like, Like)
    assert (like.pattern, like.negated) == ("a%", True)


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("task-start-time = unknown", False),
        ("unknown <> task-start-time", True),
        ("task-start-time is null", False),
        ("task-start-time IS NOT UNKNOWN", True),
    ],
)
def test_unknown(text: str, negated: bool) -> None:
    found = where(text)
    assert isinstance(found, IsUnknown)
    assert found.negated is negated
    assert isinstance(found.operand, Column)


def test_select_with_everything() -> None:
    found = select(
        "select distinct count(distinct t.task_id) + 1 from TASK as t cross join proc p inner join dep "
        "on dep-from = t.task-id and 1 = 1 where proc-id = 2 group by TASK-KIND, p.proc-site "
        "having max(task-level) > 1"
    )
    assert [(s.relation, s.alias) for s in found.sources] == [("task", "t"), ("proc", "p"), ("dep", "dep")]
    assert isinstance(found.where, And)
    assert len(found.where.parts) == 3
    assert [key.attribute for key in found.group_by] == ["task-kind", "proc-site"]  # type: ignore[union-attr]
    assert [key.source for key in found.group_by] == ["t", "p"]  # type: ignore[union-attr]
    assert found.distinct
    assert found.having is not None


def test_aggregates_and_abs() -> None:
    column = select("select abs(max(task-start-time) - min(task-start-time)) from task").columns[0]
    assert isinstance(column, Absolute)
    assert column.type is Type.TIME
    rows = select("select count(*) from task").columns[0]
    assert isinstance(rows, Aggregate)
    assert rows.operand is None
    assert select("select avg(task-id) from task").type is Type.NUMBER
    assert select("select max(task-id) from task").type is Type.TASK


def test_columns_of_outer_selects() -> None:
    found = where(
        "task-start-time > (select max(d.task-finish-time) from task d, dep where dep-to = t.task-id)",
        "task t",
    )
    assert isinstance(found, Compare)
    inner = found.right.where  # type: ignore[union-attr]
    assert isinstance(inner, Compare)
    assert isinstance(inner.right, Column)
    assert (inner.right.source, inner.right.attribute) == ("t", "task-id")


def test_the_inner_source_of_a_name_hides_the_outer_one() -> None:
    found = where("1 = (select min(task-id) from task)")
    assert isinstance(found, Compare)
    found = where("1 < (select count(*) from dep where dep-from = task-id)")
    column = found.right.where.right  # type: ignore[union-attr]
    assert (column.source, column.attribute) == ("task", "task-id")


def test_labels_are_text_or_numbers() -> None:
    text = where("label-Data_Region = 'eu'")
    assert isinstance(text, Compare)
    assert isinstance(text.left, Column)
    assert (text.left.attribute, text.left.type) == ("label-Data-Region", Type.TEXT)
    number = where("LABEL-weight + 1 > 2 and label-weight between 1 and 3")
    assert isinstance(number, And)
    assert number.parts[1].operand.type is Type.NUMBER  # type: ignore[union-attr]
    grouped = condition("(select label-x from task group by label-x) = 3")
    assert isinstance(grouped, Compare)
    assert grouped.left.type is grouped.left.group_by[0].type is Type.NUMBER  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("2 * max(task-work)", Type.TIME),
        ("sum(task-work) / max(task-work)", Type.NUMBER),
        ("sum(task-work) / 3", Type.TIME),
        ("sum(task-energy) / sum(task-work)", Type.POWER),
        ("max(task-input-size) - 3", Type.SIZE),
        ("max(task-id) - min(task-id)", Type.NUMBER),
        ("1 / max(task-work)", Type.NUMBER),
    ],
)
def test_types_of_arithmetic(text: str, type: Type) -> None:
    assert select(f"select {text} from task").type is type


def test_watts_times_seconds_are_energy() -> None:
    assert select("select proc-watts * task-exec-time from proc, task").type is Type.ENERGY


def test_places() -> None:
    found = rule("a:\n assert relationship requirement (\n\t(select task-id from task) <= 1 + 20)")
    assert found.at == Span(1, 1, 2)
    body = found.body
    assert isinstance(body, Relationship)
    assert isinstance(body.condition, Compare)
    assert body.condition.left.at == Span(3, 3, 6)
    assert body.condition.right.at == Span(3, 32, 6)
    assert body.condition.at == Span(3, 3, 35)
    assert isinstance(body.condition.left, Select)
    assert body.condition.left.columns[0].at == Span(3, 10, 7)


def test_files_are_read_with_their_name(tmp_path) -> None:
    path = tmp_path / "lab.rules"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    rules = read_rules(path)
    assert len(rules) == 9
    assert rules.source == str(path)


def test_what_a_node_consists_of_is_found_out_once() -> None:
    text = """assert relationship requirement (
        (select task-id from task where task-level = 1 and task-start-time > 2) = 3)"""
    body, again = rule(text).body, rule(text).body
    assert isinstance(body, Relationship)
    found = facts(body.condition)
    assert [column.attribute for column in found.columns] == ["task-id", "task-level", "task-start-time"]
    assert [column.attribute for column in found.scheduled] == ["task-start-time"]
    assert facts(body.condition) is found
    assert not is_static(body.condition)
    assert body == again  # of which nothing was asked
