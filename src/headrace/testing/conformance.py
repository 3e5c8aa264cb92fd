"""Conformance suites for planners, schedulers and back ends.

>>> from headrace.planners.list.round_robin import RoundRobin
>>> check_planner(RoundRobin, cases=12)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.core.backend import Backend
from headrace.core.coordinator import Coordinator
from headrace.core.replan import Replan
from headrace.core.scheduler import (
    ON_GRID_CHANGES,
    Assign,
    Command,
    Planner,
    Problem,
    Scheduler,
    WakeConditions,
)
from headrace.core.view import RunView
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.events import Event, HostLeft, Started, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.timed import plan_with_bound
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.replay.replay import replay
from headrace.testing.generate import cases as generated_cases
from headrace.testing.invariants import judge
from headrace.testing.needs import with_random_needs


def check_planner(
    make: Callable[[], Planner],
    *,
    cases: int = 120,
    seed: int = 0,
    tasks: int = 20,
    several_cores: bool = True,
    needs: bool = True,
) -> None:
    """Plan generated programs on generated platforms of every kind; raise AssertionError at the first failure.

    Each plan must pass `check`, have a bound that does not exceed its makespan, be reproducible, and take
    exactly as long when it is replayed. Half-finished programs that lost a host must be planned too. With
    `several_cores`, so must programs whose tasks hold several cores of a host at once, and a simulated run that carries
    out these plans must keep within the cores of hosts. With `needs`, the same holds for memory and named
    resources, and for replays with other run times.
    """
    for number, (program, platform) in enumerate(generated_cases(cases, seed, tasks)):
        where = f"{make().name}, case {number}: {program.name} on {platform.name}, {platform.contention}"
        problem = Problem(program.graph, platform, seed=seed)
        plan = plan_with_bound(make(), problem)
        _require_valid(plan, where)
        _require_same(plan, make().plan(problem), f"{where}: planned twice")
        again = replay(plan)
        assert np.isclose(again.makespan, plan.makespan, rtol=1e-9), (
            f"{where}: the planned makespan is {plan.makespan}, the replayed one {again.makespan}"
        )
        _check_loss(make, program.graph, platform, where)
        if several_cores and number % 3 == 0:
            _check_cores(make, program, platform, seed + number, where)
        if needs and number % 3 == 1:
            _check_needs(make, program, platform, seed + number, where)


def _check_cores(
    make: Callable[[], Planner], program: Program, platform: Platform, seed: int, where: str
) -> None:
    """Tasks hold one core or more, at most as many as the largest host has."""
    rng = np.random.default_rng([seed, 3])
    hosts = iter(rng.integers(1, 5, len(platform.hosts)).tolist())
    sites = [
        replace(site, hosts=tuple(replace(host, cores=next(hosts)) for host in site.hosts))
        for site in platform.sites
    ]
    platform = replace(platform, sites=tuple(sites))
    most = max(host.cores for host in platform.hosts)
    graph = program.graph.with_fields(cores=rng.integers(1, most + 1, program.graph.n_tasks).astype(np.int32))
    _check_carried_out(make, Problem(graph, platform, seed=seed), f"{where}, tasks of several cores")


def _check_needs(
    make: Callable[[], Planner], program: Program, platform: Platform, seed: int, where: str
) -> None:
    """Tasks need memory and GPUs; run times that differ from the plan change nothing about that."""
    where = f"{where}, tasks with needs"
    graph, platform = with_random_needs(program.graph, platform, seed, spare=2)
    problem = Problem(graph, platform, seed=seed)
    plan = _check_carried_out(make, problem, where)
    work = graph.work * np.random.default_rng(seed).uniform(0.3, 1.7, graph.n_tasks)
    changed = replace(replay(plan, work=work), graph=graph.with_work(work))
    broken = [v for v in check(changed.graph, platform, changed) if v.rule in ("memory", "resource", "cores")]
    assert not broken, f"{where}: with other run times, {broken[0]}"
    _check_loss(make, graph, platform, where)


def _check_carried_out(make: Callable[[], Planner], problem: Problem, where: str) -> Plan:
    """Plan, replay and simulate."""
    plan = plan_with_bound(make(), problem)
    _require_valid(plan, where)
    again = replay(plan)
    assert np.isclose(again.makespan, plan.makespan, rtol=1e-9), (
        f"{where}: the planned makespan is {plan.makespan}, the replayed one {again.makespan}"
    )
    run = simulate_scheduler(problem.graph, problem.platform, Replan(make()))
    broken = judge(run, [])
    assert not broken, f"{where}: {len(broken)} violations, first: {broken[0]}"
    return plan


def _check_loss(make: Callable[[], Planner], graph: Graph, platform: Platform, where: str) -> None:
    """Lose a host halfway: every remaining task must be assigned to a remaining host."""
    coordinator = Coordinator(Replan(make()), graph, platform, workers_queue=True)
    coordinator.handle([Started(0.0)])
    state, hosts = coordinator.view.state, platform.hosts
    assert (state.assigned >= 0).all(), f"{where}: not every task was assigned"
    half = graph.order[: graph.n_tasks // 2].tolist()
    placed = {t: hosts[state.assigned[t]].name for t in half}
    for task in half:
        coordinator.handle([TaskFinished(1.0, graph.task_names[task], placed[task], 0.0)])
        coordinator.validate_state()
    if len(hosts) < 2 or not half:
        return
    lost = placed[half[-1]]
    if platform.origin is not None and platform.without([lost]).origin is None:
        return  # the inputs are lost with it
    coordinator.handle([HostLeft(2.0, lost)])
    coordinator.validate_state()
    state = coordinator.view.state
    left = np.flatnonzero(state.done == 0)
    assert (state.assigned[left] >= 0).all(), f"{where}: after losing {lost} not every task was assigned"
    on_lost = state.assigned[left] == coordinator.view.host_number[lost]
    assert not on_lost.any(), f"{where}: a task went to the lost host {lost}"


def _require_valid(plan: Plan, where: str) -> None:
    violations = check(plan.graph, plan.platform, plan)
    assert not violations, f"{where}: {len(violations)} violations, first: {violations[0]}"
    assert plan.bound <= plan.makespan * (1 + 1e-9), f"{where}: bound {plan.bound} above {plan.makespan}"


def _require_same(plan: Plan, other: Plan, where: str) -> None:
    for name in ("host", "core", "start", "finish", "move_item", "move_source", "move_target", "move_start"):
        assert np.array_equal(getattr(plan, name), getattr(other, name)), f"{where}: {name} differs"


def check_scheduler(
    make: Callable[[], Scheduler | Planner], *, cases: int = 40, seed: int = 0, tasks: int = 20
) -> None:
    """Simulate generated programs under a scheduler; raise AssertionError at the first failure.

    Every task must run, even when a host leaves and returns; the log must pass the independent checks of
    `testing.invariants` and be reproducible; and the arrays that the scheduler sees must be read-only. A scheduler that
    obeys constraints must also run tasks that need memory and resources.

    >>> from headrace.online.workqueue import Workqueue
    >>> check_scheduler(Workqueue, cases=2)
    """
    for number, (program, platform) in enumerate(generated_cases(cases, seed, tasks)):
        changes: list[Change] = []
        last = platform.hosts[-1].name
        if number % 2 and len(platform.hosts) > 1 and platform.origin != last:
            changes = [Change(2.0, "host-down", last), Change(5.0, "host-up", last)]
        made = _scheduler(make)
        where = f"{made.name}, case {number}: {program.name} on {platform.name}, {platform.contention}"
        watched = _Watched(made)
        run = simulate_scheduler(program.graph, platform, watched, changes=changes)
        assert not watched.wrote, f"{where}: the scheduler could write to {watched.wrote}"
        broken = judge(run, changes)
        assert not broken, f"{where}: {len(broken)} violations, first: {broken[0]}"
        again = simulate_scheduler(program.graph, platform, _scheduler(make), changes=changes)
        assert run.log_lines() == again.log_lines(), f"{where}: a repeated run differs"
        if number % 3 == 1 and hasattr(made, "obey"):
            _check_needs_in_run(make, program, platform, seed + number, changes, where)


def _check_needs_in_run(
    make: Callable[[], Scheduler | Planner],
    program: Program,
    platform: Platform,
    seed: int,
    changes: list[Change],
    where: str,
) -> None:
    """Every task runs where it fits, with memory and GPUs that no other task has."""
    graph, platform = with_random_needs(program.graph, platform, seed, spare=2)
    run = simulate_scheduler(graph, platform, _scheduler(make), changes=changes)
    broken = judge(run, changes)
    assert not broken, f"{where}, tasks with needs: {len(broken)} violations, first: {broken[0]}"


def _scheduler(make: Callable[[], Scheduler | Planner]) -> Scheduler:
    made = make()
    return made if isinstance(made, Scheduler) else Replan(made)


class _Watched:
    """Wraps a scheduler and checks that its view is read-only."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.name = scheduler.name
        self.wrote = ""

    @property
    def wake(self) -> WakeConditions:
        return self.scheduler.wake

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]:
        for record in (view.static, view.state):
            for name, array in record._asdict().items():
                if isinstance(array, np.ndarray) and array.flags.writeable:
                    self.wrote = name
        return self.scheduler.react(view, events)


