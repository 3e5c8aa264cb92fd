"""`headrace check`: read files given together, and check plans, deployments and rules against the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.check_pipelines import check_deployment, pipeline_line
from headrace.commands.check_rules import judge_plan, judge_selections, rules_line, schedule_of_run
from headrace.commands.console import print_json
from headrace.commands.options import JsonOption
from headrace.formats.campaign_toml import CampaignFile, combinations
from headrace.formats.experiment_toml import ExperimentFile
from headrace.formats.format import Kind
from headrace.formats.loading import load_platform, load_program
from headrace.formats.plan_json import files_of_plan, read_plan, rules_file_of_plan
from headrace.formats.python_program import is_python_program
from headrace.formats.registry import detect
from headrace.model.behaviour import Behaviour, GridScript
from headrace.model.check import check as violations_of
from headrace.model.errors import BadPlan, BadPlatform, UsageError
from headrace.model.pipeline import Pipeline
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.model.units import plural, show_size, show_time
from headrace.rules.tree import RuleSet


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Programs, platforms, plans, pipelines, deployments, campaigns, experiments, rules.",
        ),
    ],
    rules: Annotated[
        list[Path] | None,
        typer.Option(
            "--rules", metavar="FILE", help="Judge the plans by the rules of this file; repeatable."
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="PLATFORM", help="A further platform file, or `local`.", show_default="none"
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Judge what happened in this recorded run by the rules.",
            show_default="none",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what each file holds and what is wrong with it."""
    findings = check_files([str(f) for f in (*files, *(rules or ()))], on=on, run=run)
    broken = [f for f in findings if f["violations"]]
    if as_json:
        print_json({"files": findings, "ok": not broken})
    else:
        for finding in findings:
            typer.echo(f"{finding['file']}: {finding['kind']}: {finding['summary']}")
            for violation in finding["violations"]:
                typer.echo(f"  {violation}")
            for note in finding.get("notes", ()):
                typer.echo(f"  {note}")
    if broken:
        raise typer.Exit(2)


@dataclass
class _Seen:
    """What has been read so far, by file."""

    programs: dict[str, Program] = field(default_factory=dict)
    platforms: dict[str, Platform | GridScript] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    rules: dict[str, RuleSet] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def report(self, file: str, kind: Kind, summary: str, violations: list[str] | None = None) -> None:
        self.findings.append({"file": file, "kind": kind, "summary": summary, "violations": violations or []})

    def keep(self, file: str, content: object) -> None:
        """Remember what plans and deployments are checked against."""
        if isinstance(content, Program):
            self.programs[file] = content
        elif isinstance(content, Platform | GridScript):
            self.platforms[file] = content
        elif isinstance(content, Pipeline):
            self.pipelines[file] = content


def check_files(files: list[str], *, on: str | None = None, run: str | None = None) -> list[dict[str, Any]]:
    """Read every file and check every plan; an unreadable file raises, an invalid plan lists its violations.

    A plan is checked against the program and platform given with it or, if there are none, against those it
    names; a deployment against the pipeline and platform given with it. Rules judge the plans and the recorded run
    given with them; without these, what they select from the program on the platform is listed. Without rules, a
    plan is judged by those it names, if that file exists.
    """
    seen = _Seen()
    later: list[tuple[str, Kind]] = []
    for file in files:
        found = detect(file)
        if found.kind in ("plan", "deployment"):
            later.append((file, found.kind))
            continue
        assert found.read is not None
        content = found.read(file)
        if found.kind == "rules":
            seen.rules[file] = content
            continue
        seen.keep(file, content)
        seen.report(file, found.kind, _LINES[found.kind](content))
    if on is not None:
        seen.keep(on, load_platform(on))
    for file, kind in later:
        if kind == "plan":
            _check_plan(file, seen)
        else:
            platform = next(iter(seen.platforms), None) if _one(seen.platforms, "platform", file) else None
            summary, broken = check_deployment(file, _one(seen.pipelines, "pipeline", file), platform)
            seen.report(file, "deployment", summary, broken)
    if not seen.rules:
        _take_named_rules(seen)
    if run is not None and not seen.rules:
        raise UsageError("--run judges a run by rules", hint="add --rules FILE")
    for file, rules in seen.rules.items():
        _check_rules(file, rules, seen, run)
    return seen.findings


def _take_named_rules(seen: _Seen) -> None:
    """The rule files that plans say they were made with, where they exist."""
    from headrace.rules.parser import read_rules

    for plan in seen.plans:
        name = rules_file_of_plan(plan)
        for folder in (Path(), Path(plan).parent):
            if name is not None and (folder / name).is_file():
                seen.rules[str(folder / name)] = read_rules(folder / name)
                break


def _check_rules(file: str, rules: RuleSet, seen: _Seen, run: str | None) -> None:
    """Judge each plan and the run, or else list what is selected, or else only say what was read."""
    for name, plan in seen.plans.items():
        told = judge_plan(rules, plan.graph, plan.platform, plan)
        seen.findings.append({"file": file, "kind": "rules", "plan": name} | told)
    program, platform = _one(seen.programs, "program", file), _one(seen.platforms, "platform", file)
    platform = platform.start() if isinstance(platform, GridScript) else platform
    if run is not None:
        if program is None or platform is None:
            raise UsageError("a run is judged with its program and platform", hint="give both files as well")
        happened = schedule_of_run(run, program.graph, platform)
        told = judge_plan(rules, program.graph, platform, happened)
        unfinished = int((happened.host < 0).sum())
        if unfinished:  # nothing is known about these, so that rules cannot fail because of them
            told["summary"] += f"; {plural(unfinished, 'task')} of run {run} did not finish"
        seen.findings.append({"file": file, "kind": "rules", "run": run} | told)
    elif not seen.plans and program is not None and platform is not None:
        told = judge_selections(rules, program.graph, platform)
        seen.findings.append({"file": file, "kind": "rules"} | told)
    elif not seen.plans:
        seen.report(file, "rules", rules_line(rules))


