"""Proofs that hold, answers that do not get worse, and bounds that know disks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.check import require_valid
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.coschedule.cp import solve, ticks_of
from headrace.planners.coschedule.disks import disk_seconds
from headrace.planners.coschedule.dispatching import Dispatcher
from headrace.planners.coschedule.holding import holdings
from headrace.planners.coschedule.improving import Improving
from headrace.planners.coschedule.instance import instance_of
from headrace.planners.coschedule.large_search import LargeSearch, decisions_of
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler, undecided_paths
from headrace.planners.coschedule.local_search import Search
from headrace.planners.coschedule.lp import Relaxer
from headrace.planners.coschedule.neighbourhood import decide_anew
from headrace.planners.coschedule.planner import Coschedule
from headrace.planners.coschedule.relaxation import quick_bound, weighted_bound
from headrace.planners.coschedule.workers import SearchWorker
from headrace.planners.registry import make
from headrace.planners.side_by_side import together
from headrace.report.resources import disk_levels, level_of
from headrace.simulator.replay.replay import replay
from headrace.testing.tiered_grid import tiered_grid
from planners.coschedule.cases import rich_case
from planners.coschedule.oracle import least_makespan


def planned(program: Program, platform: Platform, seconds: float = 10.0, chunk: int | None = None) -> Plan:
    plan = Coschedule(time=seconds, chunk=chunk).plan(Problem(program.graph, platform))
    require_valid(program, platform, plan)
    return plan


def _some(quick: Iterable[int], seeds: Iterable[int]) -> list[object]:
    """Seeds, most of them in the slow suite only."""
    return [pytest.param(seed, marks=() if seed in quick else pytest.mark.slow) for seed in seeds]


@pytest.mark.parametrize("seed", _some((0, 7, 94), (0, *range(4, 11), 94)))
def test_several_destinations_with_readers_and_all_else_are_optimal(seed: int) -> None:
    """In 35, 50, 94 and 188 a copy at two destinations is best."""
    program, platform = rich_case(seed)
    try:
        plan = planned(program, platform)
    except NoPlan:
        assert least_makespan(program, platform, 40) is None
        return
    best = least_makespan(program, platform, math.ceil(plan.makespan))
    assert plan.makespan == pytest.approx(best)
    assert plan.bound == pytest.approx(best)


@pytest.mark.parametrize("seed", _some((0,), (0, 1, 4, 5)))
def test_more_disk_bandwidth_or_time_is_never_worse(seed: int) -> None:
    program, platform = rich_case(seed)
    try:
        makespan = planned(program, platform).makespan
    except NoPlan:
        return
    sites = tuple(replace(site, storage=1.5 * site.storage) for site in platform.sites)
    links = tuple(replace(link, bandwidth=2 * link.bandwidth) for link in platform.links)
    for richer in (replace(platform, sites=sites), replace(platform, links=links)):
        assert planned(program, richer).makespan <= makespan * (1 + 1e-9)
    assert planned(program, platform, 20.0).makespan <= makespan * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_more_time_is_never_worse_where_jobs_are_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of list schedules before the search once depended on the time."""
    monkeypatch.setattr(Improving, "latest", math.inf)  # a busy machine must not end one of them early
    program, platform = tiered_grid(60, seed)
    makespans = [planned(program, platform, seconds).makespan for seconds in (0.5, 1.0, 2.0)]
    assert all(later <= earlier for earlier, later in pairwise(makespans)), makespans


def test_the_exact_model_ends_with_the_clock() -> None:
    program, platform = tiered_grid(20, 1)
    instance = instance_of(Problem(program.graph, platform))
    began = work_clock()
    answer = solve(instance, None, 0.0, 100.0, until=began)
    assert work_clock() - began < 30.0
    assert answer.work < 50.0


def test_a_plan_of_a_comparator_if_a_file_at_several_sites_does_not_fit_at_all_of_them() -> None:
    program = Program("copies")
    program.input("a", size=25, sites=["s1"])
    program.input("b", size=25, sites=["s1", "s0"])
    program.task(None, inputs=["a"], work=1.0)
    program.task(None, inputs=["b"], work=5.0, release=10.0)
    sites = (Site("s0", (Host("h0"),)), Site("s1", storage=30), Site("s2", (Host("h2"),)))
    links = (Link("s0", "s1", 20.0), Link("s1", "s2", 5.0))
    platform = Platform(sites, links, contention="fifo", routing="links")
    assert planned(program, platform, 1.0).makespan == pytest.approx(15)


