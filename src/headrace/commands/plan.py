"""`headrace plan`: make a plan, save it and summarise it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
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
from headrace.commands.judged_plan import JudgedPlan, judge
from headrace.commands.options import (
    JsonOption,
    OnOption,
    Pictures,
    ProgramArg,
    RulesOption,
    SchedulerOption,
    draw_plan,
    read_program,
    read_rule_file,
)
from headrace.model.bound import Effort, bound_name
from headrace.model.errors import UsageError

if TYPE_CHECKING:
    from headrace.commands.plan_questions import Outcome
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.planners.coschedule.why_not import WhyNot
    from headrace.rules.tree import RuleSet

SEARCHING = ("best", "coschedule")
"""Schedulers that search until their time is up and report their progress."""


@dataclass(frozen=True)
class PlanOptions:
    """Options of the scheduler, and the file for the plan."""

    time: float | None = option(
        None,
        "--time",
        "Search time of `best`, `coschedule` and `search`.",
        metavar="SECONDS",
        default_text="10 for best, 20 for coschedule, 60 for search",
    )
    hurry: float | None = option(
        None,
        "--hurry",
        "With `search`: priority of placing more tasks; 0 searches until the plan is proven best.",
        metavar="PRIORITY",
        min=0,
        default_text="far above all others",
    )
    chunk: int | None = option(
        None,
        "--chunk",
        "With `coschedule`: number of jobs planned at a time.",
        metavar="JOBS",
        min=1,
        default_text="all",
    )
    seed: int = option(0, "--seed", "Random seed of randomized schedulers.", min=0)
    bound: Effort = option("quick", "--bound", "Effort for the lower bound: full takes up to 2 s.")
    output: Path | None = option(
        None,
        "--output",
        "Save the plan: JSON, or a table of its tasks as .csv or .parquet.",
        short="-o",
        metavar="FILE",
    )
    rule_costs: bool = option(
        True,
        "--rule-costs",
        "With --rules: plan again without each rule, for at most 60 s, to tell its cost.",
    )
    what_if: tuple[str, ...] = option(
        (),
        "--what-if",
        'Plan again with a change, such as "link uw-ufmg x2", "disk prague +1TB" or "without site ohio"; repeatable.',
        metavar="CHANGE",
    )
    why_not: tuple[str, ...] = option(
        (),
        "--why-not",
        "With `coschedule`: show what it would cost to use this host, and why; repeatable.",
        metavar="HOST",
    )

    def for_planner(self, scheduler: str, say: Say) -> dict[str, Any]:
        """The arguments of the planner's constructor."""
        given = {
            name: value for name in ("time", "chunk", "hurry") if (value := getattr(self, name)) is not None
        }
        if scheduler == "search":
            return given | {"tell": _states_progress(say)}
        return given | ({"tell": _search_progress(say)} if scheduler in SEARCHING else {})


def plan(
    program: ProgramArg,
    *,
    on: OnOption = "local",
    scheduler: SchedulerOption = "auto",
    rules: RulesOption = None,
    options: PlanOptions,
    pictures: Pictures,
    as_json: JsonOption = False,
) -> None:
    """Plan, write the requested files, and print a summary."""
    from headrace.formats.files import STDIN
    from headrace.formats.loading import load_platform
    from headrace.formats.plan_json import plan_to_dict, write_plan
    from headrace.report.table_files import is_table, require_table

    files = (options.output, *pictures.files)
    require_outputs(options.output, pictures.trace, drawn=(pictures.gantt,), inputs=(program, on, rules))
    if options.output is not None and is_table(options.output):
        require_table(options.output)
    asked = read_rule_file(rules)
    platform = load_platform(on)
    source = read_program(program)
    _require_questions(platform, scheduler, options)
    with computing(f"planning {len(source.tasks):,} tasks on {len(platform.hosts)} hosts") as say:
        made, judged = _planned(source, platform, scheduler, asked, options, say)
        answers = _answered(source, platform, scheduler, asked, options, made, say)
    if options.output is not None:
        kept = None if judged is None else str(rules)
        if is_table(options.output):
            made.write(options.output)
        else:
            named = None if STDIN in (program, on) else (program, on)
            write_plan(made, options.output, made_from=named, rules_file=kept)
    draw_plan(made, pictures)
    with results_beside(*files):
        if as_json:
            print_json(plan_to_dict(made) | ({} if judged is None else judged.facts()) | answers.facts())
        else:
            _show(made, [("plan", options.output), *pictures.named], judged, answers.rows(made.makespan))