def _check_plan(file: str, seen: _Seen) -> None:
    named_program, named_platform = files_of_plan(file)
    program = _one(seen.programs, "program", file) or _named(named_program, file, "program")
    platform = _one(seen.platforms, "platform", file) or _named(named_platform, file, "platform")
    platform = platform.start() if isinstance(platform, GridScript) else platform
    assert isinstance(program, Program)
    assert isinstance(platform, Platform)
    plan = seen.plans[file] = read_plan(file, program.graph, platform)
    violations = violations_of(program, platform, plan)
    state = plural(len(violations), "violation") if violations else "valid"
    seen.report(
        file,
        "plan",
        f"by {plan.scheduler} for {program.name} on {platform.name}, "
        f"makespan {show_time(plan.makespan)}: {state}",
        [str(v) for v in violations],
    )


def _one(given: dict[str, Any], what: str, file: str) -> Any:
    if len(given) > 1:
        raise UsageError(f"{len(given)} {what}s were given with it", where=file, hint=f"give one {what}")
    return next(iter(given.values()), None)


def _named(name: str | None, plan_file: str, what: str) -> Program | Platform:
    """The file that a plan says it was made from; never a Python file, which would be executed."""
    hint = f"give the {what} file as well: headrace check PROGRAM PLATFORM {plan_file}"
    if name is None or is_python_program(name):
        raise BadPlan(f"the plan does not say what its {what} is", where=plan_file, hint=hint)
    if name == "local" and what == "platform":
        return Platform.local()
    for folder in (Path(), Path(plan_file).parent):
        if (folder / name).is_file():
            path = folder / name
            return load_platform(path) if what == "platform" else load_program(path)
    raise BadPlan(f"its {what} {name!r} does not exist", where=plan_file, hint=hint)


def _program_line(program: Program) -> str:
    graph = program.graph
    external = graph.producer < 0
    return (
        f"{plural(graph.n_tasks, 'task')}, {plural(graph.n_items, 'item')} "
        f"({show_size(float(graph.size.sum()))}, {show_size(float(graph.size[external].sum()))} of it input), "
        f"{plural(int(graph.level.max(initial=-1)) + 1, 'level')}, {show_time(float(graph.work.sum()))} of work"
    )


def _campaign_line(campaign: CampaignFile) -> str:
    return (
        f"{plural(combinations(campaign), 'run')}: {plural(len(campaign.applications), 'application')}, "
        f"{plural(len(campaign.grids), 'grid')}, {plural(len(campaign.schedulers), 'scheduler')}, "
        f"{plural(len(campaign.seeds), 'seed')}"
    )


def _experiment_line(experiment: ExperimentFile) -> str:
    """What it says; its program is not loaded, so that nothing is executed."""
    values = [len(each.values.values) for each in experiment.substitutions]
    what = experiment.program or f"the command {experiment.sweep.command[0] if experiment.sweep else ''}"
    return (
        f"{what}, {plural(len(values), 'substitution')} with {plural(sum(values), 'value')}, "
        f"combined as {experiment.mode}"
    )


def _behaviour_line(behaviour: Behaviour) -> str:
    link = isinstance(behaviour, tuple)
    series = behaviour[0] if isinstance(behaviour, tuple) else behaviour
    end = f"repeats after {show_time(series.length)}" if series.repeats else "then holds its last value"
    mean = f"{show_size(series.mean)}/s" if link else f"{series.mean:.1%}"
    return f"of a {'link' if link else 'host'}, {plural(len(series), 'step')}, mean {mean}, {end}"


def _platform_line(platform: Platform) -> str:
    network = platform.network
    return (
        f"{plural(len(platform.hosts), 'host')} with {plural(sum(h.cores for h in platform.hosts), 'core')} at "
        f"{plural(sum(1 for s in platform.sites if s.hosts), 'site')}, {plural(network.n_links, 'link')}, "
        f"contention {platform.contention}, origin {platform.origin or 'everywhere'}"
    )


def _grid_line(grid: GridScript) -> str:
    """The grid at time 0, and how many events of which kind follow until when."""
    later = [event for event in grid.events if event.time > 0]
    counts = Counter(_EVENT_NAMES[type(event).__name__] for event in later)
    events = ", ".join(plural(count, name) for name, count in counts.items())
    until = f" until {show_time(max(event.time for event in later))}" if later else ""
    try:
        at_start = _platform_line(grid.start())
    except BadPlatform:
        at_start = "no hosts at time 0"
    return f"{at_start}; {f'{events}{until}' if later else 'no later events'}"


_EVENT_NAMES = {
    "AddCluster": "cluster join",
    "AddHost": "host join",
    "RemoveCluster": "cluster removal",
    "RemoveHost": "host removal",
    "ChangeHost": "host behaviour change",
    "ChangeCluster": "cluster behaviour change",
}
_LINES: dict[Kind, Callable[[Any], str]] = {
    "program": _program_line,
    "platform": _platform_line,
    "grid": _grid_line,
    "pipeline": pipeline_line,
    "behaviour": _behaviour_line,
    "campaign": _campaign_line,
    "experiment": _experiment_line,
}
