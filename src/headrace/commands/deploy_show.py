"""Printing deployments: one in full, several side by side, and the answers to questions about one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.console import file_rows, print_json, print_table
from headrace.commands.deploy_questions import (
    WhatIf,
    refresh_json,
    refresh_rows,
    what_if_json,
    what_if_rows,
    why_not_json,
)
from headrace.commands.deploy_simulated import Outcomes, simulated_cells, simulated_json, simulated_rows
from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan
from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.planners.pipeline.refresh import Refreshed
    from headrace.planners.pipeline.why_not import WhyNot


@dataclass(frozen=True, eq=False)
class Answers:
    """Deployments by planner, and what was asked about them."""

    made: Mapping[str, Deployment | NoPlan]
    simulated: Mapping[str, Outcomes] = field(default_factory=dict)
    what_if: tuple[WhatIf, ...] = ()
    why_not: tuple[WhyNot, ...] = ()
    refreshed: Refreshed | None = None


def chosen_deployment(made: Mapping[str, Deployment | NoPlan]) -> Deployment:
    plans = [d for d in made.values() if isinstance(d, Deployment)]
    if not plans:
        raise next(error for error in made.values() if isinstance(error, NoPlan))
    return next((d for d in plans if d.planner == "lpsched"), plans[-1])


def show_deployments(answers: Answers, outputs: Sequence[tuple[str, Path | None]], *, as_json: bool) -> None:
    """Print one deployment in full, or several side by side."""
    made, simulated = answers.made, answers.simulated
    if as_json:
        shown = {
            k: _with_answers(to_json(d), k, answers) if isinstance(d, Deployment) else {"error": str(d)}
            for k, d in made.items()
        }
        print_json(next(iter(shown.values())) if len(made) == 1 else {"deployments": shown})
        return
    if len(made) > 1:
        print_table(*comparison(made, simulated))
        return
    chosen = chosen_deployment(made)
    print_table(*filter_rows(chosen))
    rows = summary(chosen)
    for outcomes in simulated.values():
        rows[3:3] = simulated_rows(outcomes)  # below what is planned
    if answers.refreshed is not None:
        rows += refresh_rows(answers.refreshed)
    rows += what_if_rows(answers.what_if)
    rows += [["why not", reason.text] for reason in answers.why_not]
    print_table([], rows + file_rows(list(outputs)))


def _with_answers(shown: dict[str, Any], planner: str, answers: Answers) -> dict[str, Any]:
    if planner in answers.simulated:
        shown["simulated"] = simulated_json(answers.simulated[planner])
    if answers.what_if:
        shown["what_if"] = what_if_json(answers.what_if)
    if answers.why_not:
        shown["why_not"] = why_not_json(answers.why_not)
    if answers.refreshed is not None:
        shown["refreshed"] = refresh_json(answers.refreshed)
    return shown


def filter_rows(deployment: Deployment) -> tuple[list[str], list[list[str]]]:
    """A row for each filter: copies, hosts, utilisation, input rate."""
    rows = []
    for f in deployment.problem.pipeline.order:
        here = deployment.of(f.name)
        busy = sum(p.busy for p in here) / sum(p.copies for p in here)
        rate = sum(p.rate for p in here)
        copies = str(deployment.copies(f.name))
        rows.append([f.name, copies, host_ranges([p.host for p in here]), f"{busy:.0%}", f"{rate:.4g}"])
    return ["filter", "copies", "hosts", "busy", "MB/s in"], rows


def summary(deployment: Deployment) -> list[list[str]]:
    """The other properties of a deployment, as names and values."""
    d, knobs = deployment, deployment.problem.knobs
    volume = d.problem.pipeline.reader.volume
    return [
        ["planned by", f"{d.planner}, {d.form}" if d.planner != d.form else d.planner],
        ["source", d.source],
        ["throughput", f"{d.throughput:.4g} MB/s: {volume:.4g} MB in {show_time(d.predicted_seconds)}"],
        ["hosts used", f"{len(d.hosts_used)} of {len(d.problem.hosts)}"],
        *[["limited by" if i == 0 else "", limit.text] for i, limit in enumerate(d.limits[:5])],
        [
            "knobs",
            f"W_X {knobs.host_cost:g}, W_C {knobs.cross:g}, W_F {knobs.spare:g}, W_MIN {knobs.least:g}",
        ],
        ["objective", f"{d.objective:.6g}, at most {d.bound:.6g} (gap {d.gap:.2%})"],
        ["planning time", show_time(d.seconds)],
        *[["note", note] for note in d.notes],
    ]


def host_ranges(names: Sequence[str], most: int = 6) -> str:
    """Host names, with consecutive numbers as ranges.

    >>> host_ranges(["MG1", "MG2", "MG3", "MG9", "x"])
    'MG1..3, MG9, x'
    """
    runs: list[list[Any]] = []
    for name in names:
        match = re.fullmatch(r"(.*?)(\d{1,9})", name)
        stem, number = (match[1], int(match[2])) if match else (name, None)
        last = runs[-1] if runs else None
        if last and number is not None and last[0] == stem and last[2] == number - 1:
            last[2] = number
        else:
            runs.append([stem, number, number])
    shown = [
        stem if first is None else f"{stem}{first}" if first == last else f"{stem}{first}..{last}"
        for stem, first, last in runs
    ]
    left = len(shown) - most
    return ", ".join(shown if left <= 1 else [*shown[:most], f"and {left} more ranges"])


def comparison(
    made: Mapping[str, Deployment | NoPlan], simulated: Mapping[str, Outcomes]
) -> tuple[list[str], list[list[str]]]:
    """Planners side by side, with simulated throughput if there is any."""
    more = ["simulated", "round robin"] if simulated else []
    rows = []
    for name, d in made.items():
        if isinstance(d, NoPlan):
            rows.append([name, f"no plan: {d.problem}", "", "", "", "", *([""] * len(more))])
            continue
        copies = " + ".join(str(d.copies(f.name)) for f in d.problem.pipeline.order)
        hosts = str(len(d.hosts_used))
        cells = simulated_cells(simulated.get(name)) if simulated else []
        rows.append(
            [name, d.form, f"{d.throughput:.4g}", show_time(d.predicted_seconds), hosts, copies, *cells]
        )
    return ["planner", "form", "MB/s", "time", "hosts", "copies", *more], rows


def to_json(deployment: Deployment) -> dict[str, Any]:
    """A deployment as JSON."""
    d = deployment
    knobs = d.problem.knobs
    return {
        "pipeline": d.problem.pipeline.name,
        "platform": d.problem.platform.name,
        "planner": d.planner,
        "form": d.form,
        "source": d.source,
        "throughput": d.throughput,
        "predicted_seconds": d.predicted_seconds,
        "hosts_used": list(d.hosts_used),
        "copies": {f.name: d.copies(f.name) for f in d.problem.pipeline.order},
        "objective": d.objective,
        "bound": d.bound,
        "gap": d.gap,
        "seconds": d.seconds,
        "knobs": {
            "host_cost": knobs.host_cost,
            "cross": knobs.cross,
            "spare": knobs.spare,
            "least": knobs.least,
            "least_of": dict(knobs.least_of),
            "weights": [{"from": a, "to": b, "weight": w} for (a, b), w in knobs.weights.items()],
        },
        "limits": [limit._asdict() for limit in d.limits],
        "notes": list(d.notes),
        "placements": [p._asdict() for p in d.placements],
        "flows": [
            {
                "stream": [f.source_filter, f.target_filter],
                "from": f.source,
                "to": f.target,
                "rate": f.rate,
            }
            for f in d.flows
        ],
    }
