"""Why a host is not used: the cost against the problem in which it must be used, and the restriction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.model.errors import UsageError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.why_not import why_not


def lab(*extra: Site, work: float = 35, links: tuple[Link, ...] = (), **knobs: float) -> PipelineProblem:
    hosts = tuple(Host(f"n{i}") for i in range(1, 8))
    filters = [FilterProfile("read", 10, 100), FilterProfile("work", work, 10), FilterProfile("show", 5)]
    pipeline = Pipeline("p", filters, sources=[Source("n1", {"n1": 1.0})])
    platform = Platform((Site("lab", hosts, bandwidth=1e8), *extra), links, isolated=True)
    return PipelineProblem(pipeline, platform, Knobs(**knobs))


def test_the_reader_is_kept_up_with() -> None:
    made = deploy_lpsched(
        lab(Site("old", (Host("slow", 0.2),), bandwidth=1e8), links=(Link("lab", "old", 1e8),))
    )
    assert made.form == "strict"
    answer = why_not(made, "slow")
    assert (answer.used, answer.restriction) == (False, "5'")
    assert answer.cost == pytest.approx(0.01)  # one host more
    assert answer.throughput == pytest.approx(made.throughput)


def test_it_costs_more_than_it_adds() -> None:
    far = Site("far", (Host("weak", 0.1),), bandwidth=1e8)
    made = deploy_lpsched(lab(far, work=200, links=(Link("lab", "far", 1e8),), host_cost=0.3))
    answer = why_not(made, "weak")
    assert answer.restriction == "3"
    assert "W_X = 0.3" in answer.text
    assert 0 < answer.cost < 0.3


def test_its_link_is_too_narrow() -> None:
    far = Site("far", (Host("strong", 3.0),), bandwidth=1e8)
    made = deploy_lpsched(lab(far, work=200, links=(Link("lab", "far", 2e4),), host_cost=0.05))
    answer = why_not(made, "strong")
    assert (answer.used, answer.restriction) == (False, "12")
    assert "links" in answer.text


@pytest.mark.parametrize("rate", [2e4, 1e2])
def test_a_link_decides_however_narrow_it_is(rate: float) -> None:
    far = Site("far", (Host("strong", 3.0),), bandwidth=1e8)
    made = deploy_lpsched(lab(far, work=200, links=(Link("lab", "far", rate),), least=0.5))
    assert why_not(made, "strong").restriction == "12"


def test_a_deployment_that_is_not_the_best_one_is_said_to_be_that() -> None:
    problem = lab(work=200)
    made = deploy_lpsched(problem)
    short = replace(made, objective=0.5 * made.objective, placements=made.placements[:-1])
    host = next(iter(set(made.hosts_used) - set(short.hosts_used)))
    answer = why_not(short, host)
    assert "would raise the objective" in answer.text
    assert "is not the best one" in answer.text
    assert answer.cost == 0.0


def test_it_could_not_be_kept_busy() -> None:
    """Its port carries a part of what it could do; there is no link that is narrow."""
    far = Site("far", (Host("strong", 3.0),), bandwidth=1e5)
    made = deploy_lpsched(lab(far, work=200, links=(Link("lab", "far", 1e8),), host_cost=0.01, least=0.9))
    answer = why_not(made, "strong")
    assert not answer.used
    assert answer.restriction in ("12", "14")


def test_nothing_reaches_it() -> None:
    answer = why_not(deploy_lpsched(lab(Site("far", (Host("strong", 3.0),), bandwidth=1e8))), "strong")
    assert answer.cost == float("inf")
    assert "no data can reach it" in answer.text


def test_an_equal_host_and_one_in_use() -> None:
    made = deploy_lpsched(lab())
    idle = next(h.name for h in made.problem.platform.hosts if h.name not in made.hosts_used)
    assert "at no cost" in why_not(made, idle).text
    assert why_not(made, "n1").filters == ("read",)
    with pytest.raises(UsageError, match="no host 'n99'"):
        why_not(made, "n99")


def test_where_filters_share_hosts() -> None:
    problem = lab(Site("old", (Host("slow", 0.2),), bandwidth=1e8), links=(Link("lab", "old", 1e8),))
    made = deploy_lpsched(PipelineProblem(problem.pipeline, problem.platform, several_per_host=True))
    answer = why_not(made, "slow")
    assert not answer.used
    assert answer.cost > 0