def _require_questions(platform: Platform, scheduler: str, options: PlanOptions) -> None:
    """Refuse questions that have no answer, before anything is planned."""
    if options.what_if:
        from headrace.commands.plan_questions import require_changes

        require_changes(platform, options.what_if)
    if options.why_not:
        from headrace.commands.plan_questions import require_hosts

        require_hosts(platform, options.why_not)
        if scheduler != "coschedule":
            raise UsageError(
                f"--why-not does not apply to the scheduler {scheduler!r}", hint="use it with -s coschedule"
            )


@dataclass(frozen=True)
class Answers:
    """What was asked with --what-if and --why-not."""

    outcomes: list[Outcome] = field(default_factory=list)
    hosts: list[WhyNot] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        from headrace.commands.plan_questions import why_not_facts

        found: dict[str, Any] = (
            {"what_if": [outcome.facts() for outcome in self.outcomes]} if self.outcomes else {}
        )
        return found | ({"why_not": [why_not_facts(answer) for answer in self.hosts]} if self.hosts else {})

    def rows(self, makespan: float) -> list[list[str]]:
        from headrace.commands.plan_questions import why_not_row

        return [*(outcome.row(makespan) for outcome in self.outcomes), *map(why_not_row, self.hosts)]


def _answered(
    source: Program,
    platform: Platform,
    scheduler: str,
    rules: RuleSet | None,
    options: PlanOptions,
    made: Plan,
    say: Say,
) -> Answers:
    """Solve again for each question."""
    if not options.what_if and not options.why_not:
        return Answers()
    from headrace.api import plan as make_plan
    from headrace.commands.plan_questions import what_if
    from headrace.core.scheduler import Problem
    from headrace.planners.coschedule.why_not import CANDIDATES, why_not

    given = options.for_planner(scheduler, lambda text: None)

    def solve(located: Graph, changed: Platform) -> Plan:
        say("planning again with a change")
        return make_plan(
            located, changed, scheduler, rules=rules, seed=options.seed, bound=options.bound, **given
        )

    present = made if rules is None else None  # a rule may speak of what changes
    outcomes = what_if(source.graph, platform, options.what_if, solve, present)
    problem = Problem(source.graph, platform, seed=options.seed, rules=rules)
    seconds = (20.0 if options.time is None else options.time) / CANDIDATES
    return Answers(outcomes, [why_not(problem, made, host, seconds) for host in options.why_not])


def _planned(
    source: Program,
    platform: Platform,
    scheduler: str,
    rules: RuleSet | None,
    options: PlanOptions,
    say: Say,
) -> tuple[Plan, JudgedPlan | None]:
    from headrace.api import plan as make_plan

    given = options.for_planner(scheduler, say)
    made = make_plan(
        source, platform, scheduler, rules=rules, seed=options.seed, bound=options.bound, **given
    )
    if rules is None:
        return made, None
    from headrace.core.scheduler import Problem
    from headrace.online.adapter import is_scheduler
    from headrace.planners.registry import make
    from headrace.planners.rule_costs import rule_costs

    planner = make(scheduler, **{name: value for name, value in given.items() if name != "tell"})
    costs = None
    if options.rule_costs and not is_scheduler(planner):
        problem = Problem(source.graph, platform, seed=options.seed, rules=rules)
        costs = rule_costs(planner, problem, made, tell=say if sys.stderr.isatty() else lambda text: None)
    return made, judge(rules, source.graph, made, costs)


def _search_progress(say: Say) -> Any:
    def tell(passed: float, makespan: float, bound: float) -> None:
        gap = f", gap {makespan / bound - 1:.2%}" if bound > 0 else ""
        name = f" ({bound_name(bound)})" if bound_name(bound) else ""
        say(f"{passed:.1f} s: makespan {makespan:.6g} s, bound {bound:.6g} s{name}{gap}")

    return tell


def _states_progress(say: Say) -> Any:
    def tell(opened: int, score: float, depth: int) -> None:
        best = "no plan yet" if math.isinf(score) else f"best score {score:.6g}"
        say(f"{opened:,} states opened, {best}, depth {depth}")

    return tell


def _show(
    made: Plan, files: list[tuple[str, Path | None]], judged: JudgedPlan | None, answers: list[list[str]]
) -> None:
    from headrace.report.tables import summary

    print_table([], [*(list(row) for row in summary(made)), *answers, *file_rows(files)])
    if judged is not None:
        judged.print()
