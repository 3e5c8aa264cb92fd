"""`headrace sweep`: execute an experiment, or say beforehand what it would take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from headrace.commands.names import scheduler_name, scheduler_names
from headrace.commands.options import JsonOption, Pictures, draw_plan, read_rule_file
from headrace.commands.run import judged_run, parse_speeds
from headrace.commands.run_progress import watching
from headrace.core.replan_policy import WhenImpossible
from headrace.model.errors import UsageError
from headrace.model.events import Event, RuleDropped
from headrace.model.units import show_size, show_time
from headrace.runtime.kept_files import Keep
from headrace.runtime.run_policy import RunPolicy

if TYPE_CHECKING:
    from headrace.quoting import Quote
    from headrace.sweeping import Prepared, Swept


@dataclass(frozen=True)
class SweepPolicy(RunPolicy):
    """As for other runs, but everything is kept: later experiments use it."""

    keep: Keep = field(
        default="all",
        metadata={
            "option": "--keep",
            "metavar": "all|auto|results",
            "help": "Which data to keep for reuse: all, what takes long to make again, or results only.",
        },
    )


@dataclass(frozen=True)
class SweepOptions:
    """Where and how to run an experiment."""

    quote: bool = option(
        False, "--quote", "Print what the experiment would take: tasks, time, bytes. Run no task."
    )
    on: str = option(
        "local",
        "--on",
        "Where to run: `local`, tls://host:port, tcp://127.0.0.1:port on this machine, or ssh://hosts.toml.",
        metavar="WHERE",
    )
    scheduler: str = option(
        "auto",
        "--scheduler",
        "A name listed by `headrace schedulers`, or file.py:Class.",
        short="-s",
        metavar="NAME",
        parse=scheduler_name,
        complete=scheduler_names,
    )
    rules: Path | None = option(
        None,
        "--rules",
        "Obey the rules of this file; combinations are labels of tasks.",
        metavar="FILE",
        default_text="no rules",
    )
    when_impossible: WhenImpossible = option(
        "stop",
        "--when-impossible",
        "When a loss makes it impossible to keep a rule: stop the run, or drop the rule and continue.",
    )
    workers: int | None = option(
        None, "--workers", "Number of local workers.", min=1, default_text="one per core"
    )
    speeds: str | None = option(
        None,
        "--speeds",
        "Emulate local workers of these speeds, such as 4,2,1,1.",
        metavar="LIST",
        default_text="no emulation",
    )
    platform: Path | None = option(
        None,
        "--platform",
        "A file that describes the workers and their links.",
        metavar="FILE",
        default_text="measured",
    )
    learn: bool = option(True, "--learn", "Estimate run times, sizes and links from earlier runs.")
    most_failures: int = option(
        10,
        "--most-failures",
        "After a failure, continue with what does not depend on it, until this many tasks have failed.",
        min=1,
    )
    allow_commands: bool = option(
        False,
        "--allow-commands",
        "Execute the commands of a WfFormat program; use it only on files that you trust.",
    )
    output: Path = option(Path(), "--output", "Folder for result files.", short="-o", metavar="FOLDER")
    policy: SweepPolicy = field(default_factory=SweepPolicy)
    tls_ca: Path | None = option(
        None, "--tls-ca", "Certificate authority of a tls:// cluster.", metavar="FILE"
    )
    tls_cert: Path | None = option(None, "--tls-cert", "Client certificate.", metavar="FILE")
    tls_key: Path | None = option(None, "--tls-key", "Client key.", metavar="FILE")

    def wanted(self) -> dict[str, Any]:
        """Parameters of `headrace.sweep`."""
        speeds = parse_speeds(self.speeds)
        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        return {
            "on": self.on,
            "scheduler": self.scheduler,
            "rules": read_rule_file(self.rules),
            "when_impossible": self.when_impossible,
            "workers": self.workers,
            "speeds": speeds,
            "stretch": 1.0 if speeds is None else max(speeds),
            "platform": self.platform,
            "learn": self.learn,
            "output": self.output,
            "policy": self.policy,
            "allow_commands": self.allow_commands,
            "tls": {name: str(path) for name, path in files.items() if path is not None},
        }


def sweep(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")],
    options: SweepOptions,
    pictures: Pictures,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment, or quote it; the exit code is 1 if a task failed."""
    require_outputs(pictures.trace, drawn=(pictures.gantt,), inputs=(experiment,))
    if options.rules is None and options.when_impossible != SweepOptions().when_impossible:
        raise UsageError("--when-impossible has no effect without rules", hint="add --rules FILE")
    if not options.quote and any(pictures.files):
        raise UsageError(
            "--gantt and --trace need --quote", hint="draw the run: headrace runs last --gantt FILE"
        )
    if options.quote:
        _quote(experiment, options, pictures, as_json)
        return
    code = _run(experiment, options, as_json)
    if code:
        raise typer.Exit(code)


