"""`headrace compare`: a table of makespan / bound and planning time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.experiment.compare import Row, compare, geometric_means
from headrace.experiment.kept import Kept, KeptResults
from headrace.formats.python_program import is_python_program, load_python_program
from headrace.formats.reading import read_any_program
from headrace.model.errors import UsageError
from headrace.model.platform import Platform
from headrace.planners.registry import make


def compare_files(
    programs: Sequence[str],
    platforms: Sequence[str],
    schedulers: Sequence[str],
    seconds: float | None,
    seed: int,
    tell: Callable[[str], None],
) -> list[Row]:
    """Read the files and plan what is not kept yet."""
    options = {"best": {"time": 10.0 if seconds is None else seconds}} if "best" in schedulers else {}
    if seconds is not None and not options:
        raise UsageError("--time is for best", hint="add best to --schedulers")
    for name in schedulers:
        make(name, **options.get(name, {}))  # an unknown name is said before anything is planned
    graphs = {
        _short(p): (load_python_program(p) if is_python_program(p) else read_any_program(p)).graph
        for p in programs
    }
    places = {_short(p): Platform.local() if p == "local" else Platform.read(p) for p in platforms}
    with KeptResults() as kept:
        return compare(graphs, places, schedulers, kept, options=options, seed=seed, tell=tell)


def table(rows: Sequence[Row], schedulers: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Makespan / bound and planning time of each scheduler, one row for each instance, means at the end."""
    headers = ["program", "platform", "tasks", "hosts", *schedulers]
    lines = [
        [
            row.program,
            row.platform,
            f"{row.tasks:,}",
            str(row.hosts),
            *(_cell(row.results[s]) for s in schedulers),
        ]
        for row in rows
    ]
    means = geometric_means(rows, schedulers)
    shown = [f"{mean:.3f}" if (mean := means[s]) is not None else "" for s in schedulers]
    return headers, [*lines, ["geometric mean", "", "", "", *shown]]


def _cell(result: Kept | str) -> str:
    if isinstance(result, str):
        return "no plan"
    ratio = result.makespan / result.bound if result.bound > 0 else 1.0
    return f"{ratio:.3f} ({result.seconds:.3g} s)"


def as_json(rows: Sequence[Row], schedulers: Sequence[str]) -> dict[str, Any]:
    """The same for machines."""
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
