"""`headrace deploy --what-if`, `--why-not` and `--refresh`: questions about a deployment, answered by solving again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.commands.what_if import Change, find_link, parse_change
from headrace.model.deployment import Deployment
from headrace.model.errors import BadPlan, HeadraceError, NoPlan, UsageError
from headrace.model.pipeline import PipelineProblem
from headrace.model.platform import Host, Link, Platform, Site

if TYPE_CHECKING:
    from headrace.planners.pipeline.refresh import Refreshed
    from headrace.planners.pipeline.why_not import WhyNot

HUB = "hub"
"""The other end of an uplink: `link SITE-hub`."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The deployment of a changed problem, or why there is none."""

    text: str
    before: Deployment
    after: Deployment | HeadraceError

    @property
    def gain(self) -> float:
        """MB/s."""
        return self.after.throughput - self.before.throughput if isinstance(self.after, Deployment) else 0.0


def change_problem(problem: PipelineProblem, change: Change) -> PipelineProblem:
    """The problem after a change of its platform.

    Raises UsageError for unknown names, and for changes that mean nothing to a deployment; NoPlan if nothing could be
    read any more.

    >>> from headrace.model.pipeline import FilterProfile, Pipeline, Source
    >>> lab = Platform((Site("lab", (Host("n1"), Host("n2")), bandwidth=1e6),))
    >>> filters = [FilterProfile("read", 1.0, 1.0), FilterProfile("add", 1.0)]
    >>> problem = PipelineProblem(Pipeline("p", filters, sources=[Source("n1", {"n1": 1.0})]), lab)
    >>> [h.name for h in change_problem(problem, parse_change("host n2")).platform.hosts]
    ['n1', 'n2', 'n2+1']
    """
    if change.kind == "disk":
        raise _wrong(change, "a deployment does not use disks", "change a host or a link")
    if problem.platform.pairs is not None and (change.kind != "host" or change.operation == "add"):
        raise _wrong(change, "the platform has a link for every pair of hosts", "change the speed of a host")
    if change.operation == "remove":
        return _without(problem, change)
    apply = {"host": _change_host, "link": _change_link, "cores": _change_cores}[change.kind]
    return replace(problem, platform=apply(problem.platform, change))


def ask_what_if(
    made: Deployment, texts: Iterable[str], solve: Callable[[PipelineProblem], Deployment]
) -> list[WhatIf]:
    """Solve each changed problem from scratch; all changes are parsed and applied before the first is solved.

    A mistake in a change is raised; that nothing can be planned after a change is its answer.
    """
    changes = [(text, _changed(made.problem, parse_change(text))) for text in texts]
    return [
        WhatIf(text, made, problem if isinstance(problem, HeadraceError) else _solved(problem, solve))
        for text, problem in changes
    ]


def _changed(problem: PipelineProblem, change: Change) -> PipelineProblem | HeadraceError:
    try:
        return change_problem(problem, change)
    except UsageError:
        raise
    except HeadraceError as error:
        return error


def _solved(
    problem: PipelineProblem, solve: Callable[[PipelineProblem], Deployment]
) -> Deployment | HeadraceError:
    try:
        return solve(problem)
    except BadPlan:  # a bug in the planner
        raise
    except HeadraceError as error:
        return error


def what_if_rows(answers: Iterable[WhatIf]) -> list[list[str]]:
    """Names and values for the table of a deployment."""
    rows = []
    for answer in answers:
        after = answer.after
        if isinstance(after, HeadraceError):
            rows.append(["what if", f"{answer.text}: no plan: {after.problem}"])
            continue
        difference = after.objective - answer.before.objective
        rows.append(
            [
                "what if",
                f"{answer.text}: {after.throughput:.4g} MB/s ({answer.gain:+.4g}), "
                f"{len(after.hosts_used)} hosts, objective {after.objective:.6g} ({difference:+.4g})",
            ]
        )
    return rows


def what_if_json(answers: Iterable[WhatIf]) -> list[dict[str, Any]]:
    """The answers as JSON."""
    return [
        {"change": a.text, "error": str(a.after)}
        if isinstance(a.after, HeadraceError)
        else {
            "change": a.text,
            "throughput": a.after.throughput,
            "gain": a.gain,
            "objective": a.after.objective,
            "objective_gain": a.after.objective - a.before.objective,
            "bound": a.after.bound,
            "source": a.after.source,
            "form": a.after.form,
            "hosts_used": list(a.after.hosts_used),
        }
        for a in answers
    ]


def why_not_json(answers: Iterable[WhyNot]) -> list[dict[str, Any]]:
    """The answers as JSON; the cost is null where a host cannot be used."""
    return [
        {
            "host": a.host,
            "used": a.used,
            "filters": list(a.filters),
            "cost": a.cost if a.cost != float("inf") else None,
            "throughput": a.throughput,
            "restriction": a.restriction,
            "text": a.text,
        }
        for a in answers
    ]


def refresh_rows(refreshed: Refreshed) -> list[list[str]]:
    """Names and values for the table of a deployment."""
    starts = [f"{name} on {host}" for name, host in refreshed.moves]
    more = f" and {len(starts) - 6} more" if len(starts) > 6 else ""
    return [["moves", f"{len(starts)}: start {', '.join(starts[:6])}{more}" if starts else "none"]]


