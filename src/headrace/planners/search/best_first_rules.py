"""The preference for more placed tasks, which drives the search forward."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from headrace.rules.parser import parse_rules
from headrace.rules.tree import Aggregate, Column, Compare, Number, Rule, RuleSet, Select, Value

FAR_ABOVE = 1000.0
"""The default hurry, as a multiple of the sum of all other priorities."""


@cache
def default_rules() -> RuleSet:
    """The rules of a search without rules: quiet hosts, longest path first, early starts, short makespan."""
    return parse_rules(files("headrace.rules").joinpath("default.rules").read_text("utf-8"), "default.rules")


def split_progress(rules: RuleSet) -> tuple[RuleSet, float | None]:
    """The other rules, and the priority of the preference for more placed tasks; None if there is no such rule.

    On complete schedules all tasks are placed, so this preference only matters during the search.

    >>> from headrace.rules.parser import parse_rules
    >>> rules = parse_rules("assert value preference (opt-type = maximize, priority = 50, min = 0, max = 9, "
    ...                     "function = (select count(*) from task where task-scheduled = 1))")
    >>> others, priority = split_progress(rules)
    >>> len(others), priority
    (0, 50.0)
    """
    found = [rule for rule in rules.rules if is_progress(rule)]
    if not found:
        return rules, None
    priorities = [rule.priority.value if isinstance(rule.priority, Number) else 1.0 for rule in found]
    return rules.without(*(rule.name for rule in found)), sum(priorities)


def is_progress(rule: Rule) -> bool:
    """Whether a rule maximizes the number of tasks with `task-scheduled = 1`."""
    match rule.body:
        case Value(
            goal="maximize",
            function=Select(
                columns=(Aggregate(name="count", operand=None),),
                where=Compare(op="=", left=Column(attribute="task-scheduled"), right=Number(value=1.0)),
                group_by=(),
            ),
        ):
            return rule.priority is None or isinstance(rule.priority, Number)
    return False


def without_requirements(rules: RuleSet) -> RuleSet:
    """The preferences alone."""
    return rules.without(*(rule.name for rule in rules.requirements))
