"""Plans, replays and simulated runs are what they were, to 1e-9."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from corpus import present_api, record
from corpus.cases import Case, all_cases
from corpus.changes import CHANGES
from corpus.results import differences


@cache
def recorded() -> dict[str, Any]:
    return record.recorded()


def groups(slow: bool) -> list[Any]:
    """Cases of one program and platform together: a thousand tests would say no more."""
    by_input: dict[str, list[Case]] = {}
    for case in all_cases():
        if case.slow == slow:
            by_input.setdefault("/".join(case.name.split("/", 2)[:2]), []).append(case)
    return [pytest.param(cases, id=stem) for stem, cases in by_input.items()]


def compare(cases: list[Case]) -> None:
    wrong, compared = [], 0
    for case in cases:
        if case.name not in recorded() or case.name in CHANGES:
            continue
        answer = present_api.carry_out(case)
        if answer is None:
            continue
        compared += 1
        wrong += [f"{case.name}: {words}" for words in differences(recorded()[case.name], answer)]
    assert not wrong, "\n".join(wrong[:20])
    if not compared:
        pytest.skip("nothing to compare: a file is absent, or all cases are in CHANGES")


@pytest.mark.parametrize("cases", groups(slow=False))
def test_nothing_changed(cases: list[Case]) -> None:
    compare(cases)


@pytest.mark.slow
@pytest.mark.parametrize("cases", groups(slow=True))
def test_nothing_changed_at_size(cases: list[Case]) -> None:
    compare(cases)


def test_the_corpus_is_whole() -> None:
    """Every case of the fast tier has a recorded answer, and none is left over."""
    names = {case.name for case in all_cases()}
    assert set(recorded()) <= names
    assert {case.name for case in all_cases() if not case.slow} <= set(recorded())
    assert set(CHANGES) <= names
