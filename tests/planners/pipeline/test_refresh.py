"""Refreshing a deployment: fewest moves within the loss, against all placements where these can be counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from bench.generated.pipelines import mixed_machines

from headrace.deploying import with_loads
from headrace.model.deployment import Deployment
from headrace.model.errors import UsageError
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Platform, Site
from headrace.planners.pipeline.assemble import objective_of
from headrace.planners.pipeline.disaggregate import spread
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.portfolio import ask
from headrace.planners.pipeline.refresh import refresh
from headrace.planners.pipeline.rounding import decide
from planners.pipeline.instances import maryland, microscope


def placed(made: Deployment) -> dict[str, set[str]]:
    return {f.name: {p.host for p in made.of(f.name)} for f in made.problem.pipeline.order}


def loaded(problem: PipelineProblem, loads: dict[str, float]) -> PipelineProblem:
    return replace(problem, platform=with_loads(problem.platform, loads))


def test_nothing_moves_without_a_change() -> None:
    problem = PipelineProblem(microscope(), maryland(), microscope().knobs)
    made = deploy_lpsched(problem)
    again = refresh(problem, placed(made))
    assert again.moves == ()
    assert again.deployment.objective == pytest.approx(made.objective)


def test_fewer_moves_for_a_larger_loss() -> None:
    problem = PipelineProblem(microscope(), maryland(), microscope().knobs)
    old = placed(deploy_lpsched(problem))
    changed = loaded(problem, {"MD5": 0.5, "MD6": 0.5, "MD40": 0.7})
    moves = []
    for loss in (0.0, 0.05, 0.2):
        made = refresh(changed, old, loss=loss)
        assert made.deployment.check() == []
        assert made.deployment.objective >= made.best_objective * (1 - loss) - 1e-9
        assert set(made.moves) == {
            (p.filter, p.host) for p in made.deployment.placements if p.host not in old[p.filter]
        }
        moves.append(len(made.moves))
    assert moves == sorted(moves, reverse=True)
    assert moves[0] <= 3
    assert moves[-1] == 0


@pytest.mark.parametrize("seed", range(3))
def test_no_placement_needs_fewer_moves(seed: int) -> None:
    """All placements of two filters on five hosts, one by one."""
    random = np.random.default_rng(seed)
    hosts = tuple(Host(f"n{i}", float(random.uniform(0.5, 2.0))) for i in range(6))
    filters = [FilterProfile("read", 5, 100), FilterProfile("a", 40, 50), FilterProfile("b", 25)]
    pipeline = Pipeline("p", filters, sources=[Source("n0", {"n0": 1.0})])
    problem = PipelineProblem(pipeline, Platform((Site("lab", hosts, bandwidth=2e7),)))
    old = placed(deploy_lpsched(problem))
    changed = loaded(problem, {f"n{i}": float(random.uniform(0, 0.8)) for i in (1, 2, 3)})
    made = refresh(changed, old, loss=0.03)
    question = ask(changed)
    case = question.cases[0]
    fewest = 99
    for runs in product((0, 1, 2), repeat=5):
        counts = np.zeros((3, case.classes.n), np.int64)
        for host, k in enumerate(runs, 1):
            counts[k, case.classes.of_host[host]] += k > 0
        if not (counts[1].any() and counts[2].any()):
            continue
        whole = decide(case.rates, case.groups, case.weights, counts, end=np.inf)
        assert whole is not None
        value = objective_of(changed, question.rates, spread(case.rates, case.classes, whole))
        if value >= made.best_objective * 0.97 - 1e-9:
            names = ("read", "a", "b")
            fewest = min(fewest, sum(k > 0 and f"n{h}" not in old[names[k]] for h, k in enumerate(runs, 1)))
    assert len(made.moves) <= fewest


def test_many_hosts_move_less_than_to_the_best() -> None:
    problem = mixed_machines(250, 4, 0, seed=1)
    first = deploy_lpsched(problem, seconds=6.0, gap=0.005)
    random = np.random.default_rng(2)
    loads = {str(h): 0.5 for h in random.choice(first.hosts_used, 10, replace=False)}
    made = refresh(loaded(problem, loads), placed(first), loss=0.05, seconds=6.0, gap=0.005)
    assert made.deployment.check() == []
    assert len(made.moves) < made.best_moves
    assert made.deployment.objective >= 0.95 * made.best_objective - 1e-9


def test_errors() -> None:
    problem = PipelineProblem(microscope(), maryland(), microscope().knobs)
    with pytest.raises(UsageError, match="loss is 2"):
        refresh(problem, {}, loss=2.0)
    with pytest.raises(UsageError, match="share hosts cannot be refreshed"):
        refresh(replace(problem, several_per_host=True), {})
