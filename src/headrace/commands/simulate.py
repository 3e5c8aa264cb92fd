"""`headrace simulate`: run a program in virtual time under a scheduler, or replay a plan."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.console import (
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
    draw_plan,
    read_program,
    read_rule_file,
)
from headrace.commands.simulate_options import SimulateSource, require_fitting
from headrace.model.errors import UsageError
from headrace.model.units import show_size, show_time
from headrace.simulator.events.config import SimulationConfig

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.rules.tree import RuleSet
    from headrace.simulator.events.run import SimulatedRun


Show = Callable[[bool], None]
"""Prints the outcome, as JSON if the argument is true."""


@dataclass(frozen=True)
class SimulateOutput:
    """How often to simulate, and the files that only simulations write."""

    runs: int | None = option(
        None,
        "--runs",
        "Repeat with this many seeds and report the distribution of makespans.",
        min=1,
        default_text="one run",
    )
    plot: Path | None = option(None, "--plot", "With --runs: draw the makespans as SVG.", metavar="FILE")
    log: Path | None = option(
        None,
        "--log",
        "Write what happened, one line per event; as JSON lines if FILE ends with .jsonl.",
        metavar="FILE",
    )

    def __post_init__(self) -> None:
        if self.runs is not None and self.log is not None:
            raise UsageError("--log records a single run", hint="leave --runs out and pick a --seed")
        if self.runs is None and self.plot is not None:
            raise UsageError("--plot draws repeated runs", hint="add --runs 1000, or use --gantt")


def simulate(
    program: ProgramArg,
    source: SimulateSource,
    config: SimulationConfig,
    output: SimulateOutput,
    pictures: Pictures,
    on: OnOption = "local",
    as_json: JsonOption = False,
) -> None:
    """Simulate once or with many seeds, write the requested files, and print the outcome."""
    from headrace.formats.loading import load_grid

    files = (output.plot, output.log, *pictures.files)
    require_outputs(
        output.log, pictures.trace, drawn=(output.plot, pictures.gantt), inputs=(program, on, source.rules)
    )
    grid = load_grid(on)
    require_fitting(source, config, grid)
    case = SimulateCase(read_program(program), grid, source, config, read_rule_file(source.rules))
    if output.runs is not None:
        show = _simulate_repeatedly(case, output, pictures)
    else:
        show = _simulate_once(case, output.log, pictures)
    with results_beside(*files):
        show(as_json)


@dataclass(frozen=True)
class SimulateCase:
    """What is simulated."""

    program: Program
    grid: Platform | GridScript
    source: SimulateSource
    config: SimulationConfig
    rules: RuleSet | None = None

    def judged(self, executed: Plan) -> JudgedPlan | None:
        """What the rules say of what happened."""
        if self.rules is None:
            return None
        return judge(self.rules, self.program.graph, executed)

    def plan(self) -> Plan:
        """The plan in the file, which must be valid."""
        from headrace.formats.plan_json import read_plan
        from headrace.model.behaviour import GridScript
        from headrace.model.check import require_valid

        assert self.source.plan is not None
        what = "the program has real figures beside its estimates" if self.program.reality is not None else ""
        what = "the grid changes over time" if changes_by_itself(self.grid) else what
        if what:
            raise UsageError(
                f"{what}; --plan replays a plan where everything is as planned",
                hint="use --scheduler NAME --replan neither instead",
            )
        platform = self.grid.start() if isinstance(self.grid, GridScript) else self.grid
        made = read_plan(self.source.plan, self.program.graph, platform)
        require_valid(self.program, platform, made)
        return made


def _simulate_once(case: SimulateCase, log: Path | None, pictures: Pictures) -> Show:
    from headrace.formats.files import write_file
    from headrace.formats.plan_json import plan_to_dict
    from headrace.model.usage import usage_of_plan
    from headrace.report.run_log import log_text
    from headrace.report.usage import usage_rows

    if log is not None and case.source.plan is not None:
        raise UsageError("a replayed plan has no log", where="--log", hint="leave --plan out, or see --json")
    with computing(f"simulating {len(case.program.tasks):,} tasks", 60) as say:
        outcome = simulate_case(case, say)
    if log is not None and outcome.run is not None:
        write_file(log, log_text(outcome.run, log).encode())
    outcome.draw(pictures)
    judged = case.judged(outcome.executed)

    def show(as_json: bool) -> None:
        if as_json:
            told = {} if judged is None else judged.facts()
            print_json(plan_to_dict(outcome.executed) | outcome.facts | told)
        else:
            usage = [list(row) for row in usage_rows(usage_of_plan(outcome.executed))]
            print_table([], [*outcome.rows, *usage, *file_rows([*pictures.named, ("log", log)])])
            if judged is not None:
                judged.print()
        if judged is not None:
            judged.require_kept([] if outcome.run is None else [event.rule for event in outcome.run.dropped])

    return show


def _simulate_repeatedly(case: SimulateCase, output: SimulateOutput, pictures: Pictures) -> Show:
    from headrace.commands.simulate_runs import median_run, simulate_runs

    runs = output.runs or 1
    with computing(f"simulating {len(case.program.tasks):,} tasks {runs:,} times", 60) as say:
        repeated = simulate_runs(case, runs, say)
    if output.plot is not None:
        repeated.plot(output.plot, f"{case.program.name} under {repeated.scheduler}")
    if pictures.gantt is not None or pictures.trace is not None:
        median_run(case, repeated).draw(pictures)

    def show(as_json: bool) -> None:
        drawn = [(f"{name} of the median run", path) for name, path in pictures.named]
        if as_json:
            print_json(repeated.json())
        else:
            print_table([], [*repeated.rows(), *file_rows([("picture", output.plot), *drawn])])

    return show


@dataclass(frozen=True)
class Simulated:
    """What is printed, drawn and written."""

    executed: Plan
    facts: dict[str, Any]
    """For machines, beside the executed plan."""
    rows: list[list[str]] = field(default_factory=list)
    run: SimulatedRun | None = None

    def draw(self, pictures: Pictures) -> None:
        """Write the files that were asked for."""
        if pictures.gantt is not None:
            (self.executed if self.run is None else self.run).gantt(pictures.gantt)
        if self.run is None:
            draw_plan(self.executed, replace(pictures, gantt=None))
        elif pictures.trace is not None:
            from headrace.report.chrome_trace import simulated_trace, write_trace

            write_trace(simulated_trace(self.run), pictures.trace)


def changes_by_itself(grid: Platform | GridScript) -> bool:
    """Whether hosts or links follow traces, or come and go."""
    from headrace.model.behaviour import GridScript

    platform, later = (grid.platform, grid.changes) if isinstance(grid, GridScript) else (grid, ())
    later = tuple(change for change in later if change.time > 0)
    return bool(
        later
        or any(len(h.trace) > 1 for h in platform.hosts if h.trace is not None)
        or any(len(s.uplink_trace.bandwidth) > 1 for s in platform.sites if s.uplink_trace is not None)
        or any(len(link.trace.bandwidth) > 1 for link in platform.links if link.trace is not None)
    )


def simulate_case(case: SimulateCase, say: Callable[[str], None]) -> Simulated:
    """Let the scheduler decide, or replay the plan."""
    return _run(case, say) if case.source.plan is None else _replay(case)


def _run(case: SimulateCase, say: Callable[[str], None]) -> Simulated:
    from headrace.core.replan import Replan
    from headrace.online.adapter import make_scheduler
    from headrace.report.explain_run import explain_simulated
    from headrace.report.run_log import stopped_executions
    from headrace.simulator.events.simulate import simulate_program

    total = len(case.program.tasks)
    said = clock.monotonic()

    def tell(time: float, done: int) -> None:
        nonlocal said
        if clock.monotonic() - said >= 1.0:
            said = clock.monotonic()
            say(f"{done:,} of {total:,} tasks done at {show_time(time)}")

    source, config = case.source, case.config
    run = simulate_program(
        *(case.program, case.grid, source.scheduler, config),
        rules=case.rules,
        seed=source.seed,
        tell=tell,
        **source.for_planner,
    )
    planner = isinstance(make_scheduler(source.scheduler, config.policy, **source.for_planner), Replan)
    executed = run.executed
    if case.rules is not None:
        from headrace.simulator.events.ruled import without_signals

        executed = without_signals(executed, case.program.graph)
    explained = explain_simulated(run)
    rows = _rows(run, planner, [] if explained is None else explained.rows())
    facts = (
        _facts(run)
        | {"stopped": stopped_executions(run)}
        | ({} if explained is None else {"explained": explained.facts()})
    )
    return Simulated(executed, facts, rows, run)


def _facts(run: SimulatedRun) -> dict[str, Any]:
    return {
        "events": run.events,
        "seconds": run.seconds,
        "asked": run.asked,
        "plans": run.plans,
        "redone": run.redone,
        "replicas": run.replicas,
        "stolen": run.stolen,
        "duplicates": run.duplicates,
        "bytes_moved": run.bytes_moved,
        **({"dropped_rules": [asdict(event) for event in run.dropped]} if run.dropped else {}),
    }


def _rows(run: SimulatedRun, planner: bool, explained: list[list[str]]) -> list[list[str]]:
    plans = f", {run.plans:,} {'plan' if run.plans == 1 else 'plans'}" if planner else ""
    times = "time" if run.asked == 1 else "times"
    return [
        ["scheduler", run.scheduler],
        ["makespan", show_time(run.makespan)],
        ["lower bound", show_time(run.bound)],
        ["scheduler asked", f"{run.asked:,} {times}{plans}"],
        ["data moved", show_size(run.bytes_moved)],
        *explained,
        *([["run again", f"{run.redone:,} tasks, because their data was lost"]] if run.redone else []),
        *([["replicas", f"{run.replicas:,}"]] if run.replicas else []),
        *([["stolen", f"{run.stolen:,}"]] if run.stolen else []),
        *([["duplicates", f"{run.duplicates:,}"]] if run.duplicates else []),
        *(["note", str(event)] for event in run.dropped),
        ["events", f"{run.events:,} in {show_time(run.seconds)}"],
    ]


def _replay(case: SimulateCase) -> Simulated:
    from headrace.report.explain_run import explain_plan
    from headrace.simulator.replay.plan_replay import replay_plan

    plan = case.plan()
    outcome = replay_plan(plan, error=case.config.error, seed=case.source.seed)
    explained = explain_plan(outcome.executed)
    facts: dict[str, Any] = {"planned": plan.makespan, "events": outcome.events, "seconds": outcome.seconds}
    facts |= {} if explained is None else {"explained": explained.facts()}
    rows = [
        ["scheduler", plan.scheduler],
        ["makespan", show_time(outcome.makespan)],
        ["planned", show_time(plan.makespan)],
        ["lower bound", show_time(plan.bound)],
        *([] if explained is None else explained.rows()),
        ["events", f"{outcome.events:,} in {show_time(outcome.seconds)}"],
    ]
    return Simulated(outcome.executed, facts, rows)
