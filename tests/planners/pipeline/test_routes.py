"""Deployments choose routes: a further link is never worse, and what is chosen can be checked, saved and simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.generated.deployments import several_sources, with_more
from bench.solvers import solved

from headrace.formats.deployment_ini import read_deployment, write_deployment
from headrace.model.deployment import Deployment
from headrace.model.errors import UsageError
from headrace.model.link_graph import link_graph
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.simulator.pipeline.flow import simulate_deployment

DIRECT = Link("a", "b", 4e6)
AROUND = (Link("a", "c", 3e6), Link("c", "b", 3e6))


def two_ends(*links: Link, cross: float = 1.0, routing: str = "quickest") -> PipelineProblem:
    """A reader at one site, hosts at another, and a site between them."""
    sites = (
        Site("a", (Host("a1"),), bandwidth=1e9),
        Site("b", (Host("b1", 50.0), Host("b2", 50.0)), bandwidth=1e9),
        Site("c", (), bandwidth=1e9),
    )
    filters = [FilterProfile("read", 1, 100), FilterProfile("work", 10, 1), FilterProfile("show", 1)]
    pipeline = Pipeline("p", filters, sources=[Source("a1", {"a1": 1.0})])
    platform = Platform(sites, links, isolated=True, routing=routing)  # type: ignore[arg-type]
    return PipelineProblem(pipeline, platform, Knobs(host_cost=0.01, cross=cross))


@pytest.fixture(scope="module")
def divided() -> Deployment:
    return deploy_lpsched(two_ends(DIRECT, *AROUND))


def test_flows_are_divided_among_routes(divided: Deployment) -> None:
    assert divided.check() == []
    assert divided.throughput == pytest.approx(7.0)
    assert [(r.links, round(r.share, 9)) for r in divided.routes] == [
        (("a -> b",), pytest.approx(4 / 7)),
        (("a -> c", "c -> b"), pytest.approx(3 / 7)),
    ]


def test_the_quickest_route_where_it_has_room() -> None:
    made = deploy_lpsched(two_ends(replace(DIRECT, bandwidth=1e9), *AROUND))
    assert made.form == "strict"
    assert made.routes == ()


def test_fixed_routes(divided: Deployment) -> None:
    fixed = replace(divided.problem, routes="quickest")
    assert deploy_lpsched(fixed).throughput == pytest.approx(4.0)
    assert next(v.rule for v in replace(divided, problem=fixed).check()) == "12"
    with pytest.raises(UsageError, match="routes"):
        replace(fixed, routes="shortest")  # type: ignore[arg-type]


def test_no_way_through_a_site_where_transfers_go_to_neighbours() -> None:
    made = deploy_lpsched(two_ends(DIRECT, *AROUND, routing="links"))
    assert made.check() == []
    assert made.throughput == pytest.approx(4.0)


@pytest.mark.parametrize("cross", [0.5, 2.0])
def test_weights_count_once_on_the_whole_way(cross: float) -> None:
    made = deploy_lpsched(two_ends(*AROUND, cross=cross))
    assert made.check() == []
    assert made.throughput == pytest.approx(3.0)
    assert made.objective == pytest.approx(3.0 * cross + 0.03 - 0.03)


def test_a_link_that_attracts_flows() -> None:
    """The new link makes a quicker route of two links, one of which other flows need."""
    before = several_sources(36)
    after = with_more(before, "link", 37)
    assert after is not None
    fixed = [solved(replace(problem, routes="quickest")) for problem in (before, after)]
    assert fixed[1] < 0.9 * fixed[0]
    assert solved(after) == pytest.approx(solved(before))


@pytest.mark.parametrize("seed", [3, 10])
def test_simulated_and_saved_as_planned(seed: int, tmp_path: Path) -> None:
    problem = with_more(several_sources(seed), "link", seed + 1)
    assert problem is not None
    made = deploy_lpsched(problem)
    assert made.routes
    assert made.check() == []
    assert simulate_deployment(made).of_planned == pytest.approx(1.0, abs=0.002)
    write_deployment(made, tmp_path / "d.ini")
    again = read_deployment(tmp_path / "d.ini", problem)
    assert again.check() == []
    assert [(r.source, r.target, r.links) for r in again.routes] == [
        (r.source, r.target, r.links) for r in made.routes
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"links": ("a -> c",)},
        {"links": ("b -> a",)},
        {"links": ("nowhere",)},
        {"share": 0.9},
        {"source": "x"},
    ],
)
def test_wrong_routes_are_found(divided: Deployment, change: dict[str, object]) -> None:
    broken = (divided.routes[0]._replace(**change), divided.routes[1])
    assert "12" in {v.rule for v in replace(divided, routes=broken).check()}


def test_links_have_the_numbers_of_the_network() -> None:
    links = (Link("a", "b", 1e6, shared=True), Link("b", "c", 2e6, oneway=True), Link("a", "c", 3e6))
    platform = two_ends(*links).platform
    network = platform.network
    for edge in link_graph(platform):
        assert network.link_bandwidth[edge.link] == edge.bandwidth
    assert len({edge.link for edge in link_graph(platform)}) == 4
    routes = {
        link
        for a in range(3)
        for b in range(3)
        for link in network.route_links[_span(network.route_ptr, a, b)]
    }
    assert routes <= {edge.link for edge in link_graph(platform)}


def _span(ptr: np.ndarray, a: int, b: int) -> slice:
    return slice(ptr[a * 3 + b], ptr[a * 3 + b + 1])
