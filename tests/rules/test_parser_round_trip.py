"""Trees printed as text are read as the same trees; mutated texts are read or refused, never worse."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import BadRules
from headrace.rules.parser import parse_rules
from headrace.rules.show import quoted, show_number, show_rules
from headrace.rules.tree import RuleSet
from headrace.rules.types import same
from rules.texts import GOOD, Generator


def same_rules(left: RuleSet, right: RuleSet) -> bool:
    fields = ("name", "importance", "kind", "body", "priority", "low", "high")
    return len(left) == len(right) and all(
        same(getattr(a, field), getattr(b, field))
        for a, b in zip(left.rules, right.rules, strict=True)
        for field in fields
    )


def test_good_rules_survive_the_round_trip() -> None:
    rules = parse_rules(GOOD)
    again = parse_rules(show_rules(rules))
    assert same_rules(rules, again)
    assert show_rules(again) == show_rules(rules)


def test_different_rules_are_told_apart() -> None:
    rules = parse_rules(GOOD)
    assert not same_rules(rules, parse_rules(GOOD.replace("0.5", "0.6")))
    assert not same_rules(rules, parse_rules(GOOD.replace("dep-size <", "dep-size <=")))


@given(st.integers(0, 2**32))
def test_generated_rules_survive_the_round_trip(seed: int) -> None:
    rules = parse_rules(Generator(seed).text(3))
    assert same_rules(rules, parse_rules(show_rules(rules)))


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20))
def test_any_text_can_be_quoted(text: str) -> None:
    rule = parse_rules(f"assert relationship requirement ({quoted(text)} = 'x')").rules[0]
    assert rule.body.condition.left.value == text  # type: ignore[union-attr]


@given(st.floats(min_value=0, allow_infinity=False))
def test_any_number_can_be_shown(value: float) -> None:
    rule = parse_rules(f"assert relationship requirement ({show_number(value)} = 1)").rules[0]
    assert rule.body.condition.left.value == value  # type: ignore[union-attr]


# Fuzz.

PIECES = re.findall(r"[\w-]+|\s+|.", GOOD)
STRANGE = [
    "\0",
    "'",
    '"',
    "--",
    "(",
    ")",
    "((((",
    "é",
    "\ud800",
    "1e999",
    "assert",
    "select",
    ",",
    "=",
    "\t",
    "a" * 200,
]


def mutated(text: str, rng: random.Random) -> str:
    """A text with some of its words or characters lost, doubled, exchanged or replaced."""
    pieces = re.findall(r"[\w-]+|\s+|.", text, re.DOTALL) if rng.random() < 0.7 else list(text)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(pieces)) if pieces else 0
        length = rng.choice([1, 1, 1, 3, 30])
        kind = rng.randrange(4)
        if kind == 0:
            del pieces[at : at + length]
        elif kind == 1:
            pieces[at:at] = pieces[at : at + length]
        elif kind == 2:
            pieces[at : at + 1] = [rng.choice(PIECES)]
        else:
            pieces.insert(at, rng.choice(STRANGE))
    return "".join(pieces)


def refusal(text: str) -> str:
    try:
        parse_rules(text)
    except BadRules as error:
        return str(error)
    return ""


def fuzz(seed: int, count: int) -> tuple[int, int, float]:
    """Read mutated texts; any error but `BadRules` fails. Returns how many were good and bad, and the longest time."""
    rng = random.Random(seed)
    parts = [part for part in re.split(r"\n(?=\S)", GOOD) if "assert" in part.lower()]
    good, longest = 0, 0.0
    for number in range(count):
        base = Generator(rng.randrange(10**9)).rule() if number % 2 else rng.choice(parts)
        text = mutated(base, rng)
        start = time.process_time()
        message = refusal(text)
        good += not message
        assert message.replace("\n", "").isprintable(), text
        longest = max(longest, time.process_time() - start)
    return good, count - good, longest


def test_mutated_rules_are_read_or_refused() -> None:
    good, bad, _ = fuzz(1, 2000)
    assert good > 100
    assert bad > 1000


@pytest.mark.slow
def test_many_mutated_rules_are_read_or_refused() -> None:
    good, bad, _ = fuzz(2, 100_000)
    assert good > 5000
    assert bad > 50_000
