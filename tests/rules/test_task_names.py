"""Names that are looked up: the same tasks as if each name were compared."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.graph import make_graph
from headrace.model.platform import Platform
from headrace.rules.evaluate import evaluate
from headrace.rules.given import MOST_PARSED, _parsed, as_rules
from headrace.rules.like import matcher, matching
from headrace.rules.parser import parse_rules
from headrace.rules.task_names import TaskNames, name_without_number

PARTS = st.sampled_from(
    ["a", "b", "ab", "_", "_ID", ".", "-", " ", "0", "7", "12", ":", "/", "%", "é", "\U0010ffff"]
)
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("".join)


@settings(max_examples=300, deadline=None)
@given(names=st.lists(NAMES, max_size=12), asked=st.lists(NAMES, min_size=1, max_size=4))
def test_names_are_those_of_a_comparison(names: list[str], asked: list[str]) -> None:
    looked_up = TaskNames(names)
    for name in [*asked, *asked, *names, *map(name_without_number, names)]:
        assert looked_up.with_label(name) == [t for t, other in enumerate(names) if other == name]
        assert looked_up.with_name(name) == [
            t for t, other in enumerate(names) if name_without_number(other) == name
        ]


@settings(max_examples=300, deadline=None)
@given(names=st.lists(NAMES, max_size=12), pattern=st.lists(PARTS, max_size=4).map("".join))
def test_patterns_are_matched_as_one_by_one(names: list[str], pattern: str) -> None:
    words = sorted(set(names))
    assert matching(words, pattern) == [at for at, word in enumerate(words) if matcher(pattern)(word)]
    assert TaskNames(names).like(pattern) == [t for t, name in enumerate(names) if matcher(pattern)(name)]


def test_conditions_on_names_select_the_same_tasks_as_their_double_negation() -> None:
    """`not (not ...)` is not looked up: it is evaluated on the whole column."""
    names = ("FFT.1", "FFT.2", "FFT", "FFT2", "sort", "sort_ID07", "42", "FFTs_3", "FFT.1")
    graph = make_graph(work=[1.0] * 9, size=[], producer=[], read_ptr=[0] * 10, reads=[], task_names=names)
    platform = Platform.pairwise([1.0], bandwidth=1.0)
    for where in (
        'task-name = "FFT"',
        '"FFT.1" = task-label',
        'task-name in ("FFT", "sort") or task-label = "42"',
        'task-label like "FFT%"',
        'task-label like "_FT.%" or task-name = "sort"',
        'task-name = "FFT" and task-label like "%2"',
        'task-name like "FFT%" and task-name <> "FFT"',
        'task-name = "nothing"',
    ):
        head = "assert value preference (opt-type = minimize, function ="
        text = (
            f"{head} (select count(*) from task where {{0}}), max = 9)\n"
            f"{head} (select sum(task-id + 1) from task where {{0}}), max = 99)"
        )
        looked_up = evaluate(parse_rules(text.format(where)), graph, platform, None)
        compared = evaluate(parse_rules(text.format(f"not (not ({where}))")), graph, platform, None)
        assert [v.value for v in looked_up] == [v.value for v in compared], where


def test_a_text_is_parsed_once_and_few_are_kept() -> None:
    text = "r: assert relationship requirement ((select max(task-finish-time) from task) <= {} h)"
    first = as_rules(text.format(1))
    assert as_rules(text.format(1)) is first
    for number in range(2, 3 * MOST_PARSED):
        as_rules(text.format(number))
    assert len(_parsed) <= MOST_PARSED
    again = as_rules(text.format(1))
    assert again is not first
    assert again == first
