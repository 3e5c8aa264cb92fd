"""`headrace compare`: a table of makespan / bound and planning time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.compare_simulated import SimulatedComparison, compare_simulated, show_simulated
from headrace.commands.console import computing, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.names import scheduler_name
from headrace.commands.options import JsonOption, PlotOption, names_in, read_rule_file
from headrace.experiment.compare import Row, geometric_means
from headrace.experiment.compare import compare as compare_schedulers
from headrace.experiment.kept import Kept, KeptResults
from headrace.formats.loading import load_platform, load_program
from headrace.model.bound import Bound, Effort
from headrace.model.errors import UsageError
from headrace.planners.registry import make
from headrace.report.tables import show_bound


@dataclass(frozen=True)
class CompareOptions:
    """The schedulers to compare and their options."""

    schedulers: str = option("heft,auto", "--schedulers", "Comma-separated scheduler names.", metavar="LIST")
    time: float = option(10.0, "--time", "Search time of `best`.", metavar="SECONDS")
    seed: int = option(0, "--seed", "Random seed of randomized schedulers.", min=0)
    bound: Effort = option("quick", "--bound", "Effort for lower bounds: full takes up to 2 s for each plan.")
    rules: Path | None = option(
        None,
        "--rules",
        "Compare plans that keep the rules of this file.",
        metavar="FILE",
        default_text="no rules",
    )


def compare(
    programs: Annotated[
        list[str], typer.Argument(metavar="PROGRAM...", help="WfFormat, CSV or PST files, or file.py:name.")
    ],
    on: Annotated[
        list[str], typer.Option("--on", metavar="PLATFORM", help="Platform file; repeat for more platforms.")
    ],
    options: CompareOptions,
    simulated: SimulatedComparison,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print makespan / bound and planning time of each scheduler on each program and platform."""
    require_outputs(drawn=(plot,), inputs=(*programs, *on))
    names = scheduler_list(options.schedulers)
    about_plans = plot is not None or options.rules is not None or options.bound != "quick"
    simulated.require_fitting(names, planning=about_plans)
    if simulated.simulate:
        with computing("comparing", 60) as say:
            compared = compare_simulated(programs, on, names, simulated, options.seed, say)
        show_simulated(compared, names, simulated, as_json)
        return
    with computing("comparing") as say:
        rows = compare_files(programs, on, options, say)
    if plot is not None:
        from headrace.report.ratios import write_ratios

        labels = [f"{row.program} on {row.platform}" for row in rows]
        write_ratios(plot, labels, names, [[_ratio(row.results[name]) for name in names] for row in rows])
    with results_beside(plot):
        if as_json:
            print_json(to_json(rows, names))
        else:
            print_table(*table(rows, names))


def compare_files(
    programs: Sequence[str],
    platforms: Sequence[str],
    asked: CompareOptions,
    tell: Callable[[str], None],
) -> list[Row]:
    """Read the files and plan what is not in the cache."""
    schedulers = scheduler_list(asked.schedulers)
    options = {"best": {"time": asked.time}} if "best" in schedulers else {}
    if asked.time != CompareOptions().time and not options:
        raise UsageError("--time has no effect without `best`", hint="add best to --schedulers")
    for name in schedulers:
        make(name, **options.get(name, {}))  # an unknown name is said before anything is planned
    rules = read_rule_file(asked.rules)
    graphs = {_short(p): load_program(p).graph for p in programs}
    places = {_short(p): load_platform(p) for p in platforms}
    with KeptResults() as kept:
        return compare_schedulers(
            *(graphs, places, schedulers, kept),
            options=options,
            rules=rules,
            seed=asked.seed,
            bound=asked.bound,
            tell=tell,
        )


def scheduler_list(text: str) -> list[str]:
    """
    >>> scheduler_list("HEFT, auto")
    ['heft', 'auto']
    """
    names = [scheduler_name(name) for name in names_in(text)]
    if not names:
        raise UsageError(f"--schedulers is {text!r}", hint="name at least one, such as heft,auto")
    return names


def table(rows: Sequence[Row], schedulers: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Makespan / bound and planning time of each scheduler, one row per instance and the means."""
    headers = ["program", "platform", "tasks", "hosts", *schedulers, "lower bound"]
    lines = [
        [
            row.program,
            row.platform,
            f"{row.tasks:,}",
            str(row.hosts),
            *(_cell(row.results[s]) for s in schedulers),
            _bound(row),
        ]
        for row in rows
    ]
    means = geometric_means(rows, schedulers)
    shown = [f"{mean:.3f}" if (mean := means[s]) is not None else "" for s in schedulers]
    return headers, [*lines, ["geometric mean", "", "", "", *shown, ""]]


def _bound(row: Row) -> str:
    """The bound of a row, which holds for all its plans."""
    known = [k for k in row.results.values() if isinstance(k, Kept) and k.bound > 0]
    return show_bound(Bound(known[0].bound, known[0].bound_name)) if known else ""


def _ratio(result: Kept | str) -> float | None:
    return None if isinstance(result, str) or not result.bound else result.makespan / result.bound


def _cell(result: Kept | str) -> str:
    if isinstance(result, str):
        return "no plan"
    ratio = result.makespan / result.bound if result.bound > 0 else 1.0
    return f"{ratio:.3f} ({result.seconds:.3g} s)"


def to_json(rows: Sequence[Row], schedulers: Sequence[str]) -> dict[str, Any]:
    """The rows and means as JSON."""
    return {
        "rows": [
            {
                "program": row.program,
                "platform": row.platform,
                "tasks": row.tasks,
                "hosts": row.hosts,
                "results": {
                    name: result._asdict() if isinstance(result, Kept) else {"error": result}
                    for name, result in row.results.items()
                },
            }
            for row in rows
        ],
        "geometric_means": geometric_means(rows, schedulers),
    }


def _short(path: str) -> str:
    return (
        Path(path).name.removesuffix(".gz").removesuffix(".json").removesuffix(".toml").removesuffix(".pst")
    )