def test_a_plan_is_found_where_disks_are_so_full_that_list_schedules_find_none() -> None:
    program, platform = rich_case(51)
    assert planned(program, platform).makespan == pytest.approx(41)
    faster = replace(platform.links[1], bandwidth=2 * platform.links[1].bandwidth)
    richer = replace(platform, links=(platform.links[0], faster))
    assert planned(program, richer).makespan == pytest.approx(36)


def test_a_file_does_not_pass_a_site_whose_disk_is_too_small() -> None:
    program = Program("large file")
    program.input("in", size=10.0, sites=["a"])
    program.task(None, inputs=["in"], work=1.0, name="j")
    sites = (Site("a"), Site("quick", storage=5.0), Site("slow"), Site("b", (Host("h"),)))
    links = [
        Link(x, y, rate) for m, rate in (("quick", 10.0), ("slow", 1.0)) for x, y in (("a", m), (m, "b"))
    ]
    plan = planned(program, Platform(sites, tuple(links), contention="fifo", routing="links"), 0.5)
    assert plan.makespan == pytest.approx(21.0)


def small_disk(cores: int = 4) -> tuple[Program, Platform]:
    """Eight jobs whose files fill the only disk with cores, one job at a time."""
    program = Program("one by one")
    for k in range(8):
        program.input(f"in{k}", size=6.0, sites=["store"])
        made = program.task(None, inputs=[f"in{k}"], outputs={f"out{k}": 4.0}, work=10.0, name=f"j{k}")
        program.output(made, sites=["store"])
    sites = (Site("store"), Site("farm", (Host("h", cores=cores),), storage=10.0))
    return program, Platform(sites, (Link("store", "farm", 10.0),), contention="fifo", routing="links")


def test_the_bound_counts_what_jobs_hold_of_a_disk() -> None:
    program, platform = small_disk()
    plan = planned(program, platform, 2.0)
    # Each job holds 6 bytes for 0.6 + 10 s and 4 bytes for 10 + 0.4 s of a disk of 10 bytes.
    held = (6 * 10.6 + 4 * 10.4) / 10
    instance = instance_of(Problem(program.graph, platform))
    assert disk_seconds(instance)[0, 0] == pytest.approx(held)
    assert plan.bound >= 8 * held * (1 - 1e-9)
    assert plan.bound <= plan.makespan <= 1.1 * plan.bound


@pytest.mark.parametrize("seed", _some((0,), range(3)))
def test_the_bound_is_at_least_that_of_the_comparators(seed: int) -> None:
    program, platform = tiered_grid(40, seed)
    plan = planned(program, platform, 0.5)
    for name in ("local", "equal-load", "pull"):
        try:
            other = make(name).plan(Problem(program.graph, platform))
        except NoPlan:
            continue  # a comparator does not look for other hosts where a disk is full
        assert plan.bound >= other.bound * (1 - 1e-12)
        assert plan.makespan <= other.makespan
        assert plan.bound <= other.makespan


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_chunks_fit_where_the_whole_does_and_are_not_better(seed: int) -> None:
    program, platform = tiered_grid(48, seed)
    whole = planned(program, platform, 1.0)
    for chunk in (8, 25):
        assert whole.makespan <= planned(program, platform, 0.2, chunk).makespan


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_however_short_the_time_no_comparator_is_better(contention: str) -> None:
    program, platform = tiered_grid(40, 1)
    sites = tuple(replace(site, storage=math.inf) for site in platform.sites)
    platform = replace(platform, sites=sites, contention=contention)
    plan = planned(program, platform, 1e-6)
    for name in ("equal-load", "pull", "local"):
        other = make(name).plan(Problem(program.graph, platform))
        assert plan.makespan <= other.makespan * (1 + 1e-9)


def test_a_host_that_waits_for_its_disk_does_not_keep_taking_jobs() -> None:
    """One small site has a disk for one job at a time; list schedules give the rest to the other site."""
    program = Program("waiting")
    for k in range(24):
        program.input(f"in{k}", size=4.0, sites=["store"])
        made = program.task(None, inputs=[f"in{k}"], outputs={f"out{k}": 1.0}, work=10.0, name=f"job{k}")
        program.output(made, sites=["store"])
    platform = Platform(
        (
            Site("store"),
            Site("small", (Host("s", cores=8),), storage=5.0),
            Site("large", (Host("l", cores=2),)),
        ),
        (Link("store", "small", 100.0), Link("store", "large", 100.0)),
        contention="fifo",
        routing="links",
    )
    scheduler = ListScheduler(instance_of(Problem(program.graph, platform)))
    value, decisions = Dispatcher(scheduler, seed=0).next()
    # One job at a time at the small site, two at the large one: 8 rounds of 10 s each and transfers.
    assert value < 95.0
    assert np.bincount(decisions.host, minlength=2)[0] <= 9


