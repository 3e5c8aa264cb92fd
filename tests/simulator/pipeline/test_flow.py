"""The flow simulation against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.errors import HeadraceError, UsageError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site
from headrace.simulator.pipeline.flow import simulate_deployment, with_wider_window
from simulator.pipeline.deployments import chain, deployed, lab


def near(value: float) -> object:
    return pytest.approx(value, rel=0.01)


def test_two_hosts_by_hand():
    """100 buffers: reading 0.1 s, sending 0.05 s out and in, working off 0.2 s each."""
    problem = PipelineProblem(chain((10, 100), (20, 0)), lab([1, 1], port=20e6))
    happened = simulate_deployment(deployed(problem, {"f1": ["h1"]}), buffer=1.0)
    assert happened.throughput == near(5.0)
    assert happened.makespan == pytest.approx(0.1 + 0.05 + 0.05 + 100 * 0.2)
    assert happened.host_busy == pytest.approx({"h0": 10 / 20.2, "h1": 20 / 20.2})
    assert happened.link_use == pytest.approx({"h0 out": 5 / 20.2, "h1 in": 5 / 20.2})
    assert happened.events == 400


@pytest.mark.parametrize(
    ("profiles", "port", "wanted"),
    [
        (((10, 100), (5, 50), (4, 0)), 1e9, 10.0),  # the reader
        (((10, 100), (5, 50), (25, 0)), 1e9, 4.0),  # the last filter
        (((10, 100), (25, 650), (4, 0)), 1e9, 4.0),  # the middle one, which makes more than it gets
        (((10, 100), (5, 650), (4, 0)), 13e6, 2.0),  # the port out of h1
        (((10, 100), (5, 1), (4, 0)), 5e6, 5.0),  # the port out of the reader
    ],
)
@pytest.mark.parametrize("routing", ["planned", "round-robin"])
def test_the_slowest_part_decides(profiles, port, wanted, routing):
    problem = PipelineProblem(chain(*profiles), lab([1, 1, 1], port))
    happened = simulate_deployment(deployed(problem, {"f1": ["h1"], "f2": ["h2"]}), routing)
    assert happened.throughput == near(wanted)
    assert max([*happened.host_busy.values(), *happened.link_use.values()]) == near(1.0)


def test_round_robin_goes_at_the_pace_of_the_slowest_copy():
    problem = PipelineProblem(chain((1, 100), (8, 10), (1, 0)), lab([1, 4, 2, 1, 1, 1]))
    made = deployed(problem, {"f1": ["h1", "h2", "h3", "h4"], "f2": ["h5"]})
    assert made.throughput == pytest.approx(100.0)
    assert simulate_deployment(made).throughput == near(100.0)
    assert simulate_deployment(made, "round-robin").throughput == near(4 * 12.5)


def test_power_load_and_kinds_of_hosts_count():
    hosts = (Host("r"), Host("a", 4.0, load=0.5), Host("b", 1.0, kinds={"f1": 3.0}), Host("c"))
    platform = Platform((Site("lab", hosts, bandwidth=1e9),))
    problem = PipelineProblem(chain((1, 100), (10, 10), (1, 0), reader="r"), platform)
    made = deployed(problem, {"f1": ["a", "b"], "f2": ["c"]})
    assert made.throughput == pytest.approx(50.0)
    assert simulate_deployment(made).throughput == near(50.0)


def test_cores_work_side_by_side():
    problem = PipelineProblem(chain((1, 100), (8, 10), (1, 0)), lab([1, 1, 1], cores=4))
    made = deployed(problem, {"f1": ["h1"], "f2": ["h2"]}, copies=4)
    assert made.throughput == pytest.approx(50.0)
    assert simulate_deployment(made).throughput == near(50.0)
    assert simulate_deployment(made).host_busy["h1"] == near(1.0)


def test_filters_on_one_host_share_its_cores_and_need_no_port():
    problem = PipelineProblem(chain((2, 100), (5, 100), (3, 0)), lab([1, 1], 1.0), several_per_host=True)
    made = deployed(problem, {"f1": ["h0"], "f2": ["h0"]})
    happened = simulate_deployment(made)
    assert happened.throughput == near(10.0)
    assert happened.makespan == near(10.0)
    assert happened.link_use == {}


def two_clusters(shared: bool) -> Platform:
    sites = [Site(s, tuple(Host(f"{s}{i}") for i in range(3)), bandwidth=1e9) for s in "ab"]
    return Platform(tuple(sites), links=(Link("a", "b", 20e6, shared=shared),))


@pytest.mark.parametrize(("shared", "wanted"), [(True, 10.0), (False, 20.0)])
def test_links_between_clusters_are_shared_or_not(shared, wanted):
    problem = PipelineProblem(chain((1, 100), (1, 100), (1, 0), reader="a0"), two_clusters(shared))
    there_and_back = simulate_deployment(deployed(problem, {"f1": ["b0"], "f2": ["a1"]}))
    assert there_and_back.throughput == near(wanted)
    assert max(there_and_back.link_use, key=lambda k: there_and_back.link_use[k]) in ("a -> b", "b -> a")


def test_a_segment_carries_all_flows_of_its_site():
    problem = PipelineProblem(chain((1, 100), (1, 50), (1, 0)), lab([1, 1, 1]), segments={"lab": 30e6})
    happened = simulate_deployment(deployed(problem, {"f1": ["h1"], "f2": ["h2"]}))
    assert happened.throughput == near(20.0)
    assert happened.link_use["lab segment"] == near(1.0)


def test_fan_out_and_fan_in():
    filters = [
        FilterProfile("read", 10, 100),
        FilterProfile("left", 5, 20),
        FilterProfile("right", 50, 80),
        FilterProfile("join", 20),
    ]
    streams = [
        Stream("read", "left", 60.0),
        Stream("read", "right", 100.0),
        Stream("left", "join"),
        Stream("right", "join"),
    ]
    pipeline = Pipeline("diamond", filters, streams, [Source("all", {"h0": 1.0})])
    made = deployed(
        PipelineProblem(pipeline, lab([1] * 6)), {"left": ["h1"], "right": ["h2", "h3"], "join": ["h4"]}
    )
    assert made.throughput == pytest.approx(4.0)
    happened = simulate_deployment(made)
    assert happened.throughput == near(4.0)
    assert happened.link_use["h0 out"] * 1000 == near(4.0 * 1.6)


def test_readers_keep_together():
    """Equal shares on unequal readers: the slower one decides, and the plan says so."""
    pipeline = chain((1, 100), (0.5, 0)).with_sources([Source("two", {"h0": 0.5, "h1": 0.5})])
    made = deployed(PipelineProblem(pipeline, lab([1.0, 0.2, 1.0, 1.0])), {"f1": ["h2", "h3"]})
    assert made.throughput == pytest.approx(40.0)
    happened = simulate_deployment(made)
    assert happened.throughput == near(40.0)
    assert happened.host_busy["h0"] == near(0.2)


def test_small_windows_cost_and_never_gain():
    rng = np.random.default_rng(5)
    platform = lab(rng.uniform(0.5, 2.0, 12).tolist(), port=30e6)
    problem = PipelineProblem(chain((8, 100), (40, 300), (20, 10), (1, 0)), platform)
    used = {"f1": ["h1", "h2", "h3", "h4", "h5"], "f2": ["h6", "h7", "h8"], "f3": ["h9"]}
    rates = [simulate_deployment(deployed(problem, used), window=w).throughput for w in (1, 2, 4, 16)]
    assert rates[0] < 0.95 * rates[-1]
    assert rates == sorted(rates)


@pytest.mark.parametrize("seed", range(12))
def test_all_data_comes_through_and_no_rate_is_above_what_there_is(seed):
    rng = np.random.default_rng(seed)
    platform = lab(rng.uniform(0.5, 3.0, 12).tolist(), port=float(rng.uniform(5e6, 50e6)), cores=2)
    profiles = [(float(rng.uniform(1, 60)), float(rng.uniform(1, 300))) for _ in range(4)]
    problem = PipelineProblem(chain(*profiles), platform, several_per_host=True)
    names = [h.name for h in platform.hosts]
    hosts = {f"f{k}": sorted(rng.choice(names, rng.integers(1, 5), replace=False)) for k in (1, 2, 3)}
    made = deployed(problem, hosts)
    for routing in ("planned", "round-robin"):
        for window in (1, 3, 16):
            happened = simulate_deployment(made, routing, window=window)
            assert happened.makespan >= profiles[0][1] / made.throughput * (1 - 1e-9)
            shares = [*happened.host_busy.values(), *happened.link_use.values()]
            assert all(0 < share <= 1 + 1e-9 for share in shares)
            sent = {h: share * happened.makespan for h, share in happened.host_busy.items()}
            work = sum(sent[h] * platform.hosts[names.index(h)].speed * 2 for h in sent)
            assert work == pytest.approx(sum(seconds for seconds, _ in profiles), rel=1e-6)


@pytest.mark.parametrize("growth", [17, 100, 5000])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_filter_that_multiplies_its_data_keeps_its_rate(growth, copies):
    """Buffers leave while the copy works: a burst at the end would wait for room, and the copy with it."""
    problem = PipelineProblem(chain((10, 1), (8 * copies, growth), (9 * copies, 0)), lab([1] * 7))
    hosts = {"f1": ["h1", "h2", "h3"][:copies], "f2": ["h4", "h5", "h6"][:copies]}
    happened = simulate_deployment(deployed(problem, hosts))
    assert happened.of_planned == near(1.0)
    assert happened.events < 500_000


def test_pieces_of_a_buffer_of_given_size_leave_one_by_one():
    """One buffer becomes 40, which is more than the next copy has room for."""
    problem = PipelineProblem(chain((10, 100), (8, 4000), (9, 0)), lab([1, 1, 1]))
    happened = simulate_deployment(deployed(problem, {"f1": ["h1"], "f2": ["h2"]}), buffer=1.0)
    assert happened.throughput == near(10.0)
    assert happened.makespan == pytest.approx(10 + 8 / 100 + 9 / 100, rel=0.01)


def test_readers_leave_the_reserve_alone():
    made = deployed(
        PipelineProblem(chain((5, 100), (10, 50), (4, 0)), lab([1, 1, 1]), Knobs(spare=0.25)),
        {"f1": ["h1"], "f2": ["h2"]},
        slow=0.8,
    )
    happened = simulate_deployment(made)
    assert happened.throughput == near(8.0)
    assert happened.host_busy["h0"] == near(0.4)
    assert happened.host_busy["h1"] == near(0.8)


def test_the_window_is_named_where_it_is_the_limit():
    """With room for one buffer, a copy and the ports before it work by turns."""
    problem = PipelineProblem(chain((10, 100), (9, 100), (9, 0)), lab([1, 1, 1], port=10e6))
    made = deployed(problem, {"f1": ["h1"], "f2": ["h2"]})
    narrow = simulate_deployment(made, window=1)
    assert narrow.of_planned < 0.98
    wider = with_wider_window(narrow)
    assert wider is not None
    assert (wider.window, wider.of_planned) == (16, near(1.0))
    assert with_wider_window(simulate_deployment(made)) is None
    slow = deployed(problem, {"f1": ["h1"], "f2": ["h2"]}, slow=2.0)
    assert with_wider_window(simulate_deployment(slow)) is None  # a promise that nothing can keep


def test_the_same_again():
    problem = PipelineProblem(chain((10, 100), (50, 650), (20, 0)), lab([1, 2, 1, 3, 1]))
    made = deployed(problem, {"f1": ["h1", "h2", "h3"], "f2": ["h4"]})
    first, second = simulate_deployment(made), simulate_deployment(made)
    assert (first.throughput, first.makespan, first.link_use) == (
        second.throughput,
        second.makespan,
        second.link_use,
    )


def test_wrong_calls_are_refused():
    problem = PipelineProblem(chain((10, 100), (20, 0)), lab([1, 1]))
    made = deployed(problem, {"f1": ["h1"]})
    for options in (
        {"routing": "random"},
        {"window": 0},
        {"megabytes": 0.0},
        {"buffer": -1.0},
        {"megabytes": 1e9, "buffer": 1e-3},
    ):
        with pytest.raises(UsageError):
            simulate_deployment(made, **options)


def test_a_deployment_whose_filter_is_nowhere_is_refused():
    from dataclasses import replace

    problem = PipelineProblem(chain((10, 100), (20, 0)), lab([1, 1]))
    made = deployed(problem, {"f1": ["h1"]})
    with pytest.raises(HeadraceError, match="f1"):
        simulate_deployment(replace(made, placements=made.placements[:1], flows=()))


def test_a_segment_in_a_network_of_pairs():
    problem = PipelineProblem(
        chain((1, 100), (1, 50), (1, 0)),
        Platform.pairwise([1, 1, 1], bandwidth=1e9),
        segments={"all": 30e6},
    )
    assert simulate_deployment(deployed(problem, {"f1": ["h1"], "f2": ["h2"]})).throughput == near(20.0)
