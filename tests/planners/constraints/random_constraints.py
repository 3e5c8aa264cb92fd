"""Random constraints that a given plan satisfies, and tiny problems for brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.constraints import Constraints, Limit
from headrace.model.plan import Plan

EVERY = ("allowed", "before", "together", "site", "apart", "count", "seconds", "at_once", "release")


def satisfied_by(plan: Plan, seed: int, kinds: tuple[str, ...] = EVERY, share: float = 0.6) -> Constraints:
    """Constraints of some of these kinds, derived from what the plan does; `share` of the kinds are drawn."""
    rng = np.random.default_rng([seed, 5])
    n, hosts = plan.graph.n_tasks, len(plan.platform.hosts)
    made = Constraints.none(n, hosts)
    chosen = [kind for kind in kinds if rng.random() < share]
    if "allowed" in chosen:
        made = _allowed(made, plan, rng)
    if "before" in chosen:
        first, second = rng.integers(0, n, size=(2, 6))
        ordered = (plan.finish[first] <= plan.start[second]) & (first != second)
        made = replace(made, before=np.stack((first, second), axis=1)[ordered].astype(np.int32))
    if "together" in chosen:
        made = replace(made, together=_groups(plan.host, rng))
    if "site" in chosen:
        site = np.array([s for s, each in enumerate(plan.platform.sites) for _ in each.hosts])[plan.host]
        made = replace(made, together_at_site=_groups(site, rng))
    if "apart" in chosen:
        _, first = np.unique(plan.host, return_index=True)
        group = np.sort(rng.permutation(first)[: int(rng.integers(1, 4))]).astype(np.int32)
        made = replace(made, apart=(group,) if len(group) > 1 else ())
    made = replace(
        made, limits=tuple(_limit(plan, rng, k) for k in chosen if k in ("count", "seconds", "at_once"))
    )
    if "release" in chosen:
        made = replace(made, release=np.where(rng.random(n) < 0.3, plan.start * rng.random(n), 0.0))
    if "deadline" in chosen:
        late = plan.finish * rng.uniform(1.0, 3.0, n)
        made = replace(made, deadline=np.where(rng.random(n) < 0.3, late, np.inf))
    return made


def _allowed(made: Constraints, plan: Plan, rng: np.random.Generator) -> Constraints:
    n, hosts = plan.graph.n_tasks, len(plan.platform.hosts)
    classes = rng.integers(0, 3, n).astype(np.int32)
    allowed = rng.random((3, hosts)) < 0.5
    allowed[0] = True
    for c in (1, 2):
        allowed[c, plan.host[classes == c]] = True
        allowed[c] |= not allowed[c].any()
    return replace(made, allowed_class=classes, allowed=allowed)


def _groups(at: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # type: ignore[type-arg]
    """Groups within those of equal `at`; half of the tasks are in none. Numbers are not consecutive."""
    group = np.where(rng.random(len(at)) < 0.5, -1, 7 * at + 2)
    return group.astype(np.int32)


def _limit(plan: Plan, rng: np.random.Generator, kind: str) -> Limit:
    n, hosts = plan.graph.n_tasks, len(plan.platform.hosts)
    limit = Limit(rng.random(n) < 0.8, rng.random(hosts) < 0.6, rule=kind)
    counted = np.flatnonzero(limit.tasks & limit.hosts[plan.host])
    if kind == "count":
        return replace(limit, count=float(len(counted)))
    seconds = (plan.finish - plan.start)[counted]
    if kind == "seconds":
        return replace(limit, seconds=float(seconds.sum()) * float(rng.uniform(1.0, 1.2)))
    most = max(
        (int(((plan.start[counted] <= t) & (plan.finish[counted] > t)).sum()) for t in plan.start[counted]),
        default=0,
    )
    return replace(limit, at_once=float(max(most, 1)))
