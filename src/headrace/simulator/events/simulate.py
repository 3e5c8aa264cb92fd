"""A program on a grid that changes, under a scheduler by name: everything a simulated run needs, put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Any, cast

import numpy as np

from headrace.core.estimate_sources import ServiceEstimates
from headrace.core.estimates import Estimates, HistoryEstimates, with_hosts
from headrace.core.replan import Replan, ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.formats.python_program import load_from_file
from headrace.model.behaviour import Change, GridScript
from headrace.model.errors import UsageError
from headrace.model.graph import Graph
from headrace.model.platform import Host, Platform
from headrace.model.program import Program
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import ENTRIES, construct, make
from headrace.predict.information import parse_quality
from headrace.simulator.events.backend import simulate_online
from headrace.simulator.events.faults import parse_faults
from headrace.simulator.events.run import ExecutionPolicy, Scheduler, SimulatedRun

ONLINE = {entry.name: entry.online for entry in ENTRIES if entry.online is not None}
"""Schedulers that decide while the program runs; any planner can be steered through a run as well."""

RULES = tuple(rule.name for rule in fields(ReplanPolicy))
TAKEN = {"dheft": ("planning", "pause")}
"""The rules that a scheduler of ONLINE takes, where it takes any; steered planners take all of them."""


@dataclass(frozen=True)
class SimulationConfig:
    """How a simulated run goes, beside the program, the grid and the scheduler."""

    rules: ReplanPolicy = field(default_factory=ReplanPolicy)
    mechanics: ExecutionPolicy = field(default_factory=ExecutionPolicy)
    estimates: str = "user"
    """user, history, perfect, bounded:SHARE, sampled or forecast."""
    faults: str = ""
    error: float = 0.0
    """Real run times differ from the program's by up to this share, either way."""
    planned: float | None = None
    """The makespan that shares of time in `faults` refer to; if not given, that of `planned_makespan`."""

    def fitted(self, scheduler: str) -> SimulationConfig:
        """The same with only those rules that the scheduler takes; the others are as if nobody gave them.

        >>> SimulationConfig(ReplanPolicy(subset=9, planning=0.5)).fitted("dheft").rules == ReplanPolicy(planning=0.5)
        True
        """
        kept = {name: getattr(self.rules, name) for name in rules_taken(scheduler)}
        return replace(self, rules=ReplanPolicy(**kept))


def rules_taken(scheduler: str) -> tuple[str, ...]:
    """The fields of `ReplanPolicy` that have a meaning for a scheduler of this name.

    >>> rules_taken("lheft"), rules_taken("dheft"), "subset" in rules_taken("minmin")
    ((), ('planning', 'pause'), True)
    """
    if scheduler in ONLINE or _online_of_ones_own(scheduler) is not None:
        return TAKEN.get(scheduler, ())
    return RULES


def make_online(
    name: str, setting: SimulationConfig | None = None, seed: int = 0, **options: Any
) -> Scheduler:
    """An online scheduler by name, or a class of one's own (`file.py:Name`); a planner is steered by the rules.

    ReplanPolicy that this scheduler does not take are an error.

    >>> make_online("lheft", SimulationConfig(ReplanPolicy(events="S1"))).name
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: 'lheft' does not take events (try: it takes no planning rules)
    """
    rules = (setting or SimulationConfig()).rules
    if name in ONLINE:
        _refuse_others(name, rules, rules_taken(name))
        module, maker = ONLINE[name]
        given = {rule: getattr(rules, rule) for rule in rules_taken(name)}
        made: Scheduler = construct(getattr(import_module(module), maker), name, {**given, **options})
        return made
    own = _online_of_ones_own(name)
    if own is not None:
        _refuse_others(name, rules, ())
        return cast(Scheduler, construct(own, name, options))
    return Replan(make(name, **options), rules, seed)


def _online_of_ones_own(name: str) -> Callable[..., Any] | None:
    """The class that `file.py:Name` names, if it decides during a run: if it has `react` in place of `plan`."""
    found = load_from_file(name) if ".py:" in name else None
    decides = callable(getattr(found, "react", None)) and not hasattr(found, "plan")
    return found if decides and callable(found) else None


