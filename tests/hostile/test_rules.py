"""Every hostile rule file gives one typed error that names the place, in little time."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.model.errors import BadFile, BadRules, HeadraceError
from headrace.rules.parser import read_rules

GOOD = "a: assert relationship requirement ((select task-id from task) = 1)\n"
HEAD = "assert relationship requirement ("


@dataclass(frozen=True)
class Case:
    name: str
    data: bytes
    expect: tuple[str, ...]
    error: type[HeadraceError] = BadRules


def rules(name: str, text: str, *expect: str) -> Case:
    return Case(name, text.encode(), expect)


CASES = [
    Case("not text", bytes(range(128, 256)), ("not UTF-8", "0x80", "line 1"), BadFile),
    Case("UTF-16", GOOD.encode("utf-16"), ("not UTF-8",), BadFile),
    Case("one bad byte", GOOD.encode() + b"\n--\xff", ("0xff", "line 3"), BadFile),
    Case("too large", b" " * 1_000_001, ("larger than",), BadFile),
    Case("gzip bomb", gzip.compress(b" " * 5_000_000), ("larger than",), BadFile),
    Case("gzip cut short", gzip.compress(GOOD.encode())[:-9], ("truncated",), BadFile),
    Case("zeros", b"\0" * 1000, ("line 1, column 1", r"'\x00'")),
    Case("an image", b"GIF89a\x01\x00", ("line 1, column 1", "GIF89a")),
    Case("a lone surrogate in CESU", b"a: \xed\xa0\x80", ("not UTF-8",), BadFile),
    rules("JSON", '{"rules": []}', "line 1, column 1", "'{'"),
    rules("TOML", '[[site]]\nname = "s"\n', "'['"),
    rules("Python", "import os\nos.system('true')\n", "line 1, column 1", "import"),
    rules("Python in a rule", f"{HEAD}__import__('os').system('true') = 0)", "line 1", "`(`"),
    rules("SQL that writes", "drop table task;", "drop"),
    rules("SQL after a rule", f"{GOOD}; delete from task", "line 2", "delete"),
    rules("two statements in a select", f"{HEAD}(select task-id from task; drop table task) = 1)", "`;`"),
    rules("union", f"{HEAD}(select task-id from task union select 1 from proc) = 1)", "union"),
    rules("a table of the database", f"{HEAD}(select name from sqlite_master) = 1)", "sqlite-master"),
    rules("a function of the database", f"{HEAD}(select load_extension('x') from task) = 1)", "`(`"),
    rules("a comment of C", f"/* x */ {GOOD}", "`/`"),
    rules("a comment that never ends", f"/* {GOOD}", "`/`"),
    rules("a quote that never ends", f'{HEAD}"{GOOD}', "without a closing"),
    rules("quotes only", '"' * 100_001, "without a closing"),
    rules("deep parentheses", HEAD + "(" * 90_000, "nested more than 50"),
    rules("closing parentheses", ")" * 90_000, "column 1", "`)`"),
    rules("deep selects", HEAD + "(select count(*) from task where 1 = " * 30, "too early"),
    rules(
        "deep selects, closed", f"{HEAD}{'(select 1 from task where 1 = ' * 9}1{')' * 9} = 1)", "more than 6"
    ),
    rules("long sum", f"{HEAD}{'1+' * 45_000}1 = 1)", "150 levels"),
    rules("long product", f"{HEAD}{'1*' * 45_000}1 = 1)", "150 levels"),
    rules("many nots", f"{HEAD}{'not ' * 90_000}1 = 1)", "150 levels"),
    rules("many signs", f"{HEAD}{'- ' * 90_000}1 = 1)", "150 levels"),
    rules("many sources", f"{HEAD}(select 1 from {'task, ' * 9000} task) = 1)", "8 sources"),
    rules("many tokens", "= " * 200_000, "100,000"),
    rules("many rules", f"{HEAD}1=1)" * 10_001, "10,000 rules"),
    rules("many labels", "a: " * 50_000, "expected `assert`"),
    rules("long name", f"{'a' * 500_000}: {GOOD}", "100 characters"),
    rules("long attribute", f"{HEAD}(select {'task-' * 9000}id from task) = 1)", "100 characters"),
    rules("long number", f"{HEAD}{'9' * 900_000} = 1)", "too large"),
    rules("infinite number", f"{HEAD}1e999 = 1)", "too large"),
    rules("infinite quantity", f"{HEAD}1e308 d = 1 s)", "too large"),
    rules("not a number", f"{HEAD}nan = 1)", "unknown attribute nan"),
    rules("infinite quoted quantity", f"{HEAD}(select task-work from task) = '1e999 s')", "not a time"),
    rules("negative quoted quantity", f"{HEAD}(select task-work from task) = '-1 s')", "not a time"),
    rules("escape codes", f"{HEAD}\x1b[2J\x1b]0;x\x07 = 1)", r"'\x1b'"),
    rules("right to left", f"{HEAD}\u202eabc = 1)", r"'\u202e'"),
    rules("invisible character in a name", f"{HEAD}(select task\u200b-id from task) = 1)", r"'\u200b'"),
    rules("letters that look alike", f"{HEAD}(select t\u0430sk-id from task) = 1)", "did you mean task-id?"),
    rules("full-width digits", f"{HEAD}\uff11 = 1)", "unexpected character"),
    rules("same name twice", GOOD * 2, "line 2", "already"),
    rules("name of an unnamed rule", f"rule-2: {HEAD}1=1) {HEAD}1=1)", "rule-2"),
    rules("nested value rules", "assert value requirement (function = " * 60, "nested more than 50"),
    rules("line breaks in text", f"{HEAD}'a\nb' = 1)", "without a closing '"),
    rules("carriage returns only", f"{HEAD}1 = 1\r-- x\r = 2", "too early"),
]


def test_there_are_enough_cases_with_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 50
    assert all(case.expect for case in CASES)


def test_the_rule_that_cases_start_from_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.rules"
    path.write_text(GOOD)
    assert len(read_rules(path)) == 1


def refused(read: Callable[[Path], object], path: Path) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_typed_error_that_names_the_place(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "bad.rules"
    path.write_bytes(case.data)
    error = refused(read_rules, path)
    assert type(error) is case.error
    message = str(error)
    assert all(part in message for part in (*case.expect, "bad.rules")), message
    assert len(message) < 6000
    assert message.replace("\n", "").isprintable()


def test_what_is_no_file(tmp_path: Path) -> None:
    assert isinstance(refused(read_rules, tmp_path), BadFile)
    assert isinstance(refused(read_rules, tmp_path / "missing"), BadFile)
