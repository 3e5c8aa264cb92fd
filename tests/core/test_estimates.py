"""What schedulers believe: history in a run beside history in files, time left, and links between pairs."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.estimate_sources import LearningEstimates, ServiceEstimates
from headrace.core.estimates import Estimates, HistoryEstimates
from headrace.model.errors import UsageError
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.model.trace import LinkTrace, Trace
from headrace.predict.history import Measurement, predict


def tasks(seed: int, reading: bool = True) -> Graph:
    rng = np.random.default_rng(seed)
    n = 12
    return make_graph(
        work=rng.uniform(1, 5, n),
        size=rng.uniform(10, 90, n) if reading else [],
        producer=[-1] * n if reading else [],
        read_ptr=range(n + 1) if reading else [0] * (n + 1),
        reads=range(n) if reading else [],
        kind=np.arange(n) % 2,
        kinds=("fft", "jacobi"),
    )


def note(estimates: Estimates, rows: list[tuple[int, int, float]]) -> None:
    some, hosts, seconds = (np.array(column) for column in zip(*rows, strict=True))
    estimates.note(np.zeros(len(rows)), some.astype(np.int32), hosts.astype(np.int32), seconds.astype(float))


def all_seconds(estimates: Estimates, hosts: int) -> np.ndarray:
    n = estimates.graph.n_tasks
    return np.array(
        [
            estimates.seconds(0.0, np.arange(n, dtype=np.int32), np.full(n, host, np.int32))
            for host in range(hosts)
        ]
    )


def test_equations_1_and_2_by_hand() -> None:
    """h0 took 2, 8 and 3 s for 10, 20 and 30 bytes: 0.2, 0.4, 0.1 s a byte, weights 0.5, 0.25, 0.125 from the
    last back over 0.875; h1 took 6 s for 20 bytes; h2, half as fast, has run none."""
    graph = make_graph(
        work=[1.0] * 5,
        size=[10, 20, 30, 20, 40],
        producer=[-1] * 5,
        read_ptr=range(6),
        reads=range(5),
        kinds=("k",),
    )
    platform = Platform.pairwise([1.0, 1.0, 0.5], 1.0)
    learned = HistoryEstimates(graph, platform, alpha=0.5)
    note(learned, [(0, 0, 2.0), (1, 0, 8.0), (3, 1, 6.0), (2, 0, 3.0)])
    first = (0.5 * 0.1 + 0.25 * 0.4 + 0.125 * 0.2) / 0.875
    times = all_seconds(learned, 3)[:, 4] / 40
    assert times.tolist() == pytest.approx([first, 0.3, 2 * (first + 0.3) / 2])


@pytest.mark.parametrize("reading", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_learning_in_a_run_is_learning_from_files(seed: int, reading: bool) -> None:
    """The same executions give the same times, whether noted one by one or read as a history."""
    graph, rng = tasks(seed, reading), np.random.default_rng([seed, 1])
    platform = Platform.pairwise([1.0, 2.0, 0.5], 1.0)
    rows = [(int(rng.integers(12)), int(rng.integers(2)), float(rng.uniform(1, 9))) for _ in range(15)]
    rows += [(0, 0, 1.0), (1, 1, 2.0)]
    learned = HistoryEstimates(graph, platform, alpha=0.7)
    for row in rows:
        note(learned, [row])
    sizes = [float(graph.size[graph.reads_of(t)].sum()) for t in range(12)]
    history = [Measurement(graph.kinds[graph.kind[t]], f"h{h}", s, sizes[t]) for t, h, s in rows]
    told, machines = predict(graph, platform, history, alpha=0.7)
    expected = told.work / machines.rates(told)[told.speed_class].T
    assert all_seconds(learned, 3) == pytest.approx(expected)


def by_architecture(files: bool = False) -> tuple[Graph, Platform]:
    """Six tasks with run times of their own for each of three architectures, five hosts: 0, 0, 1, 1, 2."""
    program = Program("sweep")
    for t in range(6):
        read = [program.input(f"in{t}", size=10.0 * (t + 1))] if files else []
        program.task(None, inputs=read, work=[100.0 + t, 50.0 + 3 * t, 25.0 + 2 * t], kind="sweep")
    hosts = tuple(
        Host(f"h{k}", speed, arch=arch)
        for k, (speed, arch) in enumerate([(1.0, 0), (2.0, 0), (1.0, 1), (1.0, 1), (1.0, 2)])
    )
    return program.graph, Platform((Site("s", hosts),))


@pytest.mark.parametrize("files", [False, True])
def test_run_times_for_architectures_are_learned_across_tasks(files: bool) -> None:
    """One task of 80 s on h0 tells of all tasks on all hosts: by speed on its architecture, by the user's mean run
    times elsewhere; then one on h2 tells of h3, which has its architecture."""
    graph, platform = by_architecture(files)
    assert (len(graph.kinds), len(graph.class_kind)) == (1, 6)
    learned = HistoryEstimates(graph, platform)
    user = all_seconds(learned, 5)
    assert user == pytest.approx((graph.work[:, None] / platform.rates(graph)[graph.speed_class]).T)
    size = np.arange(1, 7) if files else np.ones(6)
    note(learned, [(0, 0, 80.0)])
    mean = user.mean(axis=1)
    first = 80.0 * np.array([1.0, 0.5, mean[2] / mean[0], mean[3] / mean[0], mean[4] / mean[0]])
    assert all_seconds(learned, 5) == pytest.approx(first[:, None] * size)
    note(learned, [(1, 2, 30.0 * size[1])])
    later = all_seconds(learned, 5)
    assert later[2:4] == pytest.approx(np.array([30.0, 30.0])[:, None] * size)
    assert later[:2] == pytest.approx(first[:2, None] * size)
    between = (80.0 / mean[0] + 30.0 / mean[2]) / 2 * mean[4]
    assert later[4] == pytest.approx(between * size)


def test_a_platform_with_learned_speeds_says_the_same_as_the_estimates() -> None:
    graph, platform = by_architecture()
    learned = HistoryEstimates(graph, platform)
    for rows in ([], [(3, 4, 9.0)], [(2, 1, 5.0), (1, 0, 7.0)]):
        if rows:
            note(learned, rows)
        rates = learned.rates(0.0)
        seen = learned.platform(0.0).rates(learned.graph)
        in_use = np.unique(learned.graph.speed_class)
        assert seen[in_use] == pytest.approx(rates[in_use])


@pytest.mark.parametrize("seed", range(4))
def test_architectures_in_a_run_are_as_from_files(seed: int) -> None:
    graph, platform = by_architecture(files=True)
    rng = np.random.default_rng(seed)
    rows = [(int(rng.integers(6)), int(rng.integers(4)), float(rng.uniform(1, 9))) for _ in range(9)]
    learned = HistoryEstimates(graph, platform)
    note(learned, rows)
    told, machines = predict(
        graph, platform, [Measurement("sweep", f"h{h}", s, 10.0 * (t + 1)) for t, h, s in rows]
    )
    assert all_seconds(learned, 5) == pytest.approx(told.work / machines.rates(told)[told.speed_class].T)


def test_history_with_forecasts_learns_without_the_load() -> None:
    """A task took 40 s while half of h0 was there: 20 core seconds. From 40 s on a quarter is there: 80 s."""
    graph = make_graph(work=[5.0, 5.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[], kinds=("k",))
    trace = Trace([0.0, 40.0, 1e9], [0.5, 0.25, 0.25])
    platform = Platform((Site("lab", (Host("h0", trace=trace, load=0.5), Host("h1", speed=2.0))),))
    both = np.array([0, 1], np.int32)
    told = LearningEstimates(graph, platform)
    assert told.seconds(0.0, both, both).tolist() == pytest.approx([10.0, 2.5])
    told.note(np.array([40.0]), both[:1], both[:1], np.array([40.0]))
    assert told.seconds(600.0, both, both).tolist() == pytest.approx([80.0, 10.0], rel=0.05)
    seen = told.platform(600.0)
    assert (told.work / seen.rates(told.graph)[told.graph.speed_class, both]).tolist() == pytest.approx(
        told.seconds(600.0, both, both).tolist()
    )


def test_run_times_and_speeds_are_brought_up_to_date_together() -> None:
    """Who asks for seconds first after something was learned gets learned seconds, not half of each."""
    graph = tasks(0)
    learned = HistoryEstimates(graph, Platform.pairwise([1.0], 1.0))
    note(learned, [(0, 0, 7.0)])
    one = np.zeros(1, np.int32)
    assert learned.seconds(0.0, one, one)[0] == pytest.approx(7.0)


def test_a_history_that_forgets_nothing_or_all_is_refused() -> None:
    for alpha in (0.0, 1.1):
        with pytest.raises(UsageError, match="alpha is"):
            HistoryEstimates(tasks(0), Platform.pairwise([1.0], 1.0), alpha)


LAB = Platform((Site("lab", (Host("a", speed=2.0), Host("b", load=0.5))),))


@pytest.mark.parametrize("quality", ["perfect", "sampled", "forecast"])
def test_time_left_counts_what_each_load_has_left_undone(quality: str) -> None:
    """100 s of work at speed 2: whole until 20 s, a quarter since; at 40 s 25 of 50 core seconds are left."""
    graph = make_graph(work=[100.0], size=[], producer=[], read_ptr=[0, 0], reads=[])
    told = ServiceEstimates(graph, LAB, quality=quality)  # type: ignore[arg-type]
    told.change(20.0, "host", 0, Trace.constant(0.25))
    zero = np.zeros(1, np.int32)
    ahead = float(told.rates(40.0)[0, 0]) / 2.0
    left = told.left(40.0, zero, zero, np.zeros(1), np.array([50.0]))
    assert left[0] == pytest.approx(25.0 / ahead)
    if quality == "perfect":
        assert ahead == pytest.approx(0.25)


def test_with_perfect_information_time_left_is_exact() -> None:
    """Available for 30 s, then gone for 600: the mean over the time ahead would tell something else."""
    trace = Trace([0.0, 30.0, 630.0], [1.0, 0.0, 1.0])
    platform = Platform((Site("lab", (Host("a", trace=trace),)),))
    graph = make_graph(work=[20.0, 50.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    told = ServiceEstimates(graph, platform)
    left = told.left(
        10.0, np.arange(2, dtype=np.int32), np.zeros(2, np.int32), np.zeros(2), np.array([20.0, 50.0])
    )
    assert left.tolist() == pytest.approx([10.0, 640.0])


def test_an_overdue_task_is_expected_to_need_a_tenth_more() -> None:
    graph = make_graph(work=[10.0], size=[], producer=[], read_ptr=[0, 0], reads=[])
    zero = np.zeros(1, np.int32)
    for told in (ServiceEstimates(graph, LAB, quality="forecast"), Estimates(graph, LAB)):
        assert told.left(50.0, zero, zero, np.zeros(1), np.array([5.0]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("quality", ["perfect", "sampled", "forecast"])
def test_links_between_pairs_are_told_of_too(quality: str) -> None:
    platform = Platform.pairwise([1.0, 1.0, 1.0], 10.0)
    told = ServiceEstimates(tasks(0), platform, quality=quality)  # type: ignore[arg-type]
    link = platform.network.link_names.index("h1 -> h2")
    told.change(0.0, "link", link, LinkTrace(Trace.constant(2.0), Trace.constant(0.0)))
    network = told.platform(3000.0).network
    assert network.bandwidth(1, 2) == pytest.approx(2.0, rel=0.05)
    assert network.bandwidth(2, 1) == 10.0


def test_an_execution_of_no_time_gives_no_infinite_speed() -> None:
    learned = HistoryEstimates(tasks(0), Platform.pairwise([1.0, 1.0], 1.0))
    note(learned, [(0, 0, 0.0), (2, 1, 5.0)])
    assert np.isfinite(learned.rates(0.0)).all()
    rates = learned.rates(0.0)[learned.graph.speed_class[0]]
    assert rates[0] > 1e6 * rates[1]


def test_a_change_is_told_at_once_and_a_host_that_stands_still_may_recover() -> None:
    told = ServiceEstimates(tasks(0), LAB)
    assert told.rates(3.0)[0].tolist() == pytest.approx([2.0, 0.5])
    told.change(4.0, "host", 0, Trace.constant(0.5))
    told.change(4.0, "host", 1, Trace.constant(0.0))
    fast, still = told.rates(5.0)[0].tolist()
    assert fast == pytest.approx(1.0)
    assert 0 < still < 0.01
    assert told.platform(5.0).hosts[0].load == pytest.approx(0.5)


def test_run_times_and_sizes_are_as_good_as_the_information() -> None:
    graph = tasks(0)
    real = make_graph(
        work=graph.work * 2.0,
        size=graph.size * 3.0,
        producer=graph.producer,
        read_ptr=graph.read_ptr,
        reads=graph.reads,
        kind=graph.kind,
        kinds=graph.kinds,
    )
    done, made = np.zeros(graph.n_tasks, np.bool_), graph.producer >= 0
    perfect, foretold = ServiceEstimates(graph, LAB, real), ServiceEstimates(graph, LAB, real, "forecast")
    wrong = ServiceEstimates(graph, LAB, real, "bounded", error=0.2, seed=1)
    assert perfect.work.tolist() == real.work.tolist()
    assert perfect.sizes(done, real.size).tolist() == real.size.tolist()
    assert foretold.work.tolist() == graph.work.tolist()
    assert foretold.sizes(done, real.size).tolist() == graph.size.tolist()
    assert 0 < np.abs(wrong.work / real.work - 1).max() <= 0.2
    error = np.abs(wrong.sizes(done, real.size) / real.size - 1)
    assert 0 < error.min() < error.max() <= 0.2
    assert wrong.sizes(~done, real.size).tolist() == np.where(made, real.size, wrong.graph.size).tolist()


def test_errors_of_hosts_and_links_are_drawn_apart() -> None:
    sites = tuple(Site(f"s{k}", (Host(f"h{k}"),), uplink=10.0) for k in range(3))
    told = ServiceEstimates(tasks(0), Platform(sites), quality="bounded", error=0.3, seed=5)
    platform = told.platform(0.0)
    hosts = [1.0 - host.load for host in platform.hosts]
    links = [float(site.uplink or 0) / 10.0 for site in platform.sites]
    assert all(0.7 <= value <= 1.3 for value in [*hosts, *links])
    assert not np.allclose(np.minimum(links, 1.0), hosts)
