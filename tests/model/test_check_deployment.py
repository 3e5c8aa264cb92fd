"""The judge of deployments: valid ones pass, and each restriction is noticed when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headrace.deploying import deploy
from headrace.model.deployment import Deployment, Flow, Placement
from headrace.model.errors import BadProgram, UsageError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Platform, Site

LAB = Platform((Site("lab", tuple(Host(f"n{i}") for i in range(1, 9)), bandwidth=12.5e6),))
FILTERS = [FilterProfile("read", 10, 100), FilterProfile("add", 25, 10), FilterProfile("mean", 5, 0)]
CHAIN = Pipeline("chain", FILTERS, sources=[Source("n1", {"n1": 1.0})])


@pytest.fixture(scope="module")
def made() -> Deployment:
    return deploy(CHAIN, LAB, gap=1e-9)


def rules(deployment: Deployment) -> set[str]:
    return {v.rule for v in deployment.check()}


def moved(d: Deployment, change: Callable[[Placement], Placement]) -> Deployment:
    return replace(d, placements=tuple(change(p) for p in d.placements))


def test_a_plan_is_valid(made: Deployment) -> None:
    assert made.check() == []
    assert [made.copies(f.name) for f in FILTERS] == [1, 3, 1]


def test_names_and_numbers(made: Deployment) -> None:
    assert "source" in rules(replace(made, source="elsewhere"))
    assert "place" in rules(moved(made, lambda p: p._replace(host="n99") if p.filter == "mean" else p))
    assert "place" in rules(replace(made, placements=(*made.placements, made.placements[0])))
    assert "finite" in rules(moved(made, lambda p: p._replace(busy=float("nan"))))
    assert "finite" in rules(replace(made, throughput=float("inf")))
    assert "stream" in rules(replace(made, flows=(Flow("read", "mean", "n1", "n5", 1.0),)))
    assert "13" in rules(replace(made, flows=(*made.flows, Flow("read", "add", "n1", "n8", 0.1))))


def test_readers(made: Deployment) -> None:
    fast = replace(made, throughput=made.throughput * 1.5)
    assert {"5'", "6"} <= rules(fast)
    assert "5'" in rules(replace(made, throughput=made.throughput * 0.5))


def test_wrong_readers(made: Deployment) -> None:
    at = {"n1": "n8"}
    wrong = replace(
        made,
        placements=tuple(p._replace(host=at.get(p.host, p.host)) for p in made.placements),
        flows=tuple(f._replace(source=at.get(f.source, f.source)) for f in made.flows),
    )
    assert "5" in rules(wrong)


def test_every_filter_has_a_copy(made: Deployment) -> None:
    alone = replace(
        made,
        placements=tuple(p for p in made.placements if p.filter != "mean"),
        flows=tuple(f for f in made.flows if f.target_filter != "mean"),
    )
    assert {"7", "9"} <= rules(alone)


def test_balance(made: Deployment) -> None:
    first, *rest = made.flows
    assert "9" in rules(replace(made, flows=tuple(rest)))
    assert "9" in rules(replace(made, flows=(first._replace(rate=first.rate * 1.01), *rest)))
    assert "share" in rules(moved(made, lambda p: p._replace(share=0.2) if p.filter == "add" else p))
    assert "share" in rules(moved(made, lambda p: p._replace(rate=p.rate + 1)))


def test_objective_and_bound(made: Deployment) -> None:
    assert "3" in rules(replace(made, objective=made.objective + 0.01, bound=made.bound + 1))
    assert "bound" in rules(replace(made, bound=made.objective - 0.1))


def problem_with(made: Deployment, **change: Any) -> Deployment:
    return replace(made, problem=replace(made.problem, **change))


def test_processors(made: Deployment) -> None:
    slow = Platform(
        (Site("lab", tuple(Host(f"n{i}", 0.8 if i > 1 else 1.0) for i in range(1, 9)), bandwidth=12.5e6),)
    )
    assert {"10", "11"} <= rules(problem_with(made, platform=slow))
    assert "11" in rules(problem_with(made, knobs=Knobs(spare=0.3)))
    assert "14" in rules(problem_with(made, knobs=Knobs(least=0.9)))
    assert "14" not in rules(replace(problem_with(made, knobs=Knobs(least=0.9)), form="second relaxation"))
    assert "10" in rules(moved(made, lambda p: p._replace(copies=2)))
    both = moved(made, lambda p: p._replace(host="n4") if p.filter == "mean" else p)
    both = replace(
        both, flows=tuple(f._replace(target="n4") if f.target_filter == "mean" else f for f in made.flows)
    )
    assert "15" in rules(both)


def test_sharing_a_host_needs_cores(made: Deployment) -> None:
    """add on n4 is busy 0.83, mean 0.5."""
    both = replace(
        made,
        problem=replace(made.problem, several_per_host=True),
        placements=tuple(p._replace(host="n4") if p.filter == "mean" else p for p in made.placements),
        flows=tuple(f._replace(target="n4") if f.target_filter == "mean" else f for f in made.flows),
    )
    assert "n4" in {p.host for p in made.of("add")}
    assert "15" in rules(both)


def test_network(made: Deployment) -> None:
    thin = Platform((replace(LAB.sites[0], bandwidth=9e6),))
    assert "12" in rules(problem_with(made, platform=thin))
    assert "12" in rules(problem_with(made, segments={"lab": 10.5e6}))
    assert rules(problem_with(made, segments={"lab": 11.5e6})) == set()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pipeline("p", FILTERS[:1]), "1 filters"),
        (lambda: Pipeline("p", [FILTERS[0], FILTERS[0]]), "2 filters are called 'read'"),
        (lambda: Pipeline("p", FILTERS, [Stream("read", "ad")]), "no filter 'ad'"),
        (
            lambda: Pipeline(
                "p", FILTERS, [Stream("read", "add"), Stream("add", "mean"), Stream("mean", "add")]
            ),
            "cycle",
        ),
        (
            lambda: Pipeline(
                "p", FILTERS, [Stream("read", "add"), Stream("read", "add"), Stream("add", "mean")]
            ),
            "2 streams",
        ),
        (lambda: Pipeline("p", FILTERS, [Stream("read", "add")]), "2 filters have no stream into them"),
        (lambda: Pipeline("p", FILTERS, [Stream("read", "add"), Stream("add", "mean", -1)]), "volume is -1"),
        (lambda: Pipeline("p", [FILTERS[0], FilterProfile("x", -1)]), "time is -1"),
        (lambda: Pipeline("p", [FILTERS[0], FilterProfile("x", 1, power=0)]), "power is 0"),
        (lambda: Pipeline("p", [FilterProfile("x", 1, 0), FILTERS[1]]), "the reader took 1 s for 0 MB"),
        (lambda: Pipeline("p", FILTERS, sources=[Source("s", {"a": 0.5, "b": 0.4})]), "shares sum to 0.9"),
        (
            lambda: Pipeline("p", FILTERS, sources=[Source("s", {"a": 1.5, "b": -0.5})]),
            "share of 'b' is -0.5",
        ),
        (lambda: Pipeline("p", FILTERS, sources=[Source("s", {"a": 1}), Source("s", {"b": 1})]), "2 sources"),
        (lambda: Pipeline("p", FILTERS, knobs=Knobs(least_of={"x": 0.5})), "no filter 'x'"),
    ],
)
def test_pipelines_that_make_no_sense(make: Callable[[], Pipeline], message: str) -> None:
    with pytest.raises(BadProgram, match=message) as caught:
        make()
    assert caught.value.exit_code == 2
    assert caught.value.hint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pipeline": Pipeline("p", FILTERS)}, "has no source"),
        ({"pipeline": CHAIN.with_sources([Source("s", {"n99": 1.0})])}, "no host 'n99'"),
        ({"knobs": Knobs(host_cost=-1)}, "W_X"),
        ({"knobs": Knobs(least=1.5)}, "W_MIN"),
        ({"knobs": Knobs(weights={("lab", "x"): 1.0})}, "no cluster 'x'"),
        ({"knobs": Knobs(least_of={"x": 0.5})}, "no filter 'x'"),
        ({"segments": {"x": 1e6}}, "segment 'x'"),
    ],
)
def test_problems_that_make_no_sense(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(PipelineProblem(CHAIN, LAB), **change)


def test_the_origin_reads_when_no_source_is_given() -> None:
    problem = PipelineProblem(Pipeline("p", FILTERS), replace(LAB, origin="n3"))
    assert problem.sources[0].shares == {"n3": 1.0}


def test_kinds_decide_the_power() -> None:
    hosts = (Host("a", 2.0, kinds={"reader": 5.0, "add": 3.0}, load=0.5), Host("b"))
    problem = PipelineProblem(CHAIN.with_sources([Source("a", {"a": 1})]), Platform((Site("s", hosts),)))
    assert [problem.power(f, "a") for f in ("read", "add", "mean")] == [2.5, 1.5, 1.0]
    assert problem.capacity("add", "a") == pytest.approx(100 / 25 * 1.5)
    assert problem.readable(problem.sources[0]) == pytest.approx(25.0)
