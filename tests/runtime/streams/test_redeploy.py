"""Deployments that change while a pipeline runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from headrace.deploying import deploy
from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters import App, Unit
from headrace.runtime.streams.capacities import Capacities
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import StreamPlan, plan_of
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.redeploy import REST, Redeployer, power_ratios, reach, with_powers
from headrace.runtime.streams.shared_host import SharedAgent
from headrace.runtime.streams.specs import Emulation
from headrace.runtime.streams.supervisor import Supervisor
from headrace.stream_planning import deploy_again

from .apps import multiset
from .made import Lasting, Steady

BUFFER = 1000
UNIT = 50
HOSTS = ("n0", "n1", "n2", "n3", "n4")


def app(units: int = 1) -> App:
    """A reader that takes 10 ms for a buffer, and a filter that takes 19 ms."""
    made = App("changing", buffer=BUFFER, units=[Unit(f"u{i}", {"count": UNIT}) for i in range(units)])
    made.filter("read", partial(Steady, 0.010, BUFFER))
    made.filter("work", partial(Lasting, 0.019), inputs=["read"])
    made.filter("show", partial(Lasting, 0.001), inputs=["work"])
    return made


def deployment(**speeds: float) -> Deployment:
    """For five hosts, of speed 1 if not given."""
    size = UNIT * BUFFER / 1e6
    filters = [
        FilterProfile("read", 0.010 * UNIT, size),
        FilterProfile("work", 0.019 * UNIT, size),
        FilterProfile("show", 0.001 * UNIT),
    ]
    lab = Platform((Site("lab", tuple(Host(name, speeds.get(name, 1.0)) for name in HOSTS), bandwidth=1e8),))
    return deploy(Pipeline("changing", filters, sources=[Source("n0", {"n0": 1.0})]), lab)


class Run:
    """Counters as if the copies were always busy and as fast as their hosts, and what watches them."""

    def __init__(self, planner: Callable[[PipelineProblem], Deployment] = deploy_again) -> None:
        self.made, self.now = deployment(), 0.0
        self.app = app()
        self.plan = plan_of(self.app, self.made)
        self.capacities = Capacities(self.app, self.plan)
        self.redeployer = Redeployer(self.app, self.made.problem, planner)
        self.counters = {
            c.copy: {"buffers_in": 0, "bytes_in": 0, "buffers_out": 0, "bytes_out": 0, "busy_ns": 0}
            for c in self.plan.copies
        }

    def go_on(self, seconds: int = 1, hosts: tuple[str, ...] = HOSTS, **speeds: float) -> StreamPlan | None:
        """The deployment to change to after so many seconds, if there is one."""
        found = None
        for _ in range(seconds):
            self.now += 1.0
            for copy in self.plan.copies:
                rate = {"read": 100.0, "work": 1 / 0.019, "show": 1000.0}[copy.filter]
                count = int(rate * speeds.get(copy.host, 1.0))
                for name, amount in (("buffers", count), ("bytes", count * BUFFER)):
                    self.counters[copy.copy][f"{name}_in"] += amount
                    self.counters[copy.copy][f"{name}_out"] += amount
                self.counters[copy.copy]["busy_ns"] += 1_000_000_000
            if self.capacities.update(self.now, self.counters):
                found = found or self.redeployer.observe(self.now, self.plan, self.capacities, 0.0, hosts)
            self.finish()
        return found

    def finish(self) -> None:
        """Let the planner end, as if it took less than a second."""
        planning = self.redeployer._planning
        while planning is not None and not planning[0].done():
            time.sleep(0.01)


def working(run: Run | StreamPlan) -> list[str]:
    plan = run.plan if isinstance(run, Run) else run
    return [place.host for place in plan.of("work")]


def test_nothing_is_planned_while_hosts_are_as_planned():
    run = Run()
    assert len(working(run)) == 2
    for second in range(300):
        assert run.go_on(n1=1.0 + 0.05 * (-1) ** second, n2=0.93) is None
    assert run.redeployer.plans == 0


def test_an_idle_host_takes_over_from_one_that_became_slow():
    run = Run()
    slow = working(run)[0]
    run.go_on(5)
    found = run.go_on(12, **{slow: 0.4})
    assert found is not None
    assert found.throughput == pytest.approx(deployment(**{slow: 0.4}).throughput, rel=0.02)
    assert set(working(found)) - set(working(run))
    assert run.redeployer.plans == 1


def test_a_small_disturbance_of_five_seconds_is_not_worth_a_plan():
    run = Run()
    for _ in range(20):
        run.go_on(5)
        assert run.go_on(5, n1=0.78, n2=0.78) is None
    assert run.redeployer.plans == 0
    run.go_on(10, n1=0.78, n2=0.78)
    assert run.redeployer.plans == 1


def test_a_change_that_costs_little_is_not_worth_a_plan():
    run = Run()
    slow = working(run)[0]
    assert run.go_on(100, **{slow: 0.8}) is None  # 1.8 of 1.9 hosts' work
    assert run.redeployer.plans == 0


def test_a_change_without_a_remedy_is_planned_once_and_not_made():
    run = Run()
    assert run.go_on(100, **dict.fromkeys(HOSTS, 0.6)) is None
    assert run.redeployer.plans == 1


def test_a_faster_host_is_considered():
    run = Run()
    assert run.go_on(12, **{working(run)[0]: 2.0}) is None  # the reader limits
    assert run.redeployer.plans == 1


def test_hosts_that_are_not_there_are_not_used():
    run = Run()
    slow = working(run)[0]
    found = run.go_on(30, run.plan.hosts, **{slow: 0.4})
    assert found is not None  # the filters change places
    assert set(found.hosts) == set(run.plan.hosts)


def test_pauses_get_longer_after_each_change():
    run = Run()
    slow, other = working(run)
    assert run.go_on(12, **{slow: 0.4}) is not None
    before = run.now
    # The change is not made here, so that it would pay again as soon as powers change again.
    while run.go_on(**{slow: 0.4, other: 0.4}) is None:
        assert run.now < before + 60
    assert run.now - before > REST


def test_a_planner_without_an_answer_changes_nothing():
    def none(problem: PipelineProblem) -> Deployment:
        raise NoPlan("there is none", where="here")

    run = Run(none)
    assert run.go_on(12, **{working(run)[0]: 0.4}) is None
    assert run.redeployer.plans == 1


def test_measured_powers_replace_those_of_the_problem():
    problem = deployment().problem
    changed = with_powers(problem, {("work", "n1"): 0.5, ("show", "n2"): 2.0, ("work", "n2"): 1.0})
    assert changed.power("work", "n1") == 0.5
    assert changed.power("show", "n1") == 0.5  # not measured there: like the others
    assert (changed.power("work", "n2"), changed.power("show", "n2")) == (1.0, 2.0)
    assert changed.power("work", "n3") == 1.0


def test_copies_that_share_a_host_are_not_taken_for_slow():
    made = deployment()
    shared = plan_of(app(), made)
    shared = StreamPlan(
        shared.app_name,
        tuple(type(place)(place.filter, "n0", place.copies, place.share) for place in shared.places),
        {ends: {("n0", "n0"): 1.0} for ends in shared.flows},
        shared.throughput,
    )
    watched = Capacities(app(), shared)
    for second in range(6):  # each of four busy copies gets a quarter of the core
        counters = {
            copy.copy: {
                "buffers_in": 100 * second,
                "bytes_in": int(BUFFER / 0.019 / 4) * second,
                "buffers_out": 100 * second,
                "bytes_out": int(BUFFER / 0.010 / 4) * second,
                "busy_ns": 10**9 * second,
            }
            for copy in shared.copies
        }
        watched.update(float(second), counters)
    ratios = power_ratios(made.problem, shared, watched)
    assert ratios["read", "n0"] == pytest.approx(1.0, rel=0.01)
    assert ratios["work", "n0"] == pytest.approx(1.0, rel=0.01)


def test_what_copies_can_reach():
    made = deployment()
    plan = plan_of(app(), made)
    read = BUFFER / 0.010 / 1e6
    assert reach(made.problem, plan) == pytest.approx(read)
    slow = with_powers(made.problem, {("work", working(plan)[0]): 0.5})
    assert reach(slow, plan) == pytest.approx(1.5 * BUFFER / 0.019 / 1e6)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_running_pipeline_changes_its_copies_and_loses_nothing():
    made, running = deployment(), app(units=26)
    plan = plan_of(running, made)
    slow = working(plan)[0]
    units: list[UnitResult] = []
    seen: list[tuple[int, tuple[str, ...]]] = []

    def observe(progress: Progress) -> None:
        seen.append((progress.committed, progress.plan.hosts))

    with SharedAgent(HOSTS) as hosts:
        run = Supervisor(
            running,
            plan,
            hosts,
            StreamOptions(credits=2, adapt=True),
            emulation=Emulation(slowdowns={slow: (2.0, 4.0)}),
            redeployer=Redeployer(running, made.problem, deploy_again),
            commit=units.append,
            observe=observe,
        )
        progress = run.run()
    assert progress.redeployments == 1
    assert [unit.number for unit in units] == list(range(26))
    sent = (f"u{i} {n}".encode().ljust(BUFFER) for i in range(26) for n in range(UNIT))
    assert multiset(units) == Counter(sent)
    # The new copies do the work of the rest: the slow host has none of it, or little.
    fresh = set(progress.plan.hosts) - set(plan.hosts)
    assert fresh
    counts = {
        c.host: progress.copies[c.copy]["buffers_in"] for c in progress.plan.copies if c.filter == "work"
    }
    assert sum(counts[host] for host in fresh) > 4 * counts.get(slow, 0)
    # Both deployments read all of their units, and no unit twice.
    assert progress.retired[0] + progress.copies[0]["bytes_out"] == 26 * UNIT * BUFFER
