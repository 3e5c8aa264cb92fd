"""Rules in summaries: what was kept, each rule's share of the objective, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.planners.rule_costs import RuleCost
    from headrace.rules.evaluate import Verdict

HEADERS = ["rule", "line", "kind", "kept", "share of objective", "makespan without it"]


def rule_rows(
    verdicts: Sequence[Verdict], makespan: float, costs: Mapping[str, RuleCost] | None = None
) -> tuple[list[str], list[list[str]]]:
    """A table with a line for each rule; without costs, that column is left out."""
    rows = [
        [
            verdict.name,
            str(verdict.line),
            f"{verdict.kind} {verdict.importance}",
            kept_words(verdict),
            "" if verdict.share is None else f"{verdict.share:.4g}",
            *([] if costs is None else [_cost_words(costs.get(verdict.name), makespan)]),
        ]
        for verdict in verdicts
    ]
    return HEADERS if costs is not None else HEADERS[:-1], rows


def kept_words(verdict: Verdict) -> str:
    """
    >>> from headrace.rules.evaluate import Verdict
    >>> kept_words(Verdict("on-h0", "requirement", "relationship", 1, False, 16, 2, "task FFT.2: ..."))
    'kept in 14 of 16 rows (first miss: task FFT.2: ...)'
    """
    if verdict.kind == "value" and verdict.importance == "preference":
        words = "unknown" if verdict.value is None else f"value {verdict.value:.6g}"
    elif verdict.kept:
        words = "kept"
    elif verdict.kind == "value":
        words = f"broken: {verdict.first_miss}"
    else:
        kept = f"{verdict.rows - verdict.failed:,} of {verdict.rows:,} rows"
        words = f"kept in {kept} (first miss: {verdict.first_miss})"
    return f"{words}; warning: {verdict.warning}" if verdict.warning else words


def _cost_words(cost: RuleCost | None, makespan: float) -> str:
    if cost is None or cost.without is None:
        return "not known" if cost is None else f"not known: {cost.reason}"
    more = makespan - cost.without
    if abs(more) <= 1e-9 * max(1.0, makespan):
        return "the same"
    return f"{show_time(cost.without)} ({'costs' if more > 0 else 'gains'} {show_time(abs(more))})"


def rules_json(
    verdicts: Sequence[Verdict], makespan: float, costs: Mapping[str, RuleCost] | None = None
) -> list[dict[str, Any]]:
    """The rules for machines; `cost` is the makespan with the rule minus that without it, null if not known."""
    found = []
    for verdict in verdicts:
        cost = None if costs is None else costs.get(verdict.name)
        without = None if cost is None else cost.without
        found.append(
            {
                "name": verdict.name,
                "importance": verdict.importance,
                "kind": verdict.kind,
                "line": verdict.line,
                "kept": verdict.kept,
                "rows": verdict.rows,
                "failed": verdict.failed,
                "first_miss": verdict.first_miss,
                "value": _finite(verdict.value),
                "share": verdict.share,
                "cost": None if without is None else makespan - without,
                "makespan_without": without,
                "warning": verdict.warning,
            }
        )
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
