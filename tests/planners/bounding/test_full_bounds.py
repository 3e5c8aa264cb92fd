"""Full bounds hold, are better than quick ones, and say what proves them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.bound import Bound
from headrace.model.constraints import Constraints
from headrace.model.errors import UsageError
from headrace.model.graph import make_graph
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.planners.bounding import anytime
from headrace.planners.bounding.rows import WorkRow, priced_bound
from headrace.planners.bounding.task_groups import group_tasks
from headrace.planners.bounding.whole_tasks import WholeTasks
from headrace.planners.bounding.work_program import WorkProgram
from headrace.planners.bounding.work_table import work_table
from headrace.planners.bounds import CHAIN, WORK, bound_of, full_bound, lower_bound
from headrace.planners.registry import make
from headrace.testing.exact import proven_makespan, small_case
from headrace.testing.exact_links import linked_case, proven_optimum

LINKS: tuple[Contention, ...] = ("none", "fifo")
ROUNDED = 1e-4
"""Both programs of whole tasks, that of the optimum and that of the bound, round times down to their units."""


def _holds(seeds: range) -> NDArray[np.bool_]:
    """Assert that no bound exceeds the optimum; [cases, 2] whether the quick and the full one are equal to it.

    Optima that are not proven in time are left out.
    """
    cases = [linked_case(seed, contention) for seed in seeds for contention in LINKS]
    found = [equal for case in cases if (equal := _holds_in(case)) is not None]
    assert len(found) > 0.9 * len(cases)
    return np.array(found)


def _holds_in(problem: Problem) -> tuple[bool, bool] | None:
    proven = proven_optimum(problem, seconds=20.0)
    if proven is None:
        return None
    quick, full = lower_bound(problem), full_bound(problem, seconds=20.0)
    low, high = proven
    assert quick <= high * (1 + 1e-9), (problem.platform.name, quick.name)
    assert full <= high * (1 + 1e-9), (problem.platform.name, full.name)
    assert quick <= full
    return quick >= low, full >= low


def test_bounds_hold_on_all_networks() -> None:
    """With cores per task, releases, speeds per kind and hosts that are not allowed."""
    equal = _holds(range(0, 75, 9))
    assert equal[:, 1].sum() > equal[:, 0].sum() > 0


@pytest.mark.slow
def test_bounds_hold_on_many_networks() -> None:
    equal = _holds(range(100, 160))
    assert equal[:, 1].mean() > max(0.65, equal[:, 0].mean())


def test_bounds_are_not_above_plans_on_fair_links() -> None:
    for seed in range(0, 75, 12):
        case = linked_case(seed, "fair")
        plain = Problem(replace(case.graph, cores=np.zeros(0, np.int32), release=np.zeros(0)), case.platform)
        shortest = min(make(name).plan(plain).makespan for name in ("heft", "minmin", "single-host"))
        assert full_bound(plain, seconds=20.0) <= shortest * (1 + 1e-9), seed


@pytest.mark.slow
def test_bounds_hold_without_links_and_reach_most_optima() -> None:
    equal = 0
    for seed in range(8):
        problem = small_case(seed)
        low, high = proven_makespan(problem, seconds=300.0)
        bound = full_bound(problem, seconds=30.0)
        assert bound <= high
        equal += bound >= low * (1 - ROUNDED)
    assert equal >= 7


def _two_kinds(contention: Contention = "none") -> Problem:
    """Host a is four times as fast with kind x, host b with kind y; a plain speed says nothing of it."""
    hosts = (Host("a", 1.0, kinds={"x": 4.0}), Host("b", 1.0, kinds={"y": 4.0}))
    graph = make_graph(
        work=[1.0] * 40, size=[], producer=[], read_ptr=[0] * 41, reads=[],
        kind=[0] * 30 + [1] * 10, kinds=("x", "y"),
    )  # fmt: skip
    return Problem(graph, Platform((Site("s", hosts),), contention=contention))


def test_work_is_spread_by_the_speeds_for_its_kind() -> None:
    """All y on b take 2.5 s; of x, 7.2 s on a and 1.2 tasks' work on b: (30 - z) / 4 = 10 / 4 + z, z = 4."""
    problem = _two_kinds()
    quick = lower_bound(problem)
    assert quick.name == anytime.KINDS
    assert 6.4 <= quick <= 6.5 * (1 + 1e-9)
    program = WorkProgram(table := work_table(problem), group_tasks(table, 100))
    value, data = program.bound(0.0, np.inf, work_clock() + 10)
    assert value == pytest.approx(6.5)
    assert not data


def test_whole_tasks_do_not_fit_where_fractions_do() -> None:
    """Three equal tasks on two equal cores take two rounds; a fraction of each would take one and a half."""
    graph = make_graph(work=[4.0] * 3, size=[], producer=[], read_ptr=[0] * 4, reads=[])
    hosts = (Host("a", 1.0, cores=2), Host("b", 0.3))
    problem = Problem(graph, Platform((Site("s", hosts),)))
    table = work_table(problem)
    groups = group_tasks(table, 10)
    whole = WholeTasks(table, groups, [WorkRow(c) for c in range(len(table.cores))])
    assert list(whole.bounds(4.0, 8.0, work_clock() + 10))[-1] == pytest.approx(8.0, rel=2e-3)
    assert full_bound(problem, most=8.0, seconds=20.0) == pytest.approx(8.0, rel=2e-3)


