"""`headrace run`: a real run, with progress on stderr and a summary on stdout."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer

from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.judged_plan import JudgedPlan
from headrace.commands.names import scheduler_name, scheduler_names
from headrace.commands.options import (
    JsonOption,
    Pictures,
    ProgramArg,
    draw_plan,
    read_program,
    read_rule_file,
)
from headrace.commands.run_progress import watching
from headrace.core.replan_policy import WhenImpossible
from headrace.execution import Run
from headrace.execution import run as execute
from headrace.formats.files import STDIN
from headrace.given import require_bodies
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event, RuleDropped, TaskFinished
from headrace.model.program import Program
from headrace.model.units import plural, show_size, show_time
from headrace.model.usage import Usage, usage_of_run
from headrace.record.launch import Emulation, ProgramSource
from headrace.report.usage import usage_rows
from headrace.resuming import Preview, preview_run
from headrace.rules.tree import RuleSet
from headrace.run_platform import UNKNOWN
from headrace.runtime.run_policy import RunPolicy


@dataclass(frozen=True)
class RunOptions:
    """Where and how to run."""

    on: str = option(
        "local",
        "--on",
        "Where to run: `local`, a Dask cluster (tls://host:port, or tcp://127.0.0.1:port on this machine), or "
        "ssh://FILE, the path of a file that lists hosts to start workers on.",
        metavar="WHERE",
    )
    scheduler: str = option(
        "auto",
        "--scheduler",
        "A name listed by `headrace schedulers`, file.py:Class for your own, or `dask` for no plan.",
        short="-s",
        metavar="NAME",
        parse=scheduler_name,
        complete=scheduler_names,
    )
    rules: Path | None = option(
        None,
        "--rules",
        "Obey the rules of this file, and judge what happened.",
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
        "A file that describes the workers and their links; hosts are matched by worker name or address.",
        metavar="FILE",
        default_text="measured",
    )
    learn: bool = option(True, "--learn", "Estimate run times, sizes and links from earlier runs.")
    emulate: bool = option(
        False, "--emulate", "Replace each task with one that takes the same time and produces as much data."
    )
    time_scale: float = option(1.0, "--time-scale", "With --emulate: factor on run times.")
    size_scale: float | None = option(
        None, "--size-scale", "With --emulate: factor on data sizes.", default_text="--time-scale"
    )
    allow_commands: bool = option(
        False,
        "--allow-commands",
        "Execute the commands of a WfFormat file; use it only on files that you trust.",
    )
    burn: bool = option(False, "--burn", "With --emulate: use the CPU instead of sleeping.")
    output: Path = option(Path(), "--output", "Folder for result files.", short="-o", metavar="FOLDER")
    dry_run: bool = option(
        False, "--dry-run", "Print the plan and what would run; execute nothing and record nothing."
    )
    policy: RunPolicy = field(default_factory=RunPolicy)
    tls_ca: Path | None = option(
        None, "--tls-ca", "Certificate authority of a tls:// cluster.", metavar="FILE"
    )
    tls_cert: Path | None = option(None, "--tls-cert", "Client certificate.", metavar="FILE")
    tls_key: Path | None = option(None, "--tls-key", "Client key.", metavar="FILE")

    @property
    def tls(self) -> dict[str, str]:
        """The given files, by the parameter names of `connect`."""
        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        return {name: str(path) for name, path in files.items() if path is not None}


def run(program: ProgramArg, options: RunOptions, pictures: Pictures, as_json: JsonOption = False) -> None:
    """Run the program and print the outcome; the exit code is 1 if a task failed."""
    require_outputs(pictures.trace, drawn=(pictures.gantt,), inputs=(program, options.on, options.rules))
    if options.emulate and options.allow_commands:
        raise UsageError("--emulate and --allow-commands exclude each other", hint="leave one out")
    found = read_program(program, commands=options.allow_commands)
    code = run_program(found, options, pictures, as_json, program)
    if code:
        raise typer.Exit(code)


def run_program(
    program: Program,
    options: RunOptions,
    pictures: Pictures,
    as_json: bool,
    spec: str = "",
) -> int:
    """Run, show progress and the outcome; return the exit code.

    `spec` is where the program was read from, for `headrace resume`.
    """
    emulation = None
    if options.emulate:
        from headrace.runtime.emulate import emulate

        program = emulate(
            program, time_scale=options.time_scale, size_scale=options.size_scale, burn=options.burn
        )
        emulation = Emulation(options.time_scale, options.size_scale, options.burn)
    else:
        _require_bodies(program, options, spec)
    rules = read_rule_file(options.rules)
    if rules is None and options.when_impossible != RunOptions().when_impossible:
        raise UsageError("--when-impossible has no effect without rules", hint="add --rules FILE")
    wanted = _wanted(options, rules)
    if options.dry_run:
        return show_preview(preview_run(program, **wanted), pictures, as_json)
    events: list[Event] = []
    with watching(len(program.tasks), events) as listeners:
        done = execute(
            program,
            **wanted,
            source=ProgramSource(spec, emulation, options.allow_commands)
            if spec not in ("", STDIN)
            else None,
            **listeners,
        )
    return report(done, events, len(program.tasks), pictures, as_json, rules)


def _wanted(options: RunOptions, rules: RuleSet | None) -> dict[str, Any]:
    """Parameters of `headrace.run`."""
    speeds = parse_speeds(options.speeds)
    return {
        "on": options.on,
        "scheduler": options.scheduler,
        "rules": rules,
        "when_impossible": options.when_impossible,
        "workers": options.workers,
        "speeds": speeds,
        "stretch": 1.0 if speeds is None or options.emulate else max(speeds),
        "platform": options.platform,
        "tls": options.tls,
        "output": options.output,
        "learn": options.learn and not options.emulate,
        "policy": options.policy,
    }


def report(
    done: Run,
    events: list[Event],
    tasks: int,
    pictures: Pictures,
    as_json: bool,
    rules: RuleSet | None = None,
) -> int:
    """Draw and print the outcome of a run; returns the exit code."""
    _draw(done, events, pictures)
    judged = None if rules is None else judged_run(done, rules)
    with results_beside(*pictures.files):
        if as_json:
            print_json(to_json(done) | ({} if judged is None else judged.facts()))
        else:
            _show(done, tasks, pictures)
            if judged is not None:
                judged.print()
    for error in list(done.unwritten.values())[1:]:
        sys.stderr.write(f"error: {error}\n")
    if done.failure is not None:
        sys.stderr.write(f"error: {done.failure}\n")
        sys.stderr.write(f"to continue from what is committed: headrace resume {done.id}\n")
        return done.failure.exit_code
    if judged is not None:
        judged.require_kept([e.rule for e in done.outcome.events if isinstance(e, RuleDropped)])
    return 0


def show_preview(found: Preview, pictures: Pictures, as_json: bool) -> int:
    """Print what a run would do; returns the exit code."""
    if found.plan is not None:
        draw_plan(found.plan, pictures)
    with results_beside(*pictures.files):
        if as_json:
            print_json(_preview_facts(found))
            return 0
        rows = [["scheduler", found.scheduler], ["tasks to run", str(len(found.tasks))]]
        if found.reused:
            rows.append(["tasks reused", str(len(found.reused))])
        if found.plan is not None:
            rows.append(["planned", show_time(found.plan.makespan)])
            rows.append(["lower bound", show_time(found.plan.bound)])
        print_table([], rows + file_rows(pictures.named))
        if found.plan is not None:
            planned = [[t.id, t.host, show_time(t.start), show_time(t.finish)] for t in found.plan.tasks()]
            print_table(["task", "host", "start", "finish"], planned)
        if found.commands:
            print_table(["task", "command"], [[task, shlex.join(argv)] for task, argv in found.commands])
    return 0


def _preview_facts(found: Preview) -> dict[str, Any]:
    plan = found.plan
    return {
        "dry_run": True,
        "scheduler": found.scheduler,
        "makespan": None if plan is None else plan.makespan,
        "bound": None if plan is None else plan.bound,
        "to_run": list(found.tasks),
        "reused": list(found.reused),
        "commands": {task: list(argv) for task, argv in found.commands},
        "tasks": []
        if plan is None
        else [{"id": t.id, "host": t.host, "start": t.start, "finish": t.finish} for t in plan.tasks()],
    }


def judged_run(done: Run, rules: RuleSet) -> JudgedPlan:
    """What the rules say of the tasks that have finished."""
    from headrace.commands.check_rules import happened
    from headrace.rules.evaluate import evaluate

    finished = [event for event in done.outcome.events if isinstance(event, TaskFinished)]
    rows = [(event.task, event.host, event.start, event.time) for event in finished]
    schedule = happened(rows, done.graph, done.platform, f"run {done.id}")
    return JudgedPlan(rules.source, evaluate(rules, done.graph, done.platform, schedule), done.makespan)


def _require_bodies(program: Program, options: RunOptions, spec: str) -> None:
    if (options.time_scale, options.size_scale, options.burn) != (1.0, None, False):
        raise UsageError("--time-scale, --size-scale and --burn require --emulate", hint="add --emulate")
    require_bodies(program, spec, allow="add --allow-commands", emulate="add --emulate --time-scale 0.01")


def parse_speeds(text: str | None) -> list[float] | None:
    """
    >>> parse_speeds("4,2,1,1")
    [4.0, 2.0, 1.0, 1.0]
    """
    if text is None:
        return None
    try:
        speeds = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--speeds is {text!r}", hint="give comma-separated numbers, such as 4,2,1,1"
        ) from None
    if not all(0 < speed < 1e6 for speed in speeds):
        raise UsageError(f"--speeds is {text!r}", hint="give positive numbers")
    return speeds


def _draw(done: Run, events: list[Event], pictures: Pictures) -> None:
    graph = done.plan.graph if done.plan is not None else None
    if pictures.gantt is not None:
        from headrace.report.picture import draw_run

        draw_run(done.plan, events, done.platform, pictures.gantt, graph=graph, bound=done.bound)
    if pictures.trace is not None:
        from headrace.report.chrome_trace import run_trace, write_trace

        write_trace(run_trace(events, done.platform, graph), pictures.trace)


def _show(done: Run, tasks: int, pictures: Pictures) -> None:
    moved = [e.size for e in done.outcome.events if isinstance(e, DataMoved)]
    rows = [["run", done.id], ["makespan", show_time(done.makespan)]]
    if done.plan is not None:
        rows.append(["planned", show_time(done.plan.makespan)])
    if done.bound is not None:
        rows.append(["lower bound", f"{show_time(done.bound)}, with run times as measured"])
    if done.deviations is not None and done.failure is None:  # of a part, the time says nothing
        rows.append(["difference" if done.plan is not None else "time spent", done.deviations.text()])
    if done.sources is not None:
        rows.append(["run times", done.sources.run_times])
        rows.append(["links", done.sources.links])
        if done.sources.engine != UNKNOWN:
            rows.append(["engine", done.sources.engine])
    unfinished = len(done.outcome.not_run)
    rows += [
        ["tasks", f"{tasks - unfinished} of {tasks}"],
        *([["reused", f"{len(done.reused)} of these were committed before"]] if done.reused else []),
        ["data moved", f"{show_size(sum(moved))} in {plural(len(moved), 'transfer')}"],
        *(list(row) for row in usage_rows(_usage(done))),
    ]
    rows += [["note", str(event)] for event in done.outcome.events if isinstance(event, RuleDropped)]
    rows += [["result", str(path)] for path in list(done.files.values())[:10]]
    if len(done.files) > 10:
        rows.append(["result", f"and {len(done.files) - 10} more"])
    print_table([], rows + file_rows(pictures.named))


def to_json(done: Run) -> dict[str, Any]:
    failed = {e.task for e in done.outcome.errors}
    dropped = [asdict(e) for e in done.outcome.events if isinstance(e, RuleDropped)]
    return {
        "run": done.id,
        "makespan": done.makespan,
        "planned": None if done.plan is None else done.plan.makespan,
        "bound": done.bound,
        "scheduler": done.scheduler,
        **done.report(),
        "tasks": [
            {"id": e.task, "host": e.host, "start": e.start, "finish": e.time}
            for e in done.outcome.events
            if isinstance(e, TaskFinished)
        ],
        "failed": [{"task": e.task, "host": e.host, "error": e.error} for e in done.outcome.errors],
        "not_run": [task for task in done.outcome.not_run if task not in failed],
        "results": {name: str(path) for name, path in done.files.items()},
        "unwritten": {name: str(error) for name, error in done.unwritten.items()},
        "reused": list(done.reused),
        **({"dropped_rules": dropped} if dropped else {}),
    } | _usage(done).facts()


def _usage(done: Run) -> Usage:
    """Cost and energy, if the platform that the run was planned for has prices or watts."""
    finished = [event for event in done.outcome.events if isinstance(event, TaskFinished)]
    return usage_of_run(done.graph, done.platform, finished)
