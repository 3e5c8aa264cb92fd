"""Judge files given together: programs, platforms, and plans against both."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.check_pipelines import judge_deployment, pipeline_line
from headrace.commands.console import print_json
from headrace.commands.options import JsonOption
from headrace.formats.detect import detect
from headrace.formats.plan_json import files_of_plan, read_plan
from headrace.formats.python_program import is_python_program, load_python_program
from headrace.formats.reading import read_any_platform, read_any_program
from headrace.model.check import check as violations_of
from headrace.model.errors import BadPlan, UsageError
from headrace.model.pipeline import Pipeline
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.model.units import show_size, show_time


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Programs, platforms, plans, pipelines, deployments, campaigns."
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Print what each file holds and what is wrong with it."""
    findings = check_files([str(f) for f in files])
    broken = [f for f in findings if f["violations"]]
    if as_json:
        print_json({"files": findings, "ok": not broken})
    else:
        for finding in findings:
            typer.echo(f"{finding['file']}: {finding['kind']}: {finding['summary']}")
            for violation in finding["violations"]:
                typer.echo(f"  {violation}")
    if broken:
        raise typer.Exit(2)


@dataclass
class _Seen:
    programs: dict[str, Program] = field(default_factory=dict)
    platforms: dict[str, Platform] = field(default_factory=dict)
    platform_files: dict[str, str] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def say(self, file: str, kind: str, summary: str, violations: list[str] | None = None) -> None:
        self.findings.append({"file": file, "kind": kind, "summary": summary, "violations": violations or []})


def check_files(files: list[str]) -> list[dict[str, Any]]:
    """Read every file and judge every plan; a broken file raises, a broken plan lists its violations.

    A plan is judged with the program and platform given next to it or, if there are none, with those it
    names; a deployment with the pipeline and platform given next to it.
    """
    seen = _Seen()
    plans, deployments = [], []
    for file in files:
        kind = "program" if is_python_program(file) else detect(file)
        if kind == "plan":
            plans.append(file)
        elif kind == "platform":
            platform = seen.platforms[file] = read_any_platform(file)
            seen.platform_files[file] = file
            seen.say(file, kind, _platform_line(platform))
        elif kind == "pipeline":
            pipeline = seen.pipelines[file] = Pipeline.read(file)
            seen.say(file, kind, pipeline_line(pipeline))
        elif kind == "deployment":
            deployments.append(file)
        elif kind == "campaign":
            seen.say(file, kind, _campaign_line(file))
        elif kind == "behaviour":
            seen.say(file, kind, _behaviour_line(file))
        else:
            program = load_python_program(file) if is_python_program(file) else read_any_program(file)
            seen.programs[file] = program
            seen.say(file, kind, _program_line(program))
    for file in plans:
        _check_plan(file, seen)
    for file in deployments:
        summary, violations = judge_deployment(
            file, _one(seen.pipelines, "pipeline", file), _one(seen.platform_files, "platform", file)
        )
        seen.say(file, "deployment", summary, violations)
    return seen.findings


def _check_plan(file: str, seen: _Seen) -> None:
    named_program, named_platform = files_of_plan(file)
    program = _one(seen.programs, "program", file) or _named(named_program, file, "program")
    platform = _one(seen.platforms, "platform", file) or _named(named_platform, file, "platform")
    assert isinstance(program, Program)
    assert isinstance(platform, Platform)
    plan = read_plan(file, program.graph, platform)
    violations = violations_of(program, platform, plan)
    state = f"{len(violations)} violation{'s' * (len(violations) > 1)}" if violations else "valid"
    seen.say(
        file,
        "plan",
        f"by {plan.scheduler} for {program.name} on {platform.name}, "
        f"makespan {show_time(plan.makespan)}: {state}",
        [str(v) for v in violations],
    )


def _one(given: dict[str, Any], what: str, file: str) -> Any:
    if len(given) > 1:
        raise UsageError(
            f"{len(given)} {what}s were given with the plan", where=file, hint=f"give one {what}"
        )
    return next(iter(given.values()), None)


def _named(name: str | None, plan_file: str, what: str) -> Program | Platform:
    """The file a plan says it was made from; never a Python file, which would be run."""
    hint = f"give the {what} file next to the plan: headrace check PROGRAM PLATFORM {plan_file}"
    if name is None or is_python_program(name):
        raise BadPlan(f"its {what} is not known", where=plan_file, hint=hint)
    if name == "local" and what == "platform":
        return Platform.local()
    for folder in (Path(), Path(plan_file).parent):
        if (folder / name).is_file():
            path = folder / name
            return read_any_platform(path) if what == "platform" else read_any_program(path)
    raise BadPlan(f"its {what} {name!r} is not there", where=plan_file, hint=hint)


def _program_line(program: Program) -> str:
    graph = program.graph
    outside = graph.producer < 0
    return (
        f"{graph.n_tasks:,} tasks, {graph.n_items:,} items ({show_size(float(graph.size.sum()))}, "
        f"{show_size(float(graph.size[outside].sum()))} from outside), "
        f"{int(graph.level.max(initial=-1)) + 1} levels, {show_time(float(graph.work.sum()))} of work"
    )


def _campaign_line(file: str) -> str:
    from headrace.formats.campaign_toml import combinations, read_campaign

    read = read_campaign(file)
    return (
        f"{combinations(read):,} runs: {len(read.applications)} applications, {len(read.grids)} grids, "
        f"{len(read.schedulers)} schedulers, {len(read.seeds)} seeds"
    )


def _behaviour_line(file: str) -> str:
    from headrace.formats.pst_behaviour import read_behaviour

    read = read_behaviour(file)
    what = "a link" if isinstance(read, tuple) else "a host"
    series = read[0] if isinstance(read, tuple) else read
    end = f"repeats after {show_time(series.length)}" if series.repeats else "holds its last value"
    mean = f"{show_size(series.mean)}/s" if isinstance(read, tuple) else f"{series.mean:.1%}"
    return f"{what}, {len(series):,} steps, mean {mean}, {end}"


def _platform_line(platform: Platform) -> str:
    network = platform.network
    return (
        f"{len(platform.hosts):,} hosts with {sum(h.cores for h in platform.hosts):,} cores at "
        f"{sum(1 for s in platform.sites if s.hosts)} sites, {network.n_links:,} links, "
        f"contention {platform.contention}, origin {platform.origin or 'everywhere'}"
    )
