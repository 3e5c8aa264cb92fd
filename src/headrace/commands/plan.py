"""`headrace plan`: make a plan, save it and summarise it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.console import (
    Say,
    computing,
    file_rows,
    print_json,
    print_table,
    require_outputs,
    results_beside,
)
from headrace.commands.dataclass_options import option
from headrace.commands.options import (
    JsonOption,
    OnOption,
    Pictures,
    ProgramArg,
    SchedulerOption,
    draw_plan,
    read_program,
)

if TYPE_CHECKING:
    from headrace.model.plan import Plan

SEARCHING = ("best", "coschedule")
"""Schedulers that search until their time is up and report their progress."""


@dataclass(frozen=True)
class PlanOptions:
    """Options of the scheduler, and the file for the plan."""

    time: float | None = option(
        None,
        "--time",
        "Search time of `best` and `coschedule`.",
        metavar="SECONDS",
        default_text="10 for best, 20 for coschedule",
    )
    chunk: int | None = option(
        None,
        "--chunk",
        "With `coschedule`: number of jobs planned at a time.",
        metavar="JOBS",
        min=1,
        default_text="all",
    )
    seed: int = option(0, "--seed", "Random seed of randomized schedulers.")
    output: Path | None = option(None, "--output", "Save the plan.", short="-o", metavar="FILE")

    def for_planner(self, scheduler: str, say: Say) -> dict[str, Any]:
        """The arguments of the planner's constructor."""
        given = {name: value for name in ("time", "chunk") if (value := getattr(self, name)) is not None}
        return given | ({"tell": _search_progress(say)} if scheduler in SEARCHING else {})


def plan(
    program: ProgramArg,
    *,
    on: OnOption = "local",
    scheduler: SchedulerOption = "auto",
    options: PlanOptions,
    pictures: Pictures,
    as_json: JsonOption = False,
) -> None:
    """Plan, write the requested files, and print a summary."""
    from headrace.api import plan as make_plan
    from headrace.formats.loading import load_platform
    from headrace.formats.plan_json import plan_to_dict, write_plan

    files = (options.output, *pictures.files)
    require_outputs(*files)
    platform = load_platform(on)
    source = read_program(program)
    with computing(f"planning {len(source.tasks):,} tasks on {len(platform.hosts)} hosts") as say:
        given = options.for_planner(scheduler, say)
        made = make_plan(source, platform, scheduler, seed=options.seed, **given)
    if options.output is not None:
        write_plan(made, options.output, made_from=(program, on))
    draw_plan(made, pictures)
    with results_beside(*files):
        if as_json:
            print_json(plan_to_dict(made))
        else:
            _show(made, [("plan", options.output), *pictures.named])


def _search_progress(say: Say) -> Any:
    def tell(passed: float, makespan: float, bound: float) -> None:
        gap = f", gap {makespan / bound - 1:.2%}" if bound > 0 else ""
        say(f"{passed:.1f} s: makespan {makespan:.6g} s, bound {bound:.6g} s{gap}")

    return tell


def _show(made: Plan, files: list[tuple[str, Path | None]]) -> None:
    from headrace.report.tables import summary

    print_table([], [*(list(row) for row in summary(made)), *file_rows(files)])