def refresh_json(refreshed: Refreshed) -> dict[str, Any]:
    """The moves as JSON."""
    kept = refreshed.kept_objective
    return {
        "moves": [{"filter": name, "host": host} for name, host in refreshed.moves],
        "best_moves": refreshed.best_moves,
        "best_objective": refreshed.best_objective,
        "kept_objective": kept if kept != -float("inf") else None,
    }


def _wrong(change: Change, problem: str, hint: str) -> UsageError:
    return UsageError(problem, where=f"--what-if {str(change)!r}", hint=hint)


def _each_host(platform: Platform, apply: Callable[[Site, Host], tuple[Host, ...]]) -> Platform:
    sites = tuple(
        replace(s, hosts=tuple(new for h in s.hosts for new in apply(s, h))) for s in platform.sites
    )
    return replace(platform, sites=sites)


def _require_host(platform: Platform, change: Change) -> None:
    if all(h.name != change.name for h in platform.hosts):
        some = ", ".join(h.name for h in platform.hosts[:6])
        raise _wrong(change, f"there is no host {change.name!r}", f"name a host of the platform: {some}, ...")


def _require_site(platform: Platform, change: Change) -> None:
    if all(s.name != change.name for s in platform.sites):
        some = ", ".join(s.name for s in platform.sites[:6])
        raise _wrong(change, f"there is no site {change.name!r}", f"name a site of the platform: {some}")


def _change_host(platform: Platform, change: Change) -> Platform:
    """One more host like this one, or this one with another speed."""
    _require_host(platform, change)
    names = {h.name for h in platform.hosts}
    copy = next(f"{change.name}+{i}" for i in range(1, len(names) + 2) if f"{change.name}+{i}" not in names)

    def apply(site: Site, host: Host) -> tuple[Host, ...]:
        if host.name != change.name:
            return (host,)
        if change.operation == "add":
            return (host, replace(host, name=copy))
        kinds = {kind: speed * change.amount for kind, speed in host.kinds.items()}
        return (replace(host, speed=host.speed * change.amount, kinds=kinds),)

    return _each_host(platform, apply)


def _change_cores(platform: Platform, change: Change) -> Platform:
    """Every host of the site has its cores times a factor, rounded, or a number of cores more."""
    _require_site(platform, change)

    def apply(site: Site, host: Host) -> tuple[Host, ...]:
        if site.name != change.name:
            return (host,)
        more = host.cores * change.amount if change.operation == "multiply" else host.cores + change.amount
        return (replace(host, cores=max(1, round(more))),)

    return _each_host(platform, apply)


def _change_link(platform: Platform, change: Change) -> Platform:
    """Other bandwidth between two sites, in both directions, or of a site's uplink."""
    a, b = _ends(platform, change)

    def wider(rate: float) -> float:
        return rate * change.amount if change.operation == "multiply" else rate + change.amount

    if b == HUB:
        sites = tuple(
            replace(s, uplink=wider(s.uplink)) if s.name == a and s.uplink is not None else s
            for s in platform.sites
        )
        return replace(platform, sites=sites)
    links = tuple(
        replace(link, bandwidth=wider(link.bandwidth)) if _joins(link, a, b) else link
        for link in platform.links
    )
    return replace(platform, links=links)


def _ends(platform: Platform, change: Change) -> tuple[str, str]:
    uplinks = {s.name for s in platform.sites if s.uplink is not None}

    def known(a: str, b: str) -> bool:
        return any(_joins(link, a, b) for link in platform.links) or (b == HUB and a in uplinks)

    return find_link(change.name, known, [s.name for s in platform.sites])


def _joins(link: Link, a: str, b: str) -> bool:
    return {link.source, link.target} == {a, b}


def _without(problem: PipelineProblem, change: Change) -> PipelineProblem:
    """The problem without a host, link or site; sources that need a removed host are removed as well."""
    platform = problem.platform
    if change.kind == "link":
        a, b = _ends(platform, change)
        sites = tuple(replace(s, uplink=None) if b == HUB and s.name == a else s for s in platform.sites)
        links = tuple(link for link in platform.links if not _joins(link, a, b))
        return replace(problem, platform=replace(platform, sites=sites, links=links, isolated=True))
    if change.kind == "host":
        _require_host(platform, change)
        gone = {change.name}
    else:
        _require_site(platform, change)
        gone = {h.name for s in platform.sites if s.name == change.name for h in s.hosts}
    sources = [s for s in problem.sources if not any(s.shares.get(h, 0) > 0 for h in gone)]
    if not sources or len(gone) == len(platform.hosts):
        raise NoPlan(
            "nothing could be read without it",
            where=f"--what-if {str(change)!r}",
            hint="offer another source",
        )
    platform = platform.without(gone)
    knobs, segments = problem.knobs, dict(problem.segments)
    if change.kind == "site":
        platform = replace(
            platform,
            sites=tuple(s for s in platform.sites if s.name != change.name),
            links=tuple(x for x in platform.links if change.name not in (x.source, x.target)),
            isolated=True,
        )
        segments.pop(change.name, None)
        weights = {pair: w for pair, w in knobs.weights.items() if change.name not in pair}
        knobs = replace(knobs, weights=weights)
    pipeline = problem.pipeline.with_sources(sources)
    return replace(problem, pipeline=pipeline, platform=platform, knobs=knobs, segments=segments)