def test_what_is_reported_is_what_is_returned_on_fair_links() -> None:
    program, platform = tiered_grid(12, 1)
    told: list[float] = []
    planner = Coschedule(time=1.0, tell=lambda seconds, makespan, bound: told.append(makespan))
    plan = planner.plan(Problem(program.graph, replace(platform, contention="fair")))
    require_valid(program, replace(platform, contention="fair"), plan)
    assert plan.makespan == pytest.approx(told[-1])


def all_at(program: Program, platform: Platform, host: int) -> tuple[ListScheduler, Plan]:
    instance = instance_of(Problem(program.graph, platform))
    scheduler = ListScheduler(instance)
    order = np.arange(instance.n, dtype=np.int32)
    decisions = Decisions(order, np.full(instance.n, host, np.int32), **undecided_paths(instance))
    return scheduler, scheduler.plan(decisions, "test")


def test_times_on_fair_links_are_those_of_the_plan_carried_out_where_disks_are_full() -> None:
    """Transfers begin together with jobs that take up the same disk."""
    platform = Platform(
        (
            Site("store", storage=143.2),
            Site("site", (Host("quick", speed=1.5, cores=2), Host("slow", cores=3)), storage=184.25),
        ),
        (Link("store", "site", 2.605, latency=0.5, shared=True),),
        contention="fair",
        routing="links",
    )
    program = Program("full")
    for name, size, sites in (
        ("shared", 4.63, "store"),
        ("in0", 18.8, "store"),
        ("in1", 26.61, "site"),
        ("in2", 7.93, "store"),
        ("near2", 5.37, "site"),
        ("in4", 10.57, "site"),
        ("in5", 33.82, "site"),
        ("in6", 13.46, "store"),
        ("near6", 3.05, "site"),
    ):
        program.input(name, size=size, sites=[sites])
    jobs = (
        (57.24, 1, 13.8, ["in0"]),
        (39.13, 1, 11.9, ["shared", "in1", "out0"]),
        (23.78, 1, 15.68, ["shared", "in2", "near2"]),
        (5.61, 2, 18.04, []),
        (39.62, 2, 13.38, ["in4"]),
        (50.14, 1, 7.07, ["in5"]),
        (54.64, 1, 1.02, ["in6", "near6"]),
    )
    for k, (work, cores, size, inputs) in enumerate(jobs):
        made = program.task(
            None, inputs=inputs, outputs={f"out{k}": size}, work=work, cores=cores, name=f"j{k}"
        )
        program.output(made, sites=["store" if k in (0, 6) else "site"])
    plan = planned(program, platform, 0.3)
    assert replay(plan).makespan == pytest.approx(plan.makespan)


def test_a_neighbourhood_moves_jobs_from_a_full_host_to_idle_ones() -> None:
    program, platform = tiered_grid(16, 2)[0], tiered_grid(200, 2)[1]  # all times of which are whole seconds
    scheduler, plan = all_at(program, platform, 0)
    instance = scheduler.instance
    better = decide_anew(instance, plan, list(range(8)), ticks_of(instance, plan), 2.0).plan
    assert better is not None
    require_valid(program, platform, better)
    assert len(set(better.host.tolist())) > 1
    assert set(better.host[8:].tolist()) == {0}
    assert better.finish[:8].mean() < plan.finish[:8].mean()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_plan_is_a_solution_of_its_neighbourhoods_whatever_the_rounding(seed: int) -> None:
    """Bandwidths of grids of 40 jobs are irrational, so that times are no multiples of a unit."""
    program, platform = tiered_grid(40, seed)
    problem = Problem(program.graph, platform)
    instance = instance_of(problem)
    plan = make("equal-load").plan(problem)
    ticks = ticks_of(instance, plan)
    assert not ticks.exact
    for first in (0, 11, 23):
        found = decide_anew(instance, plan, list(range(first, first + 5)), ticks, 0.3)
        assert found.plan is not None


