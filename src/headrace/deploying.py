"""Public function on pipelines: deploy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from headrace.given import as_machines, as_pipeline
from headrace.model.arguments import as_float, wrong_argument
from headrace.model.deployment import Deployment
from headrace.model.errors import BadPlan, UsageError
from headrace.model.pipeline import Knobs, Pipeline, PipelineProblem, RouteChoice, Source
from headrace.model.platform import Platform


def deploy(
    pipeline: Pipeline | str | Path,
    platform: Platform | str | Path,
    planner: str = "lpsched",
    *,
    sources: Iterable[Source] | None = None,
    knobs: Knobs | None = None,
    several_per_host: bool = False,
    segments: Mapping[str, float] | None = None,
    loads: Mapping[str, float] | None = None,
    routes: RouteChoice = "any",
    time: float = 30.0,
    gap: float = 1e-4,
    tell: Callable[[str], None] | None = None,
) -> Deployment:
    """Choose the number of copies of each filter, their hosts and the flows between them; check the deployment.

    Parameters
    ----------
    pipeline, platform
        Objects, or the names of files, as for `headrace deploy`.
    planner
        `lpsched`, `trivial` (one host per filter) or `total` (all hosts).
    sources, knobs
        Override those of the pipeline.
    several_per_host
        Filters may share a host, each with a share of its cores.
    segments
        Sites whose hosts share one medium, with its bandwidth in bytes/s; by default those of the platform's file.
    loads
        Override the load of hosts by name: the share of each core used by others, from 0 to less than 1.
    routes
        `any`: flows between two sites may be divided among routes; `quickest`: they take that of the platform.
    time, gap
        LPSched stops after `time` seconds, or when the relative gap to the bound is proven to be at most `gap`.
    tell
        Called with progress messages.

    Raises
    ------
    UsageError
        If a name is unknown or a value is out of range.
    BadPlan
        If the deployment breaks a restriction, which is a bug in the planner.

    >>> import headrace as hr
    >>> averager = hr.Pipeline("averager", [
    ...     hr.FilterProfile("read", seconds=10.0, volume=100.0),
    ...     hr.FilterProfile("add", seconds=25.0, volume=10.0),
    ...     hr.FilterProfile("average", seconds=5.0),
    ... ], sources=[hr.Source("a", {"n1": 1.0})])
    >>> lab = hr.Platform((hr.Site("lab", tuple(hr.Host(f"n{i}") for i in range(1, 9)), bandwidth=12.5e6),))
    >>> plan = deploy(averager, lab)
    >>> plan.form, plan.throughput, {f.name: plan.copies(f.name) for f in averager.filters}
    ('strict', 10.0, {'read': 1, 'add': 3, 'average': 1})
    >>> plan.check()
    []
    """
    from headrace.planners.pipeline.plan import PLANNERS, deploy_lpsched

    if planner not in PLANNERS:
        raise UsageError(
            f"there is no deployment planner {planner!r}", hint=f"use one of {', '.join(PLANNERS)}"
        )
    pipeline, machines = as_pipeline(pipeline), as_machines(platform)
    _require_numbers(time=time, gap=gap)
    if knobs is not None and not isinstance(knobs, Knobs):
        raise wrong_argument("argument knobs", knobs, "give a Knobs, or leave it out")
    if sources is not None:
        pipeline = pipeline.with_sources(sources)
    problem = PipelineProblem(
        pipeline,
        with_loads(machines.platform, loads or {}),
        pipeline.knobs if knobs is None else knobs,
        several_per_host,
        machines.segments if segments is None else segments,
        routes,
    )
    if planner == "lpsched":
        made = deploy_lpsched(problem, seconds=time, gap=gap, tell=tell)
    else:
        made = PLANNERS[planner](problem)
    broken = made.check()
    if broken:
        raise BadPlan(
            f"{len(broken)} violations: {'; '.join(str(v) for v in broken[:3])}",
            where=f"deployment by {planner}",
            hint="please report this with the two files",
        )
    return made


def _require_numbers(**given: object) -> None:
    for name, value in given.items():
        if as_float(value) is None:
            raise wrong_argument(f"argument {name}", value, "give a number")


def with_loads(platform: Platform, loads: Mapping[str, float]) -> Platform:
    """The same platform with the load of some hosts replaced.

    >>> with_loads(Platform.pairwise([1.0, 1.0], bandwidth=1e6), {"h1": 0.5}).hosts[1].load
    0.5
    """
    if not isinstance(loads, Mapping):
        raise wrong_argument("argument loads", loads, 'give names and shares, such as {"host1": 0.5}')
    known = {h.name for h in platform.hosts}
    for name in loads:
        if name not in known:
            raise UsageError(
                f"load given for unknown host {name!r}", where=platform.name, hint="check the host names"
            )
    if not loads:
        return platform
    sites = tuple(
        replace(s, hosts=tuple(replace(h, load=loads.get(h.name, h.load)) for h in s.hosts))
        for s in platform.sites
    )
    return replace(platform, sites=sites)