def _quote(experiment: Path, options: SweepOptions, pictures: Pictures, as_json: bool) -> None:
    from headrace.quoting import quote

    with progress(f"quoting {experiment}") as say:
        found = quote(experiment, say=say, **options.wanted())
    if found.plan is not None:
        draw_plan(found.plan, pictures)
    elif any(pictures.files):
        typer.echo("no plan was made, so there is no chart", err=True)
    with results_beside(*pictures.files):
        if as_json:
            print_json(found.facts())
            return
        drawn = pictures.named if found.plan is not None else []
        print_table([], _quote_rows(found) + file_rows(drawn))


def _quote_rows(found: Quote) -> list[list[str]]:
    rows = [
        ["experiment", found.name],
        ["combinations", f"{found.points:,}"],
        ["tasks alone", f"{found.alone:,} if every combination ran by itself"],
        ["distinct tasks", f"{found.tasks:,}"],
        ["kept", f"{found.reused:,} of these need not run"],
        ["to run", f"{found.left:,}"],
    ]
    if found.left:
        between = f"90 % between {show_time(found.low)} and {show_time(found.high)}"
        rows += [
            ["expected time", f"{show_time(found.seconds)} ({between})"],
            ["based on", found.basis],
            ["to store", show_size(found.stored)],
        ]
    if found.platform is not None:
        rows.append(["platform", f"{found.platform.name}, {len(found.platform.hosts)} hosts"])
    return rows + [["note", note] for note in found.notes]


def _run(experiment: Path, options: SweepOptions, as_json: bool) -> int:
    from headrace.sweeping import PointProgress
    from headrace.sweeping import sweep as execute

    events: list[Event] = []
    with watching(1, events, sweeping=True) as listeners:
        started = listeners.pop("started")

        def begin(prepared: Prepared) -> Callable[[Event], None]:
            shown = PointProgress(prepared)
            started(shown)
            return shown

        wanted = options.wanted()
        done = execute(experiment, progress=begin, most_failures=options.most_failures, **wanted, **listeners)
    rules = wanted["rules"]
    judged = None if rules is None or done.run is None else judged_run(done.run, rules)
    if as_json:
        print_json(_facts(done) | ({} if judged is None else judged.facts()))
    else:
        print_table([], _rows(done))
        if judged is not None:
            judged.print()
    if done.failure is not None:
        sys.stderr.write(f"error: {done.failure}\n")
        others = list(done.failed)[1:]
        if others:
            sys.stderr.write(f"also failed: {', '.join(others[:10])}\n")
        sys.stderr.write(f"to continue from what is kept: headrace sweep {experiment}\n")
        return done.failure.exit_code
    if judged is not None and done.run is not None:
        judged.require_kept([e.rule for e in done.run.outcome.events if isinstance(e, RuleDropped)])
    return 0


def _facts(done: Swept) -> dict[str, Any]:
    return {
        "experiment": done.name,
        "combinations": done.points,
        "tasks_alone": done.alone,
        "tasks": done.tasks,
        "reused": done.reused,
        "run": None if done.run is None else done.run.id,
        "makespan": 0.0 if done.run is None else done.run.makespan,
        "planned": None if done.run is None or done.run.plan is None else done.run.plan.makespan,
        "failed": list(done.failed),
        "not_run": [] if done.run is None else list(done.run.outcome.not_run),
        "results": {name: str(path) for name, path in done.files.items()},
        "notes": list(done.notes),
    }


def _rows(done: Swept) -> list[list[str]]:
    rows = [
        ["experiment", done.name],
        ["combinations", f"{done.points:,}"],
        ["tasks alone", f"{done.alone:,}"],
        ["distinct tasks", f"{done.tasks:,}"],
        ["reused", f"{done.reused:,}"],
    ]
    if done.run is not None:
        rows += [["run", done.run.id], ["makespan", show_time(done.run.makespan)]]
        if done.run.plan is not None:
            rows.append(["planned", show_time(done.run.plan.makespan)])
    rows += [["note", note] for note in done.notes]
    record = "" if done.run is None else done.run.id
    files = [path for path in done.files.values() if not record or path.parent.name != record]
    rows += [["result", str(path)] for path in files[:10]]
    if len(files) > 10:
        rows.append(["result", f"and {len(files) - 10} more"])
    return [*rows, ["values", f"headrace results {done.name}"]]
