"""Which form is chosen, what is said about it, and what lies beyond the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.model.errors import BadProgram, NoPlan, UsageError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.pipeline import portfolio
from headrace.planners.pipeline.heuristics import proportional_counts
from headrace.planners.pipeline.plan import deploy_lpsched, deploy_total, deploy_trivial
from headrace.planners.pipeline.search import Found
from planners.pipeline.instances import microscope, small


def chain(
    *trial: tuple[float, float], hosts: int = 6, port: float = 100.0, **more: object
) -> PipelineProblem:
    """Filters by (seconds, volume) on equal hosts n1, n2, ... with ports of so many MB/s; n1 has the input."""
    filters = [FilterProfile(f"f{k}", t, v) for k, (t, v) in enumerate(trial)]
    cores = more.pop("cores", 1)
    site = Site("lab", tuple(Host(f"n{i}", cores=cores) for i in range(1, hosts + 1)), bandwidth=port * 1e6)  # type: ignore[arg-type]
    pipeline = Pipeline("chain", filters, sources=[Source("n1", {"n1": 1.0})])
    return PipelineProblem(pipeline, Platform((site,)), **more)  # type: ignore[arg-type]


def test_strict_when_hosts_suffice() -> None:
    made = deploy_lpsched(chain((10, 100), (35, 10), (5, 0)))
    assert made.check() == []
    assert (made.form, made.throughput) == ("strict", pytest.approx(10.0))
    assert [made.copies(f"f{k}") for k in range(3)] == [1, 4, 1]
    assert [limit.kind for limit in made.limits] == ["reader"]
    assert made.notes == ()


def test_first_relaxation_when_power_is_short() -> None:
    made = deploy_lpsched(chain((10, 100), (80, 10), (5, 0)))
    assert made.check() == []
    assert made.form == "first relaxation"
    assert made.throughput == pytest.approx(5.0)  # four hosts of 1.25 MB/s
    assert "f1 needs 8 hosts of this power and the other filters leave 4" in made.notes[0]
    assert "planned with a throttled reader: 50% of its 10 MB/s" in made.notes[0]
    assert [limit.kind for limit in made.limits] == ["cpu"]
    assert made.limits[0].name == "f1"


def test_port_of_the_reader_limits() -> None:
    made = deploy_lpsched(chain((10, 100), (5, 10), (5, 0), port=4.0))
    assert made.check() == []
    assert made.throughput == pytest.approx(4.0)
    assert made.limits[0].kind == "port"
    assert "reader's port carries 4 of the 10 MB/s" in made.limits[0].text


def test_ports_and_links_are_named() -> None:
    inner = deploy_lpsched(chain((10, 100), (1, 400), (1, 0), hosts=3, port=12.0))
    assert inner.throughput == pytest.approx(3.0)
    assert (inner.limits[0].kind, inner.limits[0].name) in (("port", "f1"), ("port", "f2"))
    a, b = Site("a", (Host("a1"),), bandwidth=1e8), Site("b", (Host("b1"), Host("b2")), bandwidth=1e8)
    pipeline = Pipeline(
        "p",
        [FilterProfile("r", 10, 100), FilterProfile("s", 1, 50), FilterProfile("t", 1)],
        sources=[Source("a1", {"a1": 1.0})],
    )
    problem = PipelineProblem(pipeline, Platform((a, b), (Link("a", "b", 2e6),)))
    made = deploy_lpsched(problem)
    assert made.check() == []
    assert made.throughput == pytest.approx(2.0)
    assert (made.limits[0].kind, made.limits[0].name) == ("link", "a -> b")
    segment = deploy_lpsched(replace(problem, segments={"b": 1.5e6}))
    assert segment.check() == []
    assert segment.throughput == pytest.approx(1.0)  # 1 from a to b, 0.5 inside b
    assert segment.limits[0].kind == "segment"


def test_least_use_is_kept_where_other_placements_would_do_more() -> None:
    """With W_MIN at 1 hosts work fully or not at all; dealing hosts out by trial times would do more, idly."""
    problem = chain((1, 100), (150, 10), (31, 0), hosts=9, port=50.0, knobs=Knobs(least=1.0))
    made = deploy_lpsched(problem)
    assert made.check() == []
    assert made.form == "first relaxation"
    for name in ("f1", "f2"):
        here = made.of(name)
        assert len(here) == 1 or all(p.busy == pytest.approx(1.0) for p in here)
    free = deploy_lpsched(replace(problem, knobs=Knobs()))
    assert free.objective > made.objective


def test_idle_hosts_are_explained() -> None:
    """Hosts that cost more than they add stay idle, and are not called a shortage."""
    problem = chain((1, 100), (100, 0), hosts=10, knobs=Knobs(host_cost=1.5))
    made = deploy_lpsched(problem)
    assert made.copies("f1") == 1
    assert [limit.kind for limit in made.limits] == ["cpu", "hosts"]
    assert made.limits[1].text == "8 hosts idle: using them would add less than they cost (W_X 1.5)"


def test_simple_candidates_win_where_the_search_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "search", lambda case, **more: Found(None, -np.inf, np.inf, False))
    made = deploy_lpsched(chain((10, 100), (35, 10), (5, 0)))
    assert made.check() == []
    assert made.form == "second relaxation"
    assert made.bound > made.objective  # what the reader's rate allows
    kept = deploy_lpsched(chain((10, 100), (35, 10), (5, 0), knobs=Knobs(spare=5.0, least=1.0)))
    assert kept.check() == []
    assert kept.copies("f1") == 1


def test_no_plan_without_enough_hosts() -> None:
    with pytest.raises(NoPlan, match="1 reading hosts and 4 more filters need 5 hosts, but there are 3"):
        deploy_lpsched(chain((1, 1), (1, 1), (1, 1), (1, 1), (1, 1), hosts=3))
    shared = deploy_lpsched(chain((1, 1), (1, 1), (1, 1), (1, 1), (1, 1), hosts=3, several_per_host=True))
    assert shared.check() == []


def test_no_plan_without_a_route() -> None:
    a, b = Site("a", (Host("a1"),), bandwidth=1e8), Site("b", (Host("b1"),), bandwidth=1e8)
    platform = Platform((a, b), (Link("b", "a", 1e6, oneway=True),))
    pipeline = Pipeline(
        "p", [FilterProfile("r", 1, 1), FilterProfile("s", 1)], sources=[Source("x", {"a1": 1})]
    )
    with pytest.raises(NoPlan, match="no data can flow"):
        deploy_lpsched(PipelineProblem(pipeline, platform))
    with pytest.raises(NoPlan, match="data cannot reach"):
        deploy_trivial(PipelineProblem(pipeline, platform))


def test_cores_count_as_copies() -> None:
    made = deploy_lpsched(chain((10, 100), (75, 10), (5, 0), hosts=4, cores=4))
    assert made.check() == []
    assert made.form == "strict"
    assert [(p.host, p.copies) for p in made.of("f1")] == [("n2", 4), ("n3", 4)]


def test_filters_share_hosts_when_asked() -> None:
    problem = chain((10, 100), (8, 10), (2, 0), hosts=2, port=4.0)
    assert deploy_lpsched(replace(problem, several_per_host=True)).throughput == pytest.approx(
        10 / 1.0, rel=1
    )
    made = deploy_lpsched(replace(problem, several_per_host=True))
    assert made.check() == []
    assert made.throughput > 5.0  # more than the port carries: the rest stays on its host
    assert len(made.hosts_used) == 2


def test_a_reader_at_its_full_rate_is_what_limits() -> None:
    """Also where hosts are just used up, and where one host could do much more."""
    for seconds in (10, 40, 0.1):
        made = deploy_lpsched(chain((10, 100), (seconds, 10), (1, 0), cores=2))
        assert made.form == "strict"
        assert [limit.kind for limit in made.limits] == ["reader"]


def test_least_use_and_sharing_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="W_MIN"):
        deploy_lpsched(chain((1, 1), (1, 0), several_per_host=True, knobs=Knobs(least=0.5)))


def test_fan_out_and_fan_in() -> None:
    filters = [
        FilterProfile("read", 10, 100),
        FilterProfile("left", 20, 50),
        FilterProfile("right", 30, 25),
        FilterProfile("join", 5, 0),
    ]
    streams = [
        Stream("read", "left"),
        Stream("read", "right", 40),
        Stream("left", "join"),
        Stream("right", "join"),
    ]
    site = Site("lab", tuple(Host(f"n{i}") for i in range(1, 13)), bandwidth=1e9)
    pipeline = Pipeline("diamond", filters, streams, [Source("n1", {"n1": 1.0})])
    made = deploy_lpsched(PipelineProblem(pipeline, Platform((site,))))
    assert made.check() == []
    assert made.form == "strict"
    assert {f.name: made.copies(f.name) for f in filters} == {"read": 1, "left": 2, "right": 3, "join": 1}
    total = {
        (s.source, s.target): sum(
            f.rate for f in made.flows if (f.source_filter, f.target_filter) == (s.source, s.target)
        )
        for s in streams
    }
    assert total == pytest.approx(
        {("read", "left"): 10, ("read", "right"): 4, ("left", "join"): 5, ("right", "join"): 2.5}
    )


def test_spare_power() -> None:
    plain, spare = (
        deploy_lpsched(chain((10, 100), (30, 0), hosts=8, knobs=Knobs(spare=w))) for w in (0.0, 0.5)
    )
    assert (plain.copies("f1"), spare.copies("f1")) == (3, 5)
    assert spare.check() == []


@pytest.mark.parametrize("several_per_host", [False, True])
def test_the_reserve_is_named_where_it_limits(several_per_host: bool) -> None:
    problem = chain((1, 10), (20, 10), (1, 0), knobs=Knobs(spare=0.25), several_per_host=several_per_host)
    made = deploy_lpsched(problem)
    assert made.check() == []
    assert "have no power left beyond W_F = 0.25" in made.limits[0].text
    assert made.limits[0].kind == "cpu"


@pytest.mark.parametrize("several_per_host", [False, True])
@pytest.mark.parametrize("trial", [((1e-11, 1), (1, 1), (1, 0)), ((1, 1), (1e10, 1), (1, 0))])
def test_a_reader_that_is_far_too_fast_is_throttled(
    trial: tuple[tuple[float, float], ...], several_per_host: bool
) -> None:
    made = deploy_lpsched(chain(*trial, knobs=Knobs(host_cost=0.0), several_per_host=several_per_host))
    assert made.check() == []
    slowest = max(seconds for seconds, _ in trial[1:])
    assert made.throughput >= 2 / slowest
    full = trial[0][1] / trial[0][0]
    assert f"of its {full:.4g} MB/s" in made.notes[0]


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (
            ((1e-300, 1e18), (1, 1), (1, 0)),
            "filter 'f0': 1e-300 s for 1e+18 MB read at power 1: the reader would",
        ),
        (((1e300, 1e-18), (1, 0)), "filter 'f0': 1e+300 s for 1e-18 MB"),
        (
            ((1, 1), (1e300, 0)),
            "filter 'f1': 1e+300 s for 1 MB read at power 1: all hosts together would process",
        ),
        (((1, 1e-300), (1, 1e300), (1, 0)), "stream 'f1' -> 'f2': 1e+300 MB for 1e-300 MB read"),
        (((1e-300, 1e18), (0, 0)), "would process inf MB/s"),
    ],
)
def test_numbers_of_no_machine_are_refused(trial: tuple[tuple[float, float], ...], words: str) -> None:
    with pytest.raises(BadProgram) as caught:
        deploy_lpsched(chain(*trial))
    assert words in str(caught.value)


def test_a_dear_host_must_be_worth_it() -> None:
    """With the reader held back by the network, hosts that cost more than they add are not used."""
    problem = chain((1, 100), (100, 0), hosts=10)
    made = deploy_lpsched(replace(problem, knobs=Knobs(host_cost=1.5)))
    assert made.copies("f1") == 1
    assert deploy_lpsched(replace(problem, knobs=Knobs(host_cost=0.5))).copies("f1") == 9


def test_cheap_and_large_numbers_give_the_same_placements() -> None:
    """The unit of volumes is the user's affair."""
    for scale in (1e-6, 1.0, 1e6):
        trial = [(10, 100 * scale), (35, 10 * scale), (5, 0)]
        made = deploy_lpsched(chain(*trial, port=100 * scale, knobs=Knobs(host_cost=0.01 * scale)))
        assert made.check() == []
        assert [made.copies(f"f{k}") for k in range(3)] == [1, 4, 1]
        assert made.throughput == pytest.approx(10 * scale)


