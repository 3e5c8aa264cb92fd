"""What a plan in the middle of a run knows of transfers and tasks that go on: by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace.core.in_flight import InFlight, in_flight
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import ON_GRID_CHANGES, Assign, Command, Fetch, Problem, WakeConditions
from headrace.core.view import RunView, _links_by_name
from headrace.experiment.dataflow import jacobi
from headrace.model.behaviour import Change
from headrace.model.events import Event
from headrace.model.graph import make_graph
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.planners.registry import make
from headrace.reproductions.figure_11 import figure_11
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.invariants import judge

GRID = Platform(
    (
        Site("home"),
        Site("c", (Host("h0"), Host("h1")), uplink=10.0),
        Site("d", (Host("k0"),), uplink=10.0, uplink_latency=1.0),
    ),
    contention="fifo",
    origin="home",
)
SWEEP = make_graph(
    work=[5.0, 7.0, 9.0, 5.0],
    size=[300.0, 50.0, 20.0, 20.0],
    producer=[-1, -1, 0, 1],
    read_ptr=[0, 1, 2, 3, 4],
    reads=[0, 1, 1, 0],
    result=[False, False, True, True],
)
"""t0 and t3 read d0 (300 bytes), t1 and t2 read d1 (50); t0 makes d2, t1 makes d3 (20 each), which return."""


class At:
    """Places tasks at the start and looks at the state at a moment."""

    name = "at"

    def __init__(self, hosts: dict[str, str], moment: float, look: object) -> None:
        self.hosts, self.look, self.seen = hosts, look, None
        self.wake = WakeConditions(at=moment)

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        if view.time == 0:
            return [Assign(task, host, k) for k, (task, host) in enumerate(self.hosts.items())]
        if self.seen is None:
            self.seen = self.look(view)  # type: ignore[operator]
            self.wake = ON_GRID_CHANGES
        return [Assign(name, "h1", 9) for name in view.graph.task_names if name not in self.hosts]


def seen_at(moment: float, hosts: dict[str, str], look: object) -> object:
    scheduler = At(hosts, moment, look)
    simulate_scheduler(SWEEP, GRID, scheduler)
    return scheduler.seen


def test_a_transfer_under_way_arrives_when_the_rest_of_it_is_sent() -> None:
    """d0 needs 30 s over c's link and d1 5 s after it; d1 needs 1 + 5 s over d's."""
    hosts = {"t0": "h0", "t1": "h1", "t2": "k0"}
    problem = seen_at(4.0, hosts, lambda view: view.problem(0))
    assert isinstance(problem, Problem)
    places, links = problem.platform.network.place_names, problem.platform.network.link_names
    at = {(item, places[p]): time for (item, p), time in problem.since.items()}
    assert at == pytest.approx({(0, "c"): 26.0, (1, "d"): 2.0})
    free = {links[k]: time for k, time in problem.link_free_at.items()}
    assert free == pytest.approx({"c uplink": 26.0, "d uplink": 1.0})  # its latency keeps no link busy
    assert sorted(places[p] for p in problem.holders[0]) == ["c", "home"]


def test_what_kept_tasks_need_stays_in_the_queue_of_the_link() -> None:
    problem = seen_at(4.0, {"t0": "h0", "t1": "h1"}, lambda view: view.problem(1))
    assert isinstance(problem, Problem)
    links = problem.platform.network.link_names
    assert {links[k]: t for k, t in problem.link_free_at.items()} == pytest.approx({"c uplink": 31.0})
    assert problem.since[1, problem.platform.network.place_names.index("c")] == pytest.approx(31.0)
    assert set(problem.graph.task_names) == {"t2", "t3"}


def test_a_transfer_that_is_late_is_expected_to_need_a_tenth_more() -> None:
    carried = seen_at(4.0, {"t0": "h0"}, lambda view: _later(view, 100.0))
    assert carried == pytest.approx(3.0)


def _later(view: RunView, by: float) -> float:
    view.time += by
    end = in_flight(view, 0, view.sizes()).carried[0].end
    view.time -= by
    return end


def test_results_that_wait_for_the_link_are_carried_before_anything_new() -> None:
    """At 36.5 s t0 has ended (30 + 5) and d2 returns (2 s) while t1, which got d1 at 35 s, still runs."""
    problem = seen_at(36.5, {"t0": "h0", "t1": "h1"}, lambda view: view.problem(0))
    assert isinstance(problem, Problem)
    assert list(problem.link_free_at.values()) == pytest.approx([0.5])
    assert {problem.platform.hosts[h].name: t for h, t in problem.free_at.items()} == pytest.approx(
        {"h1": 5.5}
    )


def test_results_in_the_queue_of_a_link_go_before_anything_new() -> None:
    """d2, now 200 bytes, returns from 35 s to 55 s; d3 is ready at 42 s and needs 2 s after it."""
    scheduler = At({"t0": "h0", "t1": "h1"}, 45.0, lambda view: view.problem(0))
    graph = replace(SWEEP, size=np.array([300.0, 50.0, 200.0, 20.0]))
    simulate_scheduler(graph, GRID, scheduler)
    assert isinstance(scheduler.seen, Problem)
    assert list(scheduler.seen.link_free_at.values()) == pytest.approx([12.0])


def test_what_is_asked_for_and_does_not_exist_yet_is_not_counted() -> None:
    class Ahead(At):
        def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
            ahead = [Fetch("d2", "c", "home", 0.0)] if view.time == 0 else []
            return [*super().react(view, events), *ahead]

    scheduler = Ahead({"t0": "h0", "t1": "h1"}, 4.0, lambda view: in_flight(view, 1, view.graph.size))
    simulate_scheduler(SWEEP, GRID, scheduler)
    assert isinstance(scheduler.seen, InFlight)
    assert sorted(row.item for row in scheduler.seen.carried) == [0, 1]


def test_kept_tasks_take_as_many_cores_as_they_need() -> None:
    """Three cores are busy until 4, 6 and 8 s. A task of two cores begins when two are free, and so on."""
    program = hr.Program()
    for work, cores in ((4.0, 1), (6.0, 1), (8.0, 1), (5.0, 2), (1.0, 1), (1.0, 3)):
        program.task(None, work=work, cores=cores)
    platform = Platform((Site("s", (Host("a", cores=3),)),))
    rows = {}

    class Look(At):
        def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
            if view.time > 0:
                rows.update({slot.task: (slot.start, slot.end) for slot in view.timetable(3).slots})
                self.wake = ON_GRID_CHANGES
            return [Assign(name, "a", k) for k, name in enumerate(view.graph.task_names)]

    simulate_scheduler(program.graph, platform, Look({}, 1.0, None))
    assert rows == {0: (0, 3), 1: (0, 5), 2: (0, 7), 3: (5, 10), 4: (7, 8), 5: (10, 11)}


def test_links_keep_their_numbers_straight_when_hosts_are_gone() -> None:
    """Between pairs of more than 64 hosts links have no names."""
    for hosts in (10, 70):
        whole = Platform.pairwise(np.ones(hosts), 1.0)
        left = whole.without(["h3", "h7"])
        values = np.zeros(whole.network.n_links)
        ends = [(0, 1), (9, 8), (4, 6), (3, 5), (6, 2)]
        for k, (source, target) in enumerate(ends):
            values[whole.network.route(source, target)[0]] = k + 1.0
        names = whole.network.place_names
        there = {name: p for p, name in enumerate(left.network.place_names)}
        expected = {
            left.network.route(there[names[s]], there[names[t]])[0]: k + 1.0
            for k, (s, t) in enumerate(ends)
            if names[s] in there and names[t] in there
        }
        assert len(expected) == 4
        assert _links_by_name(values, whole.network, left.network) == expected


def test_deadlines_and_releases_are_told_from_now_on() -> None:
    program = hr.Program()
    program.task(None, name="first", work=3.0)
    program.task(None, name="later", work=3.0, release=5.0, deadline=20.0)
    platform = Platform.pairwise([1.0], 1.0)
    seen = []

    class Look(At):
        def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
            if view.time == 2.0:
                seen.append(view.problem(0).graph)
                self.wake = ON_GRID_CHANGES
            return [Assign(name, "h0", k) for k, name in enumerate(view.graph.task_names)]

    simulate_scheduler(program.graph, platform, Look({}, 2.0, None))
    assert (seen[0].release.tolist(), seen[0].deadline.tolist()) == ([3.0], [18.0])


CHAIN = make_graph(
    work=[10.0, 1.0], size=[100.0, 1.0], producer=[0, 1], read_ptr=[0, 0, 1], reads=[0], result=[False, False]
)


@pytest.mark.parametrize("planner", ["heft", "minmin", "locality"])
def test_planners_wait_for_what_is_on_its_way_and_for_busy_links(planner: str) -> None:
    """The item lies at h2 from 7 s on; h0 could have it from h1 by a link that is busy until 12 s."""
    rest = make_graph(work=[1.0], size=[40.0], producer=[-1], read_ptr=[0, 1], reads=[0])
    platform = Platform.pairwise([1.0, 1.0, 1.0], 10.0, contention="fifo")
    links = platform.network.link_names
    busy = {links.index("h1 -> h0"): 12.0}

    def start(**more: object) -> tuple[float, int]:
        problem = Problem(rest, platform, {0: (1, 2)}, since={(0, 2): 7.0}, **more)  # type: ignore[arg-type]
        plan = make(planner).plan(problem)
        return float(plan.start[0]), int(plan.host[0])

    if planner != "locality":  # it goes where data is, whenever that is
        assert start(free_at={2: 50.0, 1: 50.0}, link_free_at=busy) == pytest.approx((11.0, 0)), (
            "from h2, at 7 s"
        )
        assert start(free_at={2: 50.0, 1: 50.0}) == pytest.approx((4.0, 0)), "from h1, at once"
    assert start(free_at={0: 90.0, 1: 90.0}) == pytest.approx((7.0, 2))


def test_a_reader_of_what_a_running_task_makes_waits_for_it() -> None:
    """At 4 s the maker has 6 s left; the reader may start there then, or 10 s later elsewhere."""
    platform = Platform.pairwise([1.0, 1.0], 10.0)

    class Look(At):
        def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
            super().react(view, events)
            return [Assign("t0", "h0", 0)] if view.time == 0 else [Assign("t1", "h0", 1)]

    scheduler = Look({}, 4.0, lambda view: view.problem(0))
    simulate_scheduler(CHAIN, platform, scheduler)
    problem = scheduler.seen
    assert isinstance(problem, Problem)
    assert problem.since == pytest.approx({(0, 0): 6.0})
    plan = make("heft").plan(problem)
    assert (float(plan.start[0]), int(plan.host[0])) == pytest.approx((6.0, 0))


class Spied:
    """A planner that keeps the problems it was given."""

    name = "spied"

    def __init__(self, planner: str) -> None:
        self.planner, self.problems, self.made = make(planner), list[Problem](), list[Plan]()

    def plan(self, problem: Problem) -> Plan:
        self.problems.append(problem)
        self.made.append(self.planner.plan(problem))
        return self.made[-1]


@pytest.mark.parametrize("reduce", ["random", "shared-file"])
def test_subsets_of_a_task_graph_can_be_planned_and_carried_out(reduce: str) -> None:
    """What a planned task reads from one that is not in the plan lies somewhere, or will."""
    graph = jacobi(iterations=6, pieces=8).graph
    platform = Platform.pairwise([1.0, 0.5, 2.0], 1e8, contention="fifo")
    planner = Spied("heft")
    lost = [Change(6.0, "host-down", "h2"), Change(14.0, "host-up", "h2")]
    rules = ReplanPolicy("S1", interval=4.0, subset=12, reduce=reduce)  # type: ignore[arg-type]
    run = simulate_scheduler(graph, platform, Replan(planner, rules, seed=3), changes=lost)
    assert judge(run, lost) == []
    assert len(planner.problems) > 4
    for problem in planner.problems:
        read = np.unique(problem.graph.reads)
        elsewhere = read[(problem.graph.producer[read] < 0) & (graph.producer[read] >= 0)]
        assert set(elsewhere.tolist()) <= set(problem.holders)
        assert problem.graph.n_tasks <= 12


def test_a_plan_that_takes_time_begins_when_it_is_ready() -> None:
    program, platform = figure_11(1200, seed=1)
    planner = Spied("minmin")
    rules = ReplanPolicy("S1", interval=500.0, planning_fixed=60.0, keep=2)
    simulate_scheduler(program.graph, platform, Replan(planner, rules))
    assert len(planner.made) > 3
    for plan in planner.made:
        assert plan.start.min() >= 60.0
        assert plan.move_start.min(initial=np.inf) >= 60.0


def test_planning_again_does_not_send_files_that_are_on_their_way_elsewhere() -> None:
    """With files of 480 s, plans that forget what is under way lose a fifth of the time; others nothing."""
    program, platform = figure_11(4800, seed=1)
    once = simulate_scheduler(program.graph, platform, Replan(make("minmin"), ReplanPolicy("once")))
    often = simulate_scheduler(
        program.graph, platform, Replan(make("minmin"), ReplanPolicy("S1", interval=400.0))
    )
    assert often.plans > 8
    assert often.makespan < 1.05 * once.makespan
