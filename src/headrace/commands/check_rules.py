"""What `headrace check` says of rules: on plans and finished runs, or on what they select before planning."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.model.errors import BadPlan
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.platform import Platform
from headrace.model.units import plural

if TYPE_CHECKING:
    from headrace.rules.evaluate import Verdict
    from headrace.rules.relations import Placed
    from headrace.rules.selection import Selection
    from headrace.rules.tree import RuleSet


def rules_line(rules: RuleSet) -> str:
    """What was read, in one line.

    >>> from headrace.rules.parser import parse_rules
    >>> rules_line(parse_rules("assert relationship requirement ((select task-id from task) > 1)"))
    '1 requirement, 0 preferences'
    """
    return f"{plural(len(rules.requirements), 'requirement')}, {plural(len(rules.preferences), 'preference')}"


def judge_plan(rules: RuleSet, graph: Graph, platform: Platform, plan: Placed) -> dict[str, Any]:
    """The verdicts on a plan: a summary, what is broken, and each rule for people and for machines."""
    from headrace.rules.evaluate import evaluate, score

    verdicts = evaluate(rules, graph, platform, plan)
    broken = [v for v in verdicts if v.importance == "requirement" and not v.kept]
    kept = sum(v.importance == "requirement" and v.kept for v in verdicts)
    summary = f"{kept} of {plural(len(rules.requirements), 'requirement')} kept"
    if rules.preferences:
        summary += (
            f", score of {plural(len(rules.preferences), 'preference')} {score(verdicts):.3g} (0 is best)"
        )
    return {
        "summary": summary,
        "violations": [verdict_line(verdict) for verdict in broken],
        "notes": [verdict_line(verdict) for verdict in verdicts if verdict not in broken],
        "score": score(verdicts),
        "rules": [_plain(verdict) for verdict in verdicts],
    }


def _plain(verdict: Verdict) -> dict[str, Any]:
    """As JSON, which has no infinite numbers."""
    value = verdict.value if verdict.value is not None and math.isfinite(verdict.value) else None
    return asdict(verdict) | {"value": value}


def verdict_line(verdict: Verdict) -> str:
    """One rule: kept, or in how many of its tests, and the first miss."""
    place = f"{verdict.name} (line {verdict.line}, {verdict.kind} {verdict.importance})"
    if verdict.kind == "value" and verdict.importance == "preference":
        told = "unknown" if verdict.value is None else f"value {verdict.value:.6g}"
    elif verdict.kept:
        told = "kept"
    elif verdict.kind == "value":
        told = f"broken: {verdict.first_miss}"
    else:
        told = (
            f"kept in {verdict.rows - verdict.failed:,} of {verdict.rows:,} tests "
            f"(first miss: {verdict.first_miss})"
        )
    share = f", adds {verdict.share:.3g} to the score" if verdict.share is not None else ""
    warning = f"; warning: {verdict.warning}" if verdict.warning else ""
    return f"{place}: {told}{share}{warning}"


def judge_selections(rules: RuleSet, graph: Graph, platform: Platform) -> dict[str, Any]:
    """What each rule selects."""
    from headrace.rules.selection import selections

    found = selections(rules, graph, platform)
    return {
        "summary": rules_line(rules),
        "violations": [],
        "notes": [_selection_line(selection) for selection in found],
        "rules": [asdict(selection) for selection in found],
    }


def _selection_line(found: Selection) -> str:
    warning = f"; warning: {found.warning}" if found.warning else ""
    return f"{found.name} (line {found.line}, {found.kind} {found.importance}): {found.selects}{warning}"


@dataclass(frozen=True, eq=False, slots=True)
class Happened:
    """What a run has done; -1 is the host of tasks that have not finished."""

    host: Ints
    start: Floats
    finish: Floats


def schedule_of_run(run: str, graph: Graph, platform: Platform) -> Happened:
    """The last successful execution of each task of a recorded run, on hosts of this platform."""
    from headrace.record import Record

    with Record.open() as record:
        rows = [
            (row.task, row.host, row.start, row.finish)
            for row in record.tasks(run)
            if row.status == "done" and row.start is not None
        ]
    return happened(rows, graph, platform, f"run {run}")


def happened(
    rows: Iterable[tuple[str, str, float, float]], graph: Graph, platform: Platform, where: str
) -> Happened:
    """The last of these executions (task, host, start, finish) of each task.

    Raises
    ------
    BadPlan
        If there is no such task or host.
    """
    number = {name: t for t, name in enumerate(graph.task_names)}
    host_number = {host.name: h for h, host in enumerate(platform.hosts)}
    n = graph.n_tasks
    done = Happened(np.full(n, -1, np.int32), np.zeros(n), np.zeros(n))
    for task, host, start, finish in rows:
        for what, name, known in (("task", task, number), ("host", host, host_number)):
            if name not in known:
                raise BadPlan(f"there is no {what} {name!r}", where=where, hint="give the files of that run")
        t = number[task]
        done.host[t], done.start[t], done.finish[t] = host_number[host], start, finish
    return done
