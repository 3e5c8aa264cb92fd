"""What is wrong with a rule is said with its place, what was expected, and the nearest known name."""

from __future__ import annotations

import pytest

from headrace.model.errors import BadRules
from headrace.rules.parser import parse_rules

HEAD = "assert relationship requirement ("


def error_of(text: str) -> BadRules:
    with pytest.raises(BadRules) as caught:
        parse_rules(text, "lab.rules")
    return caught.value


def test_the_whole_message() -> None:
    text = f"-- a comment\na: {HEAD}\n\t(select task-finnish-time from task) <= 2 h)"
    assert str(error_of(text)) == (
        "lab.rules: line 3, column 10: unknown attribute task-finnish-time: did you mean task-finish-time?\n"
        "    (select task-finnish-time from task) <= 2 h)\n"
        "            ^^^^^^^^^^^^^^^^^"
    )


@pytest.mark.parametrize(
    ("text", "column", "parts"),
    [
        ("(select task-id from task) <)", 62, ["unexpected `)`", "an expression"]),
        ("(select task-id from task where) = 1)", 65, ["a condition"]),
        ("(select task-id from task) = 1", 64, ["too early", "`)`", "`and`", "an operator (+, -, *, /)"]),
        ("(selct task-id from task) = 1)", 35, ["did you mean select?"]),
        ("(select task-id fron task) = 1)", 50, ["did you mean from?"]),
        ("(select task-id from tasks) = 1)", 55, ["unknown relation tasks", "did you mean task?"]),
        ("(select task-id from host) = 1)", 55, ["unknown relation host", "task, proc or dep"]),
        ("(select task-id from task order task-id) = 1)", 66, ["expected `by`"]),
        ("(select task-id from task value) = 3)", 60, ["`value` is a word of the language"]),
        ("(select task-id from task) == 1)", 62, ["single ="]),
        ("(select task-id from task) = 3 mb)", 65, ["unknown unit mb"]),
        ("(select task-id from task) = 3 Mib)", 65, ["unknown unit Mib: did you mean MiB?"]),
        ("1 = 3 %)", 40, ["'%'", "plain numbers"]),
        ("1 = 'x)", 38, ["without a closing '"]),
        ("1 = 1e999)", 38, ["too large"]),
        ("x.y = 1)", 34, ["unknown attribute y"]),
    ],
)
def test_syntax(text: str, column: int, parts: list[str]) -> None:
    error = error_of(HEAD + text)
    assert (error.line, error.column) == (1, column)
    assert all(part in str(error) for part in parts), str(error)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("task-id = 1)", ["outside a select", "(select task-id from task)"]),
        ("(select proc-id from task) = 1)", ["attribute of proc, which is not in from"]),
        ("(select t.task-id from task) = 1)", ["unknown source t"]),
        ("(select task.proc-id from task, proc) = 1)", ["task has no proc-id"]),
        ("(select task-id from task a, task b) = 1)", ["several sources", "a.task-id or b.task-id"]),
        ("(select task-id from task a, proc a) = 1)", ["two sources are called a"]),
        ("(select task-work-task-work from task) = 1)", ["a minus needs blanks around it"]),
        (
            "(select count(*) from task x where 1 = (select max(proc-id) from proc x where task-id = 1)) = 1)",
            ["hides"],
        ),
        ("(select task-name from task) = 3)", ["text cannot be compared with a number"]),
        (
            "(select task-work from task) = (select dep-size from dep))",
            ["a time cannot be compared with a size"],
        ),
        (
            "(select task-id from task) = (select proc-id from proc))",
            ["a task id cannot be compared with a processor id"],
        ),
        ("(select task-assigned-proc-id from task) = 'lillith')", ["proc-name"]),
        ("(select task-work from task) < 'soon')", ["'soon' is not a time"]),
        ("(select task-work * task-work from task) = 1)", ["time * time has no meaning"]),
        ("(select task-work + dep-size from task, dep) = 1)", ["time + size"]),
        ("(select task-name + 1 from task) = 1)", ["+ needs a number, not text"]),
        ("(select sum(task-name) from task) = 1)", ["sum needs a number"]),
        ("(select proc-task-list from proc) = 3)", ["task list", "proc-task-count"]),
        ("(select task-id from task) < unknown)", ["< cannot be used with unknown"]),
        ("(select task-id from task) + unknown = 1)", ["unknown can only be compared"]),
        ("(select task-id from task where task-id like 'a') = 1)", ["like compares text"]),
        ("(select task-id from task where max(task-id) = 1) = 1)", ["cannot stand in where", "having"]),
        ("(select max(min(task-id)) from task) = 1)", ["within another aggregate"]),
        ("max(1) = 1)", ["outside a select"]),
        ("(select task-id from task group by max(task-id)) = 1)", ["in group by"]),
        ("(select task-id + max(task-id) from task) = 1)", ["task-id differs between the rows"]),
        ("(select count(*) from task group by task-kind order by task-id) = 1)", ["task-id differs"]),
        ("(select count(*) from task group by task-kind having task-id = 1) = 1)", ["task-id differs"]),
        (
            "(select count(*) + (select max(proc-id) from proc where proc-cores = task-level) from task) = 1)",
            ["task-level differs"],
        ),
        ("(select task-id from task having 1 = 1) = 1)", ["having needs group by"]),
        ("(select distinct task-id from task order by task-work) = 1)", ["leave out distinct"]),
        ("(select task-id, task-name from task) = 1)", ["one column, not 2"]),
        ("(select * from task) = 1)", ["one column, not *"]),
        ("1 = 1, min = 2)", ["min has no meaning"]),
    ],
)
def test_names_and_types(text: str, parts: list[str]) -> None:
    message = str(error_of(HEAD + text))
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("assert relationship requirement priority 3 (1 = 1)", ["priority has no meaning"]),
        ("assert relationship preference priority 3 (1 = 1, priority = 2)", ["priority is given twice"]),
        ("assert relationship preference (1 = 1, priority = 2 h)", ["priority is a time"]),
        ("assert relationship preference (1 = 1, max = 2 h)", ["max is a time, but must be a number"]),
        ("assert value preference (min = 0)", ["lacks opt-type, function and max"]),
        ("assert value requirement (function = 3)", ["lacks min or max"]),
        (
            "assert value requirement (opt-type = minimize, function = 3, max = 2)",
            ["opt-type has no meaning"],
        ),
        ("assert value preference (opt-type = best, function = 3, max = 2)", ["`maximize` or `minimize`"]),
        ("assert value requirement (function = 3 h, max = 2 GB)", ["max is a size, but must be a time"]),
        ("assert value requirement (function = 'a', max = 2)", ["function needs a number"]),
        (
            "assert value requirement (function = assert value requirement (function = 1, max = 1), max = 2)",
            ["cannot be a value requirement"],
        ),
        (
            "assert value requirement (function = assert relationship preference (1 = 1, max = 1), max = 2)",
            ["nested preference"],
        ),
        ("assert ordering requirement ((select task-id from task))", ["a comma"]),
        ("assert ordering requirement ((select task-id from task), like)", ["a comparison (="]),
        ("assert ordering requirement ((select proc-task-list from proc), <)", ["task list has no order"]),
        ("asert relationship requirement (1 = 1)", ["did you mean assert?"]),
        ("assert relationship requirment (1 = 1)", ["did you mean requirement?"]),
        ("a: b: assert relationship requirement (1 = 1)", ["expected `assert`"]),
        (")", ["expected `assert` or a name with a colon"]),
    ],
)
def test_headings_and_settings(text: str, parts: list[str]) -> None:
    message = str(error_of(text))
    assert all(part in message for part in parts), message


