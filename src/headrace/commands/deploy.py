"""`headrace deploy`: plan the deployment of a pipeline and describe it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.console import (
    file_rows,
    print_json,
    print_table,
    progress,
    require_outputs,
    results_beside,
)
from headrace.commands.dataclass_options import option
from headrace.commands.deploy_simulated import (
    Outcomes,
    simulate_deployments,
    simulated_cells,
    simulated_json,
    simulated_rows,
)
from headrace.commands.options import JsonOption, names_in
from headrace.deploying import deploy as make_deployment
from headrace.formats.deployment_ini import write_deployment
from headrace.formats.loading import load_machines, load_pipeline
from headrace.formats.pipeline_ini import read_sources
from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan, UsageError
from headrace.model.pipeline import Source
from headrace.model.platform import Platform
from headrace.model.units import show_time

Tell = Callable[[str], None]


AS_FILE = "as in the pipeline file"


@dataclass(frozen=True)
class DeployOptions:
    """How to plan the deployment."""

    planners: str = option(
        "lpsched",
        "--compare",
        "Comma-separated planners to compare: trivial, total, lpsched.",
        metavar="LIST",
    )
    sources: tuple[str, ...] = option(
        (),
        "--source",
        "Hosts that hold the input: a,b or a=0.7,b=0.3. Repeat to offer alternative sources.",
        metavar="HOSTS",
    )
    sources_file: Path | None = option(
        None, "--sources", "File of alternative sources of the input.", metavar="FILE"
    )
    load: str | None = option(
        None,
        "--load",
        "Forecast host loads from a load file, from platform traces (`forecast`) or from earlier runs (`record`).",
        metavar="FROM",
        default_text="loads as in the platform file",
    )
    time: float = option(30.0, "--time", "Search time.", metavar="SECONDS")
    gap: float = option(1e-4, "--gap", "Stop within this proven relative distance from the optimum.")
    several_per_host: bool = option(False, "--several-per-host", "Let several filters share a host.")
    host_cost: float | None = option(
        None, "--host-cost", "W_X: throughput in MB/s that an additional host must add.", default_text=AS_FILE
    )
    cross: float | None = option(
        None, "--cross", "W_C: weight of flows between clusters.", default_text=AS_FILE
    )
    spare: float | None = option(
        None, "--spare", "W_F: share of computing power kept in reserve.", default_text=AS_FILE
    )
    least: float | None = option(
        None, "--least", "W_MIN: minimum utilisation of a host in use.", default_text=AS_FILE
    )


@dataclass(frozen=True)
class DeployOutput:
    """What to do with the deployment."""

    simulate: bool = option(False, "--simulate", "Simulate the deployment; compare with round-robin routing.")
    output: Path | None = option(None, "--output", "Save the deployment (INI).", short="-o", metavar="FILE")
    plot: Path | None = option(None, "--plot", "Draw clusters, copies and flows as SVG.", metavar="FILE")


def deploy(
    pipeline: Annotated[
        str, typer.Argument(metavar="PIPELINE", help="Pipeline file (INI or TOML).", show_default=False)
    ],
    on: Annotated[
        str, typer.Option("--on", metavar="PLATFORM", help="Platform file (INI or TOML), or `local`.")
    ],
    options: DeployOptions,
    files: DeployOutput,
    as_json: JsonOption = False,
) -> None:
    """Plan the deployment, simulate it if requested, and print it."""
    require_outputs(files.output, files.plot)
    with progress(f"deploying {pipeline}") as say:
        made = deploy_file(pipeline, on, options, say)
        happened = simulate_deployments(made, say) if files.simulate else None
    write_chosen(made, files)
    with results_beside(files.output, files.plot):
        show_deployments(made, files, as_json=as_json, simulated=happened or {})


def deploy_file(
    pipeline_file: str, on: str, options: DeployOptions, tell: Tell
) -> dict[str, Deployment | NoPlan]:
    """A deployment by each planner; with several planners, one that finds none does not stop the others."""
    pipeline = load_pipeline(pipeline_file)
    machines = load_machines(on)
    chosen = _sources(options)
    if chosen:
        pipeline = pipeline.with_sources(chosen)
    turned = {k: getattr(options, k) for k in ("host_cost", "cross", "spare", "least")}
    knobs = replace(pipeline.knobs, **{k: v for k, v in turned.items() if v is not None})
    loads = _loads(options.load, machines.platform)
    made: dict[str, Deployment | NoPlan] = {}
    planners = names_in(options.planners)
    for planner in planners:
        try:
            with _chatter_on_stderr():
                made[planner] = make_deployment(
                    pipeline,
                    machines.platform,
                    planner,
                    knobs=knobs,
                    several_per_host=options.several_per_host,
                    segments=machines.segments,
                    loads=loads,
                    time=options.time,
                    gap=options.gap,
                    tell=tell,
                )
        except NoPlan as error:
            if len(planners) == 1:
                raise
            made[planner] = error
    return made


def _sources(options: DeployOptions) -> list[Source]:
    found = read_sources(options.sources_file) if options.sources_file is not None else []
    return found + [parse_source(text) for text in options.sources]


def parse_source(text: str) -> Source:
    """
    >>> parse_source("MG13,MG14").shares, parse_source("a=0.75,b=0.25").shares
    ({'MG13': 0.5, 'MG14': 0.5}, {'a': 0.75, 'b': 0.25})
    """
    parts = [part.strip().partition("=") for part in text.split(",")]
    try:
        if any(equal for _, equal, _ in parts):
            shares = {host.strip(): float(share) for host, _, share in parts}
        else:
            shares = {host: 1.0 / len(parts) for host, _, _ in parts}
    except ValueError:
        raise UsageError(f"--source is {text!r}", hint="HOST,HOST or HOST=SHARE,HOST=SHARE") from None
    return Source(text, shares)


def _loads(load: str | None, platform: Platform) -> Mapping[str, float]:
    """Forecast loads from the platform's traces, from recorded runs, or from a file."""
    if load is None:
        return {}
    from headrace.predict.availability import forecast_loads, loads_of_executions, loads_of_traces

    if load == "forecast":
        series = loads_of_traces(platform)
        if not series:
            raise UsageError(
                "no host of the platform has a trace",
                where="--load forecast",
                hint="give a load file instead",
            )
        return forecast_loads(series)
    if load == "record":
        from headrace.record import Record

        with Record.open() as record:
            known = loads_of_executions(record.measurements())
        series = {h.name: known[h.name] for h in platform.hosts if h.name in known}
        if not series:
            raise UsageError(
                "the record has no repeated executions on these hosts",
                where="--load record",
                hint="give a load file instead",
            )
        return forecast_loads(series)
    from headrace.formats.loads import read_loads

    return forecast_loads(read_loads(load))


