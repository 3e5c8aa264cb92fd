"""`headrace deploy`: plan the deployment of a pipeline and describe it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.commands.console import (
    progress,
    require_outputs,
    results_beside,
)
from headrace.commands.dataclass_options import option
from headrace.commands.deploy_questions import WhatIf, ask_what_if
from headrace.commands.deploy_show import Answers, chosen_deployment, show_deployments
from headrace.commands.deploy_simulated import simulate_deployments
from headrace.commands.options import JsonOption, names_in
from headrace.deploying import deploy as make_deployment
from headrace.deploying import with_loads
from headrace.formats.deployment_ini import read_placements, write_deployment
from headrace.formats.loading import load_machines, load_pipeline
from headrace.formats.pipeline_ini import read_sources
from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan, UsageError
from headrace.model.pipeline import PipelineProblem, RouteChoice, Source
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.planners.pipeline.refresh import Refreshed

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
    routes: RouteChoice = option(
        "any",
        "--routes",
        "Routes between sites: chosen for the deployment (`any`), or always the platform's `quickest`.",
    )
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
    what_if: tuple[str, ...] = option(
        (),
        "--what-if",
        'Solve again after a change: "host n9" (one more like it), "link a-b x2", "without host n3". Repeat it.',
        metavar="CHANGE",
    )
    why_not: tuple[str, ...] = option(
        (),
        "--why-not",
        "Show what using an idle host would cost, and which constraint prevents it.",
        metavar="HOST",
    )
    refresh: Path | None = option(
        None,
        "--refresh",
        "Adapt this deployment (INI) to new loads with the fewest moves.",
        metavar="FILE",
    )
    refresh_loss: float | None = option(
        None,
        "--refresh-loss",
        "With --refresh: share of the best objective that fewer moves may cost.",
        min=0.0,
        max=1.0,
        default_text="0.01",
    )


@dataclass(frozen=True)
class DeployOutput:
    """What to do with the deployment."""

    simulate: bool = option(False, "--simulate", "Simulate the deployment; compare with round-robin routing.")
    output: Path | None = option(None, "--output", "Save the deployment (INI).", short="-o", metavar="FILE")
    plot: Path | None = option(None, "--plot", "Draw clusters, copies and flows as SVG.", metavar="FILE")


def deploy(
    context: typer.Context,
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
    require_outputs(files.output, drawn=(files.plot,), inputs=(pipeline, on))
    source = context.get_parameter_source("refresh_loss")
    in_file = (
        source is not None and source.name == "DEFAULT_MAP"
    )  # there it is for deployments to be refreshed
    if options.refresh_loss is not None and options.refresh is None and not in_file:
        raise UsageError(
            f"--refresh-loss {options.refresh_loss:g} without --refresh",
            hint="add --refresh FILE, or leave it out",
        )
    with progress(f"deploying {pipeline}") as say:
        answers = deploy_file(pipeline, on, options, say)
        if files.simulate:
            answers = replace(answers, simulated=simulate_deployments(answers.made, say))
    write_chosen(answers.made, files)
    with results_beside(files.output, files.plot):
        outputs = [("deployment", files.output), ("picture", files.plot)]
        show_deployments(answers, outputs, as_json=as_json)


def deploy_file(pipeline_file: str, on: str, options: DeployOptions, tell: Tell) -> Answers:
    """A deployment by each planner; with several planners, one that finds none does not stop the others."""
    planners = names_in(options.planners)
    asked = options.what_if or options.why_not or options.refresh is not None
    if asked and planners != ["lpsched"]:
        raise UsageError(
            "--what-if, --why-not and --refresh are about the deployment by lpsched",
            where="--compare",
            hint="leave out --compare",
        )
    problem = _problem(pipeline_file, on, options)
    if asked:
        return _answer(problem, options, tell)
    made: dict[str, Deployment | NoPlan] = {}
    for planner in planners:
        try:
            made[planner] = _solve(problem, planner, options, tell)
        except NoPlan as error:
            if len(planners) == 1:
                raise
            made[planner] = error
    return Answers(made)


def _problem(pipeline_file: str, on: str, options: DeployOptions) -> PipelineProblem:
    """The problem of the files, with sources, loads and knobs of the command line."""
    pipeline = load_pipeline(pipeline_file)
    machines = load_machines(on)
    chosen = _sources(options)
    if chosen:
        pipeline = pipeline.with_sources(chosen)
    turned = {k: getattr(options, k) for k in ("host_cost", "cross", "spare", "least")}
    knobs = replace(pipeline.knobs, **{k: v for k, v in turned.items() if v is not None})
    platform = with_loads(machines.platform, _loads(options.load, machines.platform))
    return PipelineProblem(
        pipeline, platform, knobs, options.several_per_host, machines.segments, options.routes
    )


def _solve(problem: PipelineProblem, planner: str, options: DeployOptions, tell: Tell) -> Deployment:
    with _chatter_on_stderr():
        return make_deployment(
            problem.pipeline,
            problem.platform,
            planner,
            knobs=problem.knobs,
            several_per_host=problem.several_per_host,
            segments=problem.segments,
            routes=problem.routes,
            time=options.time,
            gap=options.gap,
            tell=tell,
        )


def _answer(problem: PipelineProblem, options: DeployOptions, tell: Tell) -> Answers:
    """The deployment, refreshed if requested, with the answers to the questions about it."""
    from headrace.planners.pipeline.why_not import why_not

    refreshed = _refreshed(problem, options, tell)
    made = _solve(problem, "lpsched", options, tell) if refreshed is None else refreshed.deployment

    def again(changed: PipelineProblem) -> Deployment:
        after = _refreshed(changed, options, tell)
        return _solve(changed, "lpsched", options, tell) if after is None else after.deployment

    what_if: list[WhatIf] = ask_what_if(made, options.what_if, again)
    with _chatter_on_stderr():
        reasons = [why_not(made, host, seconds=options.time, gap=options.gap) for host in options.why_not]
    return Answers({"lpsched": made}, {}, tuple(what_if), tuple(reasons), refreshed)


def _refreshed(problem: PipelineProblem, options: DeployOptions, tell: Tell) -> Refreshed | None:
    """The old deployment adapted to the problem; None if there is none."""
    from headrace.planners.pipeline.refresh import LOSS, refresh

    if options.refresh is None:
        return None
    with _chatter_on_stderr():
        return refresh(
            problem,
            read_placements(options.refresh),
            loss=LOSS if options.refresh_loss is None else options.refresh_loss,
            seconds=options.time,
            gap=options.gap,
            tell=tell,
        )


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
    chosen = chosen_deployment(made)
    if files.output is not None:
        write_deployment(chosen, files.output)
    if files.plot is not None:
        chosen.plot(files.plot)
