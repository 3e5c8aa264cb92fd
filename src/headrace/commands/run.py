"""`headrace run`: a real run, with progress on stderr and a summary on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from headrace.arrays.compile_notice import Notice, compile_notice
from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.judged_plan import JudgedPlan
from headrace.commands.options import JsonOption, Pictures, ProgramArg, read_program, read_rule_file
from headrace.core.replan_policy import WhenImpossible
from headrace.execution import Run
from headrace.execution import run as execute
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event, HostLeft, RuleDropped, TaskFinished
from headrace.model.plan import Plan
from headrace.model.program import Program
from headrace.model.units import plural, show_size, show_time
from headrace.model.usage import Usage, usage_of_run
from headrace.report.usage import usage_rows
from headrace.rules.tree import RuleSet


@dataclass(frozen=True)
class RunOptions:
    """Where and how to run."""

    on: str = option(
        "local",
        "--on",
        "Where to run: `local`, tls://host:port, or tcp://127.0.0.1:port on this machine.",
        metavar="WHERE",
    )
    scheduler: str = option(
        "auto",
        "--scheduler",
        "A name listed by `headrace schedulers`, file.py:Class for your own, or `dask` for no plan.",
        short="-s",
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
        "When a loss makes it impossible to keep a rule: stop the run, or drop the rule and go on.",
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
    emulate: bool = option(
        False, "--emulate", "Replace each task with one that takes the same time and produces as much data."
    )
    time_scale: float = option(1.0, "--time-scale", "With --emulate: factor on run times.")
    size_scale: float | None = option(
        None, "--size-scale", "With --emulate: factor on data sizes.", default_text="--time-scale"
    )
    burn: bool = option(False, "--burn", "With --emulate: use the CPU instead of sleeping.")
    output: Path = option(Path(), "--output", "Folder for result files.", short="-o", metavar="FOLDER")
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
    require_outputs(*pictures.files)
    code = run_program(read_program(program), options, pictures, as_json)
    if code:
        raise typer.Exit(code)


def run_program(
    program: Program,
    options: RunOptions,
    pictures: Pictures,
    as_json: bool,
) -> int:
    """Run, show progress and the outcome; return the exit code."""
    if options.emulate:
        from headrace.runtime.emulate import emulate

        program = emulate(
            program, time_scale=options.time_scale, size_scale=options.size_scale, burn=options.burn
        )
    else:
        _require_bodies(program, options)
    rules = read_rule_file(options.rules)
    if rules is None and options.when_impossible != RunOptions().when_impossible:
        raise UsageError("--when-impossible has no effect without rules", hint="add --rules FILE")
    events: list[Event] = []
    with (
        _progress(len(program.tasks)) as (planned, advance),
        compile_notice(Notice(progress=lambda text: None)),
    ):

        def observe(event: Event) -> None:
            events.append(event)
            advance(event)

        done = execute(
            program,
            options.on,
            options.scheduler,
            rules=rules,
            when_impossible=options.when_impossible,
            workers=options.workers,
            speeds=read_speeds(options.speeds),
            stretch=1.0
            if options.speeds is None or options.emulate
            else max(read_speeds(options.speeds) or [1.0]),
            tls=options.tls,
            output=options.output,
            learn=not options.emulate,
            observe=observe,
            planned=planned,
        )
    _draw(done, events, pictures)
    judged = None if rules is None else _judged(done, rules)
    with results_beside(*pictures.files):
        if as_json:
            print_json(to_json(done) | ({} if judged is None else judged.facts()))
        else:
            _show(done, len(program.tasks), pictures)
            if judged is not None:
                judged.print()
    if done.failure is not None:
        sys.stderr.write(f"error: {done.failure}\n")
        return done.failure.exit_code
    return 0


def _judged(done: Run, rules: RuleSet) -> JudgedPlan:
    """What the rules say of the tasks that have finished."""
    from headrace.commands.check_rules import happened
    from headrace.rules.evaluate import evaluate

    finished = [event for event in done.outcome.events if isinstance(event, TaskFinished)]
    rows = [(event.task, event.host, event.start, event.time) for event in finished]
    schedule = happened(rows, done.graph, done.platform, f"run {done.id}")
    return JudgedPlan(rules.source, evaluate(rules, done.graph, done.platform, schedule), done.makespan)


def _require_bodies(program: Program, options: RunOptions) -> None:
    if (options.time_scale, options.size_scale, options.burn) != (1.0, None, False):
        raise UsageError("--time-scale, --size-scale and --burn require --emulate", hint="add --emulate")
    bare = next((t.name for t in program.tasks.values() if t.body is None), None)
    if bare is not None:
        raise UsageError(
            f"task {bare!r} has nothing to execute",
            where=program.name,
            hint="add --emulate --time-scale 0.01 to run emulated tasks",
        )


def read_speeds(text: str | None) -> list[float] | None:
    """
    >>> read_speeds("4,2,1,1")
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


Planned = Callable[[Plan | None], None]
Advance = Callable[[Event], None]


@contextmanager
def _progress(tasks: int) -> Iterator[tuple[Planned, Advance]]:
    """A progress bar on a terminal; elsewhere a line for each tenth of the tasks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not terminal, transient=True) as bar:
        line = bar.add_task("starting workers", total=tasks)
        finished: set[str] = set()

        def planned(plan: Plan | None) -> None:
            text = "running" if plan is None else f"running (planned {show_time(plan.makespan)})"
            bar.update(line, description=text)

        def advance(event: Event) -> None:
            if isinstance(event, HostLeft):
                bar.console.print(
                    f"worker {event.host} is gone; its tasks were moved to other workers", highlight=False
                )
            if isinstance(event, RuleDropped):
                bar.console.print(str(event), highlight=False)
            if not isinstance(event, TaskFinished):
                return
            finished.add(event.task)
            bar.update(line, completed=len(finished))
            if (
                not terminal
                and tasks >= 10
                and len(finished) * 10 // tasks > (len(finished) - 1) * 10 // tasks
            ):
                sys.stderr.write(f"{len(finished)} of {tasks} tasks\n")

        yield planned, advance


def _draw(done: Run, events: list[Event], pictures: Pictures) -> None:
    graph = done.plan.graph if done.plan is not None else None
    if pictures.gantt is not None:
        from headrace.formats.files import write_file
        from headrace.report.gantt import chart_svg, run_chart

        chart = run_chart(done.plan, events, done.platform, graph=graph, bound=done.bound)
        write_file(pictures.gantt, chart_svg(chart).encode())
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
    unfinished = len(done.outcome.not_run)
    rows += [
        ["tasks", f"{tasks - unfinished} of {tasks}"],
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
        "tasks": [
            {"id": e.task, "host": e.host, "start": e.start, "finish": e.time}
            for e in done.outcome.events
            if isinstance(e, TaskFinished)
        ],
        "failed": [{"task": e.task, "host": e.host, "error": e.error} for e in done.outcome.errors],
        "not_run": [task for task in done.outcome.not_run if task not in failed],
        "results": {name: str(path) for name, path in done.files.items()},
        **({"dropped_rules": dropped} if dropped else {}),
    } | _usage(done).facts()


def _usage(done: Run) -> Usage:
    """Cost and energy, if the platform that the run was planned for has prices or watts."""
    finished = [event for event in done.outcome.events if isinstance(event, TaskFinished)]
    return usage_of_run(done.graph, done.platform, finished)
