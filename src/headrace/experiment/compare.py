"""Comparison of schedulers over many programs and platforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.core.scheduler import Problem
from headrace.experiment.kept import Kept, KeptResults, key_of
from headrace.model.bound import Effort, bound_name
from headrace.model.check import require_valid
from headrace.model.errors import NoPlan
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound
from headrace.rules.tree import RuleSet


@dataclass(frozen=True)
class Row:
    """One program on one platform: the result of each scheduler, or why it found no plan."""

    program: str
    platform: str
    tasks: int
    hosts: int
    results: Mapping[str, Kept | str]


def compare(
    programs: Mapping[str, Graph],
    platforms: Mapping[str, Platform],
    schedulers: Sequence[str],
    kept: KeptResults,
    *,
    options: Mapping[str, Mapping[str, object]] | None = None,
    rules: RuleSet | None = None,
    seed: int = 0,
    bound: Effort = "quick",
    tell: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Plan every program on every platform with every scheduler; cached results are reused.

    Every plan passes `check` and keeps the requirements of the rules. `options` gives the constructors' arguments by
    scheduler, `bound` the effort for lower bounds; the best bound of a row holds for all its plans.
    """
    rows = []
    total = len(programs) * len(platforms) * len(schedulers)
    done = 0
    for program, graph in programs.items():
        for where, platform in platforms.items():
            results: dict[str, Kept | str] = {}
            for scheduler in schedulers:
                done += 1
                tell(f"{done} of {total}: {scheduler} on {program}, {where}")
                own = dict((options or {}).get(scheduler, {}))
                results[scheduler] = _result(graph, platform, scheduler, own, seed, kept, rules, bound)
            rows.append(Row(program, where, graph.n_tasks, len(platform.hosts), _best_bound(results)))
    return rows


def _result(
    graph: Graph,
    platform: Platform,
    scheduler: str,
    options: dict[str, object],
    seed: int,
    kept: KeptResults,
    rules: RuleSet | None,
    effort: Effort,
) -> Kept | str:
    key = key_of(graph, platform, scheduler, options | {"bound of a plan": effort}, seed, rules)
    known = kept.get(key)
    if known is not None:
        return known
    try:
        problem = Problem(graph, platform, seed=seed, rules=rules)
        plan = plan_with_bound(make(scheduler, **options), problem, effort)
    except NoPlan as error:
        return str(error)
    require_valid(graph, platform, plan)
    result = Kept(plan.makespan, float(plan.bound), plan.seconds, bound_name(plan.bound))
    kept.put(key, result)
    return result


def _best_bound(results: Mapping[str, Kept | str]) -> dict[str, Kept | str]:
    """The same results, all with the best of their bounds."""
    best = max((k for k in results.values() if isinstance(k, Kept)), key=lambda k: k.bound, default=None)
    return {
        name: k._replace(bound=best.bound, bound_name=best.bound_name) if best and isinstance(k, Kept) else k
        for name, k in results.items()
    }


def geometric_means(rows: Sequence[Row], schedulers: Sequence[str]) -> dict[str, float | None]:
    """Mean of makespan / bound for each scheduler, over the rows where it has a plan."""
    means: dict[str, float | None] = {}
    for scheduler in schedulers:
        found = [row.results[scheduler] for row in rows]
        ratios = [k.makespan / k.bound for k in found if isinstance(k, Kept) and k.bound > 0]
        means[scheduler] = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    return means
