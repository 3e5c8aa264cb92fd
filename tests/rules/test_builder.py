"""Rules built from Python are rules of the language."""

from __future__ import annotations

import pytest

from headrace.model.errors import HeadraceError, UsageError
from headrace.rules import builder as build
from headrace.rules.parser import parse_rules

RULES = {
    "require": build.require("(select max(task-finish-time) from task) <= 2 h"),
    "prefer": build.prefer("(select max(task-finish-time) from task) <= 2 h", 3),
    "on hosts": build.on("FFT", hosts=["lillith", "calvin"]),
    "on sites": build.on(["FFT", "task-1"], sites="uw", prefer=2),
    "avoid": build.avoid("laptop"),
    "avoid tasks": build.avoid(["a", "b"], "FFT"),
    "together": build.together(["FFT", "plot"]),
    "together at a site": build.together("FFT", at_site=True),
    "apart": build.apart("FFT"),
    "before": build.before("calibrate", ["measure", "plot"]),
    "finish by": build.finish_by("6 h"),
    "finish tasks by": build.finish_by(30, "preview", prefer=0.5),
    "start after": build.start_after("10 min", "nightly"),
    "at most": build.at_most(3, tasks="FFT", hosts=["a", "b"]),
    "at most at once": build.at_most(4, tasks="task-1", hosts="task-server", at_once=True),
    "minimize": build.minimize("(select sum(task-cost) from task)", max=20),
    "maximize": build.maximize(
        "(select count(*) from task where task-scheduled = 1)", max="(select count(*) from task)"
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_every_function_returns_one_rule_of_the_language(name: str) -> None:
    rules = parse_rules(RULES[name])
    assert len(rules) == 1
    assert rules.rules[0].text == RULES[name]


def test_rules_are_requirements_unless_preferred() -> None:
    preferred = {name for name, text in RULES.items() if parse_rules(text).preferences}
    assert preferred == {"prefer", "on sites", "finish tasks by", "minimize", "maximize"}


def test_names_of_rules_and_several_rules() -> None:
    text = build.combine(build.apart("FFT", name="spread"), build.avoid("laptop", name="my_laptop"))
    assert [rule.name for rule in parse_rules(text).rules] == ["spread", "my_laptop"]


def test_names_of_tasks_are_only_text() -> None:
    name = '") = 1 or (1 = "1'
    assert parse_rules(build.on(name, hosts=name)).rules[0].kind == "relationship"
    assert "task-1" in RULES["at most at once"]
    assert "a.task-server" not in RULES["at most at once"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: build.on("FFT"),
        lambda: build.on("FFT", hosts="a", sites="b"),
        lambda: build.on([], hosts="a"),
        lambda: build.on("a\nb", hosts="a"),
        lambda: build.at_most(-1),
        lambda: build.at_most(1.5),  # type: ignore[arg-type]
        lambda: build.avoid("a", name="not a name"),
    ],
)
def test_bad_calls(call) -> None:
    with pytest.raises(UsageError):
        call()


def test_bad_times() -> None:
    with pytest.raises(HeadraceError, match="soon"):
        build.finish_by("soon")
