"""`--what-if` and `--why-not` of `headrace plan`: the same problem solved again with a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.commands.changed_locations import located_on, remains_possible
from headrace.commands.changed_platform import changed_platform
from headrace.commands.what_if import Change, parse_change
from headrace.model.errors import HeadraceError, NoPlan, UsageError
from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.planners.coschedule.why_not import WhyNot


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change, and the plan that was made after it."""

    change: str
    makespan: float | None
    """None if there is no plan."""
    bound: float
    said: str = ""
    """Why there is no plan."""
    longer: float | None = None
    """Makespan of the new plan where it is longer than the present one, which remains possible after the change."""
    possible_now: bool = False
    """Whether the new plan is shorter than the present one, and possible without the change."""

    def facts(self) -> dict[str, Any]:
        return {
            "change": self.change,
            "makespan": self.makespan,
            "bound": self.bound,
            "no_plan": self.said or None,
            "new_plan": self.makespan if self.longer is None else self.longer,
            "possible_now": self.possible_now,
        }

    def row(self, before: float) -> list[str]:
        if self.makespan is None:
            return [f"what if {self.change}", f"no plan: {self.said}"]
        if self.longer is not None:
            found = f"planning again found {show_time(self.longer)}"
            return [f"what if {self.change}", f"{show_time(self.makespan)}, as long: {found}"]
        gain = before - self.makespan
        share = f"{abs(gain) / before:.1%}" if before > 0 else "0.0%"
        how = "as long" if abs(gain) <= 1e-9 * before else f"{share} {'shorter' if gain > 0 else 'longer'}"
        luck = ", a plan that is possible now as well: increase --time" if self.possible_now else ""
        return [f"what if {self.change}", f"{show_time(self.makespan)}, {how}{luck}"]


def require_changes(platform: Platform, changes: Sequence[str]) -> None:
    """Raise UsageError for changes that cannot be made."""
    for text in changes:
        with suppress(NoPlan):  # that is an answer
            changed_platform(platform, parse_change(text))


def what_if(
    graph: Graph,
    platform: Platform,
    changes: Sequence[str],
    solve: Callable[[Graph, Platform], Plan],
    present: Plan | None = None,
) -> list[Outcome]:
    """Solve the problem again after each change, each on its own.

    `present` is a plan for the unchanged platform: where it remains possible, no answer is longer. All changes are
    checked before the first is solved, so that a mistake in the last one costs no time.
    """
    require_changes(platform, changes)
    return [_outcome(text, graph, platform, solve, present) for text in changes]


def _outcome(
    text: str,
    graph: Graph,
    platform: Platform,
    solve: Callable[[Graph, Platform], Plan],
    present: Plan | None,
) -> Outcome:
    change = parse_change(text)
    try:
        changed = changed_platform(platform, change)
        located = located_on(graph, platform, changed)
        made = solve(located, changed)
    except HeadraceError as error:
        return Outcome(text, None, 0.0, error.problem)
    if present is None or made.makespan <= present.makespan * (1 + 1e-9):
        shorter = present is not None and made.makespan < present.makespan * (1 - 1e-9)
        luck = shorter and remains_possible(made, graph, platform)
        return Outcome(text, made.makespan, made.bound, possible_now=luck)
    if not (_only_adds(present, change, changed) or remains_possible(present, located, changed)):
        return Outcome(text, made.makespan, made.bound)
    return Outcome(text, present.makespan, min(made.bound, present.makespan), longer=made.makespan)


def _only_adds(present: Plan, change: Change, changed: Platform) -> bool:
    """Whether a plan is possible after the change, with the same starts, because nothing gets slower or less.

    On fair links a transfer that ends earlier may slow others down. Where routes are the quickest ones, a faster link
    may attract transfers to links that are in use.
    """
    if present.platform.contention == "fair":
        return False
    if change.kind == "link" and not _same_routes(present, changed):
        return False
    return change.operation in ("add", "more") or (change.operation == "multiply" and change.amount >= 1.0)


def _same_routes(present: Plan, changed: Platform) -> bool:
    """Whether the transfers of a plan take the same links on a platform that has the same ones."""
    pairs = set(zip(present.move_source.tolist(), present.move_target.tolist(), strict=True))
    return all(present.platform.network.route(p, q) == changed.network.route(p, q) for p, q in pairs)


def require_hosts(platform: Platform, hosts: Sequence[str]) -> None:
    """Raise UsageError for hosts that the platform does not have."""
    known = [host.name for host in platform.hosts]
    for name in hosts:
        if name not in known:
            raise UsageError(
                f"there is no host {name!r}", where="--why-not", hint=f"use one of {', '.join(known[:8])}"
            )


def why_not_facts(answer: WhyNot) -> dict[str, Any]:
    possible = answer.makespan < float("inf")
    return {
        "host": answer.host,
        "jobs_there": answer.jobs_there,
        "job": answer.job,
        "makespan": answer.makespan if possible else None,
        "cost": answer.cost if possible else None,
        "reason": answer.reason,
    }


def why_not_row(answer: WhyNot) -> list[str]:
    title = f"why not {answer.host}"
    if answer.jobs_there:
        return [title, f"it has {answer.jobs_there} jobs"]
    if answer.job is None:
        return [title, answer.reason]
    cost = f"{show_time(answer.cost)} longer" if answer.cost > 0 else "no longer"
    return [title, f"with {answer.job} there {show_time(answer.makespan)}, {cost}: {answer.reason}"]
