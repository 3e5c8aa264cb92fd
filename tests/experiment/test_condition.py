"""Conditions: parsed, compared with a plain evaluation, and never executed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.experiment.sweep.condition import columns_of, parse_condition, require_columns, select
from headrace.model.errors import UsageError

ROWS = {"detect": ["canny", "sobel", None, "canny"], "sigma": [0.5, 1, 2.0, None], "deep.n": [1, 2, 3, 4]}


def chosen(text: str) -> list[int]:
    return select(parse_condition(text), ROWS).nonzero()[0].tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("detect = 'canny'", [0, 3]),
        ('detect == "canny" and sigma < 1', [0]),
        ("detect <> 'canny'", [1]),
        ("not detect = 'canny'", [1, 2]),
        ("sigma between 0.5 and 1", [0, 1]),
        ("sigma not between 0.5 and 1", [2]),
        ("sigma in (1, 2)", [1, 2]),
        ("detect not in ('canny', 'x')", [1]),
        ("detect like 'c%y'", [0, 3]),
        ("detect like 'can*'", []),
        ("sigma is null or detect is null", [2, 3]),
        ("sigma is not null and (deep.n >= 2)", [1, 2]),
        ("[deep.n] = 4", [3]),
        ("sigma = 'canny'", []),
        ("sigma > -1 and sigma < +1e1", [0, 1, 2]),
        ("deep.n=1 or deep.n=2 and sigma>5", [0]),
        ("detect = 'it''s'", []),
    ],
)  # fmt: skip
def test_conditions_select_rows(text: str, rows: list[int]) -> None:
    assert chosen(text) == rows


@pytest.mark.parametrize(
    "text",
    [
        "", "sigma", "sigma =", "= 1", "sigma = 1 and", "(sigma = 1", "sigma = 1)", "__import__('os')", "sigma ! 1",
        "sigma = 1; drop table x", "detect like 3", "sigma in ()", "sigma is 1", "f(x) = 1", "'a", "sigma = [1",
        "lambda: 0", "not", "x = 1 or or y = 2",
    ],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ["(" * 2000 + "a = 1" + ")" * 2000, "not " * 2000 + "a = 1", "a = 1 or " * 3000]
)
def test_long_and_deep_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_condition(text)


def test_unknown_columns_are_named() -> None:
    condition = parse_condition("sigma = 1 and sgima = 2")
    assert columns_of(condition) == {"sigma", "sgima"}
    with pytest.raises(UsageError, match="sgima"):
        require_columns(condition, ["sigma"], "--where")


@given(
    st.lists(st.tuples(st.sampled_from(["<", "<=", "=", "!=", ">", ">="]), st.integers(-3, 3)), min_size=1, max_size=4),
    st.lists(st.integers(-3, 3), min_size=1, max_size=10),
    st.sampled_from(["and", "or"]),
)  # fmt: skip
def test_comparisons_are_those_of_numbers(tests, numbers, word) -> None:
    text = f" {word} ".join(f"x {sign} {value}" for sign, value in tests)
    test = {
        "<": int.__lt__,
        "<=": int.__le__,
        "=": int.__eq__,
        "!=": int.__ne__,
        ">": int.__gt__,
        ">=": int.__ge__,
    }
    all_or_any = all if word == "and" else any
    expected = [all_or_any(test[sign](x, value) for sign, value in tests) for x in numbers]
    assert select(parse_condition(text), {"x": numbers}).tolist() == expected