def test_a_neighbourhood_ends_with_the_clock() -> None:
    program, platform = tiered_grid(40, 1)
    scheduler, plan = all_at(program, platform, 0)
    ticks, began = ticks_of(scheduler.instance, plan), work_clock()
    found = decide_anew(scheduler.instance, plan, list(range(24)), ticks, 60.0, began + 0.2)
    assert found.work < 30.0  # without the clock it is all 60


@pytest.mark.slow
def test_search_in_neighbourhoods_only_gets_better_and_stays_valid() -> None:
    program, platform = tiered_grid(12, 3)
    scheduler, plan = all_at(program, platform, 0)
    search = LargeSearch(scheduler, plan, 0)
    for _ in range(3):
        before = search.best.makespan
        search.step()
        require_valid(program, platform, search.best)
        assert search.best.makespan <= before * 1.1
    assert search.best.makespan < plan.makespan


def test_a_search_goes_on_when_others_have_let_its_scheduler_grow() -> None:
    program, platform = tiered_grid(40, 4)
    scheduler, plan = all_at(program, platform, 1)
    search = Search(scheduler, decisions_of(scheduler.instance, plan), 0)
    search.run(20)
    scheduler.grow()
    search.run(20)
    assert scheduler.value(search.best) == search.value


@pytest.mark.parametrize("seed", range(6))
def test_no_file_is_sent_where_nothing_needs_it(seed: int) -> None:
    program, platform = rich_case(seed)
    try:
        plan = planned(program, platform, 0.5)
    except NoPlan:
        pytest.skip("this case has no plan")
    goals = program.graph.destinations.places_by_item(program.graph, platform)
    place = platform.network.host_place[plan.host]
    sent = list(
        zip(plan.move_item.tolist(), plan.move_source.tolist(), plan.move_target.tolist(), strict=True)
    )
    for item, _, target in sent:
        readers = program.graph.readers[slice(*program.graph.reader_ptr[item : item + 2])]
        relayed = any(i == item and source == target for i, source, _ in sent)
        assert relayed or target in place[readers] or target in goals.get(item, ())


def test_decisions_of_a_list_schedule_give_it_again() -> None:
    program, platform = tiered_grid(40, 4)
    scheduler, plan = all_at(program, platform, 1)
    assert scheduler.value(decisions_of(scheduler.instance, plan)) <= plan.makespan * 1.05


@pytest.mark.parametrize("seed", range(4))
def test_what_a_plan_holds_is_what_reports_show(seed: int) -> None:
    program, platform = tiered_grid(30, seed)
    plan = planned(program, platform, 0.2)
    instance = instance_of(Problem(program.graph, platform))
    held = holdings(instance, plan)
    for site, level in disk_levels(plan):
        here = instance.site[held.place] == site
        mine = level_of(held.since[here], held.until[here], instance.size[held.item[here]])
        assert mine.peak == pytest.approx(level.peak)
        assert mine.peak <= platform.sites[site].storage * (1 + 1e-9)


def test_a_grid_of_tiers_is_the_same_for_the_same_seed() -> None:
    first, again, other = tiered_grid(50, 1), tiered_grid(50, 1), tiered_grid(50, 2)
    assert np.array_equal(first[0].graph.work, again[0].graph.work)
    assert first[1].links == again[1].links
    assert not np.array_equal(first[0].graph.work, other[0].graph.work)


@pytest.mark.parametrize("jobs", [2, 60])
def test_plans_in_the_middle_of_a_run_wait_for_what_is_under_way(jobs: int) -> None:
    """An input that is still on its way, and a link that is busy with another run's transfers; small and large."""
    program = Program("under way")
    for k in range(jobs):
        program.input(f"in{k}", size=2.0, sites=["store"])
        program.task(None, inputs=[f"in{k}"], work=1.0, name=f"j{k}")
    sites = (Site("store"), Site("farm", (Host("h", cores=jobs),)))
    platform = Platform(sites, (Link("store", "farm", 1.0, oneway=True),), contention="fifo", routing="links")
    farm = platform.place_of["farm"]
    there = Problem(
        program.graph,
        platform,
        holders={0: (farm,)},
        since={(0, farm): 40.0},
        link_free_at={0: 7.0},
    )
    plan = Coschedule(time=0.5).plan(there)
    assert plan.start[0] == pytest.approx(40.0)
    assert plan.move_start.min() == pytest.approx(7.0)
    assert plan.makespan == pytest.approx(max(41.0, 7.0 + 2.0 * (jobs - 1) + 1.0))


