"""`headrace deploy --what-if`, `--why-not` and `--refresh`: questions about a deployment, answered by solving again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.commands.changed_platform import changed_platform
from headrace.commands.what_if import Change, parse_change
from headrace.model.deployment import Deployment
from headrace.model.errors import BadPlan, HeadraceError, NoPlan, UsageError
from headrace.model.pipeline import PipelineProblem, Source

if TYPE_CHECKING:
    from headrace.planners.pipeline.refresh import Refreshed
    from headrace.planners.pipeline.why_not import WhyNot


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

    >>> from headrace.model.pipeline import FilterProfile, Pipeline
    >>> from headrace.model.platform import Host, Platform, Site
    >>> lab = Platform((Site("lab", (Host("n1"), Host("n2")), bandwidth=1e6),))
    >>> filters = [FilterProfile("read", 1.0, 1.0), FilterProfile("add", 1.0)]
    >>> problem = PipelineProblem(Pipeline("p", filters, sources=[Source("n1", {"n1": 1.0})]), lab)
    >>> [h.name for h in change_problem(problem, parse_change("host n2")).platform.hosts]
    ['n1', 'n2', 'n2+1']
    """
    if change.kind == "disk":
        raise UsageError(
            "a deployment does not use disks",
            where=f"--what-if {str(change)!r}",
            hint="change a host or a link",
        )
    sources = list(problem.sources)
    if change.operation == "remove" and change.kind != "link":
        sources = _sources_without(problem, change)
    platform = changed_platform(problem.platform, change)
    if change.operation != "remove":
        return replace(problem, platform=platform)
    sites = {site.name for site in platform.sites}
    weights = {pair: w for pair, w in problem.knobs.weights.items() if sites.issuperset(pair)}
    return replace(
        problem,
        pipeline=problem.pipeline.with_sources(sources),
        platform=platform,
        knobs=replace(problem.knobs, weights=weights),
        segments={name: rate for name, rate in problem.segments.items() if name in sites},
    )


def _sources_without(problem: PipelineProblem, change: Change) -> list[Source]:
    """The sources that do not need what is removed; raises NoPlan if there is none."""
    gone = {
        h.name
        for site in problem.platform.sites
        for h in site.hosts
        if change.name == (h.name if change.kind == "host" else site.name)
    }
    kept = [s for s in problem.sources if not any(s.shares.get(h, 0) > 0 for h in gone)]
    if not kept:
        raise NoPlan(
            "nothing could be read without it",
            where=f"--what-if {str(change)!r}",
            hint="offer another source",
        )
    return kept


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
