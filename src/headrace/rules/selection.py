"""What each rule selects, before there is a schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.units import plural
from headrace.rules.frames import one_row
from headrace.rules.joins import join
from headrace.rules.relations import Relations
from headrace.rules.select import Evaluator
from headrace.rules.tree import And, Importance, Kind, RelationName, Rule, RuleSet, Select
from headrace.rules.walk import conjuncts, is_static, top_selects
from headrace.rules.words import NOUN, show_expression

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.platform import Platform


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that the selects of a rule are made of."""

    name: str
    importance: Importance
    kind: Kind
    line: int
    selects: str
    """For people: `16 tasks, 1 processor`; `at most` where conditions depend on the schedule."""
    counts: tuple[dict[str, int], ...]
    """For each select, the number of different rows of each relation."""
    warning: str = ""


def selections(rules: RuleSet, graph: Graph, platform: Platform) -> list[Selection]:
    """What each rule selects from a program and a platform, with a warning where that is nothing.

    Conditions on attributes that depend on the schedule are left out: there is none yet.
    """
    evaluator = Evaluator(Relations(graph, platform), rules.source)
    return [_selection(rule, evaluator) for rule in rules.rules]


def _selection(rule: Rule, evaluator: Evaluator) -> Selection:
    counts: list[dict[str, int]] = []
    told, warnings = [], []
    for select in top_selects(rule.body):
        fixed = _without_schedule(select)
        count = _counts(fixed, evaluator)
        counts.append({str(relation): n for relation, n in count.items()})
        text = " with ".join(plural(n, NOUN[relation]) for relation, n in count.items())
        told.append(text if fixed.where == select.where else f"at most {text}")
        if not all(count.values()):
            warnings.append(
                f"selects nothing: {show_expression(select)} in line {select.at.line} has no rows"
            )
    return Selection(
        *(rule.name, rule.importance, rule.kind, rule.line),
        ", ".join(told) or "nothing: it has no select",
        tuple(counts),
        "; ".join(warnings),
    )


def _without_schedule(select: Select) -> Select:
    """The select without the conditions that a schedule decides."""
    kept = [part for part in conjuncts(select.where) if is_static(part)]
    if len(kept) == len(conjuncts(select.where)):
        return select
    return replace(select, where=And(tuple(kept), select.at) if kept else None)


def _counts(select: Select, evaluator: Evaluator) -> dict[RelationName, int]:
    """The number of different rows of each relation among the rows of a select, before groups are formed."""
    where = conjuncts(select.where)
    frame, _ = join(evaluator, select.sources, where, one_row(evaluator.relations), select.at)
    rows: dict[RelationName, list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    for source in select.sources:
        rows.setdefault(source.relation, []).append(frame.rows[source.alias])  # type: ignore[arg-type]
    return {relation: len(np.unique(np.concatenate(found))) for relation, found in rows.items()}