def test_idle_cores_at_the_beginning_count_in_the_bound() -> None:
    """Ten jobs on ten cores behind one link: the last input arrives after ten transfers."""
    program = Program("slow link")
    for k in range(10):
        program.input(f"in{k}", size=1.0, sites=["store"])
        program.task(None, inputs=[f"in{k}"], work=100.0, name=f"j{k}")
    sites = (Site("store"), Site("farm", (Host("h", cores=10),)))
    platform = Platform(sites, (Link("store", "farm", 1.0),), contention="fifo", routing="links")
    bound = quick_bound(instance_of(Problem(program.graph, platform)))
    assert bound == pytest.approx(100 + np.arange(1, 11).mean())
    assert bound <= planned(program, platform, 1.0).makespan


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(1, 4), *range(11, 16), 35, 50, 188, 265, *range(100, 130)])
def test_many_rich_cases_are_optimal(seed: int) -> None:
    test_several_destinations_with_readers_and_all_else_are_optimal(seed)


def bounds_of(program: Program, platform: Platform) -> tuple[float, float]:
    """The bound of the relaxation, and the one that its prices of hosts, links and disks give on their own."""
    relaxer = Relaxer(instance_of(Problem(program.graph, platform)))
    relaxer.solve()
    assert relaxer.inflows is not None
    alone = weighted_bound(relaxer.instance, relaxer.price, relaxer.head, relaxer.tail)
    return relaxer.bound, alone


def shared_files(jobs: int, files: int) -> tuple[Program, Platform]:
    """Short jobs that read one of some large files, and two sites behind a link each."""
    program = Program("readers")
    for k in range(files):
        program.input(f"file{k}", size=4e9, sites=["store"])
    for k in range(jobs):
        program.task(None, inputs=[f"file{k % files}"], outputs={f"out{k}": 0.0}, work=1.0, name=f"job{k}")
    sites = (Site("store"), *(Site(f"s{k}", (Host(f"h{k}", cores=4),)) for k in range(2)))
    links = tuple(Link("store", f"s{k}", 1e9, shared=True) for k in range(2))
    return program, Platform(sites, links, contention="fifo", routing="links", name="two")


def test_a_file_counts_as_a_whole_at_each_place_in_the_bound() -> None:
    # 5 files of 4 s: one of the links brings at least 2.5 of them, and the last job there runs for another second. If
    # the prices of places were left out, each file would be divided among its readers, wherever they are.
    program, platform = shared_files(15, 5)
    bound, alone = bounds_of(program, platform)
    assert bound == pytest.approx(11.0)
    assert alone < 11.0 - 0.5
    assert planned(program, platform, 2.0).makespan == pytest.approx(13.0)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_with_shared_files_are_never_above_the_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    program = Program("shared")
    for k in range(3):
        program.input(f"file{k}", size=float(random.integers(1, 5)), sites=["a"])
    for k in range(5):
        inputs = [f"file{i}" for i in sorted(random.choice(3, int(random.integers(1, 3)), replace=False))]
        program.task(
            None, inputs=inputs, outputs={f"out{k}": 0.0}, work=float(random.integers(1, 4)), name=f"j{k}"
        )
    sites = tuple(Site(name, (Host(f"h{name}", cores=int(random.integers(1, 3))),)) for name in "abc")
    links = (
        Link("a", "b", 1.0, shared=True),
        Link("b", "c", 1.0, shared=True),
        Link("a", "c", 0.5, shared=True),
    )
    platform = Platform(sites, links, contention="fifo", routing="links", name="three")
    best = least_makespan(program, platform, 40)
    assert best is not None
    assert Relaxer(instance_of(Problem(program.graph, platform))).bound <= best + 1e-6
    assert bounds_of(program, platform)[0] <= best + 1e-6


def test_workers_give_the_same_on_one_core_and_on_two(monkeypatch: pytest.MonkeyPatch) -> None:
    program, platform = tiered_grid(40, 7)
    instance = instance_of(Problem(program.graph, platform))
    found = []
    for cores in (1, 2):
        monkeypatch.setattr("headrace.planners.side_by_side.usable_cores", lambda cores=cores: cores)
        workers = [SearchWorker(number, instance, 2) for number in range(2)]
        values = [
            value for _ in range(3) for value, _ in together([worker.dispatcher.next for worker in workers])
        ]
        found.append(values)
    assert found[0] == found[1]
    assert len(set(found[0])) > 1
