"""Why a deployment does not use a host: what using it would cost, and which restriction decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan, UsageError
from headrace.model.pipeline import Pipeline, PipelineProblem
from headrace.model.platform import Host, Platform, Site
from headrace.planners.pipeline.assemble import objective_of
from headrace.planners.pipeline.disaggregate import HostFlows
from headrace.planners.pipeline.portfolio import GAP, SECONDS, Question, ask, solve_question
from headrace.planners.pipeline.search import search

FASTER = 1e3
"""Factor by which the reader is made faster, to see whether it decides."""
SOLVES = 8
"""The time is divided among about this many searches."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer for one host."""

    host: str
    used: bool
    filters: tuple[str, ...]
    """What it runs, or would run if it had to be used."""
    cost: float
    """How much of the objective using it would cost; inf: it cannot be used."""
    throughput: float
    """MB/s with the host in use."""
    restriction: str
    """The number of the restriction that decides, as in the guide; empty if there is no single one."""
    text: str


def why_not(made: Deployment, host: str, *, seconds: float = SECONDS, gap: float = GAP) -> WhyNot:
    """Why the deployment does not use a host.

    The problem is solved again with the host in use; the difference is what using it costs. Then one restriction after
    the other is lifted: the first without which using the host costs nothing is the one that decides.

    Raises UsageError if there is no such host.
    """
    problem = made.problem
    if host not in problem.hosts:
        raise UsageError(f"there is no host {host!r}", where="--why-not", hint="name a host of the platform")
    if host in made.hosts_used:
        runs = tuple(p.filter for p in made.placements if p.host == host)
        text = f"{host} is used: it runs {', '.join(runs)}"
        return WhyNot(host, True, runs, 0.0, made.throughput, "", text)
    part = seconds / SOLVES
    question = ask(problem, seconds=part, gap=gap)
    if not _reachable(question, host):
        text = f"{host} cannot be used: no data can reach it"
        return WhyNot(host, False, (), float("inf"), 0.0, "12", text)
    forced = _forced(question, host)
    if forced is None:
        text = f"{host} cannot be used: no deployment with it was found"
        return WhyNot(host, False, (), float("inf"), 0.0, "", text)
    objective, flows, rates_unit = forced
    names = [f.name for f in problem.pipeline.order]
    place = [h.name for h in problem.platform.hosts].index(host)
    runs = tuple(names[k] for k in np.flatnonzero(flows.placed[:, place]).tolist())
    cost = max(made.objective - objective, 0.0)
    more = objective - made.objective
    if more > 2 * gap * abs(made.objective):
        text = (
            f"using {host} (for {', '.join(runs)}) would raise the objective by {more:.4g} and give "
            f"{flows.throughput * rates_unit:.4g} MB/s: this deployment is not the best one"
        )
        return WhyNot(host, False, runs, cost, flows.throughput * rates_unit, "", text)
    if cost <= 2 * gap * abs(made.objective):
        text = f"{host} could run {', '.join(runs)} at no cost: it is as good as hosts in use that are listed before it"
        return WhyNot(host, False, runs, cost, flows.throughput * rates_unit, "", text)
    number, reason = _deciding(made, host, part, gap)
    rate = flows.throughput * rates_unit
    text = (
        f"using {host} (for {', '.join(runs)}) would lower the objective by {cost:.4g} and give {rate:.4g} MB/s "
        f"instead of {made.throughput:.4g}: {reason}"
    )
    return WhyNot(host, False, runs, cost, rate, number, text)


def _forced(question: Question, host: str) -> tuple[float, HostFlows, float] | None:
    """The best objective with the host in use: it is worth more than all the rest if it is used."""
    problem, rates = question.problem, question.rates
    place = [h.name for h in problem.platform.hosts].index(host)
    flow = float(rates.stream_rate.sum()) * rates.most * max(float(rates.weight.max()), 0.0)
    bonus = np.zeros(rates.core.shape)
    bonus[:, place] = -2.0 * (flow + question.weights.host_cost * len(rates.zone) + 1.0)
    rich = ask(problem, seconds=question.seconds, gap=question.gap * 0.1, extra_cost=bonus)
    best: tuple[float, HostFlows, float] | None = None
    for plain, case in zip(
        sorted(question.cases, key=lambda c: c.option),
        sorted(rich.cases, key=lambda c: c.option),
        strict=True,
    ):
        reads = rates.share[case.option, place] > 0
        end = question.began + question.seconds
        found = search(plain if reads else case, end=max(end, rich.began + 0.5), gap=question.gap * 0.1)
        if found.flows is None or not found.flows.placed[:, place].any():
            continue
        flows = replace(found.flows, option=case.option)
        objective = objective_of(problem, rates, flows)
        if best is None or objective > best[0]:
            best = (objective, flows, rates.unit)
    return best