@pytest.mark.parametrize("seed", range(0, 100, 5))
def test_comparators_are_valid(seed: int) -> None:
    problem = small(seed)
    for planner in (deploy_trivial, deploy_total):
        try:
            made = planner(problem)
        except NoPlan:
            continue
        assert made.check() == []
        assert made.throughput > 0
        if planner is deploy_total:
            assert len(made.hosts_used) == len(problem.hosts)


def test_dealing_is_fair_and_whole() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        parts = random.uniform(0, 10, random.integers(1, 8))
        hosts = int(random.integers(len(parts), 60))
        counts = proportional_counts(parts, hosts)
        assert counts.sum() == hosts
        assert counts.min() >= 1
        wanted = parts / parts.sum() * hosts
        grown = counts[wanted >= 1] - wanted[wanted >= 1]
        assert grown.size == 0 or grown.max() < 1
    with pytest.raises(NoPlan):
        proportional_counts(np.ones(3), 2)


def test_same_answer_every_time() -> None:
    first, again = (
        deploy_lpsched(
            PipelineProblem(
                microscope(),
                Platform(
                    (
                        Site(
                            "lab",
                            tuple(Host(f"MD{i}", 1.0 + (i % 5) / 10) for i in range(1, 41)),
                            bandwidth=12.5e6,
                        ),
                    )
                ),
                microscope().knobs,
            )
        )
        for _ in range(2)
    )
    assert first.placements == again.placements
    assert first.flows == again.flows