class RoundRobinPlacement:
    """A scheduler that assigns tasks to hosts round-robin, so that its assignments are easy to verify."""

    name = "round-robin-placement"
    wake = ON_GRID_CHANGES

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        if not any(isinstance(e, Started | HostLeft) for e in events):
            return []
        graph = view.graph
        up = [h.name for h in view.platform.hosts if h.name not in view.down]
        left = [t for t in graph.order.tolist() if not view.done[t]]
        return [Assign(graph.task_names[t], up[i % len(up)], i) for i, t in enumerate(left)]


def check_backend(backend: Backend, *, seeds: Sequence[int] = (0, 1, 2), tasks: int = 30) -> None:
    """Run generated programs on a back end; raise AssertionError at the first failure.

    Results must be correct, assignments obeyed, and every task executed once. The run is checked as a plan by
    `check`: no core runs two tasks at a time, and no task reads data that does not exist yet.
    """
    for seed in seeds:
        program, expected = arithmetic_program(seed, tasks)
        events: list[Event] = []
        outcome = backend.execute(program, RoundRobinPlacement(), events.append)
        if backend.computes:
            _require_results(outcome.results, expected, f"seed {seed}")
        finished = [e for e in events if isinstance(e, TaskFinished)]
        names = [e.task for e in finished]
        assert sorted(names) == sorted(program.tasks), f"seed {seed}: tasks finished: {sorted(names)}"
        hosts = [h.name for h in backend.platform.hosts]
        for i, t in enumerate(program.graph.order.tolist()):
            at = names.index(program.graph.task_names[t])
            assert finished[at].host == hosts[i % len(hosts)], (
                f"seed {seed}: {finished[at]} is on the wrong host"
            )
        _require_valid(plan_of_events(program, backend.platform, finished), f"seed {seed}: what happened")