def _reachable(question: Question, host: str) -> bool:
    """Whether data that a source reads can reach the host."""
    rates = question.rates
    zone = rates.zone[[h.name for h in question.problem.platform.hosts].index(host)]
    sources = [np.unique(rates.zone[share > 0]) for share in rates.share]
    return any(bool((rates.routed[zones, zone] > 0).any()) for zones in sources)


def _deciding(made: Deployment, host: str, seconds: float, gap: float) -> tuple[str, str]:
    """The restriction without which using the host would cost nothing."""
    for number, text, problem in _lifted(made, host):
        try:
            question = ask(problem, seconds=seconds, gap=gap)
            best = solve_question(question)
            forced = _forced(ask(problem, seconds=seconds, gap=gap), host)
        except NoPlan:
            continue
        tolerance = 2 * gap * abs(best.objective) + 1e-9
        if forced is not None and forced[0] >= best.objective - tolerance:
            return number, text
    return "", "several restrictions together keep it out"


def _lifted(made: Deployment, host: str) -> Iterator[tuple[str, str, PipelineProblem]]:
    """Restrictions in the order in which they are lifted, each with the problem without it."""
    problem, knobs = made.problem, made.problem.knobs
    site = problem.cluster[host]
    if made.form == "strict":
        reader = problem.pipeline.reader
        fast = _with_reader(problem.pipeline, reader.seconds / FASTER)
        text = f"the hosts in use keep up with the reader, which delivers at most {made.throughput:.4g} MB/s (5')"
        yield "5'", text, replace(problem, pipeline=fast)
    if problem.platform.pairs is None:
        text = f"links and segments of {site} do not carry what it would exchange (12)"
        yield "12", text, _wide_links(problem, site)
        text = f"the ports of {site} do not carry what it would exchange (12)"
        yield "12", text, _wide_ports(problem, site)
    if knobs.least > 0 or knobs.least_of:
        text = f"it could not be kept as busy as W_MIN = {knobs.least:g} demands (14)"
        yield "14", text, replace(problem, knobs=replace(knobs, least=0.0, least_of={}))
    if knobs.spare > 0:
        text = f"the reserve W_F = {knobs.spare:g} (11)"
        yield "11", text, replace(problem, knobs=replace(knobs, spare=0.0))
    if knobs.host_cost > 0:
        text = f"it would add less than the cost of a host, W_X = {knobs.host_cost:g} (3)"
        yield "3", text, replace(problem, knobs=replace(knobs, host_cost=0.0))
    fastest = max(problem.platform.hosts, key=lambda h: h.speed * (1 - h.load))
    text = f"its power is {_power(problem.hosts[host]):.4g}, and that of {fastest.name} {_power(fastest):.4g} (10)"
    yield "10", text, _as_fast(problem, host, fastest)
    if not problem.several_per_host and knobs.least == 0 and not knobs.least_of:
        text = "a host runs one filter only (15)"
        yield "15", text, replace(problem, several_per_host=True)


def _power(host: Host) -> float:
    return host.speed * (1.0 - host.load)


def _with_reader(pipeline: Pipeline, seconds: float) -> Pipeline:
    filters = [replace(f, seconds=seconds) if f is pipeline.reader else f for f in pipeline.filters]
    return Pipeline(pipeline.name, filters, pipeline.streams, pipeline.sources, pipeline.knobs)


def _wide_links(problem: PipelineProblem, site: str) -> PipelineProblem:
    platform = problem.platform
    links = tuple(
        replace(link, bandwidth=math.inf) if site in (link.source, link.target) else link
        for link in platform.links
    )
    sites = tuple(
        replace(s, uplink=math.inf) if s.name == site and s.uplink is not None else s for s in platform.sites
    )
    segments = {name: math.inf if name == site else rate for name, rate in problem.segments.items()}
    return replace(problem, platform=replace(platform, links=links, sites=sites), segments=segments)


def _wide_ports(problem: PipelineProblem, site: str) -> PipelineProblem:
    def wide(s: Site) -> Site:
        if s.name != site or s.bandwidth is None:
            return s
        return replace(s, bandwidth=math.inf)

    platform = problem.platform
    return replace(problem, platform=replace(platform, sites=tuple(map(wide, platform.sites))))


def _as_fast(problem: PipelineProblem, host: str, like: Host) -> PipelineProblem:
    platform: Platform = problem.platform
    sites = tuple(
        replace(
            s,
            hosts=tuple(
                replace(h, speed=like.speed, kinds=like.kinds, load=like.load, cores=like.cores)
                if h.name == host
                else h
                for h in s.hosts
            ),
        )
        for s in platform.sites
    )
    return replace(problem, platform=replace(platform, sites=sites))