def test_every_bad_rule_is_reported_once_in_order() -> None:
    good = HEAD + "1 = 1)\n"
    bad = "assert relationship requirement ((select task-nme from task) = 'a'\n"
    error = error_of(bad + good + bad.replace("task-nme", "x") + good + HEAD + "1 = 'a')")
    assert [error.line, *(other.line for other in error.others)] == [1, 3, 5]
    assert str(error).count("^\n") + str(error).endswith("^") == 3


def test_many_errors_are_counted() -> None:
    error = error_of("assert " * 50)
    assert len(error.others) == 10
    assert error.others[-1].problem == "40 more errors"


def test_names_must_differ() -> None:
    error = error_of(f"a: {HEAD}1 = 1)\na: {HEAD}1 = 1)")
    assert error.line == 2
    assert "rule in line 1" in str(error)
    assert error_of(f"rule-2: {HEAD}1 = 1)\n{HEAD}1 = 1)").line == 2


def test_excerpts_of_long_lines_show_the_place() -> None:
    text = HEAD + "1 = 1 and " * 100 + "x = 1" + " and 1 = 1" * 100 + ")"
    error = error_of(text)
    assert len(error.excerpt) <= 100
    assert error.excerpt[error.indent : error.indent + error.width] == "x"


def test_excerpts_cannot_move_the_cursor() -> None:
    assert "\x1b" not in str(error_of(HEAD + "\x1b[2J = 1)"))


LONG = {
    "parentheses": (HEAD + "(" * 60 + "1" + ")" * 60 + " = 1)", "nested more than 50 deep"),
    "sum": (HEAD + "1 + " * 40_000 + "1 = 1)", "more than 150 levels"),
    "not": (HEAD + "not " * 90_000 + "1 = 1)", "more than 150 levels"),
    "minus": (HEAD + "- " * 90_000 + "1 = 1)", "more than 150 levels"),
    "selects": (
        HEAD + "(select count(*) from task where 1 = " * 8 + "1" + ")" * 8 + " = 1)",
        "selects are nested more than 6 deep",
    ),
    "sources": (
        HEAD + f"(select 1 from {', '.join(f'task t{i}' for i in range(999))}) = 1)",
        "more than 8 sources",
    ),
    "tokens": ("( " * 200_000, "more than 100,000"),
    "rules": ("assert " * 20_000, "too early"),
    "good rules": ((HEAD + "1=1)") * 11_000, "more than 10,000 rules"),
    "characters": (" " * 1_000_001, "longer than 1,000,000"),
    "quotes": ('"' * 999_999, 'without a closing "'),
    "name": ("a-" * 400_000, "name of more than 100"),
    "zeros": ("\0" * 100_000, "unexpected character"),
}


@pytest.mark.parametrize("name", LONG)
def test_limits_are_typed_errors_in_little_time(name: str) -> None:
    text, part = LONG[name]
    message = str(error_of(text))
    assert part in message
    assert len(message) < 4000


def test_as_many_tokens_as_allowed_are_read() -> None:
    one = '((select task-id from task where task-name = "FFT") = (select task-id from task where task-level = 1))\n'
    text = f"assert relationship requirement {one}" * 3800
    assert len(parse_rules(text)) == 3800
