"""Plain selects give what SQLite gives, with UNKNOWN as NULL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.rules.attributes import RELATIONS
from headrace.rules.parser import parse_rules
from headrace.rules.relations import Relations
from headrace.rules.select import Evaluator
from headrace.rules.tree import Ordering, RelationName, Type
from rules.eval_cases import NUMERIC, TEXTS, random_relations, seeds

WORDS = ("FFT", "sobel", "FFT.1", "h1", "uw", "paint", "a", "none")
PATTERNS = ("FFT%", "%1", "_o%", "h_", "%a%t%", "%")
Draw = Callable[[st.SearchStrategy[Any]], Any]
Sources = list[tuple[str, RelationName]]


def load(relations: Relations) -> sqlite3.Connection:
    """The relations as tables; underscores in names, which rules read as hyphens."""
    database = sqlite3.connect(":memory:")
    database.execute("pragma case_sensitive_like = on")
    for relation, attributes in RELATIONS.items():
        names = [a for a, known in attributes.items() if known.type is not Type.TASKS]
        columns = [relations.column(relation, name) for name in names]
        database.execute(f"create table {relation} ({', '.join(n.replace('-', '_') for n in names)})")
        rows = [[_cell(column, row) for column in columns] for row in range(relations.length(relation))]
        database.executemany(f"insert into {relation} values ({', '.join('?' * len(names))})", rows)
    return database


def _cell(column: Any, row: int) -> float | str | None:
    if not column.known[row]:
        return None
    return column.word(row) if column.words is not None else float(column.values[row])


def evaluated(text: str, relations: Relations) -> list[float | str | None]:
    """The values of a select, written as in a rule."""
    rule = parse_rules(f"assert ordering requirement (({text}), <=)").rules[0]
    assert isinstance(rule.body, Ordering)
    value = Evaluator(relations).table(rule.body.sequence).value
    return [_cell(value, row) for row in range(value.length)]


def test_literal_selects_against_sqlite() -> None:
    relations = random_relations(3)
    database = load(relations)
    for text in (
        "select task_start_time from task where task_finish_time > 1 and not task_name = 'FFT'",
        "select count(*) from task group by task_assigned_proc_id having count(*) > 1",
        "select a.task_id from task a, task b where a.task_assigned_proc_id = b.task_assigned_proc_id "
        "and a.task_start_time < b.task_start_time",
        "select distinct task_site from task",
        "select task_id from task where task_id in (select dep_to from dep where dep_size > 100000)",
        "select task_id from task where task_id not in (select dep_from from dep)",
        "select proc_id from proc where (select count(*) from task where task_assigned_proc_id = proc_id) > 2",
        "select a.task_id from task a where a.task_finish_time >= "
        "(select max(b.task_finish_time) from task b where b.task_name = a.task_name)",
    ):
        wanted = [row[0] for row in database.execute(text)]
        assert Counter(evaluated(text, relations)) == Counter(wanted), text
    assert Counter(evaluated("select distinct task_site from task", relations)) != Counter()


class Writer:
    """Writes random selects; the same text is valid in both languages but for what `translated` changes."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, sources: Sources, depth: int = 1) -> str:
        alias, relation = self.pick(sources)
        column = f"{alias}.{self.pick(NUMERIC[relation]).replace('-', '_')}"
        return column if depth == 0 or self.pick((True, False)) else f"({column} * {self.pick((1, 2))})"

    def text(self, sources: Sources) -> str | None:
        with_text = [(alias, relation) for alias, relation in sources if TEXTS[relation]]
        alias, relation = self.pick(with_text)
        return f"{alias}.{self.pick(TEXTS[relation]).replace('-', '_')}"

    def condition(self, sources: Sources, depth: int) -> str:
        kind = self.draw(st.integers(0, 8 if depth else 5))
        if kind == 0:
            return f"{self.number(sources)} {self.pick(('=', '<>', '<', '<=', '>', '>='))} {self.pick((0, 1, 2, 1.5))}"
        if kind == 1:
            return f"{self.text(sources)} {self.pick(('=', '<>', '<', '>='))} '{self.pick(WORDS)}'"
        if kind == 2:
            return f"{self.text(sources)} {self.pick(('', 'not '))}like '{self.pick(PATTERNS)}'"
        if kind == 3:
            return f"{self.number(sources, 0)} is {self.pick(('', 'not '))}null"
        if kind == 4:
            return f"{self.number(sources)} {self.pick(('', 'not '))}between 1 and 3"
        if kind == 5:
            return f"{self.text(sources)} {self.pick(('', 'not '))}in ('FFT', 'h1', 'uw')"
        if kind == 6:
            return f"not ({self.condition(sources, depth - 1)})"
        word = "and" if kind == 7 else "or"
        return f"({self.condition(sources, depth - 1)} {word} {self.condition(sources, depth - 1)})"

    def select(self) -> str:
        sources: Sources = [("a", self.pick(("task", "proc", "dep")))]
        where = self.condition(sources, 2)
        if self.pick((True, False)):
            sources.append(("b", self.pick(("task", "proc"))))
            where = f"{where} and {self.join(sources)} and {self.condition(sources, 1)}"
        listed = ", ".join(f"{relation} as {alias}" for alias, relation in sources)
        shape = self.draw(st.integers(0, 2))
        if shape == 0:
            return f"select {self.pick(('', 'distinct '))}{self.number(sources)} from {listed} where {where}"
        call = self.pick(("min", "max", "avg", "count", "count(distinct"))
        called = f"{call}{' ' if 'distinct' in call else '('}{self.number(sources)})"
        if shape == 1:
            return f"select {called} from {listed} where {where}"
        return (
            f"select {called} from {listed} where {where} group by {self.text(sources)} having count(*) > 1"
        )

    def join(self, sources: Sources) -> str:
        ids = {"task": ("task_id", "task_id"), "proc": ("proc_id", "proc_id"), "dep": ("dep_from", "dep_to")}
        (_, first), (_, second) = sources
        if first == "proc" and second == "proc":
            return "a.proc_site = b.proc_site"
        if "proc" in (first, second):
            if "dep" in (first, second):
                return "a.dep_from < 4"
            task, proc = ("a", "b") if second == "proc" else ("b", "a")
            return f"{task}.task_assigned_proc_id = {proc}.proc_id"
        return f"a.{self.pick(ids[first])} = b.task_id" if first == "dep" else "a.task_level = b.task_level"