def arithmetic_program(seed: int, tasks: int = 30) -> tuple[Program, dict[str, int]]:
    """A program that adds numbers along a random graph, and its expected results."""
    random = np.random.default_rng(seed)
    program = Program(f"sums-{seed}")
    values: list[int] = []
    for t in range(tasks):
        before = sorted({int(b) for b in random.integers(0, t, min(t, 3))}) if t else []
        program.task(add_up, inputs=[f"x{b}" for b in before], outputs=[f"x{t}"], name=f"t{t}", work=0.001)
        values.append(1 + sum(values[b] for b in before))
    return program, {d.name: values[int(d.name[1:])] for d in program.results()}


def add_up(*values: int) -> int:
    return 1 + sum(values)


def _require_results(results: Mapping[str, Any], expected: Mapping[str, int], where: str) -> None:
    for name, value in expected.items():
        assert results.get(name) == value, f"{where}: {name} is {results.get(name)!r}, not {value}"


def plan_of_events(program: Program, platform: Platform, finished: Sequence[TaskFinished]) -> Plan:
    """A run as a plan with measured run times; data is assumed to be shared by all hosts."""
    graph = program.graph
    number = {name: t for t, name in enumerate(graph.task_names)}
    host_number = {h.name: i for i, h in enumerate(platform.hosts)}
    hosts = tuple(Host(h.name, cores=h.cores, memory=h.memory, resources=h.resources) for h in platform.hosts)
    host, start, finish = np.zeros(graph.n_tasks, np.int32), np.zeros(graph.n_tasks), np.zeros(graph.n_tasks)
    for event in finished:
        t = number[event.task]
        host[t], start[t], finish[t] = host_number[event.host], event.start, event.time
    earliest = float(start.min(initial=0.0))
    shared = Platform((Site("all", hosts),), name=platform.name)
    core = _cores(host, start, finish, [h.cores for h in hosts])
    measured = graph.with_work(finish - start)
    start, finish = start - earliest, finish - earliest
    return Plan(measured, shared, "happened", host, core, start, finish, **NO_MOVES)


def _cores(host: Any, start: Any, finish: Any, cores: list[int]) -> Any:
    """The core of each task: the one that has been idle longest."""
    free_at = [np.zeros(c) - np.inf for c in cores]
    core = np.zeros(len(host), np.int32)
    for t in np.lexsort((finish, start)).tolist():
        core[t] = int(np.argmin(free_at[host[t]]))
        free_at[host[t]][core[t]] = finish[t]
    return core