def _refuse_others(name: str, rules: ReplanPolicy, taken: Sequence[str]) -> None:
    plain = ReplanPolicy()
    others = [r for r in RULES if r not in taken and getattr(rules, r) != getattr(plain, r)]
    if others:
        raise UsageError(
            f"{name!r} does not take {', '.join(others)}",
            hint=f"it takes {', '.join(taken)}" if taken else "it takes no planning rules",
        )


def simulate_program(
    program: Program | Graph,
    grid: Platform | GridScript,
    scheduler: str | Scheduler,
    setting: SimulationConfig | None = None,
    *,
    seed: int = 0,
    tell: Callable[[float, int], None] = lambda time, done: None,
    **options: Any,
) -> SimulatedRun:
    """Run a program in virtual time on a grid that may change, with the coordinator and an online scheduler.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = [program.task(None, work=1.0) for _ in range(6)]
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> simulate_program(program, lab, "workqueue").makespan
    2.0
    """
    setting = setting or SimulationConfig()
    graph = program.graph if isinstance(program, Program) else program
    real = _real(program, setting.error, seed)
    platform = grid if isinstance(grid, Platform) else grid.platform
    changes: list[Change] = [] if isinstance(grid, Platform) else list(grid.changes)
    if setting.faults:
        planned = setting.planned
        if planned is None:
            planned = planned_makespan(graph, grid, setting.faults, scheduler, **options)
        changes += parse_faults(setting.faults, platform, planned, seed)
    made = make_online(scheduler, setting, seed, **options) if isinstance(scheduler, str) else scheduler
    run = simulate_online(
        graph,
        platform,
        made,
        changes=changes,
        real=real,
        estimates=_beliefs(setting.estimates, graph, real, platform, seed),
        mechanics=setting.mechanics,
        tell=tell,
    )
    return replace(run, bound=_bound(real, platform, changes))


def _real(program: Program | Graph, error: float, seed: int) -> Graph:
    real = program.real if isinstance(program, Program) else program
    check_error(error)
    if error == 0.0:
        return real
    factor = np.random.default_rng(seed).uniform(1.0 - error, 1.0 + error, real.n_tasks)
    return real.with_work(real.work * factor)


def check_error(error: float) -> None:
    """Refuse what is no share by which run times can be off."""
    if not 0.0 <= error < 1.0:
        raise UsageError(f"error is {error}", hint="a share from 0 up to, not including, 1, such as 0.2")


def check_estimates(estimates: str) -> None:
    """Refuse what is no quality of information."""
    if estimates not in ("user", "history"):
        try:
            parse_quality(estimates)
        except UsageError as error:
            error.hint = "user, history, perfect, bounded:SHARE (such as bounded:0.3), sampled or forecast"
            raise


def _beliefs(estimates: str, graph: Graph, real: Graph, platform: Platform, seed: int) -> Estimates:
    if estimates == "user":
        return Estimates(graph, platform)
    if estimates == "history":
        return HistoryEstimates(graph, platform)
    quality, error = parse_quality(estimates)
    return ServiceEstimates(graph, platform, real, quality, error=error, seed=seed)


def planned_makespan(
    program: Program | Graph,
    grid: Platform | GridScript,
    faults: str,
    scheduler: str | Scheduler,
    **options: Any,
) -> float:
    """What shares of time in `faults` refer to: the makespan of the scheduler's own plan for the start, or HEFT's.

    0 where there are none, without a plan.
    """
    if "%" not in faults:
        return 0.0
    graph = program.graph if isinstance(program, Program) else program
    platform = grid if isinstance(grid, Platform) else grid.start()
    planner = make("heft")
    if isinstance(scheduler, str) and scheduler not in ONLINE and _online_of_ones_own(scheduler) is None:
        planner = make(scheduler, **options)
    return planner.plan(Problem(graph, platform)).makespan


def _bound(real: Graph, platform: Platform, changes: list[Change]) -> float:
    """No run can be shorter: the bound with every host there all the time and as fast as it ever is."""
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
