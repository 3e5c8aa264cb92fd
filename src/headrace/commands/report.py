"""`headrace report`: a plan or a recorded run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.commands.console import print_json, progress, require_outputs, results_beside
from headrace.commands.options import JsonOption
from headrace.model.errors import UsageError

if TYPE_CHECKING:
    from headrace.model.plan import Plan
    from headrace.report.interactive import Rules
    from headrace.report.schedule_data import FinishedRun


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|PLAN",
            help="A recorded run, `last`, or a plan file.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")
    ] = Path("report.html"),
    program: Annotated[
        str | None,
        typer.Option(
            "--program", metavar="PROGRAM", help="Of a plan.", show_default="the one in the plan file"
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="PLATFORM", help="Of a plan.", show_default="the one in the plan file"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the page and say where it is."""
    from headrace.formats.files import encode_text, write_file

    require_outputs(output, inputs=(source, program, on))
    with progress(f"reading {source}"):
        text = _plan_page(source, program, on) if Path(source).is_file() else _run_page(source)
    write_file(output, encode_text(text, str(output)))
    with results_beside(output):
        if as_json:
            print_json({"source": source, "page": str(output)})
        else:
            typer.echo(f"page: {output}")


def _plan_page(path: str, program: str | None, on: str | None) -> str:
    from headrace.report.interactive import plan_report

    plan, rules = read_plan_file(path, program, on)
    return plan_report(plan, rules)


def _run_page(run: str) -> str:
    from headrace.report.interactive import run_report

    finished, rules = recorded_run(run)
    return run_report(finished, rules)


def read_plan_file(path: str, program: str | None = None, on: str | None = None) -> tuple[Plan, Rules | None]:
    """A plan with the files it was made from, and what its rules say of it."""
    from headrace.commands.judged_plan import judge
    from headrace.commands.options import read_rule_file
    from headrace.formats.loading import load_platform, load_program
    from headrace.formats.plan_json import files_of_plan, read_plan, rules_file_of_plan
    from headrace.report.rules import rule_rows

    made_from, made_on = files_of_plan(path)
    program, on = program or made_from, on or made_on
    if program is None or on is None:
        raise UsageError(
            "the plan does not say which program and platform it was made from",
            where=path,
            hint="give --program FILE and --on FILE",
        )
    plan = read_plan(path, load_program(program).graph, load_platform(on))
    rules_file = rules_file_of_plan(path)
    rules = read_rule_file(None if rules_file is None else Path(rules_file))
    if rules is None:
        return plan, None
    judged = judge(rules, plan.graph, plan)
    return plan, rule_rows(judged.verdicts, plan.makespan)


def recorded_run(run: str) -> tuple[FinishedRun, Rules | None]:
    """A run of the record, and what its rules say of what happened."""
    from headrace.record import Record
    from headrace.record.run_plans import events_of_run, planned_with
    from headrace.report.schedule_data import FinishedRun

    with Record.open() as record:
        row = record.run(run)
        known = planned_with(record, row.id)
        events = events_of_run(record, row.id)
    finished = FinishedRun(
        events,
        known.graph,
        known.platform,
        known.plan,
        bound=row.bound,
        title=f"{row.program} on {row.platform}, run {row.id} ({row.scheduler}, {row.status})",
    )
    return finished, _rules(finished, known.rules, row.id)


def _rules(run: FinishedRun, text: str, name: str) -> Rules | None:
    if not text:
        return None
    from headrace.commands.check_rules import happened
    from headrace.model.events import TaskFinished
    from headrace.report.rules import rule_rows
    from headrace.rules.evaluate import evaluate
    from headrace.rules.parser import parse_rules

    done = [event for event in run.events if isinstance(event, TaskFinished)]
    rows = [(event.task, event.host, event.start, event.time) for event in done]
    schedule = happened(rows, run.graph, run.platform, f"run {name}")
    verdicts = evaluate(parse_rules(text), run.graph, run.platform, schedule)
    return rule_rows(verdicts, run.timeline.end)
