"""The grammar of `--what-if`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.commands.what_if import FORMS, Change, find_link, parse_change
from headrace.model.errors import UsageError

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,12}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("host n9", Change("host", "n9", "add")),
        ("host n9 x1.5", Change("host", "n9", "multiply", 1.5)),
        ("host x2", Change("host", "x2", "add")),
        ("link a-b x2", Change("link", "a-b", "multiply", 2.0)),
        ("link a-b +100Mbit/s", Change("link", "a-b", "more", 12.5e6)),
        ("link a-b +100 Mbit/s", Change("link", "a-b", "more", 12.5e6)),
        ("  disk   prague  +1TB ", Change("disk", "prague", "more", 1e12)),
        ("disk prague x0.5", Change("disk", "prague", "multiply", 0.5)),
        ("cores uw +4", Change("cores", "uw", "more", 4.0)),
        ("without link a-b", Change("link", "a-b", "remove")),
        ("without host two words", Change("host", "two words", "remove")),
        ("without site uw", Change("site", "uw", "remove")),
    ],
)
def test_forms(text: str, change: Change) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize(
    "text",
    [
        "", "host", "hosts n9", "link a-b", "link a-b x0", "link a-b x-1", "link a-b xinf", "link a-b +0",
        "cores uw x1e300", "host n9 x1e-300",
        "disk uw +5 furlongs", "cores uw +1.5", "cores uw +0", "host n9 +2", "without disk uw", "without host",
        "x" * 2000,
    ],
)  # fmt: skip
def test_errors_name_the_text_and_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_change(text)
    assert FORMS[0] in caught.value.hint
    assert "--what-if" in caught.value.where
    assert len(str(caught.value)) < 600


@given(names, st.floats(0.01, 100), st.sampled_from(["host", "link", "disk", "cores"]))
def test_a_printed_change_reads_back(name: str, factor: float, kind: str) -> None:
    change = parse_change(f"{kind} {name} x{factor:.10g}")
    assert parse_change(str(change)) == change
    assert change.name == name


def test_hyphens_in_names() -> None:
    pairs = {("a", "b-c"), ("a-b", "c"), ("p", "q-r")}
    with pytest.raises(UsageError, match="may mean 'a' to 'b-c' or 'a-b' to 'c'"):
        find_link("a-b-c", lambda a, b: (a, b) in pairs, ["a", "b-c"])
    assert find_link("p-q-r", lambda a, b: (a, b) in pairs, ["p"]) == ("p", "q-r")
    with pytest.raises(UsageError, match="no link 'p-z'"):
        find_link("p-z", lambda a, b: (a, b) in pairs, ["p"])