def test_long_tasks_leave_no_room_for_shorter_ones() -> None:
    """Three tasks of 66 s and three of 36 s on four cores: a core has one of each, or three short ones, or two."""
    graph = make_graph(work=[66.0] * 3 + [36.0] * 3, size=[], producer=[], read_ptr=[0] * 7, reads=[])
    problem = Problem(graph, Platform((Site("s", (Host("a", 1.0, cores=4),)),)))
    program = WorkProgram(table := work_table(problem), group_tasks(table, 10))
    value, _ = program.bound(76.5, 101.0, work_clock() + 10)
    assert value == 101.0
    assert any(row.least for row in program.rows)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=8), st.integers(0, 3), st.integers(0, 19))
def test_values_of_tasks_that_share_a_core_sum_to_one_at_most(
    shares: list[float], parts: int, least: int
) -> None:
    seconds = np.array(shares) / sum(shares) * 7.0  # exactly a window of 7 s, up to rounding
    row = WorkRow(0, parts=parts, window=7.0, least=0.0 if parts else least / 40)
    each = row.amounts(seconds, np.ones(len(seconds)), np.zeros(len(seconds)), np.zeros(len(seconds)))
    assert each.sum() <= (1.0 if row.counts else 7.0) * (1 + 1e-12)


def test_any_prices_give_a_bound() -> None:
    random = np.random.default_rng(5)
    for seed in range(6):
        problem = linked_case(seed, "none")
        table = work_table(problem)
        proven = proven_optimum(problem)
        assert proven is not None
        rows = [WorkRow(c) for c in range(len(table.cores))]
        mask = np.isfinite(table.chain)
        for _ in range(5):
            assert priced_bound(table, rows, random.random(len(rows)), mask, np.inf) <= proven[1]


def _far_work(contention: Contention, routing: Literal["quickest", "links"] = "quickest") -> Problem:
    """Inputs of 1 MB at a site with one slow host; eight fast hosts behind a link of 1 MB/s."""
    near = Site("near", (Host("slow", 0.1),), uplink=1e6)
    far = Site("far", tuple(Host(f"f{i}") for i in range(8)), uplink=1e6, uplink_latency=0.5)
    count = 40
    graph = make_graph(
        work=[1.0] * count, size=[1e6] * count, producer=[-1] * count,
        read_ptr=np.arange(count + 1), reads=np.arange(count),
    )  # fmt: skip
    return Problem(graph, Platform((near, far), contention=contention, origin="near", routing=routing))


@pytest.mark.parametrize(
    ("contention", "routing", "least", "most"),
    [
        ("none", "quickest", 5.0, 9.0),
        ("fair", "quickest", 30.0, 40.0),
        ("fifo", "quickest", 30.0, 40.0),
        ("fifo", "links", 45.0, 60.0),
    ],
)
def test_data_for_distant_work_crosses_the_uplink(
    contention: Contention, routing: Literal["quickest", "links"], least: float, most: float
) -> None:
    """About 4 tasks stay; the input of each of the others keeps the uplink busy for 1 s, link by link for 1.5 s."""
    problem = _far_work(contention, routing)
    bound = full_bound(problem, seconds=20.0)
    assert least <= bound <= most
    assert (bound.name == anytime.WITH_DATA) == (contention != "none")
    assert bound <= make("auto").plan(problem).makespan


def test_few_inputs_that_are_followed_by_long_chains_fill_the_uplink_first() -> None:
    """200 tasks read a small input; 5 of 10 s each are followed by 30 s of other tasks: 50 s, then 30 s."""
    small, large = 200, 5
    first = small + large
    graph = make_graph(
        work=[0.1] * first + [30.0] * large,
        size=[1e3] * small + [1e7] * large + [0.0] * large,
        producer=[-1] * first + list(range(small, first)),
        read_ptr=np.arange(first + large + 1),
        reads=np.arange(first + large),
    )
    hosts = tuple(Host(f"h{i}") for i in range(20))
    sites = (Site("home"), Site("lab", hosts, uplink=1e6))
    problem = Problem(graph, Platform(sites, contention="fifo", origin="home"))
    bound = full_bound(problem, seconds=20.0)
    assert bound == pytest.approx(80.1, rel=1e-6)
    assert bound <= make("auto").plan(problem).makespan


def test_constraints_on_hosts_raise_the_bound() -> None:
    problem = _two_kinds()
    only_b = replace(Constraints.none(40, 2), allowed=np.array([[False, True]]))
    bound = full_bound(replace(problem, constraints=only_b), seconds=20.0)
    assert bound == pytest.approx(30.0 + 10.0 / 4.0)


def test_releases_delay_the_end() -> None:
    graph = make_graph(work=[1.0, 1.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    late = graph.with_fields(release=np.array([0.0, 7.0]))
    bound = lower_bound(Problem(late, Platform.pairwise([1.0, 0.5], 1e6)))
    assert bound == pytest.approx(8.0)
    assert bound.name == CHAIN


def test_an_effort_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="bound is 'most'"):
        bound_of(_two_kinds(), "most")  # type: ignore[arg-type]


def test_bounds_are_told_as_they_rise() -> None:
    heard: list[Bound] = []
    bound = full_bound(_two_kinds(), seconds=20.0, tell=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] is bound
    assert all(b.name for b in heard)


def test_a_bound_keeps_its_name() -> None:
    bound = Bound(2.5, WORK)
    again = pickle.loads(pickle.dumps(bound))
    assert (again, again.name) == (2.5, WORK)
