"""Rules that say what a bar dragged to another host or time says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.model.errors import UsageError
from headrace.model.plan import Plan, PlannedTask
from headrace.model.units import show_time
from headrace.rules.task_names import name_without_number

_MARK = "-- moved in the page:"
_NEAR = 0.02
"""Moves by less than this share of the makespan do not count as moves in time."""


@dataclass(frozen=True)
class RuleOffer:
    """A rule for a move: what it says in words, and the text of the rule with a comment by which it is found again."""

    says: str
    text: str


def offered(plan: Plan, task: str, host: str, start: float) -> list[RuleOffer]:
    """Rules for a task that was moved to a host and a start: O(tasks).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> _ = program.task(None, name="FFT", work=2.0), program.task(None, name="map", work=2.0)
    >>> plan = hr.plan(program, hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6), "heft")
    >>> [offer.says for offer in offered(plan, "FFT", "h1", 0.0)]
    ['FFT on h1']
    """
    planned = {one.id: one for one in plan.tasks()}
    if task not in planned:
        raise UsageError(f"the plan has no task {task[:100]!r}", hint="plan again")
    if host not in {one.name for one in plan.platform.hosts}:
        raise UsageError(f"the plan has no host {host[:100]!r}", hint="plan again")
    now = planned[task]
    found = _on_host(plan, now, host) if host != now.host else []
    if abs(start - now.start) > _NEAR * max(plan.makespan, 1e-12) and start >= 0:
        found += _in_time(plan, list(planned.values()), now, host, start)
    return [offer for offer in found if offer is not None]


def _on_host(plan: Plan, now: PlannedTask, host: str) -> list[RuleOffer | None]:
    offers = [
        _rule(now.id, "host", f"{now.id} on {host}", _selected("task-assigned-proc-name", now.id), "=", host)
    ]
    kind = name_without_number(now.id)
    alike = [name for name in plan.graph.task_names if name_without_number(name) == kind]
    if len(alike) > 1:
        all_of = f"(select task-assigned-proc-name from task where task-name = {_quoted(kind)})"
        says = f"all {len(alike)} tasks {kind} on {host}"
        offers.append(_rule(kind, "host of all", says, all_of, "=", host))
    return offers


def _in_time(
    plan: Plan, tasks: list[PlannedTask], now: PlannedTask, host: str, start: float
) -> list[RuleOffer | None]:
    """Order with the neighbour at the new place, and a limit in time."""
    others = [one for one in tasks if one.host == host and one.id != now.id]
    offers: list[RuleOffer | None] = []
    if start < now.start:
        after = [one for one in others if start <= one.start < now.start]
        if after:
            offers.append(_before(now.id, now.id, after[0].id))
        limit = start + now.finish - now.start
        says = f"{now.id} finished by {show_time(limit)}"
        offers.append(_rule(now.id, "time", says, _selected("task-finish-time", now.id), "<=", limit))
    else:
        before = [one for one in others if now.start < one.finish <= start + (now.finish - now.start)]
        if before:
            offers.append(_before(now.id, before[-1].id, now.id))
        says = f"{now.id} not before {show_time(start)}"
        offers.append(_rule(now.id, "time", says, _selected("task-start-time", now.id), ">=", start))
    return offers


def _before(subject: str, first: str, second: str) -> RuleOffer | None:
    finish, start = _selected("task-finish-time", first), _selected("task-start-time", second)
    return _rule(subject, "order", f"{first} before {second}", finish, "<=", None, start)


def _selected(attribute: str, task: str) -> str | None:
    quoted = _quoted(task)
    return None if quoted is None else f"(select {attribute} from task where task-label = {quoted})"


def _rule(
    subject: str,
    topic: str,
    says: str,
    left: str | None,
    sign: str,
    value: str | float | None,
    right: str | None = "",
) -> RuleOffer | None:
    """A requirement; None if a name cannot be written in a rule."""
    if isinstance(value, str):
        right = _quoted(value)
    elif value is not None:
        right = f"{value:.7g} s"
    if left is None or right is None or "\n" in says:
        return None
    name = re.sub(r"[^a-z0-9]+", "-", says.lower()).strip("-")[:60].strip("-")
    name = name if name[:1].isalpha() else f"rule-{name}"
    text = f"{_MARK} {subject}, {topic}\n{name}: assert relationship requirement (\n  {left}\n  {sign} {right})\n"
    return RuleOffer(says, text)


def _quoted(name: str) -> str | None:
    return None if "\n" in name else '"' + name.replace('"', '""') + '"'


def with_offer(rules: str, offer: RuleOffer) -> str:
    """Rules with an offered one; an earlier one about the same task and topic is replaced.

    >>> first = RuleOffer("a on h", "-- moved in the page: a, host\\na-on-h: assert ...\\n")
    >>> second = RuleOffer("a on k", "-- moved in the page: a, host\\na-on-k: assert ...\\n")
    >>> with_offer(with_offer("", first), second) == second.text
    True
    """
    mark = offer.text.partition("\n")[0]
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", rules)]
    kept = [block for block in blocks if block.strip() and block.partition("\n")[0] != mark]
    return "\n\n".join([*kept, offer.text])
