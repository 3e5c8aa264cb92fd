"""Simulate a program on a changing grid under a scheduler given by name, class or object."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.estimate_sources import LearningEstimates, ServiceEstimates
from headrace.core.estimates import Estimates, HistoryEstimates, with_hosts
from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.model.behaviour import Change, GridScript
from headrace.model.graph import Graph
from headrace.model.platform import Host, Platform
from headrace.model.program import Program
from headrace.online.adapter import is_scheduler, make_scheduler
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import make
from headrace.predict.information import LEARNING, parse_quality
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.faults import parse_faults
from headrace.simulator.events.run import SimulatedRun

if TYPE_CHECKING:
    from headrace.rules.tree import RuleSet


def simulate_program(
    program: Program | Graph,
    grid: Platform | GridScript,
    scheduler: str | Planner | Scheduler,
    config: SimulationConfig | None = None,
    *,
    rules: RuleSet | None = None,
    seed: int = 0,
    tell: Callable[[float, int], None] = lambda time, done: None,
    **options: Any,
) -> SimulatedRun:
    """Simulate a program on a grid that may change during the run.

    With rules, the scheduler obeys the requirements; what happens may still break them, for example when run times
    differ from the estimates.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> simulate_program(program, lab, "workqueue").makespan
    2.0
    """
    config = config or SimulationConfig()
    graph = program.graph if isinstance(program, Program) else program
    real = _real(program, config.error, seed)
    platform = grid if isinstance(grid, Platform) else grid.platform
    changes: list[Change] = [] if isinstance(grid, Platform) else list(grid.changes)
    if config.faults:
        planned = config.planned
        if planned is None:
            planned = planned_makespan(graph, grid, config.faults, scheduler, **options)
        changes += parse_faults(config.faults, platform, planned, seed)
    made = make_scheduler(scheduler, config.policy, seed, **options)
    bound = graph
    if rules is not None:
        from headrace.simulator.events.ruled import like_bound, under_rules

        steady = isinstance(grid, Platform)
        made, bound = under_rules(made, Problem(graph, platform, seed=seed, rules=rules), plan_first=steady)
        real = like_bound(real, bound)
    run = simulate_scheduler(
        bound,
        platform,
        made,
        changes=changes,
        real=real,
        estimates=_estimates(config.estimates, bound, real, platform, seed),
        policy=config.execution,
        tell=tell,
    )
    return replace(run, bound=_bound(real, platform, changes))


def _real(program: Program | Graph, error: float, seed: int) -> Graph:
    real = program.real if isinstance(program, Program) else program
    if error == 0.0:
        return real
    factor = np.random.default_rng(seed).uniform(1.0 - error, 1.0 + error, real.n_tasks)
    return real.with_work(real.work * factor)


def _estimates(quality: str, graph: Graph, real: Graph, platform: Platform, seed: int) -> Estimates:
    if quality == "user":
        return Estimates(graph, platform)
    if quality == "history":
        return HistoryEstimates(graph, platform)
    if quality in LEARNING:
        return LearningEstimates(graph, platform, real, LEARNING[quality])
    source, error = parse_quality(quality)
    return ServiceEstimates(graph, platform, real, source, error=error, seed=seed)


def planned_makespan(
    program: Program | Graph,
    grid: Platform | GridScript,
    faults: str,
    scheduler: str | Planner | Scheduler,
    **options: Any,
) -> float:
    """The makespan to which percentages in `faults` refer: that of the planner's initial plan, or of HEFT's for online
    schedulers. 0 if `faults` has no percentages."""
    if "%" not in faults:
        return 0.0
    graph = program.graph if isinstance(program, Program) else program
    platform = grid if isinstance(grid, Platform) else grid.start()
    made = make(scheduler, **options) if isinstance(scheduler, str) else scheduler
    planner = make("heft") if is_scheduler(made) else made
    return planner.plan(Problem(graph, platform)).makespan  # type: ignore[union-attr]


def _bound(real: Graph, platform: Platform, changes: list[Change]) -> float:
    """Lower bound on the makespan, with every host always up and at its highest speed."""
    traces: dict[str, list[float]] = {}
    links: dict[str, list[float]] = {}
    for change in changes:
        behaviour = change.behaviour
        if behaviour is None:
            continue
        if isinstance(behaviour, tuple):
            links.setdefault(change.name, []).append(float(behaviour.bandwidth.value.max()))
        else:
            traces.setdefault(change.name, []).append(float(behaviour.value.max()))

    def fastest(number: int, host: Host) -> Host:
        seen = [1.0 - host.load] if host.trace is None else [float(host.trace.value.max())]
        best = max([*seen, *traces.get(host.name, [])])
        return replace(host, load=min(max(0.0, 1.0 - best), 1.0 - 1e-9), trace=None)

    ideal = with_hosts(platform, fastest)
    sites = []
    for site in ideal.sites:
        if site.uplink is not None:
            seen = [site.uplink, *links.get(site.name, [])]
            if site.uplink_trace is not None:
                seen.append(float(site.uplink_trace.bandwidth.value.max()))
            least = 0.0 if site.uplink_trace is not None or site.name in links else site.uplink_latency
            site = replace(site, uplink=max(seen), uplink_latency=least, uplink_trace=None)
        sites.append(site)
    free_links = tuple(
        link
        if link.trace is None
        else replace(
            link,
            bandwidth=max(link.bandwidth, float(link.trace.bandwidth.value.max())),
            latency=0.0,
            trace=None,
        )
        for link in ideal.links
    )
    bound = lower_bound(Problem(real, replace(ideal, sites=tuple(sites), links=free_links)))
    return bound if math.isfinite(bound) else 0.0
