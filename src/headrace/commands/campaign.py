"""`headrace campaign`: run every combination of a campaign file; print a table and draw a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.commands.console import computing, print_json, print_table, require_outputs, results_beside
from headrace.commands.options import JsonOption, PlotOption, ProcessesOption
from headrace.model.units import show_size, show_time
from headrace.report.table_files import require_table, write_table

if TYPE_CHECKING:
    from headrace.experiment.campaign import Done
    from headrace.experiment.campaign_summary import Summary
    from headrace.formats.campaign_toml import CampaignFile


def campaign(
    file: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Campaign TOML: what to combine.")],
    workers: ProcessesOption = None,
    plot: PlotOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a row for each run as .csv or .parquet."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the campaign and print a row for each group of runs that differ only in the seed."""
    require_outputs(output, drawn=(plot,), inputs=(file,))
    if output is not None:
        require_table(output)
    with computing(f"running {file}", 60) as say:
        read, done = run_campaign_file(file, workers, plot, say)
    if output is not None:
        write_table(output, *run_table(read, done))
    with results_beside(plot, output):
        if as_json:
            print_json(to_json(read, done))
            return
        print_table(*table(done))
        for reason in reasons(done):
            typer.echo(reason)
        if plot is not None:
            typer.echo(f"picture: {plot}")


def run_campaign_file(
    file: Path, workers: int | None, plot: Path | None, tell: Callable[[str], None]
) -> tuple[CampaignFile, list[Done]]:
    """Read the campaign, run what is not in the cache, and draw the picture if requested."""
    from headrace.experiment.campaign import KeptRuns, run_campaign
    from headrace.formats.campaign_toml import read_campaign
    from headrace.model.errors import HeadraceError

    campaign = read_campaign(file)
    try:
        with KeptRuns() as kept:
            done = run_campaign(campaign, kept, workers=workers, tell=tell)
    except KeyboardInterrupt:
        tell("stopped; finished runs are kept, and the same command continues from there")
        raise
    except HeadraceError as error:
        raise error if str(file) in error.where else error.at(str(file)) from None
    if plot is not None:
        from headrace.experiment.campaign_summary import pictures, summaries
        from headrace.report.curves import write_curves

        write_curves(plot, pictures(campaign.applications, summaries(done)))
    return campaign, done


def table(done: Sequence[Done]) -> tuple[list[str], list[list[str]]]:
    """A row for each group of runs that differ only in the seed; columns with a single value are omitted."""
    from headrace.experiment.campaign_summary import summaries

    found = summaries(done)
    always = ("application", "grid", "scheduler")
    told = [
        name
        for name in found[0].group._fields
        if name in always or len({getattr(s.group, name) for s in found}) > 1
    ]
    headers = [*told, "runs", "makespan", "+-", "x best", "moved", "deciding"]
    return headers, [[*(getattr(s.group, name) for name in told), *_cells(s)] for s in found]


def reasons(done: Sequence[Done]) -> list[str]:
    """Why runs did not finish: the most frequent reasons with their numbers of runs."""
    found = Counter(one.outcome.error for one in done if one.outcome.error)
    lines = [f"{count} of {len(done)} runs: {error}" for error, count in found.most_common(5)]
    return [*lines, f"... and {len(found) - 5} more reasons"] if len(found) > 5 else lines


def _cells(s: Summary) -> list[str]:
    runs = f"{s.runs - s.failed} of {s.runs}" if s.failed else str(s.runs)
    if s.makespan is None or s.relative is None or s.bytes_moved is None or s.deciding is None:
        return [runs, "no run finished", "", "", "", ""]
    spread = "" if s.deviation is None else show_time(s.deviation)
    return [
        runs,
        show_time(s.makespan),
        spread,
        f"{s.relative:.3f}",
        show_size(s.bytes_moved),
        show_time(s.deciding),
    ]


def to_json(campaign: CampaignFile, done: Sequence[Done]) -> dict[str, Any]:
    """All runs and their summaries as JSON."""
    from headrace.experiment.campaign_summary import summaries

    return {
        "campaign": campaign.name,
        "runs": [
            {
                "application": one.run.application.name,
                "grid": one.run.grid.name,
                "scheduler": one.run.scheduler,
                "events": one.run.events,
                "estimates": one.run.estimates,
                "faults": one.run.faults,
                "seed": one.run.seed,
                "kept": one.kept,
                **({"error": one.outcome.error} if one.outcome.error else _facts(one)),
            }
            for one in done
        ],
        "summary": [
            {
                **s.group._asdict(),
                "runs": s.runs,
                "failed": s.failed,
                "makespan": s.makespan,
                "deviation": s.deviation,
                "relative": s.relative,
                "bytes_moved": s.bytes_moved,
                "deciding": s.deciding,
            }
            for s in summaries(done)
        ],
    }


def run_table(campaign: CampaignFile, done: Sequence[Done]) -> tuple[list[str], list[list[Any]]]:
    """A row for each run; columns that a run has no value for are empty."""
    rows = to_json(campaign, done)["runs"]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return columns, [[row.get(name) for name in columns] for row in rows]


def _facts(one: Done) -> dict[str, Any]:
    facts = one.outcome._asdict()
    del facts["error"]
    return facts