@given(seeds, st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_selects_against_sqlite(seed: int, data: st.DataObject) -> None:
    relations = random_relations(seed)
    text = Writer(data.draw).select()
    wanted = [row[0] for row in load(relations).execute(text)]
    found = evaluated(text, relations)
    assert _rounded(found) == _rounded(wanted), text


def _rounded(values: list[Any]) -> Counter[Any]:
    return Counter(round(v, 9) if isinstance(v, float | int) else v for v in values)


@given(seeds, st.booleans())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_order_by_against_sqlite(seed: int, descending: bool) -> None:
    relations = random_relations(seed)
    way = " desc" if descending else ""
    text = f"select task_id from task order by task_start_time{way}, task_name"
    sql = text.replace(way or "time,", f"{way} nulls last" if way else "time nulls last,") + ", task_id"
    assert evaluated(text, relations) == [row[0] for row in load(relations).execute(sql)]


@pytest.mark.parametrize("pattern", ["%a_b%", "a%b%c", "_", "%%", "", "ab", "%ab", "ab%"])
@given(st.text("abc", max_size=6))
@settings(deadline=None, derandomize=True)
def test_like_against_sqlite(pattern: str, word: str) -> None:
    from headrace.rules.like import matcher

    database = sqlite3.connect(":memory:")
    database.execute("pragma case_sensitive_like = on")
    (wanted,) = database.execute("select ? like ?", (word, pattern)).fetchone()
    assert matcher(pattern)(word) == bool(wanted)


def test_sum_over_nothing_is_0_and_a_select_of_several_values_is_refused() -> None:
    from headrace.model.errors import BadRules

    relations = random_relations(1)
    assert evaluated("select sum(task_work) from task where task_work > 99", relations) == [0.0]
    assert evaluated("select max(task_work) from task where task_work > 99", relations) == [None]
    with pytest.raises(BadRules, match="8 values where one"):
        evaluated("select task_id from task where task_work = (select task_work from task)", relations)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.model.errors import BadRules

    relations = random_relations(1)
    text = "select a.task_id from task a, task b where a.task_work < b.task_work"
    monkeypatch.setattr("headrace.rules.frames.MOST_ROWS", 63)
    with pytest.raises(BadRules, match="needs 64 rows, more than 63"):
        evaluated(text, relations)
    monkeypatch.setattr("headrace.rules.frames.MOST_ROWS", 64)
    assert evaluated(text, relations)