@contextmanager
def _chatter_on_stderr() -> Iterator[None]:
    """Redirect what solver libraries print on stdout to stderr: stdout is for results."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # no stdout at all
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def write_chosen(made: Mapping[str, Deployment | NoPlan], files: DeployOutput) -> None:
    """Write the requested files, of several deployments that of lpsched or else the last."""
    chosen = _chosen(made)
    if files.output is not None:
        write_deployment(chosen, files.output)
    if files.plot is not None:
        chosen.plot(files.plot)


def _chosen(made: Mapping[str, Deployment | NoPlan]) -> Deployment:
    plans = [d for d in made.values() if isinstance(d, Deployment)]
    if not plans:
        raise next(error for error in made.values() if isinstance(error, NoPlan))
    return next((d for d in plans if d.planner == "lpsched"), plans[-1])


def show_deployments(
    made: Mapping[str, Deployment | NoPlan],
    files: DeployOutput,
    *,
    as_json: bool,
    simulated: Mapping[str, Outcomes],
) -> None:
    """Print one deployment in full, or several side by side."""
    if as_json:
        shown = {
            k: _with_simulated(to_json(d), simulated.get(k))
            if isinstance(d, Deployment)
            else {"error": str(d)}
            for k, d in made.items()
        }
        print_json(next(iter(shown.values())) if len(made) == 1 else {"deployments": shown})
        return
    if len(made) > 1:
        print_table(*comparison(made, simulated))
        return
    chosen = _chosen(made)
    print_table(*filter_rows(chosen))
    rows = summary(chosen)
    for outcomes in simulated.values():
        rows[3:3] = simulated_rows(outcomes)  # below what is planned
    print_table([], rows + file_rows([("deployment", files.output), ("picture", files.plot)]))


def _with_simulated(shown: dict[str, Any], outcomes: Outcomes | None) -> dict[str, Any]:
    return shown | {"simulated": simulated_json(outcomes)} if outcomes else shown


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
