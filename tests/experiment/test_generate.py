"""Generated sweeps, grids and task graphs have the structure and the numbers that were asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.experiment.dataflow import fft, jacobi, matmul
from headrace.experiment.distribution import Distribution, constant, lognormal, normal, uniform
from headrace.experiment.generate import PATTERNS, SweepSpec, generate_sweep
from headrace.experiment.grids import SERIES, ClusterSpec, GridSpec, SeriesSpec, generate_grid, make_series
from headrace.model.errors import UsageError
from headrace.model.program import Program
from headrace.model.trace import Trace


def shared_reads(program: Program) -> list[list[int]]:
    return [
        [int(name.removeprefix("shared")) for name in task.inputs if name.startswith("shared")]
        for task in program.tasks.values()
    ]


def test_distributions_have_their_moments() -> None:
    rng = np.random.default_rng(0)
    assert constant(5.0).draw(rng, 3).tolist() == [5.0, 5.0, 5.0]
    for made, mean, low in ((uniform(90, 110), 100, 90), (normal(100, 10), 100, 0), (normal(1, 5), None, 0)):
        values = made.draw(rng, 20_000)
        assert values.min() >= low
        if mean is not None:
            assert values.mean() == pytest.approx(mean, rel=0.01)
    values = lognormal(100, 0.5).draw(rng, 20_000)
    assert np.median(values) == pytest.approx(100, rel=0.03)
    assert np.log(values).std() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("made", [uniform(2, 4), normal(3, 1), lognormal(3, 0.4), constant(3)])
def test_scaling_a_distribution_scales_what_is_drawn(made: Distribution) -> None:
    plain, ten = (d.draw(np.random.default_rng(1), 50) for d in (made, made.scaled(10.0)))
    assert ten.tolist() == pytest.approx((10 * plain).tolist())


def test_patterns() -> None:
    def reads(pattern: str, **more: object) -> list[list[int]]:
        spec = SweepSpec(tasks=12, pattern=pattern, files=4, **more)  # type: ignore[arg-type]
        return shared_reads(generate_sweep(spec, seed=1))

    assert reads("none") == [[]] * 12
    assert reads("all-to-one") == [[0]] * 12
    assert reads("chunks") == [[f] for f in (0, 1, 2, 3) for _ in range(3)]
    assert reads("pairwise")[:6] == [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    assert reads("pairwise")[6:] == reads("pairwise")[:6]
    assert reads("window", reads=3)[::3] == [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]]
    drawn = reads("random", reads=2)
    assert all(len(set(r)) == 2 for r in drawn)
    assert len({tuple(r) for r in drawn}) > 2


def test_all_pairs_of_many_files_come_once() -> None:
    pairs = shared_reads(generate_sweep(SweepSpec(tasks=190, pattern="pairwise", files=20), seed=0))
    assert sorted(map(tuple, pairs)) == [(i, j) for i in range(20) for j in range(i + 1, 20)]


def test_perturbing_and_shuffling() -> None:
    plain = shared_reads(generate_sweep(SweepSpec(tasks=400), seed=3))
    some = shared_reads(generate_sweep(SweepSpec(tasks=400, perturb=0.25), seed=3))
    changed = sum(a != b for a, b in zip(plain, some, strict=True))
    assert 50 < changed < 130
    mixed = shared_reads(generate_sweep(SweepSpec(tasks=400, shuffle=True), seed=3))
    assert mixed != plain
    assert sorted(mixed) == plain


@settings(max_examples=30)
@given(st.sampled_from(PATTERNS), st.floats(0.1, 100), st.integers(0, 5))
def test_the_ratio_of_computation_to_communication(pattern: str, ccr: float, seed: int) -> None:
    spec = SweepSpec(tasks=20, pattern=pattern, files=5, ccr=ccr, bandwidth=2e4)  # type: ignore[arg-type]
    graph = generate_sweep(spec, seed).graph
    assert graph.work.sum() / (graph.size.sum() / 2e4) == pytest.approx(ccr)


def test_reality_differs_from_the_estimates_as_asked() -> None:
    spec = SweepSpec(tasks=500, time_error=uniform(0.8, 1.2), size_error=constant(2.0))
    program = generate_sweep(spec, seed=2)
    graph, real = program.graph, program.real
    factor = real.work / graph.work
    assert 0.8 <= factor.min() < 0.82
    assert 1.18 < factor.max() <= 1.2
    made = graph.producer >= 0
    assert np.allclose(real.size[made], 2 * graph.size[made])
    assert np.array_equal(real.size[~made], graph.size[~made])
    plain = generate_sweep(SweepSpec(tasks=500), seed=2)
    assert plain.reality is None
    assert np.array_equal(plain.graph.work, graph.work), "errors do not change the estimates"


def test_affinities() -> None:
    program = generate_sweep(SweepSpec(tasks=50, architectures=3, affinity=0.5), seed=0)
    script = generate_grid(GridSpec(tuple(ClusterSpec(1, arch=a) for a in range(3))), seed=0)
    graph = program.graph
    times = graph.work[:, None] / script.platform.rates(graph)[graph.speed_class]
    assert len({int(k) for k in times.argmin(axis=1)}) == 3
    assert times.min() >= 45
    assert times.max() <= 165


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    spec = SweepSpec(tasks=30, pattern="random", time_error=uniform(0.5, 1.5))
    a, b, c = (generate_sweep(spec, seed) for seed in (7, 7, 8))
    assert a.tasks == b.tasks
    assert a.data == b.data
    assert np.array_equal(a.real.work, b.real.work)
    assert a.tasks != c.tasks


def test_figure_11_is_the_default() -> None:
    graph = generate_sweep(SweepSpec(), seed=0).graph
    assert graph.n_tasks == 400
    assert np.bincount(graph.reads[graph.reads < 8]).tolist() == [50] * 8
    assert 90 <= graph.work.min() < graph.work.max() <= 110
    assert set(graph.size[graph.size > 2e4].tolist()) == {1.2e6}


@pytest.mark.parametrize(
    "bad",
    [
        {"tasks": 0},
        {"pattern": "star"},
        {"pattern": "random", "files": 2, "reads": 3},
        {"pattern": "pairwise", "files": 1},
        {"perturb": 1.5},
        {"affinity": 1.0},
        {"ccr": 0.0},
        {"architectures": 0},
    ],
)
def test_bad_sweeps_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SweepSpec(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [("uniform", 2.0, 1.0), ("normal", -1.0, 1.0), ("poisson", 1.0, 1.0)])
def test_bad_distributions_are_refused(bad: tuple[str, float, float]) -> None:
    with pytest.raises(UsageError):
        Distribution(*bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("series", SERIES)
def test_series_have_about_their_mean_and_repeat(series: str) -> None:
    spec = SeriesSpec(series, 0.4, 300.0)  # type: ignore[arg-type]
    traces = [make_series(spec, 2.0, 50_000.0, [seed]) for seed in range(6)]
    assert traces[0] == make_series(spec, 2.0, 50_000.0, [0])
    expected = {"loaded": 2.0 * 0.8, "onoff": 2.0 * 0.6}.get(series, 2.0)
    assert np.mean([t.mean for t in traces]) == pytest.approx(expected, rel=0.06)
    if series == "stable":
        assert traces[0].steady
    else:
        assert traces[0] != traces[1]
        assert traces[0].repeats


def test_periodic_and_loaded_series_have_their_shape() -> None:
    wave = make_series(SeriesSpec("periodic", 0.5, 100.0), 1.0, 1000.0, [1])
    assert (round(wave.value.min(), 2), round(wave.value.max(), 2)) == (0.5, 1.5)
    assert wave.value[:20].tolist() == pytest.approx(wave.value[20:40].tolist())
    busy = make_series(SeriesSpec("loaded", 0.75, 100.0), 1.0, 10_000.0, [1])
    assert set(busy.value.tolist()) == {1.0, 0.25}
    assert all(busy.at(100.0 * k) == busy.at(100.0 * k + 99) for k in range(99))


def test_grids_with_churn_keep_one_host_and_return_the_others() -> None:
    spec = GridSpec((ClusterSpec(3), ClusterSpec(2)), up=1000.0, down=500.0, until=20_000.0)
    script = generate_grid(spec, seed=4)
    here = [len(script.present(t)) for t in range(0, 20_000, 100)]
    assert here[0] == 5
    assert min(here) >= 1
    assert len(set(here)) > 2
    assert all("c0h0" in script.present(c.time) for c in script.changes)
    assert np.mean(here) == pytest.approx(1 + 4 * 1000 / 1500, rel=0.2)


def test_grids_repeat_by_seed() -> None:
    walk = SeriesSpec("walk", 0.3, 600.0)
    spec = GridSpec((ClusterSpec(2, 0.6, load=walk, traffic=walk),), up=900.0, until=3600.0)
    a, b, c = (generate_grid(spec, seed) for seed in (1, 1, 2))
    assert a.changes == b.changes
    assert a.changes != c.changes
    host = a.behaviours["c0h0"]
    assert isinstance(host, Trace)
    assert host.value.max() <= 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: SeriesSpec("walk", 1.5),
        lambda: SeriesSpec("walk", 0.5, 1.0),
        lambda: SeriesSpec("jump"),  # type: ignore[arg-type]
        lambda: GridSpec((ClusterSpec(0),)),
        lambda: GridSpec((ClusterSpec(1, 1.5),)),
        lambda: GridSpec(up=0.0),
    ],
)
def test_bad_grids_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError):
        make()


def test_jacobi_is_the_papers() -> None:
    assert [jacobi(n).graph.n_tasks for n in (10, 100)] == [640, 6400]
    program = jacobi(3, pieces=4, order=8, ratio=5.0, bandwidth=10.0)
    middle, edge = program.tasks["jacobi2.1"], program.tasks["jacobi2.0"]
    assert middle.inputs == ("piece1.1", "bottom1.0", "top1.2")
    assert edge.inputs == ("piece1.0", "top1.1")
    row, piece = 8 * 8, 8 * 8 * 8 / 4
    assert program.data["piece1.1"].size == piece
    assert program.data["top1.2"].size == row
    assert middle.work == pytest.approx(5.0 * (piece + 2 * row) / 10.0)
    assert len(program.results()) == 4
    assert np.bincount(program.graph.level).tolist() == [4, 4, 4]


def test_fft_is_the_papers() -> None:
    graph = fft().graph
    assert graph.n_tasks == 1664
    assert np.bincount(graph.level).tolist() == [64] * 26
    assert set(graph.size.tolist()) == {2.0**24 / 64 * 16}
    reads = np.diff(graph.read_ptr).reshape(26, 64) if graph.task_names[63] == "reorder.63" else None
    assert reads is not None
    assert reads[:, 0].tolist() == [1] * 19 + [2] * 6 + [1]


def test_every_output_of_an_fft_depends_on_every_input() -> None:
    graph = fft(64, 8).graph
    reach: list[set[int]] = [set() for _ in range(graph.n_items)]
    for item in np.flatnonzero(graph.producer < 0).tolist():
        reach[item] = {item}
    for task in graph.order.tolist():
        seen = set().union(*(reach[i] for i in graph.reads_of(task).tolist()))
        for item in graph.writes_of(task).tolist():
            reach[item] = seen
    results = np.flatnonzero(graph.result).tolist()
    assert len(results) == 8
    assert all(len(reach[item]) == 8 for item in results)


def test_matmul_is_the_papers() -> None:
    program = matmul()
    graph = program.graph
    assert (graph.n_tasks, len(program.inputs()), len(program.results())) == (256, 1024, 512)
    assert program.data["a0.0.0"].size == 125_000
    small = matmul(4, 2, streams=1)
    assert small.tasks["multiply0.1"].inputs == ("a0.0.0", "b0.1.0", "a0.1.0", "b1.1.0")


@pytest.mark.parametrize(
    "make", [lambda: fft(100), lambda: fft(4, 8), lambda: jacobi(0), lambda: matmul(ratio=0)]
)
def test_bad_task_graphs_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError):
        make()
